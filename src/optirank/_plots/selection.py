"""How a setting of `OptirankClassifierCV` was selected: validation score against genes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optirank._plots.common import BLUE, GREY, ORANGE, axes_for, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from optirank.estimators.optirank_cv import OptirankClassifierCV
else:  # typing.get_type_hints works without importing them
    Axes = OptirankClassifierCV = Any

_WIDE = 20  # numbers of genes that differ by more than this factor are on a logarithmic axis


def selection_path(
    model: OptirankClassifierCV, *, ax: Axes | None = None, show: bool = False
) -> Axes:
    """Validation score against the number of genes, with the setting that was selected.

    The line joins the best setting at each number of genes, with standard errors over the folds;
    grey dots are the other settings. The band reaches from the best mean score to one standard
    error below it: the one-standard-error rule selects the leftmost setting in it.

    Parameters
    ----------
    model : OptirankClassifierCV
        Fitted.
    ax : matplotlib Axes, optional
        Where to draw; a new figure otherwise.
    show : bool, default=False
        Whether to show the figure at once.

    Returns
    -------
    matplotlib Axes
    """
    path, results = model.one_se_path(), model.cv_results_
    n_genes, scores = results["mean_n_genes"], results["mean_test_score"]
    best, selected = (path[path[which]].iloc[0] for which in ("best", "selected"))
    front = path.sort_values(["n_genes", "score"], ascending=[True, False])
    front = front[front["score"] > front["score"].cummax().shift(fill_value=float("-inf"))]
    ax = axes_for(ax, 5.5, 3.8)
    low = best["score"] - best["standard_error"]
    band = "within one standard error of the best"
    ax.axhspan(low, best["score"], color=BLUE, alpha=0.12, linewidth=0, label=band)
    ax.plot(n_genes, scores, ".", markersize=5, color=GREY, alpha=0.6, label="all settings")
    ax.errorbar(
        front["n_genes"],
        front["score"],
        yerr=front["standard_error"],
        color=BLUE,
        marker="o",
        markersize=4.5,
        elinewidth=1,
        capsize=2.5,
        label="best of as few genes, ± standard error",
    )
    name = f"selected: {selected['n_genes']:.0f} genes, {selected['score']:.3f}"
    look = {"color": ORANGE, "markersize": 9, "markeredgecolor": "white", "zorder": 5}
    ax.plot(selected["n_genes"], selected["score"], "D", label=name, **look)
    if min(n_genes) > 0 and max(n_genes) > _WIDE * min(n_genes):
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
    scoring = model.scoring if isinstance(model.scoring, str) else "score"
    ax.set(xlabel="genes needed (mean over folds)")
    ax.set_ylabel(f"{scoring.replace('_', ' ')}, validation")
    ax.spines[["top", "right"]].set_visible(False)
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16)}
    ax.legend(**place, ncols=2, fontsize="small", frameon=False)
    return finish(ax, show)
