"""Counts to expression values: counts per million, logarithm, down-sampling."""

from __future__ import annotations

import logging
from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, _fit_context
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import validate_data

from optirank.preprocessing._statistics import canonical

logger = logging.getLogger("optirank")

_MOST_COUNTS = 10**9  # NumPy's hypergeometric sampler draws from fewer than this


class _CountTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A transformer of counts that learns nothing: `fit` only checks and notes the gene names."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike | sp.spmatrix, y: object = None) -> _CountTransformer:
        """Check the counts (at least 0) and note the names of the genes; y is ignored."""
        self._check(X, reset=True)
        return self

    def _check(
        self, X: ArrayLike | sp.spmatrix, *, reset: bool, copy: bool = False
    ) -> np.ndarray | sp.spmatrix:
        X = validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset, copy=copy
        )
        X = canonical(X)
        negative = np.argwhere(X < 0) if not sp.issparse(X) else np.column_stack((X < 0).nonzero())
        if len(negative):
            sample, gene = negative[0]
            raise ValueError(
                f"Negative values in data passed to {type(self).__name__}: X has "
                f"{X[sample, gene]:g} (sample {sample}, gene {gene}), but counts are at least 0; "
                "leave this step out for data that are logged, centred or log-ratios already"
            )
        return X

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class LogCPM(_CountTransformer):
    """Scale every sample to the same total, then take ``log(1 + x)``.

    The total is that of the genes given, so this belongs before a selection of genes. A sample
    without counts stays zero. Sparse input stays sparse (CSR).

    Parameters
    ----------
    target : float, default=1e6
        Total of each sample after scaling: 1e6 gives counts per million, 1e4 is usual for single
        cells.
    log : bool, default=True
        Whether to take the logarithm; without it the values are plain counts per `target`.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), when X has names
    """

    _parameter_constraints: dict = {
        "target": [Interval(Real, 0, None, closed="neither")],
        "log": ["boolean"],
    }

    def __init__(self, target: float = 1e6, *, log: bool = True) -> None:
        self.target = target
        self.log = log

    def transform(self, X: ArrayLike | sp.spmatrix) -> np.ndarray | sp.spmatrix:
        """Scaled (and logged) expression, of the same shape and kind as `X`."""
        X = self._check(X, reset=False, copy=True)
        total = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
        factor = np.divide(self.target, total, out=np.zeros_like(total), where=total > 0)
        if sp.issparse(X):
            X.data *= np.repeat(factor, np.diff(X.indptr)).astype(X.dtype)
        else:
            X *= factor[:, None].astype(X.dtype)
        values = X.data if sp.issparse(X) else X
        if self.log:
            np.log1p(values, out=values)
        return X


class Downsample(_CountTransformer):
    """Draw the same number of counts from every sample, without replacement.

    Each sample keeps `n_counts` of its counts, drawn at random, each count being as likely as any
    other (a multivariate hypergeometric distribution); its expected profile is the old one times
    ``n_counts / total``. A sample with no more than `n_counts` counts is kept as it is.

    Fractional values (expected counts of RSEM, salmon and the like) are first rounded up or down at
    random so that their mean is kept, and the log says so. Sparse input stays sparse (CSR).

    Parameters
    ----------
    n_counts : int, default=1500
        Counts kept of each sample.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws; with an int each call of `transform` draws alike.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), when X has names
    """

    _parameter_constraints: dict = {
        "n_counts": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self, n_counts: int = 1500, *, random_state: int | np.random.RandomState | None = None
    ) -> None:
        self.n_counts = n_counts
        self.random_state = random_state

    def transform(self, X: ArrayLike | sp.spmatrix) -> np.ndarray | sp.spmatrix:
        """Down-sampled counts, of the same shape and kind as `X`."""
        X = self._check(X, reset=False, copy=True)
        total = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
        if total.max() >= _MOST_COUNTS:
            raise ValueError(
                f"sample {int(np.argmax(total))} has {total.max():.3g} counts, more than can be "
                f"drawn from ({_MOST_COUNTS:g}): these are hardly counts; leave Downsample out or "
                "divide the values by a constant"
            )
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        values = X.data if sp.issparse(X) else X
        whole = not np.any(values != np.floor(values))
        if not whole:
            logger.info("Downsample: X has fractional values, which are rounded at random")
        for i in np.flatnonzero(total > self.n_counts):
            if sp.issparse(X):
                entries = slice(X.indptr[i], X.indptr[i + 1])
                X.data[entries] = self._draw(X.data[entries], rng, whole)
            else:
                genes = np.flatnonzero(X[i])
                X[i, genes] = self._draw(X[i, genes], rng, whole)
        if sp.issparse(X):
            X.eliminate_zeros()
        return X

    def _draw(self, values: np.ndarray, rng: np.random.Generator, whole: bool) -> np.ndarray:
        counts = np.floor(values)
        if not whole:
            counts += rng.random(values.size) < values - counts
        counts = counts.astype(np.int64)
        n_counts = min(self.n_counts, int(counts.sum()))
        return rng.multivariate_hypergeometric(counts, n_counts, method="marginals")
