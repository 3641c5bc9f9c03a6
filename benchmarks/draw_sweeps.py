"""The figure of the synthetic data along three sweeps: python
benchmarks/draw_sweeps.py.

Reads results/synthetic.csv and writes docs/figures/sweeps.png and sweeps-dark.png: the
accuracy of each classifier, and the cosine of optirank's reference set to the true one.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from draw_curve import FIGURES, Look, look
from tables import read

CLASSIFIERS = {  # label, colour on white, on black
    "oracle": ("true reference set", "#64748b", "#94a3b8"),
    "optirank": ("optirank", "#c2410c", "#fb923c"),
    "rank-lr": ("rank-lr", "#1d4ed8", "#60a5fa"),
    "lr": ("lr", "#15803d", "#4ade80"),
}
AXES = {
    "n_genes": "number of genes d (20 samples per gene)",
    "n_perturbed": "number of perturbed genes d_P, of 50",
    "tau": "size of the shift, tau",
}
DEFAULT = {"n_genes": 50, "n_perturbed": 40, "tau": 0.2}


def main() -> None:
    rows = read("synthetic").query("experiment == 'folded' and rule == 'best'")
    for dark in (False, True):
        figure = draw(rows, dark)
        path = FIGURES / f"sweeps{'-dark' if dark else ''}.png"
        figure.savefig(path, dpi=160, transparent=False)
        plt.close(figure)
        print(path)


def draw(rows: pd.DataFrame, dark: bool) -> plt.Figure:
    """One column per sweep, accuracies above cosines; bands are standard errors."""
    colours = look(dark)
    figure, axes = plt.subplots(
        2,
        len(AXES),
        figsize=(10.5, 6.4),
        layout="constrained",
        sharey="row",
        sharex="col",
        facecolor=colours.paper,
    )
    for column, (moved, words) in enumerate(AXES.items()):
        others = {name: value for name, value in DEFAULT.items() if name != moved}
        along = (rows[list(others)] == pd.Series(others)).all(axis=1)
        accuracy, cosine = axes[:, column]
        for name in CLASSIFIERS:
            of_name = rows[along & (rows["classifier"] == name)].groupby(moved)
            draw_line(
                accuracy,
                100 * of_name["balanced_accuracy"].mean(),
                100 * of_name["balanced_accuracy"].sem(),
                name,
                dark,
            )
            if name == "optirank":
                draw_line(
                    cosine,
                    of_name["cosine"].mean(),
                    of_name["cosine"].sem(),
                    name,
                    dark,
                )
        cosine.set_xlabel(words, color=colours.ink)
        for ax in (accuracy, cosine):
            style(ax, colours)
    axes[0, 0].set_ylabel("balanced accuracy (%)", color=colours.ink)
    axes[1, 0].set_ylabel("cosine to the true set", color=colours.ink)
    axes[1, 0].set_ylim(0, 1.02)
    figure.suptitle(
        "The synthetic data: mean and standard error over data sets",
        x=0.01,
        ha="left",
        color=colours.ink,
        fontsize=11,
    )
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=len(CLASSIFIERS),
        frameon=False,
        labelcolor=colours.ink,
    )
    return figure


def draw_line(
    ax: plt.Axes, mean: pd.Series, error: pd.Series, name: str, dark: bool
) -> None:
    """The line of one classifier with its band."""
    label, *pair = CLASSIFIERS[name]
    known = name == "oracle"
    ax.plot(
        mean.index,
        mean,
        "--" if known else "-",
        marker=None if known else "o",
        color=pair[dark],
        label=label,
        lw=2.5 if name == "optirank" else 1.5,
        ms=4,
    )
    ax.fill_between(
        mean.index, mean - error, mean + error, color=pair[dark], alpha=0.12, lw=0
    )


def style(ax: plt.Axes, colours: Look) -> None:
    """The look of an axis, as in the other figures."""
    ax.set_facecolor(colours.paper)
    ax.grid(axis="y", color=colours.quiet, lw=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(colors=colours.ink, length=0)
    for side in ax.spines.values():
        side.set_visible(False)


if __name__ == "__main__":
    main()
