"""The paper's algorithm on the anchor problems, beside the published results.

Set OPENBLAS_NUM_THREADS=1 for CPU times that can be compared.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from pathlib import Path

import numpy as np

from optirank.ranks.orders import order_samples
from optirank.solver.bpcd import solve_bpcd
from optirank.solver.problem import Problem, Solution, sample_weights

ANCHORS = Path(
    os.environ.get("OPTIRANK_ANCHORS", Path(__file__).resolve().parents[2] / "shared" / "anchors")
)
HEADER = (
    "| problem | l1 | s | objective | published | diff % | relaxed | published "
    "| iterations | published | relaxations | published | CPU s | published |"
)


def solve(row: dict, **settings) -> tuple[Solution, float]:
    """Solve one line of published.csv; the solution and the CPU seconds, sorting included."""
    data = np.load(ANCHORS / f"{row['problem']}.npz")
    y = data["y"].astype(float)
    start = time.process_time()
    problem = Problem(
        order_samples(data["X"]),
        y,
        sample_weights(y),
        int(row["s"]),
        float(row["lambda_1"]),
        float(row["lambda_2"]),
    )
    return solve_bpcd(problem, **settings), time.process_time() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out the problems of 1000 genes")
    quick = parser.parse_args().quick
    with (ANCHORS / "published.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if not (quick and "d1000" in row["problem"])]

    solve(min(rows, key=lambda row: float(row["cpu_s"])), max_iter=1, integral=False)  # compiles
    print(HEADER)
    print("|---|" + "--:|" * 13)
    differences, speedups = [], []
    for row in rows:
        solution, seconds = solve(row)
        differences.append(100 * (solution.objective / float(row["objective"]) - 1))
        speedups.append(float(row["cpu_s"]) / seconds)
        print(
            f"| {row['problem']} | {row['lambda_1']} | {row['s']} "
            f"| {solution.objective:.6f} | {row['objective']} | {differences[-1]:+.2f} "
            f"| {solution.path[0]['objective']:.6f} | {row['objective_relaxed']} "
            f"| {solution.n_iter} | {row['iterations']} "
            f"| {len(solution.path) - 1} | {row['relaxations']} "
            f"| {seconds:.2f} | {row['cpu_s']} |",
            flush=True,
        )
    print(f"\nlargest difference of an objective: {np.abs(differences).max():.2f} %")
    print(f"published CPU s over ours, geometric mean: {np.exp(np.mean(np.log(speedups))):.1f}")


if __name__ == "__main__":
    main()
