"""The figures of a training report: confusion, reliability, genes against score, sources."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from optirank._plots.fonts import left_to_the_viewer

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

    target = io.StringIO()
    with (
        matplotlib.rc_context(_STYLE),
        left_to_the_viewer() as lacking,
        warnings.catch_warnings(),
    ):
        drawn = figure(result)
        if lacking:  # the browser looks for a font; the layout is that of boxes
            matplotlib.rcParams["svg.fonttype"] = "none"
            warnings.filterwarnings("ignore", "Glyph .* missing from")
        drawn.savefig(target, format="svg", metadata={"Date": None}, transparent=True)
    return target.getvalue()


def confusion(result: TrainingResult) -> Figure:
    """Of each true class, the share that got each label."""
    from optirank._plots.performance import confusion, confusion_size

    classes = result.model.classes_
    figure = _new(*confusion_size(classes))
    ax = confusion(result.held_out, "label", "predicted", classes=classes, ax=figure.subplots())
    ax.set(title="", xlabel="label given", ylabel="true class (samples)", aspect="equal")
    return figure


def reliability(result: TrainingResult) -> Figure:
    """How often labels of a confidence are right, and how many have it."""
    from optirank._plots.performance import reliability

    figure = _new(5.0, 5.2)
    reliability(result.held_out, "label", "predicted", "confidence", ax=figure.subplots())
    return figure


def selection_path(result: TrainingResult) -> Figure:
    """Held-out score of all settings against the genes they need."""
    from optirank._plots.selection import draw_settings

    table = result.path.assign(
        score=100 * result.path["score"], standard_error=100 * result.path["standard_error"]
    )
    figure = _new(6.6, 4.4)
    ax = figure.subplots()
    draw_settings(ax, table, table["n_genes"], table["score"], digits=1)
    ax.set_ylabel("balanced accuracy (%)")
    ax.grid(visible=True)
    return figure


def _new(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")
