"""How many samples got each label, and how sure the model is of one sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.pl.axes import (
    BLUE,
    GREY,
    ORANGE,
    axes_for,
    column,
    figure_of,
    finish,
    record_of,
    short,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
else:  # typing.get_type_hints works without importing it
    Axes = Any

# Of steps of confidence, the highest first, and of labels that are withheld
_STEP_COLOURS = (BLUE, "#7ABBE6", "#F2A66B", ORANGE, GREY)
_N_COUNTS = 3  # columns of a table of labels before the steps of confidence


def labels(
    adata: Any, key: str = "optirank", *, ax: Axes | None = None, show: bool = False
) -> Axes:
    """How many samples got each label: one bar per label, coloured by confidence.

    The most frequent label comes first; labels that were withheld come last, in grey.
    Parameters as in :func:`confusion`, but a data frame needs the column
    ``key + "_confidence"`` too.
    """
    from optirank.workflow.labels import label_table

    given = column(adata, key)
    confidence = column(adata, f"{key}_confidence")
    pairs = zip(given, confidence, strict=True)
    known = np.array([None not in pair for pair in pairs], dtype=bool)
    if not known.any():
        raise ValueError(f"no sample has a {key} and a {key}_confidence")
    withheld = str(record_of(adata, key).get("withheld_label", "unassigned"))
    table = label_table(given[known].astype(str), confidence[known], withheld)
    ax = axes_for(ax, *labels_size(table))
    draw_labels(ax, table)
    return finish(ax, show)


def draw_labels(ax: Axes, table: pd.DataFrame) -> None:
    """Samples of each label by steps of confidence, as a bar with number and share."""
    from matplotlib.patches import Patch

    rows = np.arange(len(table))
    ends = np.zeros(len(table))
    handles = []
    for name, colour in zip(table.columns[_N_COUNTS:], _STEP_COLOURS, strict=True):
        ax.barh(rows, table[name], left=ends, color=colour, height=0.72)
        ends += table[name].to_numpy()
        if colour != GREY or np.any(table[name]):
            handles.append(Patch(color=colour, label=name))
    texts = [
        ax.annotate(
            f"{end:,.0f} ({100 * share:.1f} %)",
            (end, row),
            (4, 0),
            va="center",
            fontsize="small",
            textcoords="offset points",
            in_layout=False,
        )
        for row, end, share in zip(rows, ends, table["share"], strict=True)
    ]
    ax.set_yticks(rows, [short(name, 24) for name in table.index])
    ax.set(ylim=(len(table) - 0.4, -0.6), xticks=[])
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    ax.legend(
        handles=handles,
        title="confidence",
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=len(handles),
        handlelength=1.0,
        handletextpad=0.4,
        columnspacing=1.0,
        frameon=False,
        alignment="left",
        fontsize="small",
        title_fontsize="small",
    )
    figure = figure_of(ax)
    figure.draw_without_rendering()
    # Beside the longest bar there is room for its number
    room = max(text.get_window_extent().width for text in texts) + 0.1 * figure.dpi
    ax.set_xlim(0, ends.max() / max(1 - room / ax.get_window_extent().width, 0.3))


def labels_size(table: pd.DataFrame) -> tuple[float, float]:
    """Width and height, in inches, of `draw_labels`: it can be read on a phone."""
    return 4.4, 0.8 + 0.3 * len(table)
