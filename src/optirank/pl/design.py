"""Figures of a panel for an assay, from the tables of a `DesignResult`: what may happen
to it, and how its genes are expressed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.pl.axes import (
    BLUE,
    DARK,
    GREY,
    LEGEND_ABOVE,
    ORANGE,
    Axes,
    Place,
    axes_for,
    cells_between,
    heat_map,
    name_rows,
    short,
    slant,
)

if TYPE_CHECKING:
    import pandas as pd

_ROW = 0.21  # inches of a gene
_LARGEST = 90.0  # area of the dot of a gene that all samples express, in points
_DARK_FROM = 55.0  # per cent: cells on which writing is white
_KINDS = {"test": ORANGE, "as it is": BLUE}  # other conditions are dark
MOST_GENES = 120  # in one figure: more cannot be looked through


def draw_conditions(ax: Place, conditions: pd.DataFrame) -> Axes:
    """Balanced accuracy with its interval under every condition, the lowest class
    as a dot.
    """
    ax = axes_for(ax, 6.2, 1.1 + 0.32 * len(conditions))
    for row, line in enumerate(conditions.to_dict("records")):
        colour = _KINDS.get(line["kind"], DARK)
        accuracy = 100 * line["balanced_accuracy"]
        low, high = 100 * line["low"], 100 * line["high"]
        ax.plot([low, high], [row, row], color=colour, linewidth=2.5, alpha=0.35)
        ax.plot(accuracy, row, "o", color=colour, markersize=7)
        ax.plot(100 * line["lowest"], row, "o", color="none", markeredgecolor=GREY)
    ax.plot([], [], "o", color=DARK, label="mean over classes, 95 % interval")
    ax.plot([], [], "o", color="none", markeredgecolor=GREY, label="lowest class")
    name_rows(ax, [short(name, 44) for name in conditions["condition"]])
    ax.set(xlim=(-2, 102), xlabel="samples labelled right (%)")
    ax.grid(visible=True, axis="x", color="#e6e6e6")
    ax.set_axisbelow(True)
    ax.legend(ncols=2, **LEGEND_ABOVE)
    return ax


def draw_classes(ax: Place, shares: pd.DataFrame) -> Axes:
    """Sensitivity of classes (rows) under conditions (columns), with numbers."""
    values = 100 * shares.to_numpy(dtype=float)
    n_rows, n_columns = values.shape
    ax = axes_for(ax, 3.8 + 0.55 * n_columns, 3.0 + 0.32 * n_rows)
    rows = [short(name, 24) for name in shares.index]
    columns = [short(name, 44) for name in shares.columns]
    bar = "samples labelled right (%)"
    heat_map(ax, values, rows, columns, cmap="Blues", limits=(0, 100), bar=bar)
    cells_between(ax, n_rows, n_columns)
    for (row, column), value in np.ndenumerate(values):
        if value == value:
            colour = "white" if value > _DARK_FROM else DARK
            ax.text(column, row, f"{value:.0f}", ha="center", va="center", color=colour)
    return ax


def draw_dots(ax: Place, genes: pd.DataFrame, classes: list[str]) -> Axes:
    """Genes (rows) by classes (columns): dots as large as the share of samples that
    express.

    The colour is the mean where expressed, relative to the class where it is highest.
    Genes are in groups by the class that they speak for; of many the first are drawn.
    """
    genes = genes.head(MOST_GENES)
    places = [classes.index(name) for name in genes["speaks_for"]]
    genes = genes.assign(place=places).sort_values(["place", "rank"])
    shares = genes[[f"share_{name}" for name in classes]].to_numpy(dtype=float)
    means = genes[[f"mean_{name}" for name in classes]].to_numpy(dtype=float)
    means = means / np.where(shares > 0, shares, 1.0)
    highest = means.max(axis=1, keepdims=True)
    colours = means / np.where(highest > 0, highest, 1.0)
    n_genes, n_classes = shares.shape
    ax = axes_for(ax, 3.0 + 0.42 * n_classes, 3.2 + _ROW * n_genes)
    x, y = np.meshgrid(np.arange(n_classes), np.arange(n_genes))
    dots = ax.scatter(
        x.ravel(),
        y.ravel(),
        s=_LARGEST * shares.ravel(),
        c=colours.ravel(),
        cmap="viridis_r",
        vmin=0,
        vmax=1,
        linewidths=0,
    )
    ax.set_xticks(range(n_classes), [short(name, 24) for name in classes])
    ax.set_yticks(range(n_genes), genes["gene"])
    ax.set(xlim=(-0.6, n_classes - 0.4), ylim=(n_genes - 0.4, -0.6))
    slant(ax)
    ax.tick_params(length=0, labelsize="small")
    speaks = genes["speaks_for"].tolist()
    for row in range(1, n_genes):
        if speaks[row] != speaks[row - 1]:
            ax.axhline(row - 0.5, color="#dddddd", linewidth=0.8, zorder=0)
    ax.spines[:].set_visible(False)
    for share in (0.1, 0.5, 1.0):
        ax.scatter([], [], s=_LARGEST * share, color=GREY, label=f"{share:.0%}")
    look: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 3}
    ax.legend(**look, frameon=False, title="samples that express the gene")
    bar = ax.figure.colorbar(
        dots, ax=ax, location="bottom", shrink=0.6, aspect=30, pad=0.02
    )
    bar.set_label("mean where expressed, relative to the highest class")
    return ax
