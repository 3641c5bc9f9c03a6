"""The panel model from one platform to another: plain, with genes missing, adapted.

    python benchmarks/panel_pairs.py [--data DIR] [--out DIR] [--jobs N] [--quick]
                                     [--prototype FILE]

For every ordered pair of sets (sets of one tissue that share classes and genes)
`PanelClassifier(100)` is fitted on at most 200 samples per class, and 300 samples of
the query, drawn at random, are labelled; then three tables:

panel_pairs     20, 30, 50 and 100 genes, as they are and after learning from the query
                (`predict --adapt`)
adaptation      30 and 100 genes, plain and adapted: the whole query, one class alone,
                one class left out, one class at 90 % (queries of ten samples or more);
                balanced accuracy over the classes that are there
missing         20, 30, 50 and 100 genes, some of them missing from the query at random,
                three draws

With ``--prototype``, a file with the reference implementation in plain scikit-learn
(functions `logs`, `best_genes`, `panels`, `fit`, `ranks`, `softmax`, `adapt`), the same
pairs and samples go through it too (model "scikit-learn" of panel_pairs and missing).
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse
from studies import Rows, options, over_pairs
from tables import against, by_pairs

from optirank import PanelClassifier
from optirank._util.metrics import balanced_accuracy
from optirank.panel.adaptation import learn_from_query
from optirank.panel.sources import MatrixSource
from optirank.panel.votes import vote_scores
from optirank.ranks.scoring import best_class
from optirank_lab.benchmark.splits import at_most

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank_lab.benchmark.sets import Set
    from optirank_lab.benchmark.tasks import Task

SIZES = (20, 30, 50, 100)
MISSING = (0.0, 0.1, 0.3, 0.5, 0.7)
DRAWS = 3
PER_CLASS = 200  # training samples: the reference implementation is slow
N_QUERY = 300
FEWEST = 10  # samples of a query that is adapted to


class Samples(NamedTuple):
    """A part of a pair's samples; classes as numbers."""

    X: sparse.csr_matrix
    y: NDArray
    new: sparse.csr_matrix
    truth: NDArray


def main() -> None:
    args = options(__doc__, add_prototype)
    tables = over_pairs(partial(study, prototype=args.prototype), args)
    table = tables["panel_pairs"]
    keys = ["model", "genes", "adapted"]
    print(by_pairs(table, keys).round(4).to_string(index=False))
    missing = tables["missing"]
    print(by_pairs(missing, ["model", "genes", "missing"]).round(4).to_string())
    compositions_table = tables["adaptation"].groupby(["genes", "query"], sort=False)
    print(compositions_table[["plain", "adapted"]].mean().round(4).to_string())
    if args.prototype is None:
        return
    wide = table.pivot_table(index="pair", columns=keys, values="balanced_accuracy")
    for size in SIZES:
        for adapted in (False, True):
            ours = wide["optirank", size, adapted]
            reference = wide["scikit-learn", size, adapted]
            counts = against(ours, reference)
            print(f"{size} genes, adapted {adapted}: won / tied / lost {counts}")


def add_prototype(parser: argparse.ArgumentParser) -> None:
    """The option of this study."""
    text = "the reference implementation, a Python file"
    parser.add_argument("--prototype", type=Path, help=text)


def study(pair: Task, reference: Set, query: Set, prototype: Path | None) -> Rows:
    """The rows of one pair."""
    samples = drawn(reference, query)
    n_genes = min(max(SIZES), samples.X.shape[1])
    largest = PanelClassifier(n_genes).fit(samples.X, samples.y)
    models = {n: largest.smaller(n) for n in SIZES if n in largest.path_}
    rows: Rows = {
        "panel_pairs": [*accuracies(models, samples)],
        "adaptation": [*compositions(models, samples)],
        "missing": [*with_missing_genes(models, samples)],
    }
    if prototype is not None:
        for name, row in by_prototype(loaded(prototype), samples):
            rows[name].append(row)
    return rows


def drawn(reference: Set, query: Set) -> Samples:
    """Some training samples of each class, and some of the query."""
    classes, y = np.unique(reference.labels, return_inverse=True)
    rows = at_most(reference.labels, PER_CLASS, np.random.default_rng(0))
    truth = np.searchsorted(classes, query.labels)
    order = np.random.default_rng(0).permutation(len(truth))
    asked = np.sort(order[:N_QUERY])
    X = sparse.csr_matrix(reference.raw)[rows]
    return Samples(X, y[rows], sparse.csr_matrix(query.raw)[asked], truth[asked])


def accuracies(models: dict[int, PanelClassifier], samples: Samples) -> Iterator[dict]:
    """Accuracy on the query, plain and adapted."""
    for size, model in models.items():
        plain = model.predict_proba(samples.new)
        learned = learn_from_query(plain, MatrixSource(samples.new))
        for adapted, probabilities in ((False, plain), (True, learned)):
            accuracy = balanced_accuracy(samples.truth, probabilities.argmax(axis=1))
            row = {"model": "optirank", "genes": size, "adapted": adapted}
            yield row | {"balanced_accuracy": accuracy}


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
                source = MatrixSource(samples.new[rows])
                learned = learn_from_query(plain[rows], source)
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


def with_missing_genes(
    models: dict[int, PanelClassifier], samples: Samples
) -> Iterator[dict]:
    """Accuracy with a part of the panel's genes missing, mean over the draws."""
    for size, model in models.items():
        for share in MISSING:
            accuracies = []
            for kept in kept_genes(size, share):
                genes = model.panel_[kept]
                scores = vote_scores(samples.new, genes, model.coef_[:, genes])
                accuracy = balanced_accuracy(samples.truth, best_class(scores))
                accuracies.append(accuracy)
            row = {"model": "optirank", "genes": size, "missing": share}
            yield row | {"balanced_accuracy": np.mean(accuracies)}


def kept_genes(size: int, share: float) -> list[NDArray]:
    """The genes that are left of a panel, for each draw."""
    n_lost = round(share * size)
    orders = [np.random.default_rng(draw).permutation(size) for draw in range(DRAWS)]
    return [np.sort(order[n_lost:]) for order in orders]


def loaded(path: Path) -> ModuleType:
    """A Python file as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is no Python file: give that of the prototype")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def by_prototype(prototype: ModuleType, samples: Samples) -> Iterator[tuple[str, dict]]:
    """The same measurements of the reference implementation, with their tables."""
    X = prototype.logs(SimpleNamespace(X=samples.X))
    new = prototype.logs(SimpleNamespace(X=samples.new))
    order = prototype.best_genes(X, samples.y)
    X, new = X[:, order], new[:, order]
    for size, left in prototype.panels(X, samples.y).items():
        if size not in SIZES:
            continue
        W = prototype.fit(X[:, left], samples.y, 0.03)
        scores = prototype.ranks(new[:, left]) @ W.T
        learned = prototype.adapt(prototype.softmax(scores), new)
        row = {"model": "scikit-learn", "genes": size}
        for adapted, given in ((False, scores), (True, learned)):
            accuracy = balanced_accuracy(samples.truth, given.argmax(axis=1))
            measured = {"adapted": adapted, "balanced_accuracy": accuracy}
            yield "panel_pairs", row | measured
        for share in MISSING:
            accuracies = [
                balanced_accuracy(
                    samples.truth,
                    (prototype.ranks(new[:, left[kept]]) @ W[:, kept].T).argmax(axis=1),
                )
                for kept in kept_genes(size, share)
            ]
            measured = {"missing": share, "balanced_accuracy": np.mean(accuracies)}
            yield "missing", row | measured


if __name__ == "__main__":
    main()
