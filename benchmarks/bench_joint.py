"""The joint model: CPU time over scikit-learn's multinomial regression, growth with classes and n.

Counts are generated: groups of classes share markers, every class has some of its own, 16 % of the
entries are not zero. Times include the sorting.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits
from timing import columns, heading, line

from optirank.ranks.orders import order_samples
from optirank.solver.joint import solve_joint
from optirank.solver.joint_problem import JointProblem, joint_weights

SETTINGS = ((100, 0.0, 1e-3), (100, 1e-3, 1e-3), (100, 3e-3, 1e-3), (400, 3e-4, 1e-4))


def make_cells(n: int, d: int, n_classes: int, seed: int = 0, filled: float = 0.16):
    """Counts (n x d, float32) and codes of the classes."""
    rng = np.random.default_rng(seed)
    base = np.exp(rng.normal(-3.0, 1.9, d))
    low, high = 1e-4, 1e4
    for _ in range(40):  # the depth at which the fraction asked for is filled
        depth = np.sqrt(low * high)
        scarce = (depth * base / (1.0 + depth * base)).mean() < filled
        low, high = (depth, high) if scarce else (low, depth)
    base *= depth
    means = np.tile(base, (n_classes, 1))
    middle = np.flatnonzero((base > 0.02) & (base < 2.0))
    groups = np.arange(n_classes) % max(1, n_classes // 4)
    for group in np.unique(groups):
        means[np.ix_(groups == group, rng.choice(middle, 40, replace=False))] *= 4.0
    for one in range(n_classes):
        means[one, rng.choice(middle, 20, replace=False)] *= 2.5
    codes = rng.integers(0, n_classes, n)
    library = np.exp(rng.normal(0.0, 0.4, n))
    X = np.empty((n, d), np.float32)
    for begin in range(0, n, 1000):
        block = slice(begin, begin + 1000)
        X[block] = rng.geometric(1.0 / (1.0 + library[block, None] * means[codes[block]])) - 1
    return X, codes


def fit_joint(X: np.ndarray, codes: np.ndarray, s: int, l1: float, l2: float):
    """One joint fit, from values."""
    n_classes = int(codes.max()) + 1
    v = joint_weights(codes, n_classes)
    return solve_joint(JointProblem(order_samples(X), codes, n_classes, v, s, l1, l2))


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time of one piece of work."""
    start = time.process_time()
    work()
    return time.process_time() - start


def over_regression() -> None:
    heading("One joint fit over LogisticRegression(C=0.1), 5000 x 2000, 20 classes, 16 % filled")
    columns()
    X, codes = make_cells(5000, 2000, 20)
    logs = np.log1p(1e4 * X / X.sum(axis=1, keepdims=True))
    fit_joint(X[:300, :200], codes[:300], 20, 1e-3, 1e-3)  # compiles
    model = LogisticRegression(C=0.1, max_iter=1000)
    base = statistics.median(cpu_seconds(lambda: model.fit(logs, codes)) for _ in range(3))
    line("LogisticRegression", f"{base:.1f} s")
    for s, l1, l2 in SETTINGS:
        seconds = cpu_seconds(lambda s=s, l1=l1, l2=l2: fit_joint(X, codes, s, l1, l2))
        ratio = seconds / base
        line(f"s={s}, l1={l1:g}, l2={l2:g}", f"{ratio:.2f} ({seconds:.1f} s)", "<= 3", ratio <= 3)


def growth() -> None:
    heading("Growth of the CPU time of one fit, s=100, l1=1e-3, l2=1e-3")
    columns()

    def seconds(n: int, n_classes: int) -> float:
        X, codes = make_cells(n, 2000, n_classes)
        return cpu_seconds(lambda: fit_joint(X, codes, 100, 1e-3, 1e-3))

    ratio = seconds(5000, 40) / seconds(5000, 5)
    line("classes from 5 to 40", f"{ratio:.2f}", "<= 2.5", ratio <= 2.5)
    ratio = seconds(20_000, 20) / seconds(5000, 20)
    line("samples from 5000 to 20,000", f"{ratio:.2f}", "<= 4.5", ratio <= 4.5)


def main() -> None:
    with threadpool_limits(1):
        over_regression()
        growth()


if __name__ == "__main__":
    main()
