"""Classifiers at each number of genes: what `sizes` of classifiers.toml names.

All of them get the same training samples, the same query and the same candidate genes,
in the order of their t statistics (`designs.genes_of_best_t`), and yield one fitted
classifier per number of genes with the positions of the genes that it is given.
Competing tools choose genes themselves, among the candidates.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import LinearSVC

from optirank._util.numbers import balanced_accuracy
from optirank.panel.further import learn_from_query
from optirank.panel.samples import fold_matrix
from optirank_lab.baselines.nearest_mean import SpearmanCentroid, centred_ranks

SIZES = (10, 20, 30, 50, 100, 300)
ALL = "all"
# What cross-validation chooses C of LR on log values from: beyond these the accuracy is
# constant.
PENALTIES_OF_LOG_VALUES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
# The paper's classifier is tuned over a part of the paper's grid, which has 250
# settings.
REFERENCE_SIZES = (0.05, 0.2, 1.0)
L1_PENALTIES = (0.0,)
L2_PENALTIES = (1e-3, 1e-2, 1e-1)
FOLDS = 3  # of every search
SHARPNESS = (1.0, 3.0, 10.0, 30.0, 100.0)  # of the softmax of correlations

Make = Callable[..., Any]


class AtSize(NamedTuple):
    """A classifier fitted for ``k`` genes (or "all") to the genes at some positions."""

    k: str
    model: Any
    genes: NDArray | slice = slice(None)


def sizes_of(n_candidates: int) -> dict[str, int]:
    """Genes used by genes asked for: all candidates where there are fewer."""
    return {str(k): min(k, n_candidates) for k in SIZES}


def all_genes(make: Make, X: NDArray, y: NDArray) -> Iterator[AtSize]:
    """A classifier on all candidates."""
    yield AtSize(ALL, make().fit(X, y))


def best_t(make: Make, X: NDArray, y: NDArray) -> Iterator[AtSize]:
    """A classifier on the k genes of best t statistic, and on all candidates."""
    for k, n_genes in sizes_of(X.shape[1]).items():
        genes = slice(n_genes)
        yield AtSize(k, make().fit(X[:, genes], y), genes)
    yield from all_genes(make, X, y)


def best_t_of_all(make: Make, X: NDArray, y: NDArray) -> Iterator[AtSize]:
    """A classifier that takes the k genes of best t statistic itself, and sees all."""
    for k, n_genes in (sizes_of(X.shape[1]) | {ALL: X.shape[1]}).items():
        yield AtSize(k, make(n_genes=n_genes).fit(X, y))


def largest_weights(make: Make, X: NDArray, y: NDArray) -> Iterator[AtSize]:
    """The k genes of largest weight in a fit to all candidates."""
    weights = np.abs(make().fit(X, y).coef_).max(axis=0)
    by_weight = np.argsort(-weights, kind="stable")
    for k, n_genes in sizes_of(X.shape[1]).items():
        genes = np.sort(by_weight[:n_genes])
        yield AtSize(k, make().fit(X[:, genes], y), genes)


def panel(make: Make, X: NDArray, y: NDArray) -> Iterator[AtSize]:
    """The panel model; smaller panels are on the path of the largest where it
    has them.
    """
    sizes = sizes_of(X.shape[1])
    largest = make(n_genes=max(sizes.values())).fit(X, y)
    for k, n_genes in sizes.items():
        if n_genes in largest.path_:
            model = largest.smaller(n_genes)
        else:
            model = make(n_genes=n_genes).fit(X, y)
        yield AtSize(k, model)


def top_scoring_pairs(make: Make, X: NDArray, y: NDArray) -> Iterator[AtSize]:
    """k-TSP with the odd number of pairs per class that makes about k genes."""
    n_classes = len(np.unique(y))
    n_problems = 1 if n_classes == 2 else n_classes
    for k, n_genes in sizes_of(X.shape[1]).items():
        n_pairs = max(1, round(n_genes / (2 * n_problems)))
        model = make(k_max=n_pairs - 1 + n_pairs % 2).fit(X, y)
        yield AtSize(k, model)


class TunedOptirank(ClassifierMixin, BaseEstimator):
    """The paper's classifier, tuned by its own rule over a part of its grid."""

    def fit(self, X: NDArray, y: NDArray) -> TunedOptirank:
        """Search the part of the grid."""
        from optirank import OptirankClassifierCV

        search = OptirankClassifierCV(
            REFERENCE_SIZES, L1_PENALTIES, L2_PENALTIES, cv=_folds(y)
        )
        with warnings.catch_warnings():
            # The grid is a part of the paper's, so its edges are often best
            warnings.filterwarnings("ignore", message="the best setting has")
            self.search_ = search.fit(X, y)
        self.classes_ = self.search_.classes_
        self.genes_ = np.asarray(self.search_.best_estimator_.genes_)
        return self

    def predict(self, X: NDArray) -> NDArray:
        """Labels by the chosen setting."""
        return self.search_.predict(X)


class TunedLogisticRegression(ClassifierMixin, BaseEstimator):
    """Logistic regression with C chosen by balanced accuracy in the training set.

    With an l2 penalty the weights lie in the span of the training samples. Coordinates
    in that span give the same labels, and with fewer samples than genes in a small part
    of the time.
    """

    def fit(self, X: NDArray, y: NDArray) -> TunedLogisticRegression:
        """Search C by cross-validation, and fit all samples."""
        self.n_features_in_ = X.shape[1]
        self.span_ = None
        if len(X) < X.shape[1]:
            self.span_, _ = np.linalg.qr(X.T)
            X = X @ self.span_
        model = LogisticRegression(class_weight="balanced", max_iter=2000, tol=1e-3)
        folds = StratifiedKFold(_folds(y), shuffle=True, random_state=0)
        penalties = {"C": PENALTIES_OF_LOG_VALUES}
        self.search_ = GridSearchCV(
            model, penalties, scoring="balanced_accuracy", cv=folds
        ).fit(X, y)
        self.classes_ = self.search_.classes_
        return self

    def predict(self, X: NDArray) -> NDArray:
        """Labels with the best C."""
        return self.search_.predict(X if self.span_ is None else X @ self.span_)


class LinearOnRanks(ClassifierMixin, BaseEstimator):
    """A linear classifier on the ranks of its genes among themselves.

    It has no intercept, and an l2 penalty against the mean loss, as the panel model
    has. Of several penalties, cross-validation in the training set chooses one; the
    strongest of equal ones.

    Parameters
    ----------
    loss : "logistic", or "hinge" for a support vector machine (squared hinge loss).
    penalties : those to choose from.
    """

    def __init__(self, loss: str = "logistic", penalties: Sequence[float] = (0.03,)):
        self.loss = loss
        self.penalties = penalties

    def fit(self, X: NDArray, y: NDArray) -> LinearOnRanks:
        """Choose the penalty, and fit all samples.

        Weights lie in the span of the training samples: with fewer samples than genes,
        coordinates in it give the same labels in a small part of the time.
        """
        ranks = centred_ranks(X)
        span = None
        if len(ranks) < ranks.shape[1]:
            span, _ = np.linalg.qr(ranks.T)
            ranks = ranks @ span
        self.penalty_ = self._best_penalty(ranks, y)
        model = self._model(self.penalty_, len(ranks)).fit(ranks, y)
        self.classes_ = model.classes_
        self.coef_ = model.coef_ if span is None else model.coef_ @ span.T
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X: NDArray) -> NDArray:
        """The class of the highest score."""
        return self.predict_ranks(centred_ranks(X))

    def predict_ranks(self, ranks: NDArray) -> NDArray:
        """The class of the highest score, from centred ranks."""
        scores = ranks @ self.coef_.T
        best = scores.argmax(axis=1) if scores.shape[1] > 1 else scores[:, 0] > 0
        return self.classes_[np.asarray(best, dtype=np.intp)]

    def _model(self, penalty: float, n_samples: int) -> Any:
        weight = 1.0 / (2.0 * penalty * n_samples)
        given = {"class_weight": "balanced", "fit_intercept": False}
        if self.loss == "hinge":
            return LinearSVC(C=weight, max_iter=10_000, random_state=0, **given)
        return LogisticRegression(C=weight, max_iter=2000, tol=1e-3, **given)

    def _best_penalty(self, ranks: NDArray, y: NDArray) -> float:
        """The penalty of best balanced accuracy in the training set."""
        if len(self.penalties) == 1:
            return self.penalties[0]
        folds = StratifiedKFold(_folds(y), shuffle=True, random_state=0)
        accuracy = dict.fromkeys(self.penalties, 0.0)
        for fitted, left_out in folds.split(ranks, y):
            for penalty in self.penalties:
                model = self._model(penalty, len(fitted)).fit(ranks[fitted], y[fitted])
                labels = model.predict(ranks[left_out])
                accuracy[penalty] += balanced_accuracy(y[left_out], labels)
        return max(self.penalties, key=lambda value: (round(accuracy[value], 9), value))


class AdaptedNearestMean(ClassifierMixin, BaseEstimator):
    """The nearest class mean, with the panel model's rule of learning from the query.

    Its probabilities are a softmax of the correlations, as sharp as fits the training
    samples best; the regression on the query sees all candidates.
    """

    def __init__(self, n_genes: int = 100):
        self.n_genes = n_genes

    def fit(self, X: NDArray, y: NDArray) -> AdaptedNearestMean:
        """Learn the class means over the first genes, and how sure they are."""
        self.means_ = SpearmanCentroid().fit(X[:, : self.n_genes], y)
        self.classes_ = self.means_.classes_
        correlations = self.means_.correlations(X[:, : self.n_genes])
        codes = np.searchsorted(self.classes_, y)
        weights = 1.0 / np.bincount(codes)[codes]

        def loss(sharpness: float) -> float:
            own = log_softmax(sharpness * correlations, axis=1)
            return -float(np.average(own[np.arange(len(y)), codes], weights=weights))

        self.sharpness_ = min(SHARPNESS, key=loss)
        self.n_features_in_ = X.shape[1]
        self.genes_ = np.arange(X.shape[1]) < self.n_genes
        return self

    def predict(self, X: NDArray) -> NDArray:
        """Labels after learning from these samples."""
        correlations = self.means_.correlations(X[:, : self.n_genes])
        soft = softmax(self.sharpness_ * correlations, axis=1)
        learned = learn_from_query(soft, partial(fold_matrix, X), X.shape[1])
        return self.classes_[learned.argmax(axis=1)]


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
