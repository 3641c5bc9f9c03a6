"""How a setting was selected: validation score against the number of genes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optirank._plots.common import BLUE, GREY, ORANGE, axes_for, finish

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from optirank.estimators.optirank_cv import OptirankClassifierCV

_WIDE = 20  # numbers of genes that differ by more than this factor are on a logarithmic axis


def selection_path(
    model: OptirankClassifierCV,
    label: object = None,
    *,
    ax: Axes | None = None,
    show: bool = False,
) -> Axes:
    """Validation score against the number of genes, with the setting that was selected.

    The line joins the best setting at each number of genes, with standard errors over the folds;
    grey dots are the other settings. The band reaches from the best mean score to one standard
    error below it: the one-standard-error rule selects the leftmost setting in it.

    Parameters
    ----------
    model : OptirankClassifierCV
        Fitted.
    label : optional
        The class, where each has settings of its own (``per_class=True``).
    ax : matplotlib Axes, optional
        Where to draw; a new figure otherwise.
    show : bool, default=False
        Whether to show the figure at once.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_for(ax, 5.5, 3.8)
    path = model.one_se_path(label)
    results = model.cv_results_ if label is None else model.cv_results_[label]
    draw_settings(ax, path, results["mean_n_genes"], results["mean_test_score"])
    scoring = model.scoring if isinstance(model.scoring, str) else "score"
    ax.set_ylabel(f"{scoring.replace('_', ' ')}, validation")
    if label is not None:
        ax.set_title(f"{label} against the rest")
    return finish(ax, show)


def draw_settings(
    ax: Axes, path: pd.DataFrame, n_genes: pd.Series, scores: pd.Series, digits: int = 3
) -> None:
    """Draw all settings, the path of the best of as few genes, and the one selected.

    ``path`` has the columns of :meth:`OptirankClassifierCV.one_se_path`.
    """
    best, selected = (path[path[which]].iloc[0] for which in ("best", "selected"))
    front = path.sort_values(["n_genes", "score"], ascending=[True, False])
    front = front[front["score"] > front["score"].cummax().shift(fill_value=float("-inf"))]
    known = path["standard_error"].notna().any()  # not with a single fold
    if known:
        ax.axhspan(
            best["score"] - best["standard_error"],
            best["score"],
            color=BLUE,
            alpha=0.12,
            linewidth=0,
            label="within one standard error of the best",
        )
    ax.plot(n_genes, scores, ".", markersize=5, color=GREY, alpha=0.6, label="all settings")
    ax.errorbar(
        front["n_genes"],
        front["score"],
        yerr=front["standard_error"] if known else None,
        color=BLUE,
        marker="o",
        markersize=4.5,
        linewidth=1.4,
        elinewidth=1,
        capsize=2.5,
        label="best of as few genes" + (", ± standard error" if known else ""),
    )
    ax.plot(
        selected["n_genes"],
        selected["score"],
        linestyle="none",
        marker="D",
        markersize=9,
        color=ORANGE,
        markeredgecolor="white",
        zorder=5,
        label=f"selected: {selected['n_genes']:.0f} genes, {selected['score']:.{digits}f}",
    )
    if min(n_genes) > 0 and max(n_genes) > _WIDE * min(n_genes):
        from matplotlib.ticker import FuncFormatter

        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    ax.set_xlabel("genes needed (mean over folds)")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize="small", frameon=False
    )
