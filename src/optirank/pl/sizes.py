"""Accuracy against the number of genes, and the size or setting that was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.pl.axes import BLUE, CHOSEN, ERROR_BARS, GREY, axes_for, finish

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from optirank.estimators.optirank_cv import OptirankClassifierCV
else:  # typing.get_type_hints works without importing them
    Axes = OptirankClassifierCV = Any

# The ratio of the largest to the smallest size that needs a logarithmic axis
_WIDE = 20
_LABEL = 0.1  # the width of a label of four digits, as a share of the axis


def panel_sizes(model: Any, *, ax: Axes | None = None, show: bool = False) -> Axes:
    """Accuracy on held-out samples against the number of genes, with the size chosen.

    Parameters
    ----------
    model : a model, the result of :func:`optirank.tl.train`, or the file of a model
    ax, show
        As in :func:`confusion`.

    Returns
    -------
    matplotlib Axes
    """
    from optirank.workflow.cards import size_table

    ax = axes_for(ax, 6.0, 3.8)
    draw_sizes(ax, size_table(model))
    return finish(ax, show)


def draw_sizes(ax: Axes, curve: pd.DataFrame) -> None:
    """Held-out accuracy against the number of genes, and the size chosen."""
    curve = curve.dropna(subset=["balanced_accuracy"]).sort_values("n_genes")
    accuracy = 100 * curve["balanced_accuracy"]
    error = 100 * curve["standard_error"]
    label = "held-out samples" + (", ± standard error" if error.notna().any() else "")
    ax.errorbar(
        curve["n_genes"], accuracy, yerr=error.fillna(0), label=label, **ERROR_BARS
    )
    is_chosen = curve["chosen"].astype(bool)
    for n_genes, height in zip(
        curve["n_genes"][is_chosen], accuracy[is_chosen], strict=True
    ):
        label = f"chosen: {n_genes:.0f} genes, {height:.1f} %"
        ax.plot(n_genes, height, label=label, **CHOSEN)
    ax.set_xscale("log")
    sizes = curve["n_genes"].to_numpy()
    ticks = _apart(sizes, sizes[np.asarray(is_chosen)])
    ax.set_xticks(ticks, [f"{n_genes:.0f}" for n_genes in ticks])
    ax.minorticks_off()
    ax.set(xlabel="genes in the panel", ylabel="balanced accuracy (%)")
    ax.grid(visible=True, axis="y", color="#e6e6e6")
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="lower right", frameon=False, fontsize="small")


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


def selection_path(
    model: OptirankClassifierCV, *, ax: Axes | None = None, show: bool = False
) -> Axes:
    """Validation score against the number of genes, with the setting selected.

    The line joins the best setting at each number of genes, with standard errors over
    the folds; grey dots are the other settings. The band reaches from the best mean
    score to one standard error below it: the one-standard-error rule selects the
    leftmost setting in it.

    Parameters
    ----------
    model : OptirankClassifierCV
        Fitted.
    ax, show
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
    front = path.sort_values(["n_genes", "score"], ascending=[True, False])
    best_before = front["score"].cummax().shift(fill_value=float("-inf"))
    front = front[front["score"] > best_before]
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
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
        ncols=2,
        fontsize="small",
        frameon=False,
    )
    return finish(ax, show)
