"""What a careful person tries first: scikit-learn's linear classifiers, and centroids of ranks.

Ranks are average ranks within a sample, divided by the number of genes and centred at 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from optirank.ranks.relative import relative_ranks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from sklearn.utils import Tags

_BLOCK_VALUES = 1 << 22  # ranks made at once in double precision


class _OnRanks(ClassifierMixin, BaseEstimator):
    """A classifier of the ranks of a sample's values; it needs every gene that it was given."""

    def fit(self, X: ArrayLike | sp.spmatrix, y: ArrayLike) -> _OnRanks:
        """Learn from expression values on any scale, dense or sparse, and labels."""
        X, y = validate_data(self, X, y, accept_sparse="csr")
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class only ({self.classes_.tolist()[0]!r}): a classifier needs samples "
                "of at least 2 classes"
            )
        self._learn(self._ranks(X), y)
        self.genes_ = np.ones(X.shape[1], dtype=bool)
        return self

    def predict(self, X: ArrayLike | sp.spmatrix) -> NDArray:
        """The class of the highest score."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        return self._labels(self._ranks(X))

    def _ranks(self, X: NDArray | sp.csr_matrix) -> NDArray:
        # Centred ranks give the same logistic regression, and linear solvers need up to 50 times
        # less time.
        d = X.shape[1]
        return (sample_ranks(X) - np.float32((d - 1) / 2)) / np.float32(d)

    def _learn(self, ranks: NDArray, y: NDArray) -> None:
        self.model_ = self._make().fit(ranks, y)
        self.n_iter_ = int(np.max(self.model_.n_iter_))

    def _labels(self, ranks: NDArray) -> NDArray:
        return self.model_.predict(ranks)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = True  # on the two or three features of its checks
        return tags


class RankedLogisticRegression(_OnRanks):
    """scikit-learn's ``LogisticRegression`` on ranks divided by the number of genes.

    Parameters
    ----------
    C : float, default=1.0
        The inverse of the strength of the l2 penalty.
    class_weight : "balanced", dict or None, default="balanced"
    max_iter : int, default=1000
    """

    def __init__(
        self, C: float = 1.0, *, class_weight: str | dict | None = "balanced", max_iter: int = 1000
    ) -> None:
        self.C = C
        self.class_weight = class_weight
        self.max_iter = max_iter

    def _make(self) -> LogisticRegression:
        return LogisticRegression(C=self.C, class_weight=self.class_weight, max_iter=self.max_iter)


class RankedLinearSVC(_OnRanks):
    """scikit-learn's ``LinearSVC`` on ranks divided by the number of genes.

    Parameters
    ----------
    C : float, default=1.0
        The inverse of the strength of the l2 penalty.
    class_weight : "balanced", dict or None, default="balanced"
    max_iter : int, default=10000
    random_state : int, RandomState instance or None, default=None
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        class_weight: str | dict | None = "balanced",
        max_iter: int = 10_000,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.C = C
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.random_state = random_state

    def _make(self) -> LinearSVC:
        return LinearSVC(
            C=self.C,
            class_weight=self.class_weight,
            max_iter=self.max_iter,
            random_state=self.random_state,
        )


class SpearmanCentroid(_OnRanks):
    """The class whose centroid has the highest Spearman correlation with the sample.

    A centroid is the mean of the ranks of a class's training samples. The correlation is Pearson's
    between the ranks (average ranks of ties) of the sample and those of the centroid:
    ``rho = cov(r(x), r(c)) / (sd(r(x)) sd(r(c)))``. A sample or centroid whose values are all equal
    has correlation 0 with everything; among equal correlations the first class wins.

    Attributes
    ----------
    centroids_ : ndarray of shape (n_classes, d)
        Mean ranks.
    """

    def _ranks(self, X: NDArray | sp.csr_matrix) -> NDArray:
        return sample_ranks(X)  # their sums are exact, so that equal means are equal

    def _learn(self, ranks: NDArray, y: NDArray) -> None:
        self.centroids_ = np.array(
            [ranks[y == one].mean(axis=0, dtype=np.float64) for one in self.classes_]
        )

    def decision_function(self, X: ArrayLike | sp.spmatrix) -> NDArray:
        """Spearman correlations with the centroids; for two classes the second minus the first."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        found = self._correlations(self._ranks(X))
        return found[:, 1] - found[:, 0] if len(self.classes_) == 2 else found

    def _labels(self, ranks: NDArray) -> NDArray:
        return self.classes_[self._correlations(ranks).argmax(axis=1)]

    def _correlations(self, ranks: NDArray) -> NDArray:
        centroids = _standardised(sample_ranks(self.centroids_))
        step = max(1, _BLOCK_VALUES // ranks.shape[1])
        blocks = [ranks[start : start + step] for start in range(0, len(ranks), step)]
        return np.concatenate([_standardised(block) @ centroids.T for block in blocks])


def sample_ranks(X: NDArray | sp.csr_matrix) -> NDArray:
    """Average ranks within each sample, from 0 on, in single precision, which is exact here."""
    n, d = X.shape
    ranks = np.empty((n, d), dtype=np.float32)
    everything = np.ones(d, dtype=bool)
    step = max(1, _BLOCK_VALUES // d)
    for start in range(0, n, step):
        ranks[start : start + step] = relative_ranks(
            X[start : start + step], everything, scale=False
        )
    return ranks


def _standardised(ranks: NDArray) -> NDArray:
    """Rows with mean 0 and length 1; rows of equal values become 0."""
    centred = ranks - ranks.mean(axis=1, keepdims=True, dtype=np.float64)
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    flat = np.ptp(ranks, axis=1, keepdims=True) == 0
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, length))


class L1LogisticRegression(ClassifierMixin, BaseEstimator):
    """scikit-learn's ``LogisticRegression`` with an l1 penalty, one class against the rest.

    Parameters
    ----------
    C : float, default=1.0
        The inverse of the strength of the penalty: the smaller, the fewer genes.
    random_state : int, RandomState instance or None, default=None
    """

    def __init__(
        self, C: float = 1.0, *, random_state: int | np.random.RandomState | None = None
    ) -> None:
        self.C = C
        self.random_state = random_state

    def fit(self, X: ArrayLike | sp.spmatrix, y: ArrayLike) -> L1LogisticRegression:
        """Learn from log values."""
        X, y = validate_data(self, X, y, accept_sparse="csr")
        check_classification_targets(y)
        one = LogisticRegression(
            C=self.C,
            l1_ratio=1.0,
            solver="liblinear",
            class_weight="balanced",
            random_state=self.random_state,
        )
        self.model_ = OneVsRestClassifier(one).fit(X, y)
        self.classes_ = self.model_.classes_
        self.coef_ = np.vstack([part.coef_ for part in self.model_.estimators_])
        self.genes_ = (self.coef_ != 0).any(axis=0)
        return self

    def predict(self, X: ArrayLike | sp.spmatrix) -> NDArray:
        """The class of the highest score."""
        check_is_fitted(self)
        return self.model_.predict(validate_data(self, X, accept_sparse="csr", reset=False))
