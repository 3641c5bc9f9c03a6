"""The figures of a benchmark: scores, genes, the second source, times, wins over tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from optirank.benchmark.classifiers import get, ordered
from optirank.benchmark.reporting.analysis import SCENARIO_TITLES, SHIFTS, Analysis
from optirank.benchmark.reporting.cd_diagram import draw_ranking
from optirank.benchmark.reporting.style import new_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDEST = 15.0  # inches of panels side by side


def draw_all(found: Analysis) -> dict[str, Figure]:
    """Draw every figure that the results have something for."""
    if found.scores.empty:
        return {}
    figures: dict[str, Callable[[Analysis], Figure]] = {"scores": draw_scores, "genes": draw_genes}
    if not found.gains.empty:
        figures["sources"] = draw_sources
    figures["times"] = draw_times
    if not found.over_tasks.empty:
        figures["wins"] = draw_wins
    if found.ranking is not None:
        figures["ranks"] = lambda found: draw_ranking(found.ranking)
    with style():
        return {name: draw(found) for name, draw in figures.items()}


def draw_scores(found: Analysis) -> Figure:
    """Draw one row per task, grouped by kind of shift, with standard errors."""
    rows = _rows_by_shift(found)
    names = ordered(found.summary["classifier"])
    row_height = 0.2 + 0.06 * len(names)
    height = 1.2 + row_height * sum(0.6 if place is None else 1.0 for _, place in rows)
    figure = new_figure(9.2, height)
    ax = figure.subplots()
    cells = found.summary.set_index(["task", "scenario", "classifier"])
    position, ticks = 0.0, []
    for label, place in rows:
        half = 0.3 if place is None else 0.5
        position -= half
        ticks.append((position, label, place is None))
        if place is not None:
            if len(ticks) % 2:
                ax.axhspan(position - 0.5, position + 0.5, color="#f6f6f6", lw=0)
            offsets = np.linspace(0.36, -0.36, len(names)) if len(names) > 1 else [0.0]
            for name, offset in zip(names, offsets, strict=True):
                if (*place, name) in cells.index:
                    _dot(ax, cells.loc[(*place, name)], position + offset, name)
        position -= half
    ax.set_yticks([y for y, _, _ in ticks], [label for _, label, _ in ticks])
    for tick, (_, _, heading) in zip(ax.get_yticklabels(), ticks, strict=True):
        if heading:
            tick.set(fontweight="bold", color="#444444")
    ax.axvline(50, color="#999999", lw=1, ls=":")
    low = 100 * (found.summary["mean"] - found.summary["se"].fillna(0)).min()
    ax.set_xlim(min(48.0, low - 2), 101)
    ax.set_ylim(position - 0.1, 0.1)
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("test balanced accuracy (%), mean ± standard error; dotted: chance")
    _legend(figure, names)
    return figure


def _rows_by_shift(found: Analysis) -> list[tuple[str, tuple[str, str] | None]]:
    """Return the labels from top to bottom; a heading has no place."""
    rows: list[tuple[str, tuple[str, str] | None]] = []
    before = None
    for place in found.summary[["task", "scenario"]].drop_duplicates().itertuples(index=False):
        shift = found.shift(place.task)
        if shift != before:
            kind = SHIFTS.get(shift, shift) or "unknown"
            rows.append((kind if shift == "none" else f"{kind} shift", None))
            before = shift
        short = f"{place.task}, {place.scenario}" if place.scenario else place.task
        rows.append((short, tuple(place)))
    return rows


def _dot(ax: Axes, row: pd.Series, y: float, name: str) -> None:
    error = 0.0 if pd.isna(row["se"]) else 100 * row["se"]
    look = get(name).look
    ax.errorbar(
        100 * row["mean"],
        y,
        xerr=error,
        fmt=look["marker"],
        color=look["color"],
        ms=6,
        mec="white",
        mew=0.5,
        elinewidth=1.4,
    )


def _legend(figure: Figure, names: list[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], ls="", label=name, ms=7, mec="white", mew=0.5, **get(name).look)
        for name in names
    ]
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=min(6, len(names)),
        handlelength=1.2,
        handletextpad=0.3,
        columnspacing=1.6,
    )


def draw_genes(found: Analysis) -> Figure:
    """Draw accuracy against the number of genes: light points are tasks, large ones means."""
    frame = found.summary.merge(found.genes, on=["task", "scenario", "classifier"])
    scenarios = found.scenarios()
    figure = new_figure(max(6.4, 4.1 * len(scenarios)), 4.6)
    panels = figure.subplots(1, len(scenarios), sharey=True, sharex=True, squeeze=False)[0]
    for ax, scenario in zip(panels, scenarios, strict=True):
        here = frame[frame["scenario"] == scenario]
        for name in ordered(here["classifier"]):
            rows = here[here["classifier"] == name]
            genes = rows["n_genes"].clip(lower=1)
            look = get(name).look
            ax.scatter(genes, 100 * rows["mean"], s=26, alpha=0.35, lw=0, **look)
            ax.scatter(genes.mean(), 100 * rows["mean"].mean(), s=130, ec="black", lw=0.8, **look)
        n = here["task"].nunique()
        ax.set_title(f"{SCENARIO_TITLES[scenario]}, {n} task{'s' if n != 1 else ''}")
        ax.set_xscale("log")
        ax.set_xlabel("number of genes")
        plain_log(ax.xaxis, frame["n_genes"].clip(lower=1))
    panels[0].set_ylabel("test balanced accuracy (%)")
    _legend(figure, ordered(frame["classifier"]))
    return figure


def plain_log(axis, values: pd.Series) -> None:
    """Tick a logarithmic axis at 1, (2, 5), 10, ... in plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    values = values[values > 0]
    decades = np.log10(values.max() / values.min()) if len(values) else 0
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 2 else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def draw_sources(found: Analysis) -> Figure:
    """Draw one panel per task: each classifier with one source (open) and with both (filled)."""
    from matplotlib.lines import Line2D

    tasks = list(dict.fromkeys(found.gains["task"]))
    names = ordered(found.gains["classifier"])
    columns = min(2, len(tasks))
    lines = -(-len(tasks) // columns)
    figure = new_figure(5.2 * columns + 0.6, lines * (1.1 + 0.42 * len(names)) + 0.5)
    panels = figure.subplots(lines, columns, sharex=True, squeeze=False).ravel()
    for ax, task in zip(panels, tasks, strict=False):
        here = found.gains[found.gains["task"] == task].set_index("classifier")
        for y, name in enumerate(reversed(names)):
            if name not in here.index:
                continue
            look = get(name).look
            single, multi = 100 * here.loc[name, "single"], 100 * here.loc[name, "multi"]
            ax.plot([single, multi], [y, y], color=look["color"], lw=2.2, alpha=0.6, zorder=1)
            ax.scatter(single, y, s=60, marker=look["marker"], fc="white", ec=look["color"], lw=1.6)
            ax.scatter(multi, y, s=70, lw=0, zorder=3, **look)
        ax.set_yticks(range(len(names)), list(reversed(names)))
        ax.set_ylim(-0.6, len(names) - 0.4)
        ax.set_title(task, fontsize=11)
        ax.tick_params(axis="x", labelbottom=True)
        ax.set_xlabel("test balanced accuracy (%)")
    for ax in panels[len(tasks) :]:
        ax.set_axis_off()
    look = {"ls": "", "marker": "o", "color": "#444444", "ms": 8}
    handles = [
        Line2D([], [], label="single-source", mfc="white", mew=1.6, **look),
        Line2D([], [], label="multi-source", mew=0, **look),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=2, handletextpad=0.3)
    return figure


def draw_times(found: Analysis) -> Figure:
    """Draw the times of a fit and of a task's grids: dots are tasks, lines medians."""
    names = ordered(found.times["classifier"])
    figure = new_figure(9.6, 1.3 + 0.45 * len(names))
    panels = figure.subplots(1, 2, sharey=True)
    quantities = (
        ("fit_seconds", "one fit (CPU s)"),
        ("grid_seconds", "all grids of a task (CPU s)"),
    )
    for ax, (column, label) in zip(panels, quantities, strict=True):
        for y, name in enumerate(reversed(names)):
            values = found.times.loc[found.times["classifier"] == name, column]
            values = values[values > 0].sort_values()
            spread = np.tile([0.0, 0.14, -0.14], len(values))[: len(values)]
            ax.scatter(values, y + spread, s=30, alpha=0.6, lw=0, **get(name).look)
            if len(values):
                ax.plot([values.median()] * 2, [y - 0.34, y + 0.34], color="#333333", lw=1.6)
        ax.set_xscale("log")
        plain_log(ax.xaxis, found.times[column])
        ax.set_xlabel(label)
    panels[0].set_yticks(range(len(names)), list(reversed(names)))
    panels[0].set_ylim(-0.6, len(names) - 0.4)
    return figure


def draw_wins(found: Analysis) -> Figure:
    """Draw in how many tasks the row is ahead of the column, one panel per scenario.

    Panels of many classifiers stand one below the other, or a page would show them too small.
    """
    scenarios = [name for name in found.scenarios() if name in set(found.over_tasks["scenario"])]
    sizes = {
        name: found.over_tasks.loc[found.over_tasks["scenario"] == name, "row"].nunique()
        for name in scenarios
    }
    widths = [0.55 * sizes[name] + 1.1 for name in scenarios]
    heights = [0.45 * sizes[name] + 1.2 for name in scenarios]
    if sum(widths) > _WIDEST:
        figure = new_figure(max(widths) + 0.6, sum(heights) + 1.0)
        panels = figure.subplots(len(scenarios), 1, squeeze=False, height_ratios=heights)[:, 0]
    else:
        figure = new_figure(max(4.8, sum(widths) + 0.6), max(heights) + 1.0)
        panels = figure.subplots(1, len(scenarios), squeeze=False, width_ratios=widths)[0]
    for ax, scenario in zip(panels, scenarios, strict=True):
        image = _wins_panel(ax, found.over_tasks[found.over_tasks["scenario"] == scenario])
        ax.set_title(SCENARIO_TITLES[scenario])
    bar = figure.colorbar(image, ax=list(panels), location="bottom", shrink=0.4, aspect=40)
    bar.set_ticks([-1, 0, 1], labels=["row behind", "even", "row ahead"])
    bar.ax.tick_params(length=0)
    bar.outline.set_visible(False)
    return figure


def _wins_panel(ax: Axes, frame: pd.DataFrame):
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("wins", ["#0072B2", "#f7f7f7", "#D55E00"])
    names = ordered(frame["row"])
    shares = np.full((len(names), len(names)), np.nan)
    for row in frame.itertuples():
        place = names.index(row.row), names.index(row.column)
        shares[place] = (row.wins - row.losses) / row.tasks
        ax.text(
            place[1],
            place[0],
            f"{row.wins}/{row.tasks}",
            ha="center",
            va="center",
            fontsize=10,
            color="white" if abs(shares[place]) > 0.7 else "black",
        )
    image = ax.imshow(shares, cmap=colours, vmin=-1, vmax=1, aspect="auto")
    ax.set_xticks(range(len(names)), names, rotation=40, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(names)), names)
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return image
