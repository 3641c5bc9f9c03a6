"""What the paper's own evaluation would cost, from the times that a benchmark run took.

    python benchmarks/study_paper_cost.py DIR

DIR is a folder of `optirank benchmark run` with the paper's grids. For each classifier the CPU
time of a unit (a whole grid on one split of one binary problem, about 1000 genes) is fitted as a
straight line in the number of training samples, and summed over the units of the paper's tasks. The
sizes of these are upper bounds from the numbers of cells and types that the paper gives, and for
the bulk sets from the size of the public cohorts.
"""

from __future__ import annotations

import sys

import numpy as np

from optirank.benchmark.results import collect
from optirank.benchmark.storage import Storage

FEWEST_GENES = 900  # units on fewer genes say nothing about 1000
ALONE = ("SCN", "lr", "optirank", "rank-lr", "rf")
ALL = ("ANrank-lr", *ALONE)
# Task: binary problems, splits, training samples, scenarios. TCGA serves PCAWG and met-500 too.
PAPER = {
    "BRCA": (1, 12, 550, 1),
    "TCGA, PCAWG, met-500": (7, 5, 2800, 1),
    "Baron-Murano": (9, 5, 780, 1),
    "Baron-Segerstolpe": (10, 5, 850, 1),
    "MWS-TM10x": (32, 5, 1660, 1),
    "MWS-TMfacs": (69, 5, 3600, 1),
    "TM10x-MWS": (32, 5, 1280, 1),
    "TM10x-TMfacs": (32, 5, 1280, 1),
    "TMfacs-MWS": (69, 5, 2550, 1),
    "TCGA-PCAWG-met500": (5, 5, 2800, 2),
    "Baron-Segerstolpe-Murano": (9, 5, 780, 2),
    "MWS-TMfacs-TM10x": (32, 5, 1660, 2),
}
PUBLISHED_HOURS = 2500


def lines(folder: str) -> dict[str, tuple[float, float]]:
    """Seconds at no samples and seconds per sample, for a unit of each classifier."""
    results = collect(Storage(folder))
    scores = results.scores[results.scores["n_features"] >= FEWEST_GENES]
    fitted = {}
    for name, rows in scores.groupby("classifier"):
        means = rows.groupby(["task", "scenario"])[["n_train", "unit_seconds"]].mean()
        slope, start = np.polyfit(means["n_train"], means["unit_seconds"], 1)
        fitted[name] = (max(start, 0.0), max(slope, 0.0))
    fitted.setdefault("ANrank-lr", fitted["optirank"])  # an upper bound: it fits less
    return fitted


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    fitted = lines(sys.argv[1])
    print("| classifier | s a unit at 500 samples |\n|---|--:|")
    for name in ALL:
        start, slope = fitted[name]
        print(f"| {name} | {start + 500 * slope:.1f} |")
    print("\n| task | units | CPU hours |\n|---|--:|--:|")
    total = 0.0
    for task, (problems, splits, n, scenarios) in PAPER.items():
        names = ALL if scenarios == 2 else ALONE
        number = problems * splits * scenarios
        hours = number * sum(fitted[one][0] + fitted[one][1] * n for one in names) / 3600
        total += hours
        print(f"| {task} | {number * len(names)} | {hours:.1f} |")
    ratio = PUBLISHED_HOURS / total
    print(f"| all | | {total:.0f} |\n\nThe paper: {PUBLISHED_HOURS} CPU hours, {ratio:.0f} times.")


if __name__ == "__main__":
    main()
