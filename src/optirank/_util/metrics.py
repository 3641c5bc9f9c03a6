"""Balanced accuracy, the standard error of a mean over folds, shares as text."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


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


NO_NUMBER = "–"


def in_percent(share: float | None, digits: int = 1) -> str:
    """A share in percent without the sign, such as 91.3; a dash where there is none."""
    if share is None or not np.isfinite(share):
        return NO_NUMBER
    return f"{100 * share:.{digits}f}"


def percent(share: float | None) -> str:
    """A share as text, such as 91.3 %; a dash where there is none."""
    text = in_percent(share)
    return text if text == NO_NUMBER else f"{text} %"
