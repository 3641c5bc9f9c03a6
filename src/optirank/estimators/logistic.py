"""ElasticNetLogisticRegression (lr): logistic regression on values, or on logarithms of counts."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from optirank._util.threads import one_blas_thread
from optirank.estimators._base import LinearClassifier
from optirank.estimators._options import check_options
from optirank.estimators.panel import forget_training
from optirank.estimators.value_rows import as_seen
from optirank.ranks.scoring import average_rows
from optirank.solver.sizes import is_number
from optirank.tuning.families import LogisticFamily
from optirank.tuning.family import Samples

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class ElasticNetLogisticRegression(LinearClassifier):
    """Elastic-net logistic regression with the penalties of the rank classifiers.

    The classifier called lr in the paper: scikit-learn's ``LogisticRegression`` with
    ``C = 1 / (n (2 l2 + l1))`` and ``l1_ratio = l1 / (2 l2 + l1)``, one class against the rest,
    solved by our own solver. Values are not standardised.

    Parameters
    ----------
    l1, l2 : float, default=0.0 and 1e-3
        ``sum_i v_i logloss(y_i, z_i) + l1 |w|_1 + l2 |w|_2^2``; with both 0 a floor of l2 = 1e-7
        stands in.
    tol : float, default=1e-5
        Of the proximal gradient, relative to the gradient at w = 0.
    max_iter : int, default=10000
        Steps at most.
    class_weight : "balanced", None or dict, default="balanced"
        Balanced: both classes of each problem weigh the same.
    target_sum : float or None, default=None
        For counts: each sample is scaled to this total over all genes, and ``log(1 + x)`` is taken,
        before the fit and before every prediction. None uses the values as they are.

    Attributes
    ----------
    classes_, coef_, intercept_, n_features_in_, feature_names_in_
    reference_weights_ : ndarray of shape (n_problems, d)
        1 for the genes that values are relative to: all of them with ``target_sum``, else none.
    genes_ : boolean ndarray of shape (d,)
        The genes needed to predict: those with a weight, or all with ``target_sum``.
    """

    def __init__(
        self,
        l1: float = 0.0,
        l2: float = 1e-3,
        *,
        tol: float = 1e-5,
        max_iter: int = 10_000,
        class_weight: str | dict | None = "balanced",
        target_sum: float | None = None,
    ) -> None:
        self.l1 = l1
        self.l2 = l2
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.target_sum = target_sum

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> ElasticNetLogisticRegression:
        """Learn the weights.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, d)
            Expression values, such as logarithms of counts per million; counts with ``target_sum``.
        y : array-like of shape (n_samples,)
            Labels of two classes or more.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, within their class when classes are balanced.
        """
        from optirank.solver.problem import sample_weights

        check_options(self, {})
        total = self.target_sum
        if total is not None and (not is_number(total) or not 0 < total < np.inf):
            raise ValueError(f"target_sum={total!r}: use a positive number such as 1e4, or None")
        X, y, classes = self._checked(X, y)
        weights = self._sample_weights(X, y, sample_weight)
        X = as_seen(X, self.target_sum)
        family = LogisticFamily(
            (float(self.l1),),
            (float(self.l2),),
            tol=self.tol,
            max_iter=int(self.max_iter),
            warm_start=False,
        )
        (chain,) = family.chains(X.shape[1])
        models = []
        with one_blas_thread():
            for label in classes[1:] if len(classes) == 2 else classes:
                positive = y == label
                v = sample_weights(positive, weights, self.class_weight == "balanced")
                models += family.fit_chain(Samples(X=X), positive.astype(float), v, chain).values()
        forget_training(self)
        self.classes_ = classes
        self.coef_ = np.array([model.w for model in models])
        self.intercept_ = np.array([model.b for model in models])
        self.n_iter_ = np.array([model.n_iter for model in models])
        self.objective_ = np.array([model.objective for model in models])
        total = 0.0 if self.target_sum is None else 1.0
        self.reference_weights_ = np.full(self.coef_.shape, total)
        self.reference_ = self.reference_weights_ > 0
        self.genes_ = (self.reference_ | (self.coef_ != 0)).any(axis=0)
        if not all(model.converged for model in models):
            warnings.warn(
                f"a fit stopped at max_iter={self.max_iter} before it reached tol={self.tol:g}: "
                "raise max_iter, or l2, or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def decision_function(self, X: ArrayLike) -> NDArray:
        """Scores: one per sample for two classes, one per sample and class for more."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=("csr", "csc"), reset=False)
        rows = as_seen(X, self.target_sum) @ self.coef_.T + self.intercept_
        if len(self.classes_) > 2:
            return rows
        return average_rows(rows, 1)[:, 0]  # two rows where other classes were left out
