"""Balanced accuracy, standard errors and intervals."""

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


def predictive_value(
    called: NDArray, sizes: NDArray, shares: NDArray, wanted: NDArray
) -> tuple[float, float, float]:
    """Which share of the samples with a label is wanted, and its 95 % interval.

    Of ``sizes[j]`` samples of class j, ``called[j]`` got the label. Where the classes
    have the ``shares``, the rates of wanted and unwanted labels are ``A`` and ``B``,
    sums of ``shares[j] * called[j] / sizes[j]`` over the classes that are ``wanted``
    and those that are not, and the value is ``A / (A + B)``. The intervals of all
    shares (Wilson's) are carried through the sums and through the ratio ``B / A`` by
    the method of variance estimates recovery (MOVER; Donner and Zou 2012), so that no
    false label among few samples does not make a value of 100 % certain. Of a class
    with a share and no samples nothing is known: it counts in the interval alone.
    """
    right, right_low, right_high = _rate(called, sizes, shares, wanted)
    false, false_low, false_high = _rate(called, sizes, shares, ~wanted)
    if right + false == 0:
        return float("nan"), float("nan"), float("nan")
    # Limits of B / A. Each root is of two squares, of which the second is smaller
    cross = right * false
    of_low = false_low * (2 * false - false_low)
    of_high = false_high * (2 * false - false_high)
    root = np.sqrt(max(cross**2 - of_low * right_high * (2 * right - right_high), 0.0))
    below = cross + root
    ratio_low = of_low / below if below > 0 else 0.0
    scale = right_low * (2 * right - right_low)
    root = np.sqrt(max(cross**2 - of_high * scale, 0.0))
    ratio_high = (cross + root) / scale if scale > 0 else float("inf")
    value = right / (right + false)
    low, high = 1.0 / (1.0 + ratio_high), 1.0 / (1.0 + ratio_low)
    return float(value), min(float(low), value), max(float(high), value)


def _rate(
    called: NDArray, sizes: NDArray, shares: NDArray, among: NDArray
) -> tuple[float, float, float]:
    """The share of all samples that are of some classes and got the label, and its
    95 % interval.
    """
    there = among & (sizes > 0)
    rates = called[there] / sizes[there]
    low, high = wilson(rates, sizes[there])
    weights = shares[there]
    rate = float(weights @ rates)
    unknown = float(shares[among & (sizes == 0)].sum())
    below = float(np.sqrt((weights**2 * (rates - low) ** 2).sum()))
    above = float(np.sqrt((weights**2 * (high - rates) ** 2).sum()))
    return rate, max(0.0, rate - below), rate + above + unknown
