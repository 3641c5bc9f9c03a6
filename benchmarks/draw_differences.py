"""The figure of differences: python benchmarks/draw_differences.py.

The panel minus each method, paired over problems, with 95 % intervals. Reads
results/curve.csv and writes docs/figures/differences.png and differences-dark.png.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
from draw_curve import FIGURES, look
from tables import across_platforms, read, tissues_of

from optirank_lab.benchmark.curve import PANEL
from optirank_lab.benchmark.rivals import ALL
from optirank_lab.benchmark.statistics import PairedComparison, compare

ROWS = (  # size of the panel, method, genes of the method
    ("10", "nearest class mean", "10"),
    ("30", "nearest class mean", "30"),
    ("50", "nearest class mean", "50"),
    ("100", "nearest class mean", "100"),
    ("100", "nearest class mean", ALL),
    ("100", "nearest class mean, adapted", "100"),
    ("10", "LR on ranks, tuned", "10"),
    ("30", "LR on ranks, tuned", "30"),
    ("100", "LR on ranks, tuned", "100"),
    ("100", "LR on ranks, tuned", ALL),
    ("100", "LR on ranks, largest weights", "100"),
    ("100", "SVM on ranks, tuned", ALL),
    ("100", "k-TSP", "100"),
    ("100", "SingleR", ALL),
    ("100", "paper's classifier", ALL),
    ("100", "LR on log values, z-scored", ALL),
)
AHEAD = ("#c2410c", "#fb923c")  # the interval excludes 0; on white, on black
LEVEL = ("#64748b", "#94a3b8")


def main() -> None:
    for dark in (False, True):
        figure = draw(comparisons(), dark)
        path = FIGURES / f"differences{'-dark' if dark else ''}.png"
        figure.savefig(path, dpi=160)
        plt.close(figure)
        print(path)


def comparisons() -> dict[str, PairedComparison]:
    """The comparisons that are there, by what is compared."""
    rows = across_platforms(read("curve"))
    wide = rows.pivot_table(
        index="pair", columns=["method", "k"], values="balanced_accuracy"
    )
    problems = tissues_of(rows)
    found = {}
    for size, method, k in ROWS:
        if (method, k) in wide:
            name = f"panel of {size} minus {method}, {k} genes"
            found[name] = compare(wide[PANEL, size], wide[method, k], problems)
    return found


def draw(found: dict[str, PairedComparison], dark: bool) -> plt.Figure:
    """One line per comparison, the first at the top."""
    ink, paper, quiet = look(dark)
    size = (8.4, 0.32 * len(found) + 1.1)
    figure, ax = plt.subplots(figsize=size, layout="constrained", facecolor=paper)
    ax.set_facecolor(paper)
    ax.axvline(0, color=ink, lw=0.8)
    for place, comparison in enumerate(found.values()):
        low, high = 100 * comparison.low, 100 * comparison.high
        colour = (AHEAD if low > 0 or high < 0 else LEVEL)[dark]
        ax.plot([low, high], [place, place], color=colour, lw=2)
        ax.plot(100 * comparison.mean, place, "o", color=colour, ms=6)
    ax.set_yticks(range(len(found)), list(found))
    ax.invert_yaxis()
    ax.set_xlabel("points of balanced accuracy, mean over problems, 95 %", color=ink)
    ax.grid(axis="x", color=quiet, lw=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(colors=ink, length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    return figure


if __name__ == "__main__":
    main()
