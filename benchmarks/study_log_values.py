"""Logistic regression on log values: what the scale of the query and the penalty do.

    python benchmarks/study_log_values.py [--data DIR] [--out DIR] [--jobs N] [--quick]

For every ordered pair of sets, on the 1000 genes of best t statistic (at most 200 training samples
of each class): the regression on log values where every set is brought to logarithms by itself
(log(1 + counts per million); logarithms as they are), and where the query gets the transformation
of the training set (logarithms where that holds counts, else both as they are). Each with C = 1,
and with the stronger penalty of 0.1 |w|^2 against the mean loss, one class against the rest.
Written to log_values.csv.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from studies import Rows, dense, options, over_pairs
from tables import by_pairs

from optirank._util.metrics import balanced_accuracy
from optirank._util.scales import log_values
from optirank_lab.benchmark.designs import best_genes
from optirank_lab.benchmark.splits import at_most

if TYPE_CHECKING:
    from optirank_lab.benchmark.sets import Set
    from optirank_lab.benchmark.tasks import BenchmarkTask

SINGLE_CELLS = (
    *(
        "pancreas",
        "human blood cells",
        "mouse embryonic stem cells",
        "mouse interneurons",
    ),
    "mouse immune cells",
)
GENES = 1000
PER_CLASS = 200
STRONG = 0.1


def main() -> None:
    table = over_pairs(study, options(__doc__))["log_values"]
    print(by_pairs(table, ["kind", "scale", "penalty"]).round(4).to_string(index=False))


def study(pair: BenchmarkTask, reference: Set, query: Set) -> Rows:
    """The rows of one pair."""
    reference = reference.take(
        at_most(reference.labels, PER_CLASS, np.random.default_rng(0))
    )
    genes = best_genes(reference, GENES)
    reference, query = (
        reference.take(slice(None), genes),
        query.take(slice(None), genes),
    )
    y, n = reference.labels, len(reference.labels)
    raw, new = dense(reference.raw), dense(query.raw)
    if reference.counts and new.min() >= 0:
        same = log_values(raw, "counts"), log_values(new, "counts")
    else:
        same = raw, new
    scales = {
        "each set by itself": (dense(reference.values), dense(query.values)),
        "that of the training set": same,
    }
    rows = []
    for scale, (X, Q) in scales.items():
        weak = LogisticRegression(class_weight="balanced", max_iter=1000)
        strong = LogisticRegression(
            C=1 / (2 * STRONG * n), class_weight="balanced", max_iter=1000
        )
        for penalty, model in (("C = 1", weak), ("0.1", OneVsRestClassifier(strong))):
            score = balanced_accuracy(query.labels, model.fit(X, y).predict(Q))
            kind = "single cells" if pair.tissue in SINGLE_CELLS else "bulk"
            what = {
                "kind": kind,
                "values": f"{reference.kind} to {query.kind}",
                "scale": scale,
            }
            rows.append(what | {"penalty": penalty, "balanced_accuracy": score})
    return {"log_values": rows}


if __name__ == "__main__":
    main()
