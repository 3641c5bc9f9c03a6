"""What the parts of the panel model are worth: each changed alone, the others kept.

    python benchmarks/study_ablation.py [--data DIR] [--out DIR] [--jobs N] [--quick]

For every ordered pair of sets (at most 200 training samples of each class, 300 of the
query), with 30 and 100 genes. The genes are those of `PanelClassifier`; the fits are
scikit-learn's, with l2 = 0.03 against the mean loss. The model as it is:

    no intercept; ranks of the genes of the panel among themselves, minus one half;
    genes by elimination; a gene that the query lacks takes its votes away

and with one part changed:

intercept            an intercept that is not penalised
ranks among all      ranks among all candidates, weights on the genes of the panel
best t               the genes of best t statistic in place of elimination

Some genes of the panel are then taken from the query (30 %, five draws), for the model
as it is and with the mean rank of training (classes counted equally) in place of a
missing gene:

votes / stand-ins    without intercept, and with one

Written to ablation.csv.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from studies import Rows, dense, options, over_pairs
from tables import by_pairs

from optirank import PanelClassifier
from optirank._util.numbers import balanced_accuracy
from optirank_lab.benchmark.designs import drawn_samples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from optirank_lab.benchmark.sets import Set
    from optirank_lab.benchmark.tasks import BenchmarkTask

SIZES = (30, 100)
L2 = 0.03  # against the mean loss: that of the panel model
MISSING = 0.3
DRAWS = 5


def main() -> None:
    table = over_pairs(study, options(__doc__))["ablation"]
    print(
        by_pairs(table, ["genes", "missing", "variant"]).round(4).to_string(index=False)
    )


def study(pair: BenchmarkTask, reference: Set, query: Set) -> Rows:
    """The rows of one pair: one per number of genes and variant."""
    train, query, candidates = drawn_samples(reference, query)
    X = dense(train.raw[:, candidates])
    new = dense(query.raw[:, candidates])
    y = train.labels
    truth = query.labels
    largest = PanelClassifier(n_genes=min(max(SIZES), X.shape[1])).fit(X, y)
    rows = []
    for size in SIZES:
        if size not in largest.path_:
            continue
        panel = largest.smaller(size).panel_
        results = [*whole_variants(X, y, new, truth, panel)]
        results += [*missing_variants(X[:, panel], y, new[:, panel], truth)]
        for missing, variant, score in results:
            row = {"genes": size, "missing": missing, "variant": variant}
            rows.append(row | {"balanced_accuracy": score})
    return {"ablation": rows}


@dataclass(frozen=True)
class LinearModel:
    """Weights on centred ranks: ``z = R W + b``, one column per class, or one for two
    classes.
    """

    classes: NDArray
    weights: NDArray  # (genes, columns)
    intercept: NDArray

    def labels(self, ranks: NDArray) -> NDArray:
        """The class of the highest score; of two, the second where its score is
        above 0.
        """
        scores = ranks @ self.weights + self.intercept
        if scores.shape[1] == 1:
            return self.classes[(scores[:, 0] > 0).astype(int)]
        return self.classes[scores.argmax(axis=1)]


def fit(ranks: NDArray, y: NDArray, *, intercept: bool = False) -> LinearModel:
    """Softmax regression with balanced classes and `L2` against the mean loss."""
    model = LogisticRegression(
        C=1.0 / (2.0 * L2 * len(y)),
        class_weight="balanced",
        fit_intercept=intercept,
        max_iter=2000,
    ).fit(ranks, y)
    return LinearModel(model.classes_, model.coef_.T, np.asarray(model.intercept_))


def centred_ranks(X: NDArray) -> NDArray:
    """Average ranks within a sample, from -1/2 to 1/2."""
    n_genes = X.shape[1]
    return (rankdata(X, axis=1) - 0.5) / n_genes - 0.5


def whole_variants(
    X: NDArray, y: NDArray, new: NDArray, truth: NDArray, panel: NDArray
) -> Iterator[tuple[float, str, float]]:
    """Accuracy of the model as it is and with one part changed, no gene missing."""
    best_t = np.arange(len(panel))  # genes come in the order of their t statistics
    among_panel = centred_ranks(X[:, panel]), centred_ranks(new[:, panel])
    among_all = centred_ranks(X)[:, panel], centred_ranks(new)[:, panel]
    by_t = centred_ranks(X[:, best_t]), centred_ranks(new[:, best_t])
    variants = {
        "as it is": (among_panel, False),
        "intercept": (among_panel, True),
        "ranks among all": (among_all, False),
        "best t": (by_t, False),
    }
    for name, ((ranks, new_ranks), intercept) in variants.items():
        labels = fit(ranks, y, intercept=intercept).labels(new_ranks)
        yield 0.0, name, balanced_accuracy(truth, labels)


def missing_variants(
    X: NDArray, y: NDArray, new: NDArray, truth: NDArray
) -> Iterator[tuple[float, str, float]]:
    """Mean accuracy over draws of missing genes, without and with stand-ins
    for them.
    """
    ranks = centred_ranks(X)
    mean_ranks = np.mean(
        [ranks[y == name].mean(axis=0) for name in np.unique(y)], axis=0
    )
    models = {"": fit(ranks, y), ", intercept": fit(ranks, y, intercept=True)}
    scores: dict[str, list[float]] = {}
    n_genes = X.shape[1]
    for seed in range(DRAWS):
        order = np.random.default_rng(seed).permutation(n_genes)
        kept = np.sort(order[round(MISSING * n_genes) :])
        for name, given in {
            "votes": votes(new, kept),
            "stand-ins": with_stand_ins(new, kept, mean_ranks),
        }.items():
            for suffix, model in models.items():
                score = balanced_accuracy(truth, model.labels(given))
                scores.setdefault(name + suffix, []).append(score)
    for name, draws in scores.items():
        yield MISSING, name, float(np.mean(draws))


def votes(X: NDArray, kept: NDArray) -> NDArray:
    """Centred ranks in which a pair with a missing gene counts nothing.

    The score is a sum over pairs of genes; a gene's part of it is its rank among the
    genes that are there, and the unit stays that of the whole panel.
    """
    ranks = np.zeros(X.shape)
    ranks[:, kept] = centred_ranks(X[:, kept]) * (len(kept) / X.shape[1])
    return ranks


def with_stand_ins(X: NDArray, kept: NDArray, mean_ranks: NDArray) -> NDArray:
    """Centred ranks among the genes that are there, and mean ranks of training for
    the others.
    """
    ranks = np.tile(mean_ranks, (len(X), 1))
    ranks[:, kept] = centred_ranks(X[:, kept])
    return ranks


if __name__ == "__main__":
    main()
