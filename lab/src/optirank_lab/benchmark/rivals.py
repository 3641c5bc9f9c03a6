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
nearest class mean, adapted
    the same labels after the panel model's rule of learning from the query
LR on ranks
    logistic regression on the ranks of the k genes of largest t statistic among
    themselves, without intercept, with the panel model's penalty
LR on ranks, tuned
    the same with a penalty chosen by cross-validation within the training set
LR on ranks, largest weights
    the k genes of largest weight in LR on ranks of all candidates, ranked again
SVM on ranks; SVM on ranks, tuned
    a linear support vector machine in place of the regression
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import LinearSVC

from optirank._util.metrics import balanced_accuracy
from optirank.panel.adaptation import learn_from_query
from optirank.panel.sources import fold_matrix
from optirank_lab.baselines.nearest_mean import SpearmanCentroid, centred_ranks
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
FOLDS = 3  # of every search
PENALTY = 0.03  # the panel model's, against the mean loss
PENALTIES = (0.003, 0.03, 0.3, 3.0)  # what "tuned" chooses from
SHARPNESS = (1.0, 3.0, 10.0, 30.0, 100.0)  # of the softmax of correlations
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

    def ranks(self, genes: slice | NDArray) -> tuple[NDArray, NDArray]:
        """Centred ranks of some genes among themselves, of both sets."""
        train, query = self.measured
        return centred_ranks(train[:, genes]), centred_ranks(query[:, genes])

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
    train, query = pair.measured
    for k, n_genes in _sizes_and_all(pair):
        means = SpearmanCentroid().fit(train[:, :n_genes], pair.y)
        yield Labels(k, n_genes, means.predict(query[:, :n_genes]))


def nearest_mean_adapted(pair: PairData) -> Iterator[Labels]:
    """The nearest class mean, and what the query teaches beyond it.

    Its probabilities are a softmax of the correlations, as sharp as fits the training
    samples best.
    """
    train, query = pair.measured
    learn = partial(fold_matrix, query)
    for k, n_genes in _sizes_and_all(pair):
        means = SpearmanCentroid().fit(train[:, :n_genes], pair.y)
        of_train = means.correlations(train[:, :n_genes])
        codes = np.searchsorted(means.classes_, pair.y)
        sharpness = min(
            SHARPNESS, key=lambda value: -_log_likelihood(value * of_train, codes)
        )
        soft = softmax(sharpness * means.correlations(query[:, :n_genes]), axis=1)
        learned = learn_from_query(soft, learn, query.shape)
        yield Labels(k, n_genes, means.classes_[learned.argmax(axis=1)])


def _log_likelihood(scores: NDArray, codes: NDArray) -> float:
    """Mean log likelihood of the classes, all counted equally."""
    own = log_softmax(scores, axis=1)[np.arange(len(codes)), codes]
    return float(np.average(own, weights=1 / np.bincount(codes)[codes]))


def _sizes_and_all(pair: PairData) -> Iterable[tuple[str, int]]:
    return (pair.sizes | {ALL: pair.n_candidates}).items()


def _lr(l2: float, n_samples: int) -> LogisticRegression:
    """Logistic regression without intercept, l2 against the mean loss."""
    return LogisticRegression(
        C=1.0 / (2.0 * l2 * n_samples),
        class_weight="balanced",
        fit_intercept=False,
        max_iter=2000,
        tol=1e-3,
    )


def _svm(l2: float, n_samples: int) -> LinearSVC:
    """A linear support vector machine (squared hinge loss), penalised likewise."""
    return LinearSVC(
        C=1.0 / (2.0 * l2 * n_samples),
        class_weight="balanced",
        fit_intercept=False,
        max_iter=10_000,
        random_state=0,
    )


def on_ranks(make: Callable[[float, int], Any], penalties: Sequence[float]) -> Method:
    """A linear classifier on the ranks of the k genes of best t among themselves.

    Of several penalties, cross-validation within the training set chooses one.
    """

    def labels_of(pair: PairData) -> Iterator[Labels]:
        for k, n_genes in _sizes_and_all(pair):
            train, query = _in_span(*pair.ranks(slice(n_genes)))
            model = make(_best_penalty(make, penalties, train, pair.y), len(train))
            yield Labels(k, n_genes, model.fit(train, pair.y).predict(query))

    return labels_of


def _best_penalty(
    make: Callable[[float, int], Any],
    penalties: Sequence[float],
    train: NDArray,
    y: NDArray,
) -> float:
    """The penalty of best balanced accuracy; the strongest of equal ones."""
    if len(penalties) == 1:
        return penalties[0]
    folds = StratifiedKFold(_folds(y), shuffle=True, random_state=0)
    accuracy = dict.fromkeys(penalties, 0.0)
    for fitted, left_out in folds.split(train, y):
        for l2 in penalties:
            model = make(l2, len(fitted)).fit(train[fitted], y[fitted])
            labels = model.predict(train[left_out])
            accuracy[l2] += balanced_accuracy(y[left_out], labels)
    return max(penalties, key=lambda l2: (round(accuracy[l2], 9), l2))


def _in_span(train: NDArray, query: NDArray) -> tuple[NDArray, NDArray]:
    """Coordinates in the span of the training samples where these are fewer than genes.

    With an l2 penalty the weights lie in that span: labels are the same, in a small
    part of the time.
    """
    if len(train) >= train.shape[1]:
        return train, query
    span, _ = np.linalg.qr(train.T)
    return train @ span, query @ span


def lr_largest_weights(pair: PairData) -> Iterator[Labels]:
    """Logistic regression on ranks of the genes of largest weight."""
    train, _ = pair.ranks(slice(None))
    model = _lr(PENALTY, len(train)).fit(train, pair.y)
    by_weight = np.argsort(-np.abs(model.coef_).max(axis=0), kind="stable")
    for k, n_genes in pair.sizes.items():
        train, query = pair.ranks(np.sort(by_weight[:n_genes]))
        model = _lr(PENALTY, len(train)).fit(train, pair.y)
        yield Labels(k, n_genes, model.predict(query))


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
    """
    train, query = _in_span(train, query)
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
    "nearest class mean, adapted": nearest_mean_adapted,
    "k-TSP": top_scoring_pairs,
    "LR on ranks": on_ranks(_lr, [PENALTY]),
    "LR on ranks, tuned": on_ranks(_lr, PENALTIES),
    "LR on ranks, largest weights": lr_largest_weights,
    "SVM on ranks": on_ranks(_svm, [PENALTY]),
    "SVM on ranks, tuned": on_ranks(_svm, PENALTIES),
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
