"""The classifiers of the main table: the panel model and its rivals, at k genes and
with all.

All of them get the same training samples, the same query and the same candidate genes,
in the order of their t statistics (`designs.genes_of_best_t`). A method yields one
`Labels` per number of genes:

panel
    the panel model
nearest class mean
    the class mean of highest rank correlation, genes of best t
k-TSP
    top scoring pairs with about k genes
LR on ranks, largest weights
    the k genes of largest weight in LR on ranks of all candidates
LR on ranks, best t
    the k genes of largest t statistic, ranked among themselves
SVM on ranks, best t
    the same with a linear support vector machine
paper's classifier
    `OptirankClassifierCV`: reference set and weights apart
LR on log values
    C chosen by cross-validation within the training set
LR on log values, z-scored
    the same, each gene of each set with mean 0 and deviation 1

and the competing tools SingleR, CellTypist and pySingleCellNet, each with its own
choice of genes among the candidates and its default settings, in an environment of its
own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from optirank_lab.baselines.nearest_mean import (
    SpearmanCentroid,
    lr_on_ranks,
    svm_on_ranks,
)
from optirank_lab.baselines.peers import run_peer
from optirank_lab.benchmark.classifiers import CLASSIFIERS
from optirank_lab.benchmark.sets import Set, dense

SIZES = (10, 20, 30, 50, 100, 300)
ALL = "all"
PANEL = "panel"
# What cross-validation chooses C of LR on log values from: beyond these the accuracy is
# constant.
PENALTIES_OF_LOG_VALUES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
# The paper's classifier is tuned over a part of the paper's grid, which has 250
# settings.
REFERENCE_SIZES = (0.05, 0.2, 1.0)
L1_PENALTIES = (0.0,)
L2_PENALTIES = (1e-3, 1e-2, 1e-1)
FOLDS = 3  # of both searches
_PEER_SECONDS = 900.0  # limit of one tool on one pair


@dataclass(frozen=True)
class Labels:
    """What a method says of the query with ``k`` genes asked for (or "all") and
    ``n_genes`` used.
    """

    k: str
    n_genes: int
    labels: NDArray


@dataclass(frozen=True)
class PairData:
    """Training samples and query of a pair, over the candidate genes, best t
    statistic first.
    """

    train: Set
    query: Set

    @property
    def y(self) -> NDArray:
        """Labels of the training samples."""
        return self.train.labels

    @property
    def n_candidates(self) -> int:
        """Genes that the methods may use."""
        return len(self.train.genes)

    @property
    def sizes(self) -> dict[str, int]:
        """Genes used by genes asked for: all candidates where there are fewer."""
        return {str(k): min(k, self.n_candidates) for k in SIZES}

    @cached_property
    def measured(self) -> tuple[NDArray, NDArray]:
        """Values of both sets as measured, which ranks and pairs see."""
        return dense(self.train.raw), dense(self.query.raw)

    @cached_property
    def logs(self) -> tuple[NDArray, NDArray]:
        """Log values of both sets."""
        return dense(self.train.values), dense(self.query.values)

    @cached_property
    def lr_on_all_ranks(self) -> Any:
        """LR on ranks of all candidates, which two methods need."""
        return lr_on_ranks().fit(self.measured[0], self.y)


Method = Callable[[PairData], Iterator[Labels]]


def panel(pair: PairData) -> Iterator[Labels]:
    """The panel model; smaller panels are on the path of the largest where it
    has them.
    """
    from optirank import PanelClassifier

    train, query = pair.measured
    largest = PanelClassifier(n_genes=max(pair.sizes.values())).fit(train, pair.y)
    for k, n_genes in pair.sizes.items():
        if n_genes in largest.path_:
            model = largest.smaller(n_genes)
        else:
            model = PanelClassifier(n_genes=n_genes).fit(train, pair.y)
        yield Labels(k, int(model.genes_.sum()), model.predict(query))


def nearest_mean(pair: PairData) -> Iterator[Labels]:
    """The nearest class mean by rank correlation."""
    yield from _on_best_t(pair, SpearmanCentroid)


def lr_best_t(pair: PairData) -> Iterator[Labels]:
    """Logistic regression on ranks."""
    yield from _on_best_t(pair, lr_on_ranks)


def svm_best_t(pair: PairData) -> Iterator[Labels]:
    """Linear support vector machine on ranks."""
    yield from _on_best_t(pair, lambda: svm_on_ranks(0))


def _on_best_t(pair: PairData, make: Callable) -> Iterator[Labels]:
    """A classifier on the k genes of best t statistic, and on all candidates."""
    train, query = pair.measured
    for k, n_genes in (pair.sizes | {ALL: pair.n_candidates}).items():
        model = make().fit(train[:, :n_genes], pair.y)
        yield Labels(k, n_genes, model.predict(query[:, :n_genes]))


def lr_largest_weights(pair: PairData) -> Iterator[Labels]:
    """Logistic regression on ranks of the genes of largest weight."""
    train, query = pair.measured
    weights = np.abs(pair.lr_on_all_ranks[-1].coef_).max(axis=0)
    by_weight = np.argsort(-weights, kind="stable")
    for k, n_genes in pair.sizes.items():
        genes = np.sort(by_weight[:n_genes])
        model = lr_on_ranks().fit(train[:, genes], pair.y)
        yield Labels(k, n_genes, model.predict(query[:, genes]))


def top_scoring_pairs(pair: PairData) -> Iterator[Labels]:
    """k-TSP with the odd number of pairs per class that makes about k genes."""
    from optirank_lab import TopScoringPairsClassifier

    train, query = pair.measured
    n_classes = len(np.unique(pair.y))
    n_problems = 1 if n_classes == 2 else n_classes
    for k, n_genes in pair.sizes.items():
        n_pairs = max(1, round(n_genes / (2 * n_problems)))
        odd = n_pairs - 1 + n_pairs % 2
        model = TopScoringPairsClassifier(odd).fit(train, pair.y)
        yield Labels(k, int(model.genes_.sum()), model.predict(query))


def papers_classifier(pair: PairData) -> Iterator[Labels]:
    """The paper's classifier, tuned by its own rule over a part of its grid."""
    from optirank import OptirankClassifierCV

    train, query = pair.measured
    model = OptirankClassifierCV(
        REFERENCE_SIZES, L1_PENALTIES, L2_PENALTIES, cv=_folds(pair.y)
    )
    with warnings.catch_warnings():
        # The grid is a part of the paper's, so its edges are often best
        warnings.filterwarnings("ignore", message="the best setting has")
        model.fit(train, pair.y)
    n_genes = int(np.asarray(model.best_estimator_.genes_).sum())
    yield Labels(ALL, n_genes, model.predict(query))


def lr_on_logs(pair: PairData) -> Iterator[Labels]:
    """Logistic regression on log values, tuned."""
    yield Labels(ALL, pair.n_candidates, _labels_of_tuned_lr(*pair.logs, pair.y))


def lr_on_z_scores(pair: PairData) -> Iterator[Labels]:
    """The same with each gene standardised within each set, which needs the
    whole query.
    """
    train, query = (z_scored(values) for values in pair.logs)
    yield Labels(ALL, pair.n_candidates, _labels_of_tuned_lr(train, query, pair.y))


def _labels_of_tuned_lr(train: NDArray, query: NDArray, y: NDArray) -> NDArray:
    """Labels by logistic regression with C chosen by balanced accuracy in the training
    set.

    With an l2 penalty the weights lie in the span of the training samples. Coordinates
    in that span give the same labels, and with fewer samples than genes in a small part
    of the time.
    """
    if len(train) < train.shape[1]:
        span, _ = np.linalg.qr(train.T)
        train = train @ span
        query = query @ span
    model = LogisticRegression(class_weight="balanced", max_iter=2000, tol=1e-3)
    folds = StratifiedKFold(_folds(y), shuffle=True, random_state=0)
    search = GridSearchCV(
        model, {"C": PENALTIES_OF_LOG_VALUES}, scoring="balanced_accuracy", cv=folds
    )
    return search.fit(train, y).predict(query)


def _folds(y: NDArray) -> int:
    """Folds of a search: fewer where a class has fewer samples, at least two."""
    smallest = int(np.unique(y, return_counts=True)[1].min())
    return max(2, min(FOLDS, smallest))


def z_scored(values: NDArray) -> NDArray:
    """Each gene with mean 0 and standard deviation 1; genes that do not vary
    become 0.
    """
    centred = values - values.mean(axis=0)
    deviation = values.std(axis=0)
    return centred / np.where(deviation > 0, deviation, 1.0)


METHODS: dict[str, Method] = {
    PANEL: panel,
    "nearest class mean": nearest_mean,
    "k-TSP": top_scoring_pairs,
    "LR on ranks, largest weights": lr_largest_weights,
    "LR on ranks, best t": lr_best_t,
    "SVM on ranks, best t": svm_best_t,
    "paper's classifier": papers_classifier,
    "LR on log values": lr_on_logs,
    "LR on log values, z-scored": lr_on_z_scores,
}
"""The methods that need nothing but this installation, in the order of tables."""

TOOLS: dict[str, str] = {
    name: entry.peer for name, entry in CLASSIFIERS.items() if entry.peer
}
"""Competing tools by their names in tables, with their names as peers."""


def run_method(
    name: str, pair: PairData, pythons: Mapping[str, str]
) -> Iterator[Labels]:
    """What a method or a tool says of the query; `PeerFailedError` where a tool has
    no result.
    """
    if name in METHODS:
        yield from METHODS[name](pair)
        return
    result = run_peer(
        TOOLS[name],
        pair.train,
        [pair.query],
        seed=0,
        limit=_PEER_SECONDS,
        pythons=pythons,
    )
    yield Labels(ALL, result.n_genes, result.labels[0])


def methods_for(pythons: Mapping[str, str]) -> list[str]:
    """The methods of a run: all, and the tools that have a Python."""
    return [*METHODS, *(name for name, peer in TOOLS.items() if peer in pythons)]
