"""The paper's synthetic data along its three sweeps: lr, rank-lr, optirank and the true
reference set.

    python benchmarks/study_sweeps.py [--out DIR] [--jobs N] [--quick]

The default point (50 genes, 40 of them perturbed, 1000 samples, tau = 0.2) is moved
along the number of genes (with 20 samples per gene), the number of perturbed genes or
tau. Data, splits, settings and folds are those of study_synthetic.py, with four seeds
(with --quick one seed, and tau alone). Written to sweeps.csv: mean and standard deviation over the data
sets, per sweep, value and method. `draw_sweeps.py` draws the figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import pandas as pd
from joblib import Parallel, delayed
from studies import Rows, collect, options
from study_synthetic import LR, OPTIRANK, RANK_LR, TRUE_SET, accuracies

from optirank_lab.benchmark.synthetic import SWEEPS, Point, Settings

SEEDS = 4
METHODS = (LR, RANK_LR, OPTIRANK, TRUE_SET)


def main() -> None:
    args = options(__doc__)
    sweeps = ("tau",) if args.quick else tuple(SWEEPS)
    points = Settings(sweeps=sweeps).points()
    work = [
        (point, seed) for point in points for seed in range(1 if args.quick else SEEDS)
    ]
    scores: dict[Point, list[dict[str, float]]] = {point: [] for point in points}
    parallel = Parallel(n_jobs=args.jobs, return_as="generator")
    results = parallel(delayed(point_scores)(*draw) for draw in work)
    for number, ((point, _), result) in enumerate(zip(work, results, strict=True), 1):
        scores[point].append(result)
        print(f"\r{number} of {len(work)}", end="", flush=True)
    print()
    table = collect([rows_of_sweeps(scores, sweeps)], args, 1)["sweeps"]
    wide = table.pivot_table(
        index=["sweep", "value"], columns="method", values="mean", sort=False
    )
    print(wide.round(3).to_string())


def point_scores(point: Point, seed: int) -> dict[str, float]:
    """Balanced accuracy of each method on one data set."""
    return accuracies(METHODS, seed, **asdict(point))


def rows_of_sweeps(
    scores: dict[Point, list[dict[str, float]]], sweeps: Sequence[str]
) -> Rows:
    """One row per sweep, value and method."""
    rows = []
    for name in sweeps:
        sweep = SWEEPS[name]
        points = Settings().sweep_points(name)
        for value, point in zip(sweep.values, points, strict=True):
            of_point = pd.DataFrame(scores[point])
            rows += [
                {
                    "sweep": name,
                    "value": value,
                    "method": method,
                    "data_sets": len(of_point),
                    "mean": of_point[method].mean(),
                    "sd": of_point[method].std(),
                }
                for method in METHODS
            ]
    return {"sweeps": rows}


if __name__ == "__main__":
    main()
