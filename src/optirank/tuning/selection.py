"""Choosing a setting from cross-validated scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from optirank.solver.constants import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

RULES = ("one_se", "best")
TRANSFER = "transfer"  # the rule of `select_for_transfer`, which needs simulated platforms too
MARGIN = 0.02  # a setting must beat the default by more: about the noise of held-out accuracies
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
    error, genes = standard_error(scores), n_genes.mean(axis=1)
    mean = _comparable(scores.mean(axis=1))
    best = np.lexsort((error, genes, -mean))[0]
    if rule == "best":
        return int(best)
    allowed = np.flatnonzero(mean >= np.round(mean[best] - error[best], _DIGITS))
    order = np.lexsort((error[allowed], -mean[allowed], genes[allowed]))
    return int(allowed[order[0]])


def select_for_transfer(
    plain: NDArray, shifted: NDArray, n_genes: NDArray, *, default: int | None, real: bool = False
) -> int:
    """The setting that should work best on another platform, from scores on held-out samples.

    Held-out scores of one platform differ by less than their noise between settings that do very
    differently on another. So a setting is judged by its scores on held-out samples as they are
    (``plain``, settings x folds) and on simulated platforms (``shifted``, settings x folds x
    platforms; see `transfer_scores`), and the ``default`` setting, which did best on average over
    real pairs of platforms, is left only for one that is better by more than ``MARGIN``. Where the
    folds leave whole sources out (``real``), their shifts are real ones: plain scores decide.
    """
    score = _comparable(transfer_scores(plain, shifted, real=real))
    best = int(np.lexsort((n_genes.mean(axis=1), -score))[0])
    if default is not None and score[best] <= score[default] + MARGIN:
        return default
    return best


def transfer_scores(plain: NDArray, shifted: NDArray, *, real: bool = False) -> NDArray:
    """What `select_for_transfer` judges by: the plain score counts once, the platforms twice.

    With ``real`` shifts, or without platforms, it is the plain score. Folds that have no score do
    not count; NaN where none has.
    """
    there = scored_folds(plain)
    if not there.any():
        return np.full(len(plain), np.nan)
    score = plain[:, there].mean(axis=1)
    if real or not shifted.shape[2]:
        return score
    return (score + 2 * shifted[:, there].mean(axis=(1, 2))) / 3


def default_setting(params: Sequence[dict]) -> int | None:
    """The setting to beat: the default of the estimators, as far as a setting has its parameters.

    None where the grid does not have it.
    """
    known = [k for k, one in enumerate(params) if one.items() <= DEFAULTS.items()]
    return known[0] if known else None


def settings_table(
    params: Sequence[dict], scores: NDArray, n_genes: NDArray, selected: int
) -> pd.DataFrame:
    """One line per setting: ``n_genes``, ``score``, ``standard_error``, ``selected``, ``best``.

    The columns after these are the setting's parameters. ``scores`` and ``n_genes`` are settings x
    folds.
    """
    numbers = np.arange(len(params))
    error = standard_error(scores) if scores.shape[1] > 1 else np.nan  # one fold tells of none
    columns = {
        "n_genes": n_genes.mean(axis=1),
        "score": scores.mean(axis=1),
        "standard_error": error,
        "selected": numbers == selected,
        "best": numbers == select(scores, n_genes, "best"),
    }
    return pd.concat([pd.DataFrame(columns), pd.DataFrame(list(params))], axis=1)


def _comparable(scores: NDArray) -> NDArray:
    """Scores rounded, minus infinity where there is none; an error where no setting has one."""
    if not np.isfinite(scores).any():
        raise ValueError("no setting has a finite mean score: check the scorer and the folds")
    return np.where(np.isfinite(scores), scores.round(_DIGITS), -np.inf)
