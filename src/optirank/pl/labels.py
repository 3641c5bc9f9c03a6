"""The labels of samples: how many of each, their tree, why a sample got its own, and
whether genes that had no part in them agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from optirank.data.profiles import DataError
from optirank.model.file import as_model
from optirank.pl.axes import (
    BLUE,
    GREY,
    LEGEND_ABOVE,
    LIGHT_BLUE,
    ORANGE,
    Axes,
    Place,
    axes_for,
    column,
    figure_of,
    name_rows,
    record_of,
    short,
)
from optirank.verbs.labels import Labels, label_table, tree_table

if TYPE_CHECKING:
    from optirank.panel.further import Agreement

# Of steps of confidence, the highest first, and of labels that are withheld
_STEP_COLOURS = (BLUE, LIGHT_BLUE, "#F2A66B", ORANGE, GREY)
_INDENT = 0.12  # of the width of the tree, per level
_N_COUNTS = 3  # columns of a table of labels before the steps of confidence


def labels(adata: Any, key: str = "optirank", *, ax: Axes | None = None) -> Axes:
    """How many samples got each label: one bar per label, coloured by confidence.

    The most frequent label comes first; labels that were withheld come last, in grey.
    Parameters as in :func:`confusion`, but a data frame needs the column
    ``key + "_confidence"`` too; or what :func:`optirank.tl.annotate` returns.
    """
    if isinstance(adata, Labels):
        table = label_table(adata.labels, adata.confidence, adata.words[-1])
    else:
        given, confidence = column(adata, key), column(adata, f"{key}_confidence")
        known = (given != None) & (confidence != None)  # noqa: E711 (of arrays)
        if not known.any():
            raise ValueError(f"no sample has a {key} and a {key}_confidence")
        withheld = str(record_of(adata, key).get("withheld_label", "unassigned"))
        table = label_table(given[known].astype(str), confidence[known], withheld)
    ax = axes_for(ax, 4.4, 0.8 + 0.3 * len(table))  # it can be read on a phone
    rows = np.arange(len(table))
    ends = np.zeros(len(table))
    bars: Any = None
    for name, colour in zip(table.columns[_N_COUNTS:], _STEP_COLOURS, strict=True):
        shown = str(name) if colour != GREY or np.any(table[name]) else None
        look: dict[str, Any] = {"color": colour, "height": 0.72, "label": shown}
        bars = ax.barh(rows, table[name], left=ends, **look)
        ends += table[name].to_numpy()
    numbers = [
        f"{end:,.0f} ({100 * share:.1f} %)"
        for end, share in zip(ends, table["share"], strict=True)
    ]
    texts = ax.bar_label(bars, numbers, padding=4, fontsize="small", in_layout=False)
    name_rows(ax, [short(name, 24) for name in table.index], ("top", "right", "bottom"))
    ax.set_xticks([])
    ax.legend(
        title="confidence",
        ncols=len(_STEP_COLOURS),
        handlelength=1.0,
        handletextpad=0.4,
        columnspacing=1.0,
        alignment="left",
        title_fontsize="small",
        **LEGEND_ABOVE,
    )
    figure = figure_of(ax)
    figure.draw_without_rendering()
    # Beside the longest bar there is room for its number
    room = max(text.get_window_extent().width for text in texts) + 0.1 * figure.dpi
    ax.set_xlim(0, ends.max() / max(1 - room / ax.get_window_extent().width, 0.3))
    return ax


def tree(
    adata: Any,
    model: Any,
    key: str = "optirank",
    *,
    ax: Axes | None = None,
) -> Axes:
    """The labels of a model as a tree: samples of each, and their mean confidence.

    Dark bars are samples that got this very label, light ones those with a finer label
    below it. Parameters as in :func:`labels`; ``model`` is the one that labelled them.
    """
    known = as_model(model).tree
    if known is None:
        raise DataError("the model has no tree of labels: draw pl.labels instead")
    given = known.positions(column(adata, key))
    confidence = column(adata, f"{key}_confidence").astype(float)
    table = tree_table(known, given, confidence)
    return draw_tree(table, len(given), ax=ax)


def draw_tree(table: pd.DataFrame, n_samples: int, *, ax: Place = None) -> Axes:
    """The lines of a `tree_table`, each moved to the right by its depth."""
    ax = axes_for(ax, 5.6, 0.8 + 0.28 * len(table))
    rows = np.arange(len(table))
    widest = max(1, n_samples)
    start = _INDENT * widest * table["depth"].to_numpy()
    own = table["n_own"].to_numpy()
    finer = table["n_samples"].to_numpy() - own
    ax.barh(rows, own, left=start, color=BLUE, height=0.62, label="this label")
    bars: Any = ax.barh(
        rows, finer, left=start + own, color=LIGHT_BLUE, height=0.62, label="finer"
    )
    texts = []
    names = []
    for name, line in zip(table.index, table.to_dict("records"), strict=True):
        n = line["n_samples"]
        sure = f", confidence {line['confidence']:.2f}" if n else ""
        texts.append(f"{n:,} ({100 * line['share']:.1f} %){sure}")
        names.append("    " * line["depth"] + short(name, 28))
    ax.bar_label(bars, texts, padding=4, fontsize="small")
    name_rows(ax, names, ("top", "right", "bottom"), ha="left")
    ax.tick_params(axis="y", pad=7 * max(map(len, names), default=1))
    ax.set(xticks=[], xlim=(0, 1.9 * widest))
    ax.spines["left"].set_color(GREY)
    ax.legend(ncols=2, **LEGEND_ABOVE)
    return ax


_MOST = 12  # labels that are drawn, those of most agreement and least among them
_PER_ROW = 4  # small panels beside each other
_SIDE = 1.5  # inches of one


def agreement(labels: Labels, *, ax: Axes | None = None) -> Axes:
    """How labels differ in genes outside the panel: in the reference, and here.

    One small panel per label, one point per gene: how far its mean rank in the samples
    of the label is from the mean of all labels, in the reference (across) and in the
    query (upwards). Right labels give points along the diagonal; in samples of another
    tissue they form a cloud.

    Parameters
    ----------
    labels : Labels
        What :func:`optirank.tl.annotate` returns.
    ax : matplotlib Axes, optional
        As in :func:`confusion`.

    Returns
    -------
    matplotlib Axes
    """
    checks = labels.checks
    if checks is None or checks.compared is None or checks.agreement is None:
        raise DataError(
            "these labels cannot be checked by genes outside the panel: "
            f"{'they are of several files' if checks is None else checks.unchecked}"
        )
    return draw_agreement(checks.compared, checks.classes, ax=ax)


def draw_agreement(
    compared: Agreement, classes: Sequence[object], *, ax: Place = None
) -> Axes:
    """Small panels, one per label: the reference across, the query upwards.

    The label of least agreement comes first. Of many labels, half of those drawn are of
    least agreement, and half of most.
    """
    values = [compared.by_label[int(label)] for label in compared.labels]
    drawn = np.argsort(values, kind="stable").tolist()
    if len(drawn) > _MOST:
        drawn = drawn[: _MOST // 2] + drawn[-(_MOST - _MOST // 2) :]
    n_columns = min(len(drawn), _PER_ROW)
    n_rows = -(-len(drawn) // n_columns)
    ax = axes_for(ax, 0.4 + _SIDE * n_columns, 0.3 + 1.2 * _SIDE * n_rows)
    ax.set_axis_off()
    limit = 1.05 * max(np.abs(compared.reference).max(), np.abs(compared.query).max())
    for number, row in enumerate(drawn):
        line, place = divmod(number, n_columns)
        left = place / n_columns + 0.04 / n_columns
        bottom = 1 - (line + 1) / n_rows + 0.1 / n_rows
        small = ax.inset_axes((left, bottom, 0.92 / n_columns, 0.72 / n_rows))
        small.axline((0, 0), slope=1, color=GREY, linewidth=0.8)
        small.scatter(
            compared.reference[row],
            compared.query[row],
            s=3,
            color=BLUE,
            alpha=0.7,
            linewidths=0,
            rasterized=True,  # a point per gene would make a page heavy
        )
        label = int(compared.labels[row])
        small.set(xlim=(-limit, limit), ylim=(-limit, limit), xticks=[], yticks=[])
        small.set_title(
            f"{short(classes[label], 18)}\n{compared.by_label[label]:.2f}",
            fontsize="small",
        )
    ax.annotate("reference →", (0, 0), fontsize="small", va="top", in_layout=True)
    ax.annotate(
        "query →", (0, 0), fontsize="small", rotation=90, ha="right", va="bottom"
    )
    if len(drawn) < len(compared.labels):
        ax.annotate(
            f"and {len(compared.labels) - len(drawn)} labels between these",
            (1, 0),
            fontsize="small",
            ha="right",
            va="top",
        )
    return ax
