"""The figures of whole tasks: accuracy against genes and against time, scores, mean ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from optirank.benchmark.reporting.analysis import place_title
from optirank.benchmark.reporting.cd_diagram import draw_ranking
from optirank.benchmark.reporting.figures import plain_log
from optirank.benchmark.reporting.labels import label_points
from optirank.benchmark.reporting.style import look, new_figure, style
from optirank.benchmark.reporting.whole_task_tables import stage_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optirank.benchmark.reporting.whole_analysis import WholeAnalysis

_CAPTION = (
    "Balanced accuracy on the test sets against {what} (logarithmic). A mark is the median over "
    "tasks; lines reach from the lower to the upper quartile. Marks without filling: tools judged "
    "by fewer tasks than the others."
)
CAPTIONS = {
    "whole_genes": _CAPTION.format(what="the number of genes that a trained model needs"),
    "whole_times": _CAPTION.format(what="the CPU time of training"),
    "whole_scores": (
        "Balanced accuracy (%) of each tool on each task. Tools are ordered by their mean rank, "
        "the best on the left; grey cells have no score."
    ),
}


def draw_whole(found: WholeAnalysis) -> dict[str, Figure]:
    """Draw every figure that the results have something for."""
    if found.summary.empty:
        return {}
    with style():
        figures = {"whole_scores": draw_scores(found)}
        for name, column, label in (
            ("whole_genes", "n_genes", "genes that a trained model needs"),
            ("whole_times", "fit_seconds", "CPU seconds of one training"),
        ):
            points = spreads(found, column)
            if len(points):
                figures[name] = draw_spreads(points, label)
        if found.ranking is not None:
            figures["whole_ranks"] = draw_ranking(found.ranking)
    return figures


def spreads(found: WholeAnalysis, column: str) -> pd.DataFrame:
    """Return quartiles of accuracy (y) and of a cost (x) over the tasks that a tool is judged by.

    Costs of zero are shown as the smallest positive one, since the axis is logarithmic.
    """
    records = []
    for row in found.overall.itertuples():
        counted = found.block.index if row.in_block else found.means.index
        rows = found.summary[
            (found.summary["tool"] == row.tool)
            & (found.summary["scenario"] != "multi")
            & found.summary["task"].isin(counted)
        ].dropna(subset=[column, "mean"])
        if rows.empty:
            continue
        x, y = (rows[name].astype(float).quantile([0.25, 0.5, 0.75]) for name in (column, "mean"))
        names = ("low", "middle", "high")
        records.append(
            {
                "tool": row.tool,
                "in_block": row.in_block,
                **{f"x_{name}": value for name, value in zip(names, x, strict=True)},
                **{f"y_{name}": 100 * value for name, value in zip(names, y, strict=True)},
            }
        )
    frame = pd.DataFrame(records)
    columns = [name for name in frame if name.startswith("x_")]
    if columns:
        values = frame[columns]
        positive = values.to_numpy()[values.to_numpy() > 0]
        frame[columns] = values.clip(lower=positive.min() if len(positive) else 1.0)
    return frame


def draw_spreads(points: pd.DataFrame, label: str) -> Figure:
    """Draw medians with quartiles, one mark per tool with its name beside it."""
    figure = new_figure(8.6, 5.4)
    ax = figure.subplots()
    for row in points.itertuples():
        seen = look(row.tool)
        lines = {"color": seen["color"], "lw": 1.3, "alpha": 0.45, "zorder": 1}
        ax.plot([row.x_low, row.x_high], [row.y_middle] * 2, **lines)
        ax.plot([row.x_middle] * 2, [row.y_low, row.y_high], **lines)
        face = seen["color"] if row.in_block else "white"
        options = {"s": 80, "marker": seen["marker"], "lw": 1.4, "zorder": 3}
        ax.scatter(row.x_middle, row.y_middle, fc=face, ec=seen["color"], **options)
    ax.set_xscale("log")
    low, high = points["x_low"].min(), points["x_high"].max()
    factor = max((high / low) ** 0.08, 1.3)
    ax.set_xlim(low / factor, high * factor)
    plain_log(ax.xaxis, points[["x_low", "x_high"]].stack())
    bottom, top = points["y_low"].min(), points["y_high"].max()
    room = max(0.06 * (top - bottom), 1.0)
    ax.set_ylim(bottom - room, top + room)
    ax.set_xlabel(label)
    ax.set_ylabel("balanced accuracy (%), median over tasks")
    label_points(ax, points["x_middle"], points["y_middle"], points["tool"].tolist())
    return figure


def draw_scores(found: WholeAnalysis) -> Figure:
    """Draw the scores as a table of colours: one row per task, one column per tool."""
    from matplotlib.colors import LinearSegmentedColormap

    tools, places = found.overall["tool"].tolist(), found.places()
    cells = found.summary.set_index(["task", "scenario", "tool"])["mean"]
    gaps = found.gaps.set_index(["task", "scenario", "tool"])["stage"]
    scores = np.array(
        [[100 * cells.get((*place, tool), np.nan) for tool in tools] for place in places]
    )
    figure = new_figure(3.4 + 0.62 * len(tools), 1.6 + 0.32 * len(places))
    ax = figure.subplots()
    ax.set_facecolor("#dddddd")
    colours = LinearSegmentedColormap.from_list("scores", ["#f7fbff", "#6baed6", "#08306b"])
    low = float(np.nanmin(scores))
    image = ax.imshow(scores, cmap=colours, vmin=min(low, 50.0), vmax=100, aspect="auto")
    for i, place in enumerate(places):
        for j, tool in enumerate(tools):
            score = scores[i, j]
            if np.isfinite(score):
                dark = (score - image.norm.vmin) / (100 - image.norm.vmin) > 0.6
                _write(ax, j, i, f"{score:.0f}", "white" if dark else "black", 10)
            elif (*place, tool) in gaps.index:
                words = stage_words(gaps[(*place, tool)]).replace(" ", "\n")
                _write(ax, j, i, words, "#444444", 6.5)
    ax.set_xticks(range(len(tools)), tools, rotation=40, ha="left", rotation_mode="anchor")
    ax.xaxis.tick_top()
    ax.set_yticks(range(len(places)), [place_title(*place) for place in places])
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return figure


def _write(ax: Axes, x: float, y: float, words: str, colour: str, size: float) -> None:
    ax.text(x, y, words, ha="center", va="center", color=colour, fontsize=size, linespacing=0.9)
