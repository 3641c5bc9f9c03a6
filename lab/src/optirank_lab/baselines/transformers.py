"""scikit-learn transformers: log counts per million, down-sampling,
SingleCellNet's genes.
"""

from __future__ import annotations

import logging
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import (
    BaseEstimator,
    OneToOneFeatureMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from optirank._util.numbers import TOTAL, value_scale
from optirank_lab.baselines.anova import Matrix, canonical, cell_moments, constant_genes

logger = logging.getLogger("optirank")

_MOST_COUNTS = 10**9  # NumPy's hypergeometric sampler draws from fewer than this


class _CountTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A transformer of counts that learns nothing: `fit` only checks and notes the
    gene names.
    """

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Matrix, y: object = None) -> _CountTransformer:
        """Check the counts (at least 0) and note the names of the genes; y is
        ignored.
        """
        self._check(X, reset=True)
        return self

    def _check(self, X: Matrix, *, reset: bool, copy: bool = False) -> Matrix:
        X = validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            reset=reset,
            copy=copy,
        )
        X = canonical(X) if sp.issparse(X) else X
        negative = (
            np.argwhere(X < 0)
            if not sp.issparse(X)
            else np.column_stack((X < 0).nonzero())
        )
        if len(negative):
            sample, gene = negative[0]
            raise ValueError(
                f"Negative values in data passed to {type(self).__name__}: X has "
                f"{X[sample, gene]:g} (sample {sample}, gene {gene}), but counts are "
                "at least 0; leave this step out for data that are logged, centred or "
                "log-ratios already"
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

    The total is that of the genes given, so this belongs before a selection of genes. A
    sample without counts stays zero. Sparse input stays sparse (CSR).

    Parameters
    ----------
    target : float, default=1e6
        Total of each sample after scaling: 1e6 gives counts per million, 1e4 is usual
        for single cells.
    log : bool, default=True
        Whether to take the logarithm; without it the values are plain counts per
        `target`.
    """

    _parameter_constraints: dict = {
        "target": [Interval(Real, 0, None, closed="neither")],
        "log": ["boolean"],
    }

    def __init__(self, target: float = 1e6, *, log: bool = True) -> None:
        self.target = target
        self.log = log

    def transform(self, X: Matrix) -> Matrix:
        """Scaled (and logged) expression, of the same shape and kind as `X`."""
        X = self._check(X, reset=False, copy=True)
        total = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
        factor = np.divide(
            self.target, total, out=np.zeros_like(total), where=total > 0
        )
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

    Each sample keeps `n_counts` of its counts, drawn at random, each count being as
    likely as any other (a multivariate hypergeometric distribution); its expected
    profile is the old one times ``n_counts / total``. A sample with no more than
    `n_counts` counts is kept as it is.

    Fractional values (expected counts of RSEM, salmon and the like) are first rounded
    up or down at random so that their mean is kept, and the log says so. Sparse input
    stays sparse (CSR).

    Parameters
    ----------
    n_counts : int, default=1500
        Counts kept of each sample.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws; with an int each call of `transform` draws alike.
    """

    _parameter_constraints: dict = {
        "n_counts": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_counts: int = 1500,
        *,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_counts = n_counts
        self.random_state = random_state

    def transform(self, X: Matrix) -> Matrix:
        """Down-sampled counts, of the same shape and kind as `X`."""
        X = self._check(X, reset=False, copy=True)
        total = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
        if total.max() >= _MOST_COUNTS:
            raise ValueError(
                f"sample {int(np.argmax(total))} has {total.max():.3g} counts, more "
                f"than can be drawn from ({_MOST_COUNTS:g}): these are hardly counts; "
                "leave Downsample out or divide the values by a constant"
            )
        rng = np.random.default_rng(
            check_random_state(self.random_state).randint(2**31 - 1)
        )
        values = X.data if sp.issparse(X) else X
        whole = not np.any(values != np.floor(values))
        if not whole:
            logger.info(
                "Downsample: X has fractional values, which are rounded at random"
            )
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

    def _draw(
        self, values: np.ndarray, rng: np.random.Generator, whole: bool
    ) -> np.ndarray:
        counts = np.floor(values)
        if not whole:
            counts += rng.random(values.size) < values - counts
        counts = counts.astype(np.int64)
        n_counts = min(self.n_counts, int(counts.sum()))
        return rng.multivariate_hypergeometric(counts, n_counts, method="marginals")


class SingleCellNetGenes(SelectorMixin, BaseEstimator):
    """Select genes as SingleCellNet does, `n_top` each way for each one-vs-rest
    problem.

    Counts are down-sampled to `n_counts`, scaled to a total of 10000 and logged. Of the
    genes that pass the filters below on that scale (expressed means above 0) and vary,
    the `n_top` of lowest and the `n_top` of highest signed correlation with the label
    are selected: in a binary problem the label is the second class, with more classes
    the selection is the union over the one-vs-rest problems. Where fewer genes are left
    than asked for, all of them are selected, and the log says so.

    Data that are not counts (fractions, logarithms, negative values) are taken as they
    are, without down-sampling, scaling or logarithm, and the log (`logging`,
    "optirank") says so. Standardising the genes, which SingleCellNet does too, changes
    no correlation.

    Parameters
    ----------
    n_top : int, default=500
        Genes taken at each end of the correlations.
    min_fraction : float, default=0.05
        A gene expressed in more than this fraction of the samples passes.
    min_expressed : float, default=0.001
        A gene expressed in at least this fraction passes if its mean is above
        `min_mean`.
    min_mean : float, default=2.0
        The bound on the mean over the samples that express the gene.
    n_counts : int, default=1500
        Counts a sample is down-sampled to.
    random_state : int, RandomState instance or None, default=None
        Seed of the down-sampling.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    correlations_ : ndarray of shape (n_problems, d)
        Correlation of each gene with each label (one row if binary, else one per
        class); NaN for genes that do not pass or do not vary.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), when X has names
    """

    _parameter_constraints: dict = {
        "n_top": [Interval(Integral, 1, None, closed="left")],
        "min_fraction": [Interval(Real, 0, 1, closed="both")],
        "min_expressed": [Interval(Real, 0, 1, closed="both")],
        "min_mean": [Real],
        "n_counts": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_top: int = 500,
        *,
        min_fraction: float = 0.05,
        min_expressed: float = 0.001,
        min_mean: float = 2.0,
        n_counts: int = 1500,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_top = n_top
        self.min_fraction = min_fraction
        self.min_expressed = min_expressed
        self.min_mean = min_mean
        self.n_counts = n_counts
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Matrix, y: Any) -> SingleCellNetGenes:
        """Correlate the genes with the label and choose.

        X holds counts, or expression values that are used as they are; y has two
        classes or more.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr")
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(
                f"y has one class only ({self.classes_[0]!r}): "
                "genes are chosen by what tells at least 2 classes apart"
            )
        expression = self._expression(X)
        passes = self._passes(expression) & ~constant_genes(expression)
        if not passes.any():
            raise ValueError(
                f"none of the {X.shape[1]} genes varies and passes the filter "
                f"(min_fraction={self.min_fraction!r}, "
                f"min_expressed={self.min_expressed!r}, min_mean={self.min_mean!r}): "
                "lower min_fraction or min_mean"
            )
        self.correlations_ = label_correlations(expression, codes, self.classes_.size)
        self.correlations_[:, ~passes] = np.nan
        self._support = np.zeros(X.shape[1], dtype=bool)
        for correlation in self.correlations_:
            self._support[top_each_way(correlation, self.n_top)] = True
        if passes.sum() < 2 * self.n_top:
            logger.info(
                "SingleCellNetGenes: %d genes pass the filter, fewer than 2 x n_top = "
                "%d; all of them are selected",
                passes.sum(),
                2 * self.n_top,
            )
        return self

    def _expression(self, X: Matrix) -> Matrix:
        if value_scale(X) != "counts":
            logger.info(
                "SingleCellNetGenes: X is not counts (whole numbers of at least 0), so "
                "it is used as it is, without down-sampling and scaling"
            )
            return X
        drawn = Downsample(self.n_counts, random_state=self.random_state).transform(X)
        return LogCPM(TOTAL).transform(drawn)

    def _passes(self, expression: Matrix) -> np.ndarray:
        """Mask of the genes that are expressed in enough samples, or strongly
        in some.
        """
        positive = canonical(expression).maximum(0)
        count = np.bincount(
            positive.indices[positive.data > 0], minlength=positive.shape[1]
        )
        mean = np.ravel(positive.sum(axis=0, dtype=np.float64)) / np.maximum(count, 1)
        fraction = count / positive.shape[0]
        strong = (fraction >= self.min_expressed) & (mean > self.min_mean)
        return (fraction > self.min_fraction) | strong

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self, "correlations_")
        return self._support

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def label_correlations(X: Matrix, codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Correlation of every gene with each one-vs-rest label, NaN or arbitrary for
    constant genes.

    One row for the second class if there are two, else one row per class. With class
    sizes `n_k` and class means `m_k`, the covariance with the label of class `k` is
    ``n_k (m_k - m)``.
    """
    sizes, means, within = cell_moments(X, codes, n_classes)
    deviation = means - sizes @ means / sizes.sum()
    total = within + sizes @ deviation**2
    label_variance = sizes * (sizes.sum() - sizes) / sizes.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = (
            sizes[:, None] * deviation / np.sqrt(np.outer(label_variance, total))
        )
    return correlation[1:] if n_classes == 2 else correlation


def top_each_way(correlation: np.ndarray, n_top: int) -> np.ndarray:
    """Sorted positions of the `n_top` lowest and the `n_top` highest values, NaN left
    out.

    All positions when there are no more than that; ties go to the earlier gene.
    """
    known = np.flatnonzero(~np.isnan(correlation))
    lowest = known[np.argsort(correlation[known], kind="stable")[:n_top]]
    highest = known[np.argsort(-correlation[known], kind="stable")[:n_top]]
    return np.union1d(lowest, highest)
