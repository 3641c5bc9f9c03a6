"""Choosing a setting from cross-validated scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

RULES = ("one_se", "best")
_DIGITS = 12  # to which scores are equal: the order of the folds must not decide


def standard_error(scores: NDArray) -> NDArray:
    """Standard error of the mean over folds (last axis), 0 with a single fold."""
    n_folds = scores.shape[-1]
    if n_folds < 2:
        return np.zeros(scores.shape[:-1])
    return scores.std(axis=-1, ddof=1) / np.sqrt(n_folds)


def scored_folds(scores: NDArray) -> NDArray:
    """Mask of the folds in which some setting has a score (settings x folds).

    A scorer may have nothing to say of a fold, such as an area under the curve where the validation
    part lacks a class.
    """
    return np.isfinite(scores).any(axis=0)


def select(scores: NDArray, n_genes: NDArray, rule: str = "one_se") -> int:
    """The setting chosen from scores and numbers of genes, both settings x folds.

    "best" takes the highest mean score, of equal ones that with the fewest genes. "one_se", the
    one-standard-error rule, takes among the settings whose mean is at least the best mean minus its
    standard error the one with the fewest genes (mean over folds); of equal ones the highest
    score, then the lowest standard error, then the first.
    """
    mean, error, genes = scores.mean(axis=1), standard_error(scores), n_genes.mean(axis=1)
    if not np.isfinite(mean).any():
        raise ValueError("no setting has a finite mean score: check the scorer and the folds")
    mean = np.where(np.isfinite(mean), mean.round(_DIGITS), -np.inf)
    best = np.lexsort((error, genes, -mean))[0]
    if rule == "best":
        return int(best)
    allowed = np.flatnonzero(mean >= np.round(mean[best] - error[best], _DIGITS))
    order = np.lexsort((error[allowed], -mean[allowed], genes[allowed]))
    return int(allowed[order[0]])
