"""Draw the pictures of the method: votes of pairs, elimination, learning from the query.

    python docs/figures/draw_method.py

Each is written beside this file for light and for dark pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap

import optirank
from optirank.panel.votes import centred, vote_scores
from optirank.verbs.performance import size_table

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Theme:
    """Colours of a page."""

    end: str  # of the name of the file
    paper: str
    ink: str
    soft: str
    quiet: str
    blue: str
    orange: str


LIGHT = Theme("", "#ffffff", "#22303c", "#66737f", "#e6ebef", "#0072b2", "#d55e00")
DARK = Theme("-dark", "#131416", "#e4e6ea", "#a3abb3", "#33383e", "#4d9fd0", "#d9753a")

# One T cell: genes of a panel with their values, and their weights for "T cell"
GENES = ("CD3E", "IL7R", "GNLY", "CD74", "CD79A", "MS4A1")
VALUES = (9.0, 6.0, 1.0, 7.0, 3.0, 0.0)
WEIGHTS = (1.0, 0.6, 0.1, -0.5, -0.8, -1.0)

MODEL = "pancreas-human"  # whose curve of sizes is drawn


def draw_votes(figure: Any, theme: Theme) -> None:
    """The votes of all pairs of six genes, and their sums."""
    order = np.argsort(-np.array(VALUES))
    genes = [GENES[place] for place in order]
    values = np.array(VALUES)[order]
    weights = np.array(WEIGHTS)[order]
    n_genes = len(genes)
    votes = (weights[:, None] - weights) * np.sign(values[:, None] - values)
    votes = np.triu(votes / (2 * n_genes), 1)
    ranks = centred(2 * np.arange(n_genes)[None, ::-1])[0]
    score = float(vote_scores(values[None], np.arange(n_genes), weights[None])[0, 0])
    assert np.isclose(votes.sum(), score)
    assert np.isclose(weights @ ranks, score)
    left, right = figure.subplots(1, 2, width_ratios=(1.35, 1))
    shown = np.where(np.triu(np.ones((n_genes, n_genes)), 1) > 0, votes, np.nan)
    ends = [theme.orange, theme.paper, theme.blue]
    colours = LinearSegmentedColormap.from_list("votes", ends)
    left.imshow(shown, cmap=colours, vmin=-0.17, vmax=0.17)
    for row, column in zip(*np.triu_indices(n_genes, 1), strict=True):
        vote = votes[row, column]
        colour = "#ffffff" if abs(vote) > 0.08 else theme.ink
        text = f"{vote:+.2f}"
        left.text(column, row, text, ha="center", va="center", color=colour, size=10)
    left.set_xticks(range(n_genes), genes, style="italic")
    left.set_yticks(range(n_genes), genes, style="italic")
    left.xaxis.tick_top()
    left.set_ylabel("this gene is above ...", color=theme.ink)
    left.set_title("... this gene: the vote for “T cell”", size=11, color=theme.ink)
    left.text(
        -0.4,
        n_genes - 1.35,
        "one T cell, genes from its\nhighest value to its lowest",
        color=theme.soft,
        size=9.5,
        va="center",
    )
    _bars(right, genes, weights * ranks, theme)
    right.set_title(
        "the same, gene by gene: weight × rank", size=11, color=theme.ink, pad=26
    )
    right.set_xlabel(
        f"sum of all votes = score of “T cell” = {score:+.2f}",
        color=theme.ink,
        size=11,
        weight="bold",
    )


def _bars(ax: Any, genes: list[str], amounts: np.ndarray, theme: Theme) -> None:
    colours = [theme.blue if amount >= 0 else theme.orange for amount in amounts]
    rows = np.arange(len(genes))
    ax.barh(rows, amounts, color=colours, height=0.7)
    for row, amount in zip(rows, amounts, strict=True):
        end = "left" if amount >= 0 else "right"
        shift = 0.012 if amount >= 0 else -0.012
        ax.text(
            amount + shift, row, f"{amount:+.2f}", va="center", ha=end, color=theme.ink
        )
    ax.axvline(0, color=theme.soft, lw=1)
    ax.set(ylim=(len(genes) - 0.5, -0.5), xticks=[])
    ax.set_yticks(rows, genes, style="italic")
    span = np.abs(amounts).max()
    ax.set_xlim(-0.7 * span, 1.3 * span)


def draw_elimination(figure: Any, theme: Theme) -> None:
    """Half of the genes stay, again and again; held-out accuracy by size."""
    left, right = figure.subplots(1, 2, width_ratios=(1.1, 1))
    sizes = [2000, 1000, 500, 300, 200, 100, 70, 50, 30, 20, 10]
    for row, size in enumerate(sizes):
        width = np.log10(size) - 0.6
        left.barh(row, width, left=-width / 2, color=theme.blue, height=0.66)
        left.text(0, row, f"{size:,}", ha="center", va="center", color=theme.paper)
    words = [
        (0, "candidates: the genes that\ncorrelate most with a class"),
        (2.2, "1. rank the genes among\n    themselves, per sample"),
        (3.8, "2. fit the weights"),
        (5, "3. drop those of the\n    smallest weights, at\n    most half at a time"),
        (6.8, "and again, down to 10"),
    ]
    for row, text in words:
        left.text(1.6, row, text, va="center", color=theme.soft, size=10)
    left.set(xlim=(-1.4, 3.9), ylim=(len(sizes) - 0.5, -0.6))
    left.axis("off")
    left.set_title("Recursive elimination", size=12, color=theme.ink, weight="bold")
    curve = size_table(optirank.load(MODEL)).dropna()
    accuracy = 100 * curve["balanced_accuracy"]
    error = 100 * curve["standard_error"]
    right.errorbar(
        curve["n_genes"], accuracy, yerr=error, color=theme.blue, marker="o", capsize=2
    )
    chosen = curve["chosen"].to_numpy()
    right.plot(
        curve["n_genes"][chosen],
        accuracy[chosen],
        "D",
        ms=10,
        color=theme.orange,
        zorder=5,
    )
    for n_genes, height in zip(curve["n_genes"][chosen], accuracy[chosen], strict=True):
        right.annotate(
            f"chosen: {n_genes} genes,\n{height:.1f} %",
            (n_genes, height),
            (0, -40),
            textcoords="offset points",
            ha="left",
            color=theme.orange,
        )
    right.set_xscale("log")
    ticks = curve["n_genes"].to_numpy()
    right.set_xticks(ticks, [str(size) for size in ticks])
    right.minorticks_off()
    right.grid(axis="y", color=theme.quiet)
    right.set_axisbelow(True)
    right.set_xlabel("genes in the panel", color=theme.ink)
    right.set_title(
        f"Held-out accuracy of {MODEL} (%)",
        size=12,
        color=theme.ink,
        weight="bold",
    )


def draw_adaptation(figure: Any, theme: Theme) -> None:
    """A query in two directions of its own genes, before and after learning from it."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(3)
    truth = np.repeat([0, 1], 90)
    centres = np.array([[-1.0, -0.6], [1.0, 0.6]])
    points = centres[truth] + rng.normal(size=(180, 2)) * [0.6, 0.5]
    panel_score = 1.3 * (2 * truth - 1) + rng.normal(size=180) * 1.5
    by_panel = (panel_score > 0).astype(int)
    sure = _surest(np.abs(panel_score), by_panel)
    fitted = LogisticRegression(class_weight="balanced")
    fitted.fit(points[sure], by_panel[sure])
    together = 0.5 * panel_score + 0.5 * fitted.decision_function(points)
    adapted = (together > 0).astype(int)
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    everything = np.ones(len(points), dtype=bool)
    steps = (
        ("1. The panel labels the query", by_panel, everything, by_panel != truth),
        ("2. The surest labels teach the query's genes", by_panel, sure, ~everything),
        ("3. Panel and query together", adapted, everything, adapted != truth),
    )
    for ax, (title, labels, full, wrong) in zip(panels, steps, strict=True):
        for label, colour in ((0, theme.orange), (1, theme.blue)):
            own = labels == label
            ax.scatter(*points[own & full].T, s=20, color=colour)
            hollow = points[own & ~full].T
            ax.scatter(*hollow, s=20, facecolor="none", edgecolor=colour, alpha=0.7)
        ax.scatter(*points[wrong].T, s=80, facecolor="none", edgecolor=theme.ink)
        ax.set_title(title, size=10, color=theme.ink)
        ax.set(xticks=[], yticks=[])
        note = f"{wrong.sum()} of {len(points)} labels are wrong (circles)"
        ax.set_xlabel(
            note if wrong.any() else "full: the surest four fifths of a label"
        )
        ax.xaxis.label.set_color(theme.soft)
    panels[0].set_ylabel("two directions of the query's genes", color=theme.soft)
    heights = np.array([points[:, 1].min() - 0.2, points[:, 1].max() + 0.2])
    slopes = fitted.coef_[0]
    line = -(fitted.intercept_[0] + slopes[1] * heights) / slopes[0]
    panels[1].plot(line, heights, "--", color=theme.soft)
    limits = points[:, 0].min() - 0.2, points[:, 0].max() + 0.2
    panels[0].set(xlim=limits, ylim=tuple(heights))


def _surest(confidence: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Which samples are among the surest four fifths of their label."""
    sure = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        n_kept = int(np.ceil(0.8 * len(own)))
        sure[own[np.argsort(-confidence[own])[:n_kept]]] = True
    return sure


PICTURES = {
    "votes": (draw_votes, (9.6, 4.0)),
    "elimination": (draw_elimination, (9.6, 4.2)),
    "adapt": (draw_adaptation, (9.6, 3.5)),
}


def main() -> None:
    """Write all pictures, light and dark."""
    for theme in (LIGHT, DARK):
        look: dict[Any, Any] = {
            "font.family": "DejaVu Sans",
            "text.color": theme.ink,
            "axes.facecolor": theme.paper,
            "axes.edgecolor": theme.quiet,
            "xtick.color": theme.ink,
            "ytick.color": theme.ink,
            "xtick.major.size": 0,
            "ytick.major.size": 0,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
        with mpl.rc_context(look):
            for name, (draw, size) in PICTURES.items():
                figure = plt.figure(
                    figsize=size, layout="constrained", facecolor=theme.paper
                )
                draw(figure, theme)
                figure.savefig(HERE / f"{name}{theme.end}.png", dpi=130)
                plt.close(figure)


if __name__ == "__main__":
    main()
