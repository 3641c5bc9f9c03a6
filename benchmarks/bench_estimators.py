"""RankLogisticRegression against scikit-learn on the same ranks, and k-TSP, in
one run.
"""

from __future__ import annotations

import numpy as np
from bench_solver import median_cpu, saga
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits
from timing import QUICK, columns, heading, interleaved, line, peak_memory

from optirank import RankLogisticRegression
from optirank.ranks.scoring import weighted_ranks
from optirank_lab import TopScoringPairsClassifier


def make_data(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Negative-binomial counts, a third of whose genes differ a little between two
    classes.
    """
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    effect = rng.normal(scale=0.3, size=d) * (rng.random(d) < 1 / 3)
    rate = rng.gamma(1.0, 4.0, size=d) * np.exp(np.outer(y, effect))
    return np.log1p(rng.negative_binomial(2, 2 / (2 + rate))), y


def objective(R: np.ndarray, y: np.ndarray, model, l1: float, l2: float) -> float:
    """Balanced logistic loss plus elastic net of a linear model on the ranks."""
    w, b = model.coef_[0], model.intercept_[0]
    v = 0.5 / np.where(y == 1, y.sum(), (1 - y).sum())
    z = R @ w + b
    return float(v @ (np.logaddexp(0, z) - y * z) + l1 * np.abs(w).sum() + l2 * (w @ w))


def precise(R: np.ndarray, y: np.ndarray, l1: float, l2: float) -> LogisticRegression:
    """scikit-learn's solution to many digits."""
    total = 2 * l2 + l1
    return LogisticRegression(
        C=1 / (len(y) * total),
        l1_ratio=l1 / total,
        solver="saga" if l1 else "lbfgs",
        tol=1e-6 if l1 else 1e-9,
        class_weight="balanced",
        max_iter=10_000,
        random_state=0,
    ).fit(R, y)


_MANY_GENES = """
import sys
import numpy as np
from scipy import sparse
from optirank_lab import TopScoringPairsClassifier
rng = np.random.default_rng(0)
X = sparse.random(2000, 20_000, 0.1, format="csr", random_state=rng)
y = np.arange(2000) % 2
TopScoringPairsClassifier().fit(X[:50, :600], y[:50])
"""


def top_pairs() -> None:
    """k-TSP over all pairs of 1000 genes, and its memory with 20,000 genes."""
    n, d = (200, 100) if QUICK else (2000, 1000)
    heading(f"TopScoringPairsClassifier, {n} samples x {d} genes, all pairs compared")
    columns()
    X, y = make_data(n, d)
    model = TopScoringPairsClassifier(max_genes=None)
    with threadpool_limits(1):
        seconds = interleaved({"fit": lambda: model.fit(X, y)}, 3)["fit"]
    line("one core", f"{seconds:.2f} s", "<= 3 s", seconds <= 3)
    if QUICK:
        return
    added = peak_memory(_MANY_GENES, "TopScoringPairsClassifier().fit(X, y)")
    if added is not None:
        dense = 2000 * 20_000 * 8
        text = f"{added / 2**20:.0f} MiB"
        line(
            "2000 x 20,000, a tenth non-zero: memory added",
            text,
            "<= 0.5 dense",
            added <= dense / 2,
        )


def main() -> None:
    top_pairs()
    n = d = 100 if QUICK else 1000
    heading(
        f"RankLogisticRegression, {n} samples x {d} genes, against scikit-learn on the "
        "ranks"
    )
    columns()
    X, y = make_data(n, d)
    R = weighted_ranks(X, np.ones(d))
    RankLogisticRegression().fit(X[:50, :20], y[:50])  # compiles
    with threadpool_limits(1):
        for l1, l2 in ((0.0, 1e-3), (1e-3, 1e-3), (0.0, 1e-2), (0.0, 1e-4)):
            model = RankLogisticRegression(l1, l2)
            cpu = median_cpu(
                {
                    "ours": lambda model=model: model.fit(X, y),
                    "saga": lambda l1=l1, l2=l2: saga(R, y, l1, l2),
                }
            )
            best = objective(R, y, precise(R, y, l1, l2), l1, l2)
            excess = objective(R, y, model, l1, l2) - best
            what = f"l1 {l1:g}, l2 {l2:g}"
            times = f"{cpu['ours']:.3f} s | {cpu['saga']:.3f} s"
            line(f"{what}: ours, sorting included | saga, tol 1e-3", times)
            ratio = cpu["ours"] / cpu["saga"]
            line("its ratio", f"{ratio:.3f}", "<= 0.2", ratio <= 0.2)
            line(
                "objective above scikit-learn's at tight tolerance",
                f"{excess:+.1e}",
                "<= 1e-05",
                excess <= 1e-5,
            )


if __name__ == "__main__":
    main()
