"""How well labels fit the truth: the confusion of classes, and what confidences are worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._plots.common import (
    BLUE,
    DARK,
    GREY,
    axes_for,
    cells_between,
    column,
    finish,
    heat_map,
    short,
)
from optirank.model.predict import UNASSIGNED, withheld_word

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from anndata import AnnData
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

_FEW = 10  # labels of a bin from which on it is drawn full
_WRITTEN = 15  # classes up to which numbers stand in the cells


def confusion(
    adata: AnnData | pd.DataFrame,
    truth: str,
    predicted: str = "optirank",
    *,
    classes: Sequence[object] | None = None,
    counts: bool = False,
    ax: Axes | None = None,
    show: bool = False,
) -> Axes:
    """How the samples of each class were labelled: one row per true class, one column per label.

    Parameters
    ----------
    adata : AnnData or data frame
        Labelled, as by :func:`optirank.tl.annotate`.
    truth, predicted : str
        Columns of ``obs`` (or of the data frame) with the true classes and the labels given;
        samples without one are left out.
    classes : sequence, optional
        Classes that have a row and a column whether they occur or not, in this order.
    counts : bool, default=False
        Write numbers of samples instead of shares of the row.
    ax : matplotlib Axes, optional
        Where to draw; a new figure otherwise.
    show : bool, default=False
        Whether to show the figure at once.

    Returns
    -------
    matplotlib Axes
    """
    true, given = _both(column(adata, truth), column(adata, predicted))
    known = [] if classes is None else [str(v) if isinstance(v, str) else v for v in classes]
    rows = _ordered(true, known)
    columns = _ordered(given, known, first=rows)
    table = np.zeros((len(rows), len(columns)), dtype=int)
    np.add.at(table, ([rows.index(one) for one in true], [columns.index(one) for one in given]), 1)
    sizes = table.sum(axis=1)
    with np.errstate(invalid="ignore"):
        shares = table / sizes[:, None]
    ax = axes_for(ax, *confusion_size(columns))
    names = [f"{short(name)} ({size})" for name, size in zip(rows, sizes, strict=True)]
    shown = [short(name) for name in columns]
    heat_map(ax, shares, names, shown, cmap="Blues", limits=(0, 1), bar="share of the true class")
    cells_between(ax, len(rows), len(columns), min(1.0, 20 / len(columns)))
    _fit_names(ax, max(len(rows), len(columns)))
    if max(len(rows), len(columns)) <= _WRITTEN:
        for i, j in zip(*np.nonzero(table), strict=True):
            share = f"{100 * shares[i, j]:.0f}" if shares[i, j] >= 0.01 else "<1"
            text = str(table[i, j]) if counts else share
            colour = "white" if shares[i, j] > 0.55 else DARK
            ax.text(j, i, text, ha="center", va="center", color=colour, fontsize="small")
    right = [shares[i, columns.index(one)] if one in columns else 0.0 for i, one in enumerate(rows)]
    ax.set_title(f"balanced accuracy {np.nanmean(right):.3f}", fontsize="medium")
    ax.set_xlabel(f"label given ({predicted})")
    ax.set_ylabel(f"true class ({truth})")
    return finish(ax, show)


def confusion_size(classes: Sequence[object]) -> tuple[float, float]:
    """Width and height, in inches, of a figure in which the cells of all classes are square."""
    matrix = len(classes) * min(0.45, max(0.125, 12.5 / len(classes)))
    letters = max(len(short(name)) for name in classes) * (0.075 if len(classes) > 28 else 0.095)
    return matrix + letters + 2.6, matrix + 0.75 * letters + 1.1


def reliability(
    adata: AnnData | pd.DataFrame,
    truth: str,
    predicted: str = "optirank",
    confidence: str | None = None,
    *,
    n_bins: int = 10,
    ax: Axes | None = None,
    show: bool = False,
) -> Axes:
    """How often labels are right against how confident they are; how many there are above it.

    On the diagonal a confidence of 0.8 means that 8 of 10 such labels are right. Bars are 95 %
    intervals (Wilson's). Bins of fewer than 10 labels are hollow and not joined. The error in the
    legend is the mean distance from the diagonal, each sample counting the same.

    Parameters
    ----------
    adata, truth, predicted
        As in :func:`confusion`; labels that were withheld are left out.
    confidence : str, optional
        Column of the confidences, by default ``predicted + "_confidence"``.
    n_bins : int, default=10
        Bins of confidence, all of the same width.
    ax, show
        As in :func:`confusion`.

    Returns
    -------
    matplotlib Axes
    """
    if n_bins < 1:
        raise ValueError(f"n_bins={n_bins}: use at least 1")
    sure = column(adata, confidence or f"{predicted}_confidence")
    true, given, sure = _both(column(adata, truth), column(adata, predicted), sure)
    kept = given != withheld_word(true)
    correct, sure = (true == given)[kept], sure[kept].astype(float)
    if not len(sure):
        raise ValueError("no sample has a label and a confidence")
    ax = axes_for(ax, 4.6, 4.6)
    edges = np.linspace(0, 1, n_bins + 1)
    place = np.clip((sure * n_bins).astype(int), 0, n_bins - 1)
    number = np.bincount(place, minlength=n_bins)
    there = number > 0
    right = np.bincount(place, correct, n_bins)[there] / number[there]
    mean = np.bincount(place, sure, n_bins)[there] / number[there]
    low, high = _wilson(right, number[there])
    error = float(np.sum(number[there] * np.abs(right - mean)) / number.sum())
    ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1, label="as confident as right")
    few = number[there] < _FEW
    name = f"labels given, error {error:.3f}"
    for mine, look in (
        (~few, {"linewidth": 1.4, "elinewidth": 1, "label": name}),
        (
            few,
            {
                "linestyle": "none",
                "markerfacecolor": "white",
                "elinewidth": 0.6,
                "label": f"of fewer than {_FEW} labels" + (f"; {name}" if few.all() else ""),
            },
        ),
    ):
        if mine.any():
            below, above = np.maximum(right - low, 0)[mine], np.maximum(high - right, 0)[mine]
            look |= {"color": BLUE, "marker": "o", "markersize": 5, "capsize": 2.5}
            ax.errorbar(mean[mine], right[mine], yerr=[below, above], **look)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="confidence", ylabel="share right")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="best", frameon=False, fontsize="small")
    above = ax.inset_axes([0, 1.03, 1, 0.16], sharex=ax)
    above.bar(edges[:-1], number, width=1 / n_bins, align="edge", color=BLUE, alpha=0.35)
    above.set_ylabel("samples", fontsize="small")
    above.tick_params(labelbottom=False, length=0, labelsize="x-small")
    above.spines[["top", "right"]].set_visible(False)
    above.set_title(
        f"{correct.mean():.1%} of {len(sure)} labels are right; mean confidence {sure.mean():.1%}",
        fontsize="medium",
    )
    return finish(ax, show)


def _both(*columns: NDArray) -> tuple[NDArray, ...]:
    """The samples for which every column has a value."""
    known = np.all([[value is not None for value in values] for values in columns], axis=0)
    if not known.any():
        raise ValueError("no sample has both a true class and a label")
    return tuple(
        np.array([str(v) if isinstance(v, str) else v for v in values[known]], dtype=object)
        for values in columns
    )


def _ordered(values: NDArray, known: list, first: list | None = None) -> list[Any]:
    """The known values, those of ``first`` that occur, the others sorted, withheld last."""
    there = set(values) - set(known)
    early = [value for value in first or [] if value in there]
    others = sorted(there - set(early), key=lambda value: (value == UNASSIGNED, str(value)))
    return [*known, *early, *others]


def _fit_names(ax: Axes, n_cells: int) -> None:
    """Let names beside the cells be no higher than these; upright where the cells are small."""
    from matplotlib import rcParams

    cell = ax.get_window_extent().height / ax.figure.dpi * 72 / n_cells
    if cell < 1.5 * rcParams["font.size"]:
        ax.tick_params(labelsize=min(rcParams["font.size"], max(4.0, 0.8 * cell)))
        for text in ax.get_xticklabels():
            text.set(rotation=90, ha="center", va="top", rotation_mode="default")


def _wilson(share: NDArray, n: NDArray, z: float = 1.96) -> tuple[NDArray, NDArray]:
    """Wilson's interval of a share."""
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return centre - half, centre + half
