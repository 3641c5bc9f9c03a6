"""The figure of the README, accuracy against genes: python benchmarks/draw_curve.py.

Reads results/curve.csv and writes docs/figures/curve.png and curve-dark.png.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import pandas as pd
from tables import across_platforms, read

from optirank_lab.benchmark.curve import means

FIGURES = Path(__file__).resolve().parent.parent / "docs" / "figures"
ALL_AT = 700  # where "all" stands on the axis
STYLES = {  # label, colour on white, on black
    "panel": ("optirank panel", "#c2410c", "#fb923c"),
    "nearest class mean": ("nearest class mean", "#7e22ce", "#c084fc"),
    "k-TSP": ("k-TSP", "#0f766e", "#2dd4bf"),
    "LR on ranks, largest weights": (
        "LR on ranks, largest weights",
        "#1d4ed8",
        "#60a5fa",
    ),
    "LR on ranks, tuned": ("LR on ranks, tuned", "#64748b", "#94a3b8"),
    "paper's classifier": ("paper's classifier", "#be185d", "#f472b6"),
    "SingleR": ("SingleR", "#15803d", "#4ade80"),
    "CellTypist": ("CellTypist", "#0369a1", "#38bdf8"),
    "pySingleCellNet": ("pySingleCellNet", "#78716c", "#a8a29e"),
    "LR on log values": ("LR on log values", "#a16207", "#facc15"),
    "LR on log values, z-scored": ("LR on log values, z-scored", "#4d7c0f", "#a3e635"),
    "SVM on ranks, tuned": ("SVM on ranks, tuned", "#b91c1c", "#f87171"),
}
LOWEST, HIGHEST = 66, 86  # accuracies that are shown; lower ones stand at the foot
LABEL_ROOM = 0.95  # points of accuracy between two labels


class Look(NamedTuple):
    """Colours of a figure: of its text, its background and its grid."""

    ink: str
    paper: str
    quiet: str


def look(dark: bool) -> Look:
    """The colours of a figure on a light or a dark page."""
    if dark:
        return Look("#e6edf3", "#0d1117", "#30363d")
    return Look("#1f2328", "#ffffff", "#e5e7eb")


def main() -> None:
    for dark in (False, True):
        figure = draw(curve_means(), dark)
        path = FIGURES / f"curve{'-dark' if dark else ''}.png"
        figure.savefig(path, dpi=160, transparent=False)
        plt.close(figure)
        print(path)


def curve_means() -> pd.DataFrame:
    """Mean over problems of each method by the genes that it used, with the interval."""
    rows = across_platforms(read("curve"))
    n_pairs = rows.groupby("method")["pair"].nunique()
    complete = n_pairs.index[n_pairs >= n_pairs["panel"]]
    table = means(rows[rows["method"].isin(complete)])
    numbers = ["mean", "low", "high"]
    table[numbers] *= 100
    table["genes"] = table["n_genes"].where(table["k"] != "all", ALL_AT)
    return table.sort_values("genes", kind="stable")


def draw(table: pd.DataFrame, dark: bool) -> plt.Figure:
    """Lines by method with their names at the right."""
    ink, paper, quiet = look(dark)
    figure, ax = plt.subplots(figsize=(8.4, 4.5), layout="constrained", facecolor=paper)
    ax.set_facecolor(paper)
    ends = []
    for method, (label, *colours) in STYLES.items():
        rows, colour = table[table["method"] == method], colours[dark]
        if rows.empty:
            continue
        ours = method == "panel"
        some = rows[rows["genes"] < ALL_AT]
        ax.plot(
            some["genes"],
            some["mean"],
            "-",
            marker="o",
            color=colour,
            zorder=4 + ours,
            lw=3 if ours else 1.5,
            ms=6.5 if ours else 3.5,
        )
        everything = rows[rows["genes"] == ALL_AT]
        at = everything["mean"].clip(lower=LOWEST + 0.4)
        ax.plot(everything["genes"], at, "D", color=colour, ms=6, zorder=4)
        last = rows.iloc[-1]
        if last["mean"] < LOWEST:
            label = f"{label}: {last['mean']:.0f} %"
        mean = max(last["mean"], LOWEST + 0.4)
        ends.append([mean, last["genes"], label, colour, ours])
    _name_lines(ax, ends)
    ax.set_xscale("log")
    ticks = [10, 20, 30, 50, 100, 300, ALL_AT]
    ax.set_xticks(ticks, [*map(str, ticks[:-1]), "all"])
    ax.minorticks_off()
    ax.set(xlim=(9, 3000), ylim=(LOWEST - 0.5, HIGHEST + 0.5))
    ax.axvline(ALL_AT / 1.5, color=quiet, lw=1.2, ls=":")
    ax.set_yticks(range(70, HIGHEST + 1, 5))
    ax.set_xlabel("genes that the model needs (median)", color=ink, x=0.38)
    rows = across_platforms(read("curve"))
    n_pairs = rows["pair"].nunique()
    n_tissues = rows["tissue"].nunique()
    above = {"transform": ax.transAxes, "color": ink}
    ax.text(
        0, 1.085, "Mean balanced accuracy on another platform (%)", fontsize=12, **above
    )
    what = f"{n_pairs} pairs of data sets, {n_tissues} problems"
    ax.text(0, 1.025, what, fontsize=9, alpha=0.75, **above)
    ax.grid(axis="y", color=quiet, lw=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(colors=ink, length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    return figure


def _name_lines(ax: plt.Axes, ends: list[list]) -> None:
    """Write each method's name beside its last point, moved apart where two
    are close.
    """
    ends.sort(key=lambda end: end[0])
    places = apart([end[0] for end in ends], LABEL_ROOM)
    for (mean, genes, label, colour, ours), place in zip(ends, places, strict=True):
        line = {"arrowstyle": "-", "color": colour, "lw": 0.6, "alpha": 0.5}
        ax.annotate(
            label,
            (genes * 1.04, mean),
            (ALL_AT * 1.25, place),
            color=colour,
            va="center",
            fontsize=11 if ours else 9,
            fontweight="bold" if ours else "normal",
            arrowprops=line | {"shrinkA": 1, "shrinkB": 2},
        )


def apart(values: list[float], room: float) -> list[float]:
    """Rising values moved apart: those that are too close stand around their mean."""
    groups: list[list[float]] = []
    for value in values:
        groups.append([value])
        while len(groups) > 1 and _overlap(groups[-2], groups[-1], room):
            last = groups.pop()
            groups[-1] += last
    return [place for group in groups for place in _around_mean(group, room)]


def _around_mean(group: list[float], room: float) -> list[float]:
    first = sum(group) / len(group) - room * (len(group) - 1) / 2
    return [first + room * place for place in range(len(group))]


def _overlap(lower: list[float], upper: list[float], room: float) -> bool:
    return _around_mean(upper, room)[0] - _around_mean(lower, room)[-1] < room


if __name__ == "__main__":
    main()
