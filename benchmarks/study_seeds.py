"""How much accuracies vary with the samples that are drawn: mean and range over ten seeds.

    python benchmarks/study_seeds.py [--data DIR] [--out DIR] [--jobs N] [--quick]

For every ordered pair of sets across platforms, each seed draws 80 % of the training samples of
each class (at most 200) and is the seed of whatever else is random. Panels of 30 and 100 genes
beside the nearest class mean and the support vector machine on ranks of all candidates; ten seeds
(two with --quick). Written to seeds.csv.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from studies import Rows, collect, dense, options, pairs_of, rows_of_pairs

from optirank import PanelClassifier
from optirank._util.metrics import balanced_accuracy
from optirank_lab.baselines.nearest_mean import SpearmanCentroid, svm_on_ranks
from optirank_lab.benchmark.curve import CANDIDATES, MOST_PER_CLASS
from optirank_lab.benchmark.designs import best_genes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank_lab.benchmark.sets import Set
    from optirank_lab.benchmark.tasks import BenchmarkTask

SEEDS = 10
SHARE = 0.8
SIZES = (30, 100)


def main() -> None:
    args = options(__doc__)
    table = collect_seeds(args)
    means = table.groupby(["method", "seed"])["balanced_accuracy"].mean()
    print(means.groupby("method").agg(["mean", "min", "max"]).round(4).to_string())


def collect_seeds(args: argparse.Namespace):
    """Run all seeds on the pairs across platforms."""
    pairs = [pair for pair in pairs_of(args) if pair.across_platforms]
    seeds = range(2 if args.quick else SEEDS)
    parts = rows_of_pairs(partial(study, seeds=seeds), pairs, args)
    return collect(parts, args, len(pairs))["seeds"]


def study(pair: BenchmarkTask, reference: Set, query: Set, seeds: range) -> Rows:
    """One row per seed and method."""
    rows = []
    for seed in seeds:
        drawn = reference.take(draw(reference.labels, seed))
        genes = best_genes(drawn, CANDIDATES)
        X = dense(drawn.raw[:, genes])
        new = dense(query.raw[:, genes])
        for method, labels in labels_by_method(X, drawn.labels, new, seed).items():
            score = balanced_accuracy(query.labels, labels)
            row = {"seed": seed, "method": method, "balanced_accuracy": score}
            rows.append(row)
    return {"seeds": rows}


def draw(labels: NDArray, seed: int) -> NDArray:
    """Positions of four fifths of the samples of each class, at most 200 and at least two."""
    random = np.random.default_rng(seed)
    drawn = []
    for class_name in np.unique(labels):
        own = random.permutation(np.flatnonzero(labels == class_name))
        drawn.append(own[: min(MOST_PER_CLASS, max(2, round(SHARE * len(own))))])
    return np.sort(np.concatenate(drawn))


def labels_by_method(
    X: NDArray, y: NDArray, new: NDArray, seed: int
) -> dict[str, NDArray]:
    """Labels of the query by each method."""
    largest = PanelClassifier(n_genes=min(max(SIZES), X.shape[1])).fit(X, y)
    labels = {
        f"panel of {size}": largest.smaller(size).predict(new)
        for size in SIZES
        if size in largest.path_
    }
    labels["centroid, all genes"] = SpearmanCentroid().fit(X, y).predict(new)
    labels["SVM on ranks, all genes"] = svm_on_ranks(seed).fit(X, y).predict(new)
    return labels


if __name__ == "__main__":
    main()
