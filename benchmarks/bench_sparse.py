"""Sparse or dense orders: where a fit on the non-zeros becomes slower than one on all
entries.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits
from timing import QUICK, columns, heading, line

from optirank.ranks.orders import DENSE_ABOVE, SparseOrders, order_samples
from optirank.solver.problem import Problem, sample_weights
from optirank.solver.solve import solve_alternating

FILLS = (0.05, 0.2) if QUICK else (0.05, 0.1, 0.15, 0.2)
GENES = (200,) if QUICK else (500, 1000, 2000, 4000)
N_SAMPLES = 100 if QUICK else 600
SETTINGS = ((0.05, 0.0), (0.05, 1e-3), (0.2, 1e-3))  # s/d, l1


def counts(n_genes: int, fill: float) -> tuple[sparse.csr_array, np.ndarray]:
    """Counts with a given fraction of non-zeros; a tenth of the genes differ between
    classes.
    """
    rng = np.random.default_rng(0)
    y = (np.arange(N_SAMPLES) % 2).astype(float)
    level = rng.gamma(0.5, size=n_genes)
    level *= -np.log1p(-fill) / level.mean()
    effect = np.where(np.arange(n_genes) % 10 == 0, rng.normal(0, 1.5, n_genes), 0.0)
    for _ in range(20):  # the levels at which the fill is as asked for
        mean = level * np.exp(np.outer(y, effect))
        level *= fill / (1.0 - np.exp(-mean)).mean()
    return sparse.csr_array(rng.poisson(level * np.exp(np.outer(y, effect)))), y


def cpu_and_objective(
    orders, y: np.ndarray, share: float, l1: float
) -> tuple[float, float]:
    """CPU seconds of one fit, and its objective."""
    problem = Problem(
        orders, y, sample_weights(y), int(share * orders.n_genes), l1, 1e-3
    )
    start = time.process_time()
    solution = solve_alternating(problem)
    return time.process_time() - start, solution.objective


def main() -> None:
    heading(
        f"CPU time of a fit on sparse orders over one on dense orders, {N_SAMPLES} "
        "samples"
    )
    columns()
    with threadpool_limits(1):
        X, y = counts(100, 0.2)
        for orders in (order_samples(X), order_samples(X.toarray())):  # compiles
            for share, l1 in SETTINGS:
                cpu_and_objective(orders, y, share, l1)
        losses = []
        for fill in FILLS:
            ratios = []
            for n_genes in GENES:
                X, y = counts(n_genes, fill)
                orders = order_samples(X)
                assert isinstance(orders, SparseOrders)
                here = []
                for share, l1 in SETTINGS:
                    on_sparse, objective = cpu_and_objective(orders, y, share, l1)
                    on_dense, reference = cpu_and_objective(
                        orders.to_dense(), y, share, l1
                    )
                    here.append(on_sparse / on_dense)
                    losses.append(objective / reference - 1.0)
                ratio = statistics.geometric_mean(here)
                ratios.append(ratio)
                line(f"{orders.density:.1%} filled, {n_genes} genes", f"{ratio:.2f}")
            mean = statistics.geometric_mean(ratios)
            kept = fill <= DENSE_ABOVE
            target = "<= 1.1" if kept else ">= 0.9"
            right = mean <= 1.1 if kept else mean >= 0.9
            what = f"{fill:.0%} filled, mean: {'sparse' if kept else 'dense'} is used"
            line(what, f"{mean:.2f}", target, right)
        worst = max(losses)
        line(
            "objective on sparse over dense, worst",
            f"{worst:+.2%}",
            "<= 2 %",
            worst <= 0.02,
        )


if __name__ == "__main__":
    main()
