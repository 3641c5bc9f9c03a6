"""The figure of the synthetic data along three sweeps: python
benchmarks/draw_sweeps.py.

Reads results/sweeps.csv and writes docs/figures/sweeps.png and sweeps-dark.png.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from draw_curve import FIGURES, Look, look
from study_synthetic import LR, OPTIRANK, RANK_LR, TRUE_SET
from tables import read

METHODS = {  # label, colour on white, on black
    TRUE_SET: ("true reference set", "#64748b", "#94a3b8"),
    OPTIRANK: ("optirank", "#c2410c", "#fb923c"),
    RANK_LR: ("rank-lr", "#1d4ed8", "#60a5fa"),
    LR: ("lr", "#15803d", "#4ade80"),
}
AXES = {
    "d": "number of genes (20 samples per gene)",
    "dp": "number of perturbed genes, of 50",
    "tau": "size of the shift, tau",
}


def main() -> None:
    table = read("sweeps")
    for dark in (False, True):
        figure = draw(table, dark)
        path = FIGURES / f"sweeps{'-dark' if dark else ''}.png"
        figure.savefig(path, dpi=160, transparent=False)
        plt.close(figure)
        print(path)


def draw(table: pd.DataFrame, dark: bool) -> plt.Figure:
    """One plot per sweep; bands are one standard deviation over the data sets."""
    colours = look(dark)
    figure, axes = plt.subplots(
        1,
        len(AXES),
        figsize=(10.5, 3.8),
        layout="constrained",
        sharey=True,
        facecolor=colours.paper,
    )
    for ax, (sweep, words) in zip(axes, AXES.items(), strict=True):
        draw_sweep(ax, table[table["sweep"] == sweep], dark)
        ax.set_xlabel(words, color=colours.ink)
        style(ax, colours)
    n_sets = int(table["data_sets"].max())
    figure.suptitle(
        f"Balanced accuracy on the synthetic data (%): mean and standard deviation "
        f"over {n_sets} data sets",
        x=0.01,
        ha="left",
        color=colours.ink,
        fontsize=11,
    )
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=len(METHODS),
        frameon=False,
        labelcolor=colours.ink,
    )
    return figure


def draw_sweep(ax: plt.Axes, rows: pd.DataFrame, dark: bool) -> None:
    """The lines of one sweep."""
    for method, (label, *pair) in METHODS.items():
        of_method = rows[rows["method"] == method]
        mean = 100 * of_method["mean"]
        sd = 100 * of_method["sd"]
        known = method == TRUE_SET
        ax.plot(
            of_method["value"],
            mean,
            "--" if known else "-",
            marker=None if known else "o",
            color=pair[dark],
            label=label,
            lw=2.5 if method == OPTIRANK else 1.5,
            ms=4,
        )
        ax.fill_between(
            of_method["value"], mean - sd, mean + sd, color=pair[dark], alpha=0.12, lw=0
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
