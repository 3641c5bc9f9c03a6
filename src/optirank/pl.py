"""Plots, in scanpy's manner: functions that take ``ax=`` and return it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optirank._plots.common import save_figure
from optirank._plots.panel import panel, panel_weights, reference_stability
from optirank._plots.performance import confusion, reliability

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from optirank.estimators.optirank_cv import OptirankClassifierCV

__all__ = [
    "confusion",
    "panel",
    "panel_weights",
    "reference_stability",
    "reliability",
    "save_figure",
    "selection_path",
]

_BLUE, _ORANGE, _GREY = (
    "#0072B2",
    "#D55E00",
    "#999999",
)  # Okabe and Ito's: safe for the colour-blind
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
    plt = _pyplot()
    path = model.one_se_path(label)
    results = model.cv_results_ if label is None else model.cv_results_[label]
    if ax is None:
        _, ax = plt.subplots(figsize=(5.5, 3.8), layout="constrained")
    best = path[path["best"]].iloc[0]
    selected = path[path["selected"]].iloc[0]
    front = path[path["score"].cummax() == path["score"]]

    ax.axhspan(
        best["score"] - best["standard_error"],
        best["score"],
        color=_BLUE,
        alpha=0.12,
        linewidth=0,
        label="within one standard error of the best",
    )
    ax.plot(
        results["mean_n_genes"],
        results["mean_test_score"],
        linestyle="none",
        marker=".",
        markersize=5,
        color=_GREY,
        alpha=0.6,
        label="all settings",
    )
    ax.errorbar(
        front["n_genes"],
        front["score"],
        yerr=front["standard_error"],
        color=_BLUE,
        marker="o",
        markersize=4.5,
        linewidth=1.4,
        elinewidth=1,
        capsize=2.5,
        label="best of as few genes, ± standard error",
    )
    ax.plot(
        selected["n_genes"],
        selected["score"],
        linestyle="none",
        marker="D",
        markersize=9,
        color=_ORANGE,
        markeredgecolor="white",
        zorder=5,
        label=f"selected: {selected['n_genes']:.0f} genes, {selected['score']:.3f}",
    )
    _dress(ax, model, label, path["n_genes"].min(), max(results["mean_n_genes"]))
    if show:
        plt.show()
    return ax


def _dress(
    ax: Axes, model: OptirankClassifierCV, label: object, fewest: float, most: float
) -> None:
    """Axes, labels and legend."""
    if fewest > 0 and most > _WIDE * fewest:
        from matplotlib.ticker import FuncFormatter

        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    scoring = model.scoring if isinstance(model.scoring, str) else "score"
    ax.set_xlabel("genes needed (mean over folds)")
    ax.set_ylabel(f"{scoring.replace('_', ' ')}, validation")
    if label is not None:
        ax.set_title(f"{label} against the rest")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize="small", frameon=False
    )


def _pyplot():
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "plots need matplotlib: install it with  pip install 'optirank[report]'"
        ) from error
    return plt
