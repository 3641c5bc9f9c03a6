"""The constants of the panel model, chosen without the tissue on which they are judged.

    python benchmarks/study_tissues.py [--data DIR] [--out DIR] [--jobs N] [--quick]

For every ordered pair of sets a panel of 100 genes (at most 100 training samples of each class)
with simulated platforms of strength 0, 1, 2 and 3 in the elimination and a last penalty of 0.03,
0.1 and 0.3 (for 100 genes); written to tissues.csv. Printed for each tissue: the accuracy of the
setting that is best on the mean over the other tissues, of the defaults, and of the best setting in
hindsight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from studies import Rows, options, over_pairs
from tables import chosen_without

from optirank._util.metrics import balanced_accuracy
from optirank.estimators import elimination
from optirank.estimators.panel_classifier import PanelClassifier
from optirank_lab.benchmark.splits import at_most

if TYPE_CHECKING:
    from optirank_lab.benchmark.sets import Set
    from optirank_lab.benchmark.tasks import Task

STRENGTHS = (0.0, 1.0, 2.0, 3.0)
PENALTIES = (0.03, 0.1, 0.3)
PER_CLASS = 100
N_GENES = 100


def main() -> None:
    table = over_pairs(study, options(__doc__))["tissues"]
    print(chosen_without(table).round(3).to_string(index=False))


def study(pair: Task, reference: Set, query: Set) -> Rows:
    """The rows of one pair."""
    rows = at_most(reference.labels, PER_CLASS, np.random.default_rng(0))
    X, y = sparse.csr_matrix(reference.raw[rows]), reference.labels[rows]
    new, truth = sparse.csr_matrix(query.raw), query.labels
    found = []
    defaults = elimination._STRENGTH, elimination._L2_PER_GENE
    try:
        for strength in STRENGTHS:
            elimination._STRENGTH = strength
            model = PanelClassifier(min(N_GENES, X.shape[1])).fit(X, y)
            for l2 in PENALTIES:
                elimination._L2_PER_GENE = l2 / N_GENES
                last = PanelClassifier(len(model.panel_)).fit(X[:, model.panel_], y)
                score = balanced_accuracy(truth, last.predict(new[:, model.panel_]))
                found.append(
                    {"strength": strength, "l2": l2, "balanced_accuracy": score}
                )
    finally:
        elimination._STRENGTH, elimination._L2_PER_GENE = defaults
    return {"tissues": found}


if __name__ == "__main__":
    main()
