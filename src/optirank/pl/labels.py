"""The labels of samples: how many of each, their tree, and why a sample got its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from optirank.io.data import DataError
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
    short,
    withheld_word,
)
from optirank.workflow.labels import Labels, label_table, tree_table
from optirank.workflow.predict import Explanation

# Of steps of confidence, the highest first, and of labels that are withheld
_STEP_COLOURS = (BLUE, LIGHT_BLUE, "#F2A66B", ORANGE, GREY)
_N_VOTES = 12  # that are drawn
_INDENT = 0.12  # of the width of the tree, per level
_N_COUNTS = 3  # columns of a table of labels before the steps of confidence


def labels(adata: Any, key: str = "optirank", *, ax: Axes | None = None) -> Axes:
    """How many samples got each label: one bar per label, coloured by confidence.

    The most frequent label comes first; labels that were withheld come last, in grey.
    Parameters as in :func:`confusion`, but a data frame needs the column
    ``key + "_confidence"`` too; or what :func:`optirank.tl.annotate` returns.
    """
    table = adata.tables["labels"] if isinstance(adata, Labels) else _table(adata, key)
    return draw_labels(ax, table)


def _table(adata: Any, key: str) -> pd.DataFrame:
    """The samples of each label, by steps of confidence."""
    given = column(adata, key)
    confidence = column(adata, f"{key}_confidence")
    pairs = zip(given, confidence, strict=True)
    known = np.array([None not in pair for pair in pairs], dtype=bool)
    if not known.any():
        raise ValueError(f"no sample has a {key} and a {key}_confidence")
    withheld = withheld_word(adata, key)
    return label_table(given[known].astype(str), confidence[known], withheld)


def votes(
    explanation: Explanation,
    label: str | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Why a sample got its label: the pairs of genes whose votes count most.

    Bars to the right speak for the class, those to the left against it. Of the paper's
    classifiers, whose genes do not vote in pairs, the genes themselves are drawn.

    Parameters
    ----------
    explanation : what :func:`optirank.tl.explain` returns
    label : str, optional
        The class that is explained; the most probable one otherwise.
    ax : matplotlib Axes, optional
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
        names = list(shown["higher"] + " > " + shown["lower"])
        amounts = shown["vote"].to_numpy()
    ax = axes_for(ax, 5.6, 1.2 + 0.28 * max(len(names), 1))
    colours = np.where(amounts > 0, BLUE, ORANGE)
    ax.barh(range(len(names)), amounts, color=colours, height=0.72)
    ax.axvline(0, color=GREY, linewidth=0.8)
    name_rows(ax, [short(text, 32) for text in names])
    ax.set_xlabel(f"against or for {short(name, 32)}")
    ax.set_title(f"{short(explanation.sample, 32)}: {short(explanation.label, 32)}")
    return ax


def draw_labels(ax: Place, table: pd.DataFrame) -> Axes:
    """Samples of each label by steps of confidence, as a bar with number and share."""
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
    return draw_tree(ax, table, len(given))


def draw_tree(ax: Place, table: pd.DataFrame, n_samples: int) -> Axes:
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
