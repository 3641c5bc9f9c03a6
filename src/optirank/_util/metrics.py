"""Balanced accuracy, standard errors and intervals, correlations."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

_Z = 1.959964  # standard deviations of a 95 % interval


def balanced_accuracy(
    truth: NDArray, labels: NDArray, classes: NDArray | None = None
) -> float:
    """Mean over the classes that are there of the share that got its label.

    NaN where there are no samples, or none of one of the ``classes``, where these are
    given. scikit-learn's ``balanced_accuracy_score`` warns where labels are given that
    ``truth`` lacks, which is usual for the small parts of a cross-validation.
    """
    present = np.unique(truth)
    if not len(present) or (classes is not None and len(present) < len(classes)):
        return float("nan")
    return float(np.mean([(labels[truth == name] == name).mean() for name in present]))


def standard_error(scores: NDArray) -> NDArray:
    """Standard error of the mean over folds (last axis), 0 with a single fold."""
    n_folds = scores.shape[-1]
    if n_folds < 2:
        return np.zeros(scores.shape[:-1])
    return scores.std(axis=-1, ddof=1) / np.sqrt(n_folds)


def balanced(right: ArrayLike, sizes: ArrayLike) -> tuple[float, tuple[float, float]]:
    """Mean sensitivity and its 95 % interval."""
    right, sizes = np.asarray(right), np.asarray(sizes)
    there = sizes > 0
    if not there.any():
        return float("nan"), (float("nan"), float("nan"))
    r, n = right[there], sizes[there]
    mean = float((r / n).mean())
    half = _Z * error_of_counts(r, n)
    return mean, (max(0.0, mean - half), min(1.0, mean + half))


def error_of_counts(right: NDArray, sizes: NDArray) -> float:
    """The standard error of the mean sensitivity.

    The variance of a class of r right labels among n samples is ``p (1 - p) / n`` with
    ``p = (r + 1) / (n + 2)``, so that a class without an error is not certain.
    """
    p = (right + 1) / (sizes + 2)
    return float(np.sqrt((p * (1 - p) / sizes).sum())) / max(1, len(sizes))


def wilson(share: ArrayLike, n: ArrayLike) -> tuple[NDArray, NDArray]:
    """Wilson's 95 % interval of a share of n samples; NaN where n is 0."""
    share, n = np.asarray(share, dtype=float), np.asarray(n, dtype=float)
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
        half = (
            _Z / (1 + _Z**2 / n) * np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
        )
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def row_correlations(a: NDArray, b: NDArray) -> NDArray[np.float64]:
    """The correlation of each row of a with the same row of b; 0 where one is
    constant.
    """
    a = a - a.mean(axis=1, keepdims=True)
    b = b - b.mean(axis=1, keepdims=True)
    size = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    product = (a * b).sum(axis=1)
    return np.divide(product, size, out=np.zeros(len(a)), where=size > 0)
