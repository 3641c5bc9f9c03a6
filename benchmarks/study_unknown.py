"""Samples of a class that training lacked: how well they are told from the others.

    python benchmarks/study_unknown.py [--data DIR] [--out DIR] [--jobs N] [--quick]

For every ordered pair of sets with at least three common classes, each class is left out of the
training in turn (at most 100 samples of each class, 100 genes) and kept in the query. Written to
unknown.csv: the area under the ROC curve of the model's out-of-distribution score (correlation with
the mean profile of the label) and of the largest probability, and with `predict --unknown-rate
0.05` the share of unknown samples found and of known samples that lose their label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from sklearn.metrics import roc_auc_score
from studies import Rows, options, over_pairs, trained

from optirank.model import Predictor

if TYPE_CHECKING:
    from optirank_lab.benchmark.sets import Set
    from optirank_lab.benchmark.tasks import BenchmarkTask

PER_CLASS = 100
RATE = 0.05


def main() -> None:
    table = over_pairs(study, options(__doc__))["unknown"]
    numbers = ["auc_correlation", "auc_probability", "unknown_found", "known_lost"]
    print(
        f"{len(table)} classes left out, mean:\n{table[numbers].mean().round(3).to_string()}"
    )


def study(pair: BenchmarkTask, reference: Set, query: Set) -> Rows:
    """The rows of one pair."""
    classes = np.unique(reference.labels)
    rows = []
    for left_out in classes if len(classes) > 2 else ():
        model = trained(
            reference.take(reference.labels != left_out), per_class=PER_CLASS
        )
        if not hasattr(model, "novelty_"):
            continue
        predictor, new = Predictor(model, query.genes), sparse.csr_matrix(query.raw)
        found = predictor.predict(new)
        likeness = predictor.likeness(new, found.chosen)
        unknown = np.asarray(query.labels) == left_out
        marked = predictor.novelty.unknown(likeness, found.chosen, RATE)
        rows.append(
            {
                "left_out": left_out,
                "n_unknown": int(unknown.sum()),
                "n_known": int((~unknown).sum()),
                "auc_correlation": roc_auc_score(unknown, -likeness),
                "auc_probability": roc_auc_score(unknown, -found.confidence),
                "unknown_found": marked[unknown].mean(),
                "known_lost": marked[~unknown].mean(),
            }
        )
    return {"unknown": rows}


if __name__ == "__main__":
    main()
