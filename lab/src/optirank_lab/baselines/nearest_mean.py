"""What one tries first: scikit-learn's linear classifiers, and centroids of ranks.

Ranks are average ranks within a sample, divided by the number of genes and centred at
0. Centred ranks give the same logistic regression, and linear solvers need up to 50
times less time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from optirank.ranks.scoring import weighted_ranks


def lr_on_ranks() -> Pipeline:
    """scikit-learn's ``LogisticRegression`` on ranks."""
    return _on_ranks(LogisticRegression(class_weight="balanced", max_iter=1000))


def svm_on_ranks(random_state: int | None = None) -> Pipeline:
    """scikit-learn's ``LinearSVC`` on ranks."""
    return _on_ranks(
        LinearSVC(class_weight="balanced", max_iter=10_000, random_state=random_state)
    )


def l1_lr(C: float = 1.0, random_state: int | None = None) -> OneVsRestClassifier:
    """scikit-learn's ``LogisticRegression`` with an l1 penalty, one class per model."""
    options = {"class_weight": "balanced", "random_state": random_state}
    return OneVsRestClassifier(
        LogisticRegression(C=C, l1_ratio=1.0, solver="liblinear", **options)
    )


def _on_ranks(model: ClassifierMixin) -> Pipeline:
    return make_pipeline(FunctionTransformer(centred_ranks, accept_sparse=True), model)


def centred_ranks(X: Any) -> NDArray:
    """Ranks within each sample, divided by the number of genes, with mean 0."""
    d = X.shape[1]
    return (sample_ranks(X) - np.float32((d - 1) / 2)) / np.float32(d)


def sample_ranks(X: Any) -> NDArray:
    """Average ranks within each sample, from 0 on; single precision is exact here."""
    return weighted_ranks(X, np.ones(X.shape[1]), scale=False).astype(np.float32)


class SpearmanCentroid(ClassifierMixin, BaseEstimator):
    """The class whose centroid has the highest Spearman correlation with the sample.

    A centroid is the mean of the ranks of a class's training samples. The correlation
    is Pearson's between the ranks (average ranks of ties) of the sample and those of
    the centroid: ``rho = cov(r(x), r(c)) / (sd(r(x)) sd(r(c)))``. A sample or centroid
    whose values are all equal has correlation 0 with everything; among equal
    correlations the first class wins.
    """

    def fit(self, X: Any, y: Any) -> SpearmanCentroid:
        """Learn from expression values on any scale, dense or sparse, and labels."""
        X, y = validate_data(self, X, y, accept_sparse="csr")
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        ranks = sample_ranks(X)  # their sums are exact, so that equal means are equal
        self.centroids_ = np.array(
            [
                ranks[y == label].mean(axis=0, dtype=np.float64)
                for label in self.classes_
            ]
        )
        return self

    def correlations(self, X: Any) -> NDArray:
        """Spearman correlations with the centroids, shape (n, n_classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        centroids = _standardised(sample_ranks(self.centroids_))
        return _standardised(sample_ranks(X)) @ centroids.T

    def predict(self, X: Any) -> NDArray:
        """The class of the highest correlation."""
        nearest = self.correlations(X).argmax(axis=1)
        return self.classes_[nearest]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # on the two or three features of scikit-learn's checks
        tags.classifier_tags.poor_score = True
        return tags


def _standardised(ranks: NDArray) -> NDArray:
    """Rows with mean 0 and length 1; rows of equal values become 0."""
    centred = ranks - ranks.mean(axis=1, keepdims=True, dtype=np.float64)
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    flat = np.ptp(ranks, axis=1, keepdims=True) == 0
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, length))
