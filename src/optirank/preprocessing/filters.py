"""The filter of genes by how many samples express them, and how strongly."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, _fit_context
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, RealNotInt
from sklearn.utils.validation import check_is_fitted, validate_data

from optirank.preprocessing._statistics import expressing_samples


class GeneFilter(SelectorMixin, BaseEstimator):
    """Keep the genes that enough samples express, and express strongly enough.

    A sample expresses a gene when its value is above 0.

    Parameters
    ----------
    min_samples : int or float, default=1
        Samples that must express a gene: an int is a count, a float in [0, 1] a fraction of the
        samples (1 is one sample, 1.0 all of them).
    min_mean : float, default=0.0
        Least mean of a gene over the samples that express it.

    Attributes
    ----------
    n_expressing_ : ndarray of shape (d,)
        Number of samples that express each gene.
    mean_expressed_ : ndarray of shape (d,)
        Mean over the samples that express the gene; 0 where none does.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), when X has names
    """

    _parameter_constraints: dict = {
        "min_samples": [
            Interval(Integral, 0, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="both"),
        ],
        "min_mean": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, min_samples: float = 1, *, min_mean: float = 0.0) -> None:
        self.min_samples = min_samples
        self.min_mean = min_mean

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike | sp.spmatrix, y: object = None) -> GeneFilter:
        """Count the samples that express each gene.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Expression values or counts.
        y : ignored
        """
        X = validate_data(self, X, accept_sparse=("csr", "csc"))
        self.n_expressing_, self.mean_expressed_ = expressing_samples(X)
        as_count = isinstance(self.min_samples, Integral)
        expressing = self.n_expressing_ / (1 if as_count else X.shape[0])
        self._support = (expressing >= self.min_samples) & (self.mean_expressed_ >= self.min_mean)
        if not self._support.any():
            raise ValueError(
                f"none of the {X.shape[1]} genes passes the filter (min_samples="
                f"{self.min_samples!r}, min_mean={self.min_mean!r}; {X.shape[0]} samples, largest "
                f"number expressing a gene {self.n_expressing_.max()}): lower min_samples or "
                "min_mean"
            )
        return self

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self, "n_expressing_")
        return self._support

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
