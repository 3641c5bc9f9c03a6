"""The genes of a model: how many they are, and how classes express them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from optirank.pl.axes import (
    BLUE,
    CHOSEN,
    ERROR_BARS,
    GREY,
    LEGEND,
    Axes,
    Place,
    axes_for,
    short,
    slant,
)
from optirank.verbs.performance import size_table

if TYPE_CHECKING:
    from optirank.estimators.optirank_cv import OptirankClassifierCV
else:  # typing.get_type_hints works without importing it
    OptirankClassifierCV = Any

_DOT_ROW = 0.21  # inches of a gene with dots
_LARGEST = 90.0  # area of the dot of a gene that all samples express, in points
MOST_GENES = 120  # in one figure of dots: more cannot be looked through
# The ratio of the largest to the smallest size that needs a logarithmic axis
_WIDE = 20
_LABEL = 0.1  # the width of a label of four digits, as a share of the axis


def panel_sizes(model: Any, *, ax: Axes | None = None) -> Axes:
    """Accuracy on held-out samples against the number of genes, with the size chosen.

    Parameters
    ----------
    model : a model, the result of :func:`optirank.tl.train`, or the file of a model
    ax : matplotlib Axes, optional
        As in :func:`confusion`.

    Returns
    -------
    matplotlib Axes
    """
    return draw_sizes(size_table(model), ax=ax)


def draw_sizes(curve: pd.DataFrame, *, ax: Place = None) -> Axes:
    """Held-out accuracy against the number of genes, and the size chosen."""
    ax = axes_for(ax, 6.6, 4.0)
    curve = curve.dropna(subset=["balanced_accuracy"]).sort_values("n_genes")
    accuracy = 100 * curve["balanced_accuracy"]
    error = 100 * curve["standard_error"]
    label = "held-out samples" + (", ± standard error" if error.notna().any() else "")
    ax.errorbar(
        curve["n_genes"], accuracy, yerr=error.fillna(0), label=label, **ERROR_BARS
    )
    sizes = curve["n_genes"].to_numpy()
    is_chosen = curve["chosen"].to_numpy(dtype=bool)
    for n_genes, height in zip(sizes[is_chosen], accuracy[is_chosen], strict=True):
        label = f"chosen: {n_genes:.0f} genes, {height:.1f} %"
        ax.plot(n_genes, height, label=label, **CHOSEN)
    ax.set_xscale("log")
    ticks = _apart(sizes, sizes[is_chosen])
    ax.set_xticks(ticks, [f"{n_genes:.0f}" for n_genes in ticks])
    ax.minorticks_off()
    ax.set(xlabel="genes in the panel", ylabel="balanced accuracy (%)")
    ax.grid(visible=True, axis="y", color="#e6e6e6")
    ax.set_axisbelow(True)
    ax.legend(loc="lower right", **LEGEND)
    return ax


def _apart(sizes: NDArray, chosen: NDArray) -> list[float]:
    """Rising sizes whose labels do not overlap on a logarithmic axis: those chosen,
    the largest, and of the others those that there is room for.
    """
    gap = _LABEL * np.log(max(sizes) / min(sizes)) if len(sizes) else 0.0
    kept: list[float] = []
    for size in [*chosen, *sizes[::-1]]:
        if all(abs(np.log(size / other)) > gap for other in kept):
            kept.append(float(size))
    return sorted(kept)


def selection_path(model: OptirankClassifierCV, *, ax: Axes | None = None) -> Axes:
    """Validation score against the number of genes, with the setting selected.

    The line joins the best setting at each number of genes, with standard errors over
    the folds; grey dots are the other settings. The band reaches from the best mean
    score to one standard error below it: the one-standard-error rule selects the
    leftmost setting in it.

    Parameters
    ----------
    model : OptirankClassifierCV
        Fitted.
    ax : matplotlib Axes, optional
        As in :func:`confusion`.

    Returns
    -------
    matplotlib Axes
    """
    if not hasattr(model, "one_se_path"):
        raise TypeError(
            f"selection_path takes a fitted OptirankClassifierCV, got "
            f"{type(model).__name__}: panel_sizes draws the sizes of a model"
        )
    path = model.one_se_path()
    results = model.cv_results_
    n_genes = results["mean_n_genes"]
    best = path[path["best"]].iloc[0]
    selected = path[path["selected"]].iloc[0]
    best_before = path["score"].cummax().shift(fill_value=float("-inf"))
    front = path[path["score"] > best_before]
    ax = axes_for(ax, 5.5, 3.8)
    ax.axhspan(
        best["score"] - best["standard_error"],
        best["score"],
        color=BLUE,
        alpha=0.12,
        linewidth=0,
        label="within one standard error of the best",
    )
    ax.plot(
        n_genes,
        results["mean_test_score"],
        ".",
        markersize=5,
        color=GREY,
        alpha=0.6,
        label="all settings",
    )
    ax.errorbar(
        front["n_genes"],
        front["score"],
        yerr=front["standard_error"],
        label="best of as few genes, ± standard error",
        **ERROR_BARS,
    )
    label = f"selected: {selected['n_genes']:.0f} genes, {selected['score']:.3f}"
    ax.plot(selected["n_genes"], selected["score"], label=label, **CHOSEN)
    if min(n_genes) > 0 and max(n_genes) > _WIDE * min(n_genes):
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
    scoring = model.scoring if isinstance(model.scoring, str) else "score"
    ax.set_xlabel("genes needed (mean over folds)")
    ax.set_ylabel(f"{scoring.replace('_', ' ')}, validation")
    ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
        ncols=2,
        fontsize="small",
        frameon=False,
    )
    return ax


def draw_dots(genes: pd.DataFrame, classes: list[str], *, ax: Place = None) -> Axes:
    """Genes (rows) by classes (columns): dots as large as the share of samples that
    express.

    The colour is the mean where expressed, relative to the class where it is highest.
    Genes are in groups by the class that they speak for; of many the first are drawn.
    """
    genes = genes.head(MOST_GENES)
    places = [classes.index(name) for name in genes["speaks_for"]]
    genes = genes.assign(place=places).sort_values(["place", "rank"])
    shares = genes[[f"share_{name}" for name in classes]].to_numpy(dtype=float)
    means = genes[[f"mean_{name}" for name in classes]].to_numpy(dtype=float)
    means = means / np.where(shares > 0, shares, 1.0)
    highest = means.max(axis=1, keepdims=True)
    colours = means / np.where(highest > 0, highest, 1.0)
    n_genes, n_classes = shares.shape
    ax = axes_for(ax, 3.0 + 0.42 * n_classes, 3.2 + _DOT_ROW * n_genes)
    x, y = np.meshgrid(np.arange(n_classes), np.arange(n_genes))
    dots = ax.scatter(
        x.ravel(),
        y.ravel(),
        s=_LARGEST * shares.ravel(),
        c=colours.ravel(),
        cmap="viridis_r",
        vmin=0,
        vmax=1,
        linewidths=0,
    )
    ax.set_xticks(range(n_classes), [short(name, 24) for name in classes])
    ax.set_yticks(range(n_genes), genes["gene"])
    ax.set(xlim=(-0.6, n_classes - 0.4), ylim=(n_genes - 0.4, -0.6))
    slant(ax)
    ax.tick_params(length=0, labelsize="small")
    for row in np.flatnonzero(np.diff(genes["place"])):
        ax.axhline(row + 0.5, color="#dddddd", linewidth=0.8, zorder=0)
    ax.spines[:].set_visible(False)
    for share in (0.1, 0.5, 1.0):
        ax.scatter([], [], s=_LARGEST * share, color=GREY, label=f"{share:.0%}")
    look: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 3}
    ax.legend(**look, frameon=False, title="samples that express the gene")
    bar = ax.figure.colorbar(
        dots, ax=ax, location="bottom", shrink=0.6, aspect=30, pad=0.02
    )
    bar.set_label("mean where expressed, relative to the highest class")
    return ax
