"""The figures of a training report: confusion, reliability, genes against score, sources."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

from optirank._plots.common import BLUE, GREY, ORANGE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optirank.workflow.result import TrainingResult

_STYLE = {
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "legend.frameon": False,
    "figure.facecolor": "white",
    "svg.hashsalt": "optirank",
    "svg.fonttype": "path",
    "text.parse_math": False,  # a dollar sign in a label is a dollar sign
}


def draw(figure: Callable[[TrainingResult], Figure], result: TrainingResult) -> str:
    """A figure as SVG."""
    import matplotlib

    with matplotlib.rc_context(_STYLE):
        target = io.StringIO()
        figure(result).savefig(target, format="svg", metadata={"Date": None})
    return target.getvalue()


def confusion(result: TrainingResult) -> Figure:
    """Of each true class, the share that got each label."""
    from optirank._plots.performance import confusion

    n = len(result.model.classes_)
    figure = _new(min(3.4 + 0.55 * n, 13.0), min(2.4 + 0.5 * n, 12.0))
    ax = confusion(result.held_out, "label", "predicted", ax=figure.subplots())
    ax.set(title="", xlabel="label given", ylabel="true class (samples)")
    return figure


def reliability(result: TrainingResult) -> Figure:
    """How often labels of a confidence are right, and how many have it."""
    from optirank._plots.performance import reliability

    figure = _new(5.0, 5.2)
    reliability(result.held_out, "label", "predicted", "confidence", ax=figure.subplots())
    return figure


def selection_path(result: TrainingResult) -> Figure:
    """Held-out score of all settings against the genes they need."""
    table = result.path
    figure = _new(6.2, 4.0)
    ax = figure.subplots()
    best, selected = (table[table[which]].iloc[0] for which in ("best", "selected"))
    low = 100 * (best["score"] - best["standard_error"])
    ax.axhspan(low, 100 * best["score"], color=BLUE, alpha=0.12, lw=0, label="one standard error")
    ax.plot(table["n_genes"], 100 * table["score"], ".", color=GREY, label="settings tried")
    ordered = table.sort_values(["n_genes", "score"], ascending=[True, False])
    front = ordered[ordered["score"].cummax() == ordered["score"]]
    ax.plot(front["n_genes"], 100 * front["score"], "o-", color=BLUE, ms=4, label="best so far")
    ax.plot(
        [selected["n_genes"]],
        [100 * selected["score"]],
        "D",
        color=ORANGE,
        ms=9,
        mec="white",
        label="chosen",
    )
    if table["n_genes"].max() > 20 * max(1.0, table["n_genes"].min()):
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.set_xlabel("genes needed (mean over folds)")
    ax.set_ylabel("balanced accuracy (%)")
    ax.grid(visible=True)
    ax.legend(loc="best", fontsize=9)
    return figure


def _new(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")
