"""The figures of the experiment: scores at the default point and along the sweeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from optirank.benchmark.classifiers import get
from optirank.benchmark.reporting.style import new_figure, style
from optirank.benchmark.reporting.synthetic_table import at_point
from optirank.benchmark.synthetic import SWEEPS, Point, Settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = (
    ("accuracy", "d"),
    ("accuracy", "dp"),
    ("accuracy", "tau"),
    ("cosine", "d"),
    ("cosine", "dp"),
)
_AXES = {
    "d": "number of genes $d$ (samples: {ratio:g} $d$)",
    "dp": "number of perturbed genes $d_P$",
    "tau": r"size of the shift $\tau$",
}


def draw_all(
    settings: Settings, selected: pd.DataFrame, summary: pd.DataFrame
) -> dict[str, Figure]:
    """Draw the default point and the panels of the sweeps that were run."""
    figures = {"default": new_figure(7.2, 3.4)}
    with style():
        here = at_point(selected, settings.base)
        draw_default(figures["default"].subplots(), here, settings.grid.name)
        for quantity, sweep in PANELS:
            if sweep in settings.sweeps:
                figures[f"{quantity}-{sweep}"] = figure = new_figure(5.6, 4.2)
                draw_panel(figure.subplots(), settings, summary, quantity, sweep)
    return figures


def draw_default(ax: Axes, selected: pd.DataFrame, grid: str) -> Axes:
    """Draw each repeat's test score at the default point as a dot, and the mean as a line."""
    rows = list(dict.fromkeys(selected["classifier"]))[::-1]
    for row, name in enumerate(rows):
        colour = get(name).colour
        keep = (selected["classifier"] == name) & (selected["grid"] == grid)
        scores = 100 * selected.loc[keep, "test_balanced_accuracy"].to_numpy()
        offsets = row + np.linspace(-0.16, 0.16, len(scores)) if len(scores) > 1 else [row]
        ax.plot([scores.mean()] * 2, [row - 0.32, row + 0.32], color=colour, lw=3)
        ax.plot(scores, offsets, "o", color=colour, alpha=0.6, ms=6, mec="white", mew=0.5)
        ax.annotate(
            f"{scores.mean():.1f}",
            (scores.mean(), row + 0.32),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            va="bottom",
            color=colour,
            fontsize=10,
        )
    ax.set_yticks(range(len(rows)), rows)
    ax.set_ylim(-0.6, len(rows) - 0.3)
    ax.set_xlim(right=101)
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("test balanced accuracy (%); dots: repeats, line: their mean")
    return ax


def draw_panel(
    ax: Axes, settings: Settings, summary: pd.DataFrame, quantity: str, sweep: str
) -> Axes:
    """Draw accuracy or cosine along one sweep, with standard errors shaded."""
    points = settings.sweep_points(sweep)
    x = [getattr(point, SWEEPS[sweep].field) for point in points]
    if quantity == "accuracy":
        for name in dict.fromkeys(summary["classifier"]):
            _draw_line(ax, x, _along(summary, settings, points, name), "balanced_accuracy", name)
        ax.set_ylabel("test balanced accuracy (%)")
    else:
        _draw_line(ax, x, _along(summary, settings, points, "optirank"), "cosine", "optirank")
        best = [best_cosine(point, settings.grid.grids["n_reference"]) for point in points]
        ax.plot(x, best, "--", color=get("oracle").colour, lw=1.3, label="best the grid allows")
        ax.set_ylabel("cosine to the true reference set")
        ax.set_ylim(0, 1.05)
    ratio = settings.base.n_samples / settings.base.n_genes
    ax.set_xlabel(_AXES[sweep].format(ratio=ratio))
    ax.set_xticks(x)
    ax.legend(loc="best")
    return ax


def best_cosine(point: Point, fractions: tuple[float, ...]) -> float:
    """Return the largest cosine to the true set that a reference set of the grid can have."""
    truth = point.n_stable
    sizes = [max(1, int(fraction * point.n_genes + 1e-9)) for fraction in fractions]
    return max(min(size, truth) / np.sqrt(size * truth) for size in sizes)


def _along(
    summary: pd.DataFrame, settings: Settings, points: list[Point], name: str
) -> pd.DataFrame:
    rows = summary[(summary["classifier"] == name) & (summary["grid"] == settings.grid.name)]
    return pd.concat([at_point(rows, point) for point in points])


def _draw_line(ax: Axes, x: list, rows: pd.DataFrame, column: str, name: str) -> None:
    factor = 100.0 if column == "balanced_accuracy" else 1.0
    mean = factor * rows[column].to_numpy()
    error = factor * rows[f"{column}_se"].fillna(0.0).to_numpy()
    classifier = get(name)
    colour, dashed = classifier.colour, classifier.marker is None
    ax.fill_between(x, mean - error, mean + error, color=colour, alpha=0.18, lw=0)
    ax.plot(
        x,
        mean,
        linestyle="--" if dashed else "-",
        marker=classifier.marker,
        color=colour,
        lw=1.3 if dashed else 1.8,
        label=f"{name} (ceiling)" if dashed else name,
    )
