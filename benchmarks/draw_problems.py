"""The figures of accuracy per problem, and of error asked against error got: python
benchmarks/draw_problems.py.

Reads results/curve.csv and results/error_control.csv, and writes problems.png and
error.png, and their dark ones, into docs/figures.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from draw_curve import FIGURES, STYLES, look
from matplotlib.ticker import NullLocator
from tables import across_platforms, read, tissues_of
from tables_use import with_errors

from optirank_lab.benchmark.curve import ALL, PANEL
from optirank_lab.benchmark.statistics import over_tissues, t_interval

SHOWN = {  # method and genes, by what the legend calls it
    "panel of 100": (PANEL, "100"),
    "nearest class mean, 100": ("nearest class mean", "100"),
    "LR on ranks, tuned, all": ("LR on ranks, tuned", ALL),
    "SingleR": ("SingleR", ALL),
}

WITH, WITHOUT = ("#c2410c", "#fb923c"), ("#64748b", "#94a3b8")  # on white, on black


def main() -> None:
    for dark in (False, True):
        for name, draw in (("problems", draw_problems), ("error", draw_error)):
            figure = draw(dark)
            path = FIGURES / f"{name}{'-dark' if dark else ''}.png"
            figure.savefig(path, dpi=160)
            plt.close(figure)
            print(path)


def draw_problems(dark: bool) -> plt.Figure:
    """One line per problem, one point per method; the best panel at the top."""
    rows = across_platforms(read("curve"))
    by_key = rows.groupby(["tissue", "method", "k"])["balanced_accuracy"].mean()
    wide = pd.DataFrame(
        {name: by_key.xs(key, level=("method", "k")) for name, key in SHOWN.items()}
    )
    ours = next(iter(SHOWN))
    wide = 100 * wide.sort_values(ours, ascending=False)
    figure, ax = axes((8.4, 0.24 * len(wide) + 1.3), dark)
    places = range(len(wide))
    ax.hlines(places, wide.min(axis=1), wide.max(axis=1), color=look(dark).quiet, lw=3)
    for name in reversed(wide.columns):
        colour = STYLES[SHOWN[name][0]][1 + dark]
        size = 70 if name == ours else 34
        ax.scatter(wide[name], places, s=size, color=colour, label=name, zorder=3)
    ax.set_yticks(places, list(wide.index))
    ax.invert_yaxis()
    ax.set_xlabel("balanced accuracy (%)", color=look(dark).ink)
    legend(ax, dark, "lower right")
    return figure


def draw_error(dark: bool) -> plt.Figure:
    """The error of the labels that are given by the error asked for."""
    rows = with_errors(across_platforms(read("error_control")))
    figure, ax = axes((6.4, 4.4), dark)
    ink = look(dark).ink
    targets = sorted(rows["target"].unique())
    percents = [100 * target for target in targets]
    ax.plot(percents, percents, "--", color=ink, lw=1, label="as asked for")
    lines = {
        "labels given with --target-error": ("error", WITH, 0.99),
        "all labels of the same queries": ("error_without", WITHOUT, 1.01),
    }
    for name, (column, colours, aside) in lines.items():
        means, below, above = [], [], []
        for target in targets:
            of_target = rows[(rows["target"] == target) & rows["can_be_shown"]]
            given = of_target[of_target["n_given"] > 0].set_index("pair")
            errors = 100 * over_tissues(given[column], tissues_of(rows))
            low, high = t_interval(errors)
            means.append(errors.mean())
            below.append(errors.mean() - max(low, 0))
            above.append(high - errors.mean())
        place = [value * aside for value in percents]
        ax.errorbar(
            place, means, [below, above], fmt="o-", color=colours[dark], label=name
        )
    ax.set_xscale("log")
    ax.set_xticks(percents, [f"{value:g}" for value in percents])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("error asked for (%)", color=ink)
    ax.set_ylabel("error on the query (%), mean over problems, 95 %", color=ink)
    ax.set_ylim(bottom=0)
    legend(ax, dark, "upper left")
    return figure


def axes(size: tuple[float, float], dark: bool) -> tuple[plt.Figure, plt.Axes]:
    """An empty figure on a light or a dark page."""
    ink, paper, quiet = look(dark)
    figure, ax = plt.subplots(figsize=size, layout="constrained", facecolor=paper)
    ax.set_facecolor(paper)
    ax.grid(axis="both", color=quiet, lw=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(colors=ink, length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    return figure, ax


def legend(ax: plt.Axes, dark: bool, place: str) -> None:
    """The names of the lines or points."""
    ink, paper, quiet = look(dark)
    box = ax.legend(loc=place, labelcolor=ink, facecolor=paper, edgecolor=quiet)
    box.set_zorder(5)


if __name__ == "__main__":
    main()
