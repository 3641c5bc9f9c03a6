"""Draw docs/figures/ranks.png: what a rank relative to a set of genes is.

python docs/figures/draw_ranks.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

INK, GREY, LIGHT = "#22303c", "#7f8d99", "#e6ebef"
BLUE, ORANGE, GREEN = "#2b6cb0", "#d9730d", "#2f855a"
HALO = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}  # words over lines

# Values of the genes of one sample on two platforms. The reference genes keep their places, and
# so does the gene of interest; the other genes move up together on the second platform.
REFERENCE = {
    "a": (1.2, 0.9),
    "b": (2.6, 2.0),
    "c": (4.3, 3.9),
    "d": (7.1, 7.7),
    "e": (8.6, 9.2),
}
OTHERS = {"f": (1.9, 5.9), "g": (3.2, 6.9), "h": (3.8, 7.2), "i": (7.8, 8.4)}
GENE = (5.6, 5.2)

# A panel of six genes in two cells, from the lowest rank to the highest.
T_CELL = ["MS4A1", "CD79A", "GNLY", "CD74", "IL7R", "CD3E"]
B_CELL = ["CD3E", "GNLY", "IL7R", "CD79A", "MS4A1", "CD74"]
COLOURS = {"CD3E": ORANGE, "IL7R": ORANGE, "MS4A1": BLUE, "CD79A": BLUE, "CD74": GREEN}


def draw_reference(ax) -> None:
    """One sample on two platforms, as points on two axes of expression."""
    ax.set(xlim=(-0.4, 10.6), ylim=(-1.15, 3.2))
    for height, k in ((2.0, 0), (0.3, 1)):
        ax.plot([0.3, 10.0], [height] * 2, color=LIGHT, lw=2, zorder=0)
        ax.annotate(
            "",
            (10.3, height),
            (9.9, height),
            arrowprops={"arrowstyle": "->", "color": GREY},
        )
        ax.text(
            0.0,
            height + 0.52,
            f"platform {k + 1}",
            color=INK,
            fontsize=11,
            weight="bold",
        )
        ax.scatter(
            [v[k] for v in OTHERS.values()], [height] * len(OTHERS), s=90, color=GREY
        )
        ax.scatter(
            [v[k] for v in REFERENCE.values()],
            [height] * 5,
            s=130,
            color=BLUE,
            zorder=3,
        )
        ax.scatter([GENE[k]], [height], s=170, marker="D", color=ORANGE, zorder=4)
        below = sum(v[k] < GENE[k] for v in REFERENCE.values())
        among_all = below + sum(v[k] < GENE[k] for v in OTHERS.values())
        ax.text(
            GENE[k],
            height + 0.34,
            f"{below} of 5 reference genes below",
            ha="center",
            color=BLUE,
            fontsize=10.5,
            weight="bold",
            bbox=HALO,
        )
        ax.text(
            GENE[k],
            height - 0.5,
            f"{among_all} of all genes below",
            ha="center",
            color=GREY,
            fontsize=10.5,
            bbox=HALO,
        )
    for first, second in OTHERS.values():
        ax.plot([first, second], [1.86, 0.44], color=GREY, lw=0.8, ls=":", zorder=0)
    for x, colour, marker, words in (
        (0.3, ORANGE, "D", "the gene"),
        (2.5, BLUE, "o", "reference genes"),
        (6.1, GREY, "o", "genes that the platform shifts"),
    ):
        ax.scatter([x], [-0.95], s=70, color=colour, marker=marker)
        ax.text(x + 0.25, -0.95, words, va="center", fontsize=10, color=INK)
    ax.text(10.3, 1.62, "expression", ha="right", fontsize=9.5, color=GREY)
    ax.set_title(
        "A rank relative to a reference set",
        color=INK,
        fontsize=13,
        weight="bold",
        pad=8,
    )


def draw_panel(ax) -> None:
    """The ranks of six genes among themselves in two cells."""
    ax.set(xlim=(-1.05, 2.05), ylim=(-0.15, 7.6))
    for x, order, name in ((0, T_CELL, "a T cell"), (1, B_CELL, "a B cell")):
        ax.text(x, 7.0, name, ha="center", fontsize=11, weight="bold", color=INK)
        for rank, gene in enumerate(order, start=1):
            colour = COLOURS.get(gene, GREY)
            ax.scatter([x], [rank], s=420, color=colour, zorder=3)
            ax.text(
                x,
                rank,
                rank,
                ha="center",
                va="center",
                color="white",
                weight="bold",
                zorder=4,
            )
            ax.text(
                x + (-0.17 if x == 0 else 0.17),
                rank,
                gene,
                ha="right" if x == 0 else "left",
                va="center",
                color=colour if colour != GREY else INK,
                fontsize=11,
                style="italic",
            )
    for gene in T_CELL:
        ranks = T_CELL.index(gene) + 1, B_CELL.index(gene) + 1
        ax.plot(
            [0, 1], ranks, color=COLOURS.get(gene, GREY), lw=1.6, alpha=0.55, zorder=1
        )
    ax.text(
        0.5,
        0.12,
        "score of a class = sum of weight \u00d7 rank",
        ha="center",
        fontsize=10,
        color=INK,
    )
    ax.set_title(
        "A panel: genes ranked among themselves",
        color=INK,
        fontsize=13,
        weight="bold",
        pad=8,
    )


def main() -> None:
    """Write the figure beside this file."""
    plt.rcParams["font.family"] = "DejaVu Sans"
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11.6, 4.3), width_ratios=(1.55, 1), facecolor="white"
    )
    for ax in (left, right):
        ax.axis("off")
    draw_reference(left)
    draw_panel(right)
    figure.subplots_adjust(left=0.02, right=0.985, bottom=0.03, top=0.89, wspace=0.06)
    figure.savefig(Path(__file__).with_name("ranks.png"), dpi=140)


if __name__ == "__main__":
    main()
