"""SingleCellNet's choice of genes: those of lowest and highest correlation with each label."""

from __future__ import annotations

import logging
from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, _fit_context
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from optirank.preprocessing._statistics import cell_moments, constant_genes, expressing_samples
from optirank.preprocessing.counts import Downsample, LogCPM
from optirank.preprocessing.scales import value_scale

logger = logging.getLogger("optirank")

_SCALED_TOTAL = 1e4  # what SingleCellNet scales the down-sampled profiles to


class SingleCellNetGenes(SelectorMixin, BaseEstimator):
    """Select genes as SingleCellNet does, `n_top` each way for each one-vs-rest problem.

    Counts are down-sampled to `n_counts`, scaled to a total of 10000 and logged. A gene passes if
    more than `min_fraction` of the samples express it, or if at least `min_expressed` do with a
    mean above `min_mean` where it is expressed (on that log scale; expressed means above 0). Of
    the genes that pass and vary, the `n_top` of lowest and the `n_top` of highest signed
    correlation with the label are selected: in a binary problem the label is the second class,
    with more classes the selection is the union over the one-vs-rest problems. Where fewer genes
    are left than asked for, all of them are selected, and the log says so.

    Data that are not counts (fractions, logarithms, negative values) are taken as they are,
    without down-sampling, scaling or logarithm, and the log (`logging`, "optirank") says so.
    Standardising the genes, which SingleCellNet does too, changes no correlation.

    Parameters
    ----------
    n_top : int, default=500
        Genes taken at each end of the correlations.
    min_fraction : float, default=0.05
        A gene expressed in more than this fraction of the samples passes.
    min_expressed : float, default=0.001
        A gene expressed in at least this fraction passes if its mean is above `min_mean`.
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
        Correlation of each gene with each label (one row if binary, else one per class); NaN for
        genes that do not pass or do not vary.
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
    def fit(self, X: ArrayLike | sp.spmatrix, y: ArrayLike) -> SingleCellNetGenes:
        """Correlate the genes with the label and choose.

        X holds counts, or expression values that are used as they are; y has two classes or more.
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
                f"none of the {X.shape[1]} genes varies and passes the filter (min_fraction="
                f"{self.min_fraction!r}, min_expressed={self.min_expressed!r}, min_mean="
                f"{self.min_mean!r}): lower min_fraction or min_mean"
            )
        self.correlations_ = label_correlations(expression, codes, self.classes_.size)
        self.correlations_[:, ~passes] = np.nan
        self._support = np.zeros(X.shape[1], dtype=bool)
        for correlation in self.correlations_:
            self._support[top_each_way(correlation, self.n_top)] = True
        if passes.sum() < 2 * self.n_top:
            logger.info(
                "SingleCellNetGenes: %d genes pass the filter, fewer than 2 x n_top = %d; "
                "all of them are selected",
                passes.sum(),
                2 * self.n_top,
            )
        return self

    def _expression(self, X: np.ndarray | sp.spmatrix) -> np.ndarray | sp.spmatrix:
        if value_scale(X) != "counts":
            logger.info(
                "SingleCellNetGenes: X is not counts (whole numbers of at least 0), so it is used "
                "as it is, without down-sampling and scaling"
            )
            return X
        drawn = Downsample(self.n_counts, random_state=self.random_state).transform(X)
        return LogCPM(_SCALED_TOTAL).transform(drawn)

    def _passes(self, expression: np.ndarray | sp.spmatrix) -> np.ndarray:
        count, mean = expressing_samples(expression)
        fraction = count / expression.shape[0]
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


def label_correlations(
    X: np.ndarray | sp.spmatrix, codes: np.ndarray, n_classes: int
) -> np.ndarray:
    """Correlation of every gene with each one-vs-rest label, NaN or arbitrary for constant genes.

    One row for the second class if there are two, else one row per class. With class sizes `n_k`
    and class means `m_k`, the covariance with the label of class `k` is ``n_k (m_k - m)``.
    """
    sizes, means, within = cell_moments(X, codes, n_classes)
    deviation = means - sizes @ means / sizes.sum()
    total = within + sizes @ deviation**2
    label_variance = sizes * (sizes.sum() - sizes) / sizes.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = sizes[:, None] * deviation / np.sqrt(np.outer(label_variance, total))
    return correlation[1:] if n_classes == 2 else correlation


def top_each_way(correlation: np.ndarray, n_top: int) -> np.ndarray:
    """Sorted positions of the `n_top` lowest and the `n_top` highest values, NaN left out.

    All positions when there are no more than that; ties go to the earlier gene.
    """
    known = np.flatnonzero(~np.isnan(correlation))
    lowest = known[np.argsort(correlation[known], kind="stable")[:n_top]]
    highest = known[np.argsort(-correlation[known], kind="stable")[:n_top]]
    return np.union1d(lowest, highest)
