"""Genes that tell the classes apart: t statistics of each class against the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optirank.preprocessing._statistics import cell_moments, is_counts
from optirank.preprocessing.counts import LogCPM

_LINEAR_ABOVE = 100.0  # logarithms of expression values do not reach this


def marker_statistics(X: Any, y: ArrayLike) -> NDArray:
    """Welch's t statistic of each gene, a class against the rest; shape (n_problems, d).

    Two classes make one problem, of the second against the first. Counts are scaled to a common
    total and, like other non-negative values on a linear scale, replaced by ``log(1 + x)``. A gene
    that is constant inside and outside of the class has t = 0.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        Counts, intensities or logarithms; finite.
    y : array-like of shape (n,)
        Labels; each class needs at least two samples, as does its rest.
    """
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    sizes = np.bincount(codes)
    if len(classes) < 2 or sizes.min() < 2:
        raise ValueError(
            f"y has {len(classes)} classes, the smallest of {sizes.min()} samples: t statistics "
            "need at least 2 classes of at least 2 samples"
        )
    X = _logarithms(X)
    problems = [1] if len(classes) == 2 else range(len(classes))
    return np.array([_welch(X, codes == k) for k in problems])


def select_markers(X: Any, y: ArrayLike, n_genes: int) -> NDArray:
    """Positions, in order, of the genes with the largest ``|t|`` of any class."""
    if n_genes < 1:
        raise ValueError(f"n_genes={n_genes}: use a count of at least 1")
    best = np.abs(marker_statistics(X, y)).max(axis=0)
    return np.sort(np.argsort(-best, kind="stable")[:n_genes])


def _welch(X: Any, inside: NDArray) -> NDArray:
    """t of the samples inside against the others, of every gene."""
    means, variances = [], []
    for rows in (inside, ~inside):
        part = X[np.flatnonzero(rows)]
        moments = cell_moments(part, np.zeros(part.shape[0], dtype=int), 1)
        means.append(moments.means[0])
        variances.append(moments.within / (part.shape[0] - 1) / part.shape[0])
    error = np.sqrt(variances[0] + variances[1])
    t = np.zeros_like(error)
    return np.divide(means[0] - means[1], error, out=t, where=error > 0)


def _logarithms(X: Any) -> Any:
    """Values whose differences compare between genes."""
    values = X.data if hasattr(X, "indptr") else np.asarray(X)
    if is_counts(X):
        return LogCPM(1e4).fit_transform(X)
    if values.size and values.min() >= 0 and values.max() > _LINEAR_ABOVE:
        return X.log1p() if hasattr(X, "log1p") else np.log1p(X)
    return X
