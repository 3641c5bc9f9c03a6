"""A query beside the training data: its scores, and where the boundaries are before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optirank._plots.common import BLUE, DARK, GREY, ORANGE, axes_for, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from optirank.model.query import QueryReport

_MOST = 20  # classes drawn, those whose boundary moves most
_BINS = 40


def query_scores(report: QueryReport, *, ax: Axes | None = None, show: bool = False) -> Axes:
    """The query's scores of each class, with the boundary in training and the adapted one.

    One row per class: the distribution of the query's scores, the mean of held-out samples outside
    and inside of the class (triangles), the trained boundary (dashed) and the adapted one (line).

    Parameters
    ----------
    report : QueryReport
        Of ``optirank.workflow.predict_file`` (``.report``).
    ax : matplotlib Axes, optional
        Where to draw; a new figure otherwise.
    show : bool, default=False
        Whether to show the figure at once.

    Returns
    -------
    matplotlib Axes
    """
    scores = report.scores[:, None] if report.scores.ndim == 1 else report.scores
    offsets = report.adaptation.offsets
    shown = np.sort(np.argsort(-np.abs(offsets), kind="stable")[:_MOST])
    ax = axes_for(ax, 6.4, 1.3 + 0.55 * len(shown))
    marks = np.concatenate([report.expected[:, shown].ravel(), offsets[shown], [0.0]])
    ends = min(scores.min(initial=0.0), marks.min()), max(scores.max(initial=0.0), marks.max())
    edges = np.linspace(*ends, _BINS + 1)
    for row, k in enumerate(shown):
        counts, _ = np.histogram(scores[:, k], edges)
        heights = 0.85 * counts / max(counts.max(), 1)
        ax.stairs(row + heights, edges, baseline=row, fill=True, color=BLUE, alpha=0.45)
        ax.plot([0.0, 0.0], [row, row + 0.85], color=GREY, linestyle="--")
        ax.plot([offsets[k]] * 2, [row, row + 0.85], color=ORANGE)
        ax.plot(report.expected[:, k], [row, row], "^", color=DARK, markersize=5, clip_on=False)
    ax.plot([], [], color=GREY, linestyle="--", label="boundary in training")
    ax.plot([], [], color=ORANGE, label="adapted boundary")
    ax.plot([], [], "^", color=DARK, markersize=5, label="held-out means")
    ax.set_yticks(np.arange(len(shown)) + 0.4, [report.problems[k] for k in shown])
    ax.set_ylim(-0.15, len(shown))
    ax.set_xlabel("score")
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, fontsize="small")
    return finish(ax, show)
