"""The panel model from one platform to another: plain, with genes missing, adapted.

    python benchmarks/panel_pairs.py [--data DIR] [--out DIR] [--jobs N] [--quick]

For every ordered pair of sets, with the training samples, the query and the candidate
genes of the main table (`optirank_lab.benchmark.curve`), `PanelClassifier(100)` is
fitted and labels the query; then two tables:

adaptation      30 and 100 genes, plain and after learning from all genes of the query: the whole query, one class alone,
                one class left out, one class at 90 % (queries of ten samples or more);
                balanced accuracy over the classes that are there
missing         20, 30, 50 and 100 genes, some of them missing from the query at random,
                three draws; and, with the 100 genes of largest t statistic, the nearest
                class mean over the genes that are there, and logistic regression on
                their ranks (the panel's penalty, no intercept) with the mean rank of
                training in place of a missing gene
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from studies import Rows, dense, options, over_pairs
from tables import by_pairs

from optirank import PanelClassifier
from optirank._util.numbers import balanced_accuracy
from optirank.panel.further import learn_from_query
from optirank.panel.samples import fold_matrix
from optirank.panel.votes import vote_scores
from optirank.ranks.scoring import best_class
from optirank_lab.baselines.nearest_mean import SpearmanCentroid, centred_ranks
from optirank_lab.benchmark.designs import drawn_samples
from optirank_lab.benchmark.rivals import LinearOnRanks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank_lab.benchmark.sets import Set
    from optirank_lab.benchmark.tasks import BenchmarkTask

SIZES = (20, 30, 50, 100)
MISSING = (0.0, 0.1, 0.3, 0.5, 0.7)
DRAWS = 3
FEWEST = 10  # samples of a query that is adapted to
Labeller = Callable[["NDArray"], "NDArray"]  # labels with the genes that are left
PANEL = "panel"
NEAREST_MEAN = "nearest class mean"
LR = "LR on ranks"


class Samples(NamedTuple):
    """A part of a pair's samples; classes as numbers, genes best t statistic first."""

    X: sparse.csr_matrix
    y: NDArray
    new: sparse.csr_matrix
    truth: NDArray
    new_all_genes: sparse.csr_matrix


def main() -> None:
    tables = over_pairs(study, options(__doc__))
    means = by_pairs(tables["missing"], ["model", "genes", "missing"])
    print(means.round(4).to_string(index=False))
    compositions_table = tables["adaptation"].groupby(["genes", "query"], sort=False)
    print(compositions_table[["plain", "adapted"]].mean().round(4).to_string())


def study(pair: BenchmarkTask, reference: Set, query: Set) -> Rows:
    """The rows of one pair."""
    samples = drawn(reference, query)
    models = panels(samples)
    return {
        "adaptation": [*compositions(models, samples)],
        "missing": missing_rows(models, samples),
    }


def drawn(reference: Set, query: Set) -> Samples:
    """Some training samples of each class, and some of the query."""
    train, query, candidates = drawn_samples(reference, query)
    classes, y = np.unique(train.labels, return_inverse=True)
    whole = sparse.csr_matrix(query.raw)
    return Samples(
        sparse.csr_matrix(train.raw)[:, candidates],
        y,
        whole[:, candidates],
        np.searchsorted(classes, query.labels),
        whole,
    )


def panels(samples: Samples) -> dict[int, PanelClassifier]:
    """The panel model by its number of genes."""
    n_genes = min(max(SIZES), samples.X.shape[1])
    largest = PanelClassifier(n_genes).fit(samples.X, samples.y)
    return {size: largest.smaller(size) for size in SIZES if size in largest.path_}


def learned_from(probabilities: NDArray, query: Any) -> NDArray:
    """Probabilities after learning from a query in memory."""
    run_pass = functools.partial(fold_matrix, query)
    return learn_from_query(probabilities, run_pass, query.shape[1])


def compositions(
    models: dict[int, PanelClassifier], samples: Samples
) -> Iterator[dict]:
    """Plain and adapted accuracy of queries with other shares of the classes."""
    for size in (30, 100):
        if size not in models:
            continue
        plain = models[size].predict_proba(samples.new)
        for name, queries in queries_of(samples.truth).items():
            accuracies = []
            for rows in queries:
                if len(rows) < FEWEST:
                    continue
                learned = learned_from(plain[rows], samples.new_all_genes[rows])
                truth = samples.truth[rows]
                both = [
                    balanced_accuracy(truth, probabilities.argmax(axis=1))
                    for probabilities in (plain[rows], learned)
                ]
                accuracies.append(both)
            if accuracies:
                means = np.mean(accuracies, axis=0)
                row = {"genes": size, "query": name, "queries": len(accuracies)}
                yield row | {"plain": means[0], "adapted": means[1]}


def queries_of(truth: NDArray) -> dict[str, list[NDArray]]:
    """Samples of a query by the composition of its classes."""
    random = np.random.default_rng(0)
    classes = np.unique(truth)
    queries = {
        "whole query": [np.arange(len(truth))],
        "one class alone": [np.flatnonzero(truth == label) for label in classes],
        "one class at 90 %": [mostly(truth, label, random) for label in classes],
    }
    if len(classes) > 2:
        left_out = [np.flatnonzero(truth != label) for label in classes]
        queries["one class left out"] = left_out
    return queries


def mostly(truth: NDArray, label: int, random: np.random.Generator) -> NDArray:
    """Samples of which nine tenths are of one class."""
    own = random.permutation(np.flatnonzero(truth == label))
    others = random.permutation(np.flatnonzero(truth != label))
    n = max(1, min(len(others), len(own) // 9))
    return np.sort(np.concatenate([own[: 9 * n], others[:n]]))


def missing_rows(models: dict[int, PanelClassifier], samples: Samples) -> list[dict]:
    """Accuracy with a part of the genes missing, mean over the draws."""
    best_t = rivals_of_missing(samples) if max(SIZES) in models else {}
    labellers = {(PANEL, size): panel_labels(models[size], samples) for size in models}
    labellers |= {(name, max(SIZES)): labels for name, labels in best_t.items()}
    rows = []
    for (name, size), labels_of in labellers.items():
        for share in MISSING:
            accuracy = np.mean(
                [
                    balanced_accuracy(samples.truth, labels_of(kept))
                    for kept in kept_genes(size, share)
                ]
            )
            row = {"model": name, "genes": size, "missing": share}
            rows.append(row | {"balanced_accuracy": accuracy})
    return rows


def panel_labels(model: PanelClassifier, samples: Samples) -> Labeller:
    """Labels by the panel with the genes that are left; others have no votes."""

    def labels(kept: NDArray) -> NDArray:
        genes = model.panel_[kept]
        return best_class(vote_scores(samples.new, genes, model.coef_[:, genes]))

    return labels


def rivals_of_missing(samples: Samples) -> dict[str, Labeller]:
    """The nearest class mean and regression on ranks, on the genes of largest t
    statistic.
    """
    X = dense(samples.X[:, : max(SIZES)])
    new = dense(samples.new[:, : max(SIZES)])
    means = SpearmanCentroid().fit(X, samples.y)
    regression = LinearOnRanks().fit(X, samples.y)
    ranks = centred_ranks(X)
    by_class = [ranks[samples.y == k].mean(axis=0) for k in np.unique(samples.y)]
    mean_ranks = np.mean(by_class, axis=0)

    def nearest_mean(kept: NDArray) -> NDArray:
        part = SpearmanCentroid()
        part.classes_ = means.classes_
        part.centroids_ = means.centroids_[:, kept]
        part.n_features_in_ = len(kept)
        return part.predict(new[:, kept])

    def lr(kept: NDArray) -> NDArray:
        given = np.tile(mean_ranks, (len(new), 1))
        given[:, kept] = centred_ranks(new[:, kept])
        return regression.predict_ranks(given)

    return {NEAREST_MEAN: nearest_mean, LR: lr}


def kept_genes(size: int, share: float) -> list[NDArray]:
    """The genes that are left of a panel, for each draw."""
    n_lost = round(share * size)
    orders = [np.random.default_rng(draw).permutation(size) for draw in range(DRAWS)]
    return [np.sort(order[n_lost:]) for order in orders]


if __name__ == "__main__":
    main()
