"""The panel model from one platform to another: accuracy, adaptation, error control, missing genes.

    python benchmarks/panel_pairs.py [--data DIR] [--out DIR] [--jobs N] [--quick]

For every ordered pair of sets (sets of one tissue that share classes and genes) one training as
`optirank train --for QUERY --genes 100` does it, on all samples; then four tables:

panel_pairs     20, 30, 50 and 100 genes, beside twenty lines of scikit-learn (elimination with
                C = 0.1 on the ranks of the 3000 genes of best t statistic), as they are and with
                the query's prevalences matched (`predict --adapt`)
adaptation      100 genes, plain and adapted: the whole query, one class alone, one class left out,
                one class at 90 %; balanced accuracy over the classes that are there
error_control   100 genes, `predict --target-error`: labels given, and how many of them are wrong
missing         30 and 100 genes, some of them missing from the query at random, five draws
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from studies import Rows, dense, options, over_pairs, scores_of, trained
from tables import against, by_pairs

from optirank._util.metrics import balanced_accuracy
from optirank.model import Predictor, match_prevalences
from optirank.ranks.scoring import best_class
from optirank_lab.benchmark.designs import best_genes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.estimators.panel_classifier import PanelClassifier
    from optirank_lab.benchmark.sets import Set
    from optirank_lab.benchmark.tasks import Task

SIZES = (20, 30, 50, 100)
TARGETS = (0.01, 0.02, 0.05, 0.1)
MISSING = (0.0, 0.1, 0.3, 0.5)
DRAWS = 5


def main() -> None:
    tables = over_pairs(study, options(__doc__))
    table = tables["panel_pairs"]
    keys = ["model", "genes", "adapted"]
    print(by_pairs(table, keys).round(4).to_string(index=False))
    wide = table.pivot_table(index="pair", columns=keys, values="balanced_accuracy")
    for size in SIZES:
        for adapted in (False, True):
            one, other = (
                wide[name, size, adapted] for name in ("optirank", "scikit-learn")
            )
            print(
                f"{size} genes, adapted {adapted}: {against(one, other)} against the recipe"
            )


def study(pair: Task, reference: Set, query: Set) -> Rows:
    """The rows of one pair."""
    model, new = trained(reference), sparse.csr_matrix(query.raw)
    truth, scores = np.asarray(query.labels), scores_of(model, query)
    return {
        "panel_pairs": [*accuracies(model, reference, query)],
        "adaptation": [*compositions(model.classes_, scores, truth)],
        "error_control": [*withheld(model, scores, truth)],
        "missing": [*with_missing_genes(model, reference.genes, new, truth)],
    }


def accuracies(model: PanelClassifier, reference: Set, query: Set) -> Iterator[dict]:
    """Ours and the recipe, plain and adapted."""
    truth = np.asarray(query.labels)
    sizes = [size for size in SIZES if size in model.path_]
    recipes = recipe(reference, query, sizes)
    for size in sizes:
        small = model.smaller(size)
        ours = small.classes_, scores_of(small, query)
        for name, (classes, scores) in {
            "optirank": ours,
            "scikit-learn": recipes[size],
        }.items():
            for adapted in (False, True):
                z = match_prevalences(scores).apply(scores) if adapted else scores
                score = balanced_accuracy(truth, classes[best_class(z)])
                what = {"model": name, "genes": size, "adapted": adapted}
                yield what | {"balanced_accuracy": score}


def compositions(classes: NDArray, scores: NDArray, truth: NDArray) -> Iterator[dict]:
    """Plain and adapted accuracy of queries with other shares of the classes."""
    random = np.random.default_rng(0)
    queries: dict[str, list[NDArray]] = {
        "whole query": [np.arange(len(truth))],
        "one class alone": [np.flatnonzero(truth == one) for one in classes],
        "one class at 90 %": [_mostly(truth, one, random) for one in classes],
    }
    if len(classes) > 2:
        queries["one class left out"] = [
            np.flatnonzero(truth != one) for one in classes
        ]
    for name, parts in queries.items():
        found = []
        for rows in parts:
            z = scores[rows]
            moved = match_prevalences(z).apply(z)
            labels = [classes[best_class(one)] for one in (z, moved)]
            found.append([balanced_accuracy(truth[rows], one) for one in labels])
        plain, adapted = np.mean(found, axis=0)
        yield {"query": name, "queries": len(parts), "plain": plain, "adapted": adapted}


def _mostly(truth: NDArray, one: str, random: np.random.Generator) -> NDArray:
    """Samples of which nine tenths are of one class."""
    own, others = (random.permutation(np.flatnonzero(which)) for which in
                   (truth == one, truth != one))  # fmt: skip
    n = max(1, min(len(others), len(own) // 9))
    return np.sort(np.concatenate([own[: 9 * n], others[:n]]))


def withheld(model: PanelClassifier, scores: NDArray, truth: NDArray) -> Iterator[dict]:
    """Labels given and wrong labels for each error asked for."""
    found = model.calibration_.probabilities(scores)
    chosen = best_class(scores)
    right = model.classes_[chosen] == truth
    confidence = found[np.arange(len(chosen)), chosen]
    _, codes, counts = np.unique(truth, return_inverse=True, return_counts=True)
    weights = 1.0 / counts[codes]
    for target in TARGETS:
        try:
            threshold = model.error_control_.at(target).threshold
        except ValueError:  # the held-out samples cannot show so small an error
            threshold = np.inf
        given = confidence >= threshold
        equal = (
            np.average(~right[given], weights=weights[given]) if given.any() else np.nan
        )
        yield {
            "target": target,
            "can_be_shown": bool(np.isfinite(threshold)),
            "n_query": len(truth),
            "n_wrong_of_all": int((~right).sum()),
            "n_given": int(given.sum()),
            "n_wrong": int((given & ~right).sum()),
            "error_classes_equal": equal,
        }


def with_missing_genes(
    model: PanelClassifier, genes: NDArray, new: sparse.csr_matrix, truth: NDArray
) -> Iterator[dict]:
    """Accuracy with a part of the panel's genes missing, mean over the draws."""
    for size in (30, 100):
        if size not in model.path_:
            continue
        small = model.smaller(size)
        for share in MISSING:
            found = []
            for draw in range(DRAWS if share else 1):
                random = np.random.default_rng(draw)
                lost = random.permutation(small.panel_)[: round(share * size)]
                kept = np.setdiff1d(small.panel_, lost)
                predictor = Predictor(small, genes[kept], max_missing=1.0)
                found.append(
                    balanced_accuracy(truth, predictor.predict(new[:, kept]).labels)
                )
            row = {"genes": size, "missing": share, "draws": len(found)}
            yield row | {"balanced_accuracy": np.mean(found)}


def recipe(
    reference: Set, query: Set, sizes: list[int]
) -> dict[int, tuple[NDArray, NDArray]]:
    """The recipe in scikit-learn: classes and scores of the query by number of genes."""
    order = best_genes(reference, 3000)
    X, new, y = (
        dense(reference.raw)[:, order],
        dense(query.raw)[:, order],
        reference.labels,
    )
    left, found = np.arange(X.shape[1]), {}
    for size in (300, 200, 150, 100, 70, 50, 30, 20):
        while len(left) > size:
            weight = np.abs(_fit(X[:, left], y).coef_).max(axis=0)
            left = left[np.argsort(-weight)[: max(size, len(left) // 2)]]
        if size in sizes:
            model = _fit(X[:, left], y)
            found[size] = model.classes_, model.decision_function(_ranks(new[:, left]))
    return found


def _fit(X: NDArray, y: NDArray) -> LogisticRegression:
    model = LogisticRegression(C=0.1, class_weight="balanced", max_iter=1000, tol=1e-3)
    return model.fit(_ranks(X), y)


def _ranks(X: NDArray) -> NDArray:
    return rankdata(X, axis=1) / X.shape[1]


if __name__ == "__main__":
    main()
