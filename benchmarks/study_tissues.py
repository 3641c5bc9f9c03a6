"""Choices of the panel model, judged on tissues that had no part in them.

    python benchmarks/study_tissues.py [--data DIR] [--out DIR] [--jobs N] [--quick]

For every ordered pair of sets a panel of 100 genes (at most 100 training samples of
each class) with a penalty of 0.01, 0.03 and 0.1; and with a penalty of 0.03 and genes
that are eliminated on the samples and four copies of them on simulated platforms
(strength 2), whose random factors depend on a seed: 0, 1 and 2. The weights are fitted
on the samples alone. Written to tissues.csv. Printed for each tissue: the accuracy of
the setting that is best on the mean over the other tissues, of the defaults, and of the
best in hindsight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from studies import Rows, dense, options, over_pairs
from tables_rivals import chosen_without

from optirank import PanelClassifier
from optirank._util.metrics import balanced_accuracy
from optirank_lab.benchmark.designs import CURVE, genes_of_best_t
from optirank_lab.benchmark.splits import at_most

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank_lab.benchmark.sets import Set
    from optirank_lab.benchmark.tasks import BenchmarkTask

PENALTIES = (0.01, 0.03, 0.1)
L2 = 0.03
SEEDS = (0, 1, 2)
COPIES = 4
STRENGTH = 2.0
PER_CLASS = 100
N_GENES = 100


def main() -> None:
    table = over_pairs(study, options(__doc__))["tissues"]
    print(chosen_without(table).round(3).to_string(index=False))


def study(pair: BenchmarkTask, reference: Set, query: Set) -> Rows:
    """The rows of one pair."""
    drawn = at_most(reference.labels, PER_CLASS, np.random.default_rng(0))
    reference = reference.take(drawn)
    candidates = genes_of_best_t(reference, CURVE.n_genes)
    X = dense(reference.raw[:, candidates])
    logs = dense(reference.values[:, candidates])
    y = reference.labels
    new = dense(query.raw[:, candidates])
    n_genes = min(N_GENES, X.shape[1])
    rows = []

    def add(platforms: str, l2: float, labels: NDArray) -> None:
        accuracy = balanced_accuracy(query.labels, labels)
        row = {"platforms": platforms, "l2": l2, "balanced_accuracy": accuracy}
        rows.append(row)

    for l2 in PENALTIES:
        model = PanelClassifier(n_genes, l2=l2).fit(X, y)
        add("none", l2, model.predict(new))
    for seed in SEEDS:
        stacked = np.vstack([logs, *simulated(logs, seed)])
        repeated = np.tile(y, 1 + COPIES)
        genes = PanelClassifier(n_genes, l2=L2).fit(stacked, repeated).panel_
        model = PanelClassifier(n_genes, l2=L2).fit(X[:, genes], y)
        add(f"seed {seed}", L2, model.predict(new[:, genes]))
    return {"tissues": rows}


def simulated(logs: NDArray, seed: int) -> list[NDArray]:
    """Copies of log values with random factors of the genes; zeros of counts
    stay zeros.
    """
    random = np.random.default_rng(seed)
    spread = logs.mean(axis=0).std()
    has_zeros = (logs == 0).mean() > 0.2
    copies = []
    for _ in range(COPIES):
        shifted = logs + random.normal(0, STRENGTH * spread, logs.shape[1])
        if has_zeros:
            shifted = np.where(logs > 0, np.maximum(shifted, 1e-3), 0)
        copies.append(shifted)
    return copies


if __name__ == "__main__":
    main()
