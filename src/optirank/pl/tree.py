"""The tree of labels with how many samples each got and how sure the model is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.io.data import DataError
from optirank.pl.axes import BLUE, GREY, axes_for, column, finish, short

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
else:  # typing.get_type_hints works without importing it
    Axes = Any

_OWN, _BELOW = BLUE, "#7ABBE6"  # labels given as they stand; finer ones
_INDENT = 0.12  # of the width, per level


def tree(
    adata: Any,
    model: Any,
    key: str = "optirank",
    *,
    ax: Axes | None = None,
    show: bool = False,
) -> Axes:
    """The labels of a model as a tree: samples of each, and their mean confidence.

    Dark bars are samples that got this very label, light ones those with a finer label
    below it. Parameters as in :func:`labels`; ``model`` is the one that labelled them.
    """
    from optirank.model.file import as_model
    from optirank.workflow.levels import positions, tree_table

    known = as_model(model).tree
    if known is None:
        raise DataError("the model has no tree of labels: draw pl.labels instead")
    given = positions(known, column(adata, key))
    confidence = column(adata, f"{key}_confidence").astype(float)
    table = tree_table(known, given, confidence)
    ax = axes_for(ax, *tree_size(table))
    draw_tree(ax, table, len(given))
    return finish(ax, show)


def draw_tree(ax: Axes, table: pd.DataFrame, n_samples: int) -> None:
    """The lines of a `tree_table`, each moved to the right by its depth."""
    from matplotlib.patches import Patch

    rows = np.arange(len(table))
    widest = max(1, n_samples)
    start = _INDENT * widest * table["depth"].to_numpy()
    own = table["n_own"].to_numpy()
    whole = table["n_samples"].to_numpy()
    ax.barh(rows, own, left=start, color=_OWN, height=0.62)
    ax.barh(rows, whole - own, left=start + own, color=_BELOW, height=0.62)
    for row, (left, line) in enumerate(
        zip(start, table.to_dict("records"), strict=True)
    ):
        n = line["n_samples"]
        sure = f", confidence {line['confidence']:.2f}" if n else ""
        ax.annotate(
            f"{n:,} ({100 * line['share']:.1f} %){sure}",
            (left + n, row),
            (4, 0),
            va="center",
            fontsize="small",
            textcoords="offset points",
        )
    names = [
        "    " * depth + short(name, 28)
        for name, depth in zip(table.index, table["depth"], strict=True)
    ]
    ax.set_yticks(rows, names, ha="left")
    ax.tick_params(axis="y", length=0, pad=7 * max(map(len, names), default=1))
    ax.set(ylim=(len(table) - 0.4, -0.6), xticks=[], xlim=(0, 1.9 * widest))
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    ax.spines["left"].set_color(GREY)
    handles = [
        Patch(color=_OWN, label="this label"),
        Patch(color=_BELOW, label="finer"),
    ]
    place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1)}
    ax.legend(handles=handles, ncols=2, frameon=False, fontsize="small", **place)


def tree_size(table: pd.DataFrame) -> tuple[float, float]:
    """Width and height, in inches, of `draw_tree`."""
    return 5.6, 0.8 + 0.28 * len(table)
