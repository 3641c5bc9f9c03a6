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

    from optirank.workflow.explain import Explanation
else:  # typing.get_type_hints works without importing them
    Axes = Explanation = Any

# Of steps of confidence, the highest first, and of labels that are withheld
_STEP_COLOURS = (BLUE, "#7ABBE6", "#F2A66B", ORANGE, GREY)
_N_VOTES = 12  # that are drawn
_N_COUNTS = 3  # columns of a table of labels before the steps of confidence


def labels(
    adata: Any, key: str = "optirank", *, ax: Axes | None = None, show: bool = False
) -> Axes:
    """How many samples got each label: one bar per label, coloured by confidence.

    The most frequent label comes first; labels that were withheld come last, in grey.
    Parameters as in :func:`confusion`, but a data frame needs the column
    ``key + "_confidence"`` too; or what :func:`optirank.tl.annotate` returns.
    """
    from optirank.workflow.labels import Labels

    table = adata.tables["labels"] if isinstance(adata, Labels) else _table(adata, key)
    ax = axes_for(ax, *labels_size(table))
    draw_labels(ax, table)
    return finish(ax, show)


def _table(adata: Any, key: str) -> pd.DataFrame:
    """The samples of each label, by steps of confidence."""
    from optirank.workflow.labels import label_table

    given = column(adata, key)
    confidence = column(adata, f"{key}_confidence")
    pairs = zip(given, confidence, strict=True)
    known = np.array([None not in pair for pair in pairs], dtype=bool)
    if not known.any():
        raise ValueError(f"no sample has a {key} and a {key}_confidence")
    withheld = str(record_of(adata, key).get("withheld_label", "unassigned"))
    return label_table(given[known].astype(str), confidence[known], withheld)


def votes(
    explanation: Explanation,
    label: str | None = None,
    *,
    ax: Axes | None = None,
    show: bool = False,
) -> Axes:
    """Why a sample got its label: the pairs of genes whose votes count most.

    Bars to the right speak for the class, those to the left against it. Of the paper's
    classifiers, whose genes do not vote in pairs, the genes themselves are drawn.

    Parameters
    ----------
    explanation : what :func:`optirank.tl.explain` returns
    label : str, optional
        The class that is explained; the most probable one otherwise.
    ax, show
        As in :func:`confusion`.

    Returns
    -------
    matplotlib Axes
    """
    name, genes = explanation.of_class(label)
    pairs = explanation.pairs.get(name)
    if pairs is None:
        shown = genes.head(_N_VOTES)
        names, amounts = list(shown["gene"]), shown["contribution"].to_numpy()
    else:
        shown = pairs.head(_N_VOTES)
        names = [
            f"{higher} > {lower}"
            for higher, lower in zip(shown["higher"], shown["lower"], strict=True)
        ]
        amounts = shown["vote"].to_numpy()
    ax = axes_for(ax, 5.6, 1.2 + 0.28 * max(len(names), 1))
    rows = np.arange(len(names))
    ax.barh(rows, amounts, color=np.where(amounts > 0, BLUE, ORANGE), height=0.72)
    ax.axvline(0, color=GREY, linewidth=0.8)
    ax.set_yticks(rows, [short(text, 32) for text in names])
    ax.set(ylim=(len(names) - 0.4, -0.6), xlabel=f"against or for {short(name, 32)}")
    ax.set_title(
        f"{short(explanation.sample, 32)}: {short(str(explanation.label), 32)}"
    )
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
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
