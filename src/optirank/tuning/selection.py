"""Choosing a setting from cross-validated scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

RULES = ("one_se", "best")
TRANSFER = "transfer"  # the rule of `select_for_transfer`, which needs simulated platforms too
_DIGITS = 12  # to which scores are equal: the order of the folds must not decide
_DECIDING = 1.5  # samples of the rarest class that must not decide
MARGIN = 0.02  # of a score, by which a setting must beat the default to be chosen for transfer


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


def optimism(scores: NDArray, n_genes: NDArray, rule: str = "one_se") -> float:
    """By how much the chosen setting's mean score is flattered by the choice.

    What is lost when the setting of each fold is chosen by the other folds; 0 with a single fold.
    """
    chosen = select(scores, n_genes, rule)
    every = np.arange(scores.shape[1])
    others = [np.delete(every, k) for k in every] if len(every) > 1 else [every]
    checked = [
        scores[select(scores[:, rest], n_genes[:, rest], rule), k] for k, rest in enumerate(others)
    ]
    return float(scores[chosen].mean() - np.mean(checked))


def settings_table(
    params: Sequence[dict], scores: NDArray, n_genes: NDArray, selected: int
) -> pd.DataFrame:
    """One line per setting: ``n_genes``, ``score``, ``standard_error``, ``selected``, ``best``.

    The columns after these are the setting's parameters. ``scores`` and ``n_genes`` are settings x
    folds.
    """
    best = select(scores, n_genes, "best")
    table = pd.DataFrame(list(params))
    table.insert(0, "n_genes", n_genes.mean(axis=1))
    table.insert(1, "score", scores.mean(axis=1))
    error = standard_error(scores) if scores.shape[1] > 1 else np.nan  # one fold tells of none
    table.insert(2, "standard_error", error)
    table.insert(3, "selected", np.arange(len(table)) == selected)
    table.insert(4, "best", np.arange(len(table)) == best)
    return table


def select_for_transfer(
    plain: NDArray,
    shifted: NDArray,
    n_genes: NDArray,
    *,
    default: int | None,
    real: bool = False,
    prefer: str = "accuracy",
    margin: float = MARGIN,
) -> int:
    """The setting that should carry over best, from scores on held-out samples.

    Held-out scores of one platform differ by less than their noise between settings that do very
    differently on another. So a setting is judged by its scores on held-out samples as they are
    (``plain``, settings x folds) and on simulated platforms (``shifted``, settings x folds x
    platforms; see `transfer_scores`), and the ``default``, which did best on average over real
    pairs of platforms, is left only for one that is better by more than ``margin`` (None: the best
    is taken; see `clear_margin`). Where the folds leave whole sources out (``real``), their shifts
    are real ones: plain scores decide.

    ``prefer="genes"`` takes the fewest genes among the settings that are at most MARGIN below the
    one that ``"accuracy"`` would choose.
    """
    score = transfer_scores(plain, shifted, real=real)
    genes = n_genes.mean(axis=1)
    if not np.isfinite(score).any():
        raise ValueError("no setting has a finite mean score: check the scorer and the folds")
    score = np.where(np.isfinite(score), score.round(_DIGITS), -np.inf)
    best = int(np.lexsort((genes, -score))[0])
    chosen = best
    if default is not None and score[best] <= score[default] + margin:
        chosen = default
    if prefer == "accuracy":
        return chosen
    allowed = np.flatnonzero(score >= np.round(score[chosen] - MARGIN, _DIGITS))
    return int(allowed[np.lexsort((-score[allowed], genes[allowed]))[0]])


def clear_margin(truths: Sequence[NDArray]) -> float:
    """By how much a setting must be better than the default: more where classes are rare.

    A single sample must not decide. In a fold of K classes, a sample of one that has n of them
    there counts 1 / (K n) in the fold's balanced accuracy, and a share of that in the mean over the
    folds. The margin is at least one and a half times the most that a sample counts. ``truths`` are
    the labels of the held-out samples of each fold.
    """
    counts = [np.unique(truth, return_counts=True)[1] for truth in truths]
    one = max((1.0 / (len(found) * found.min()) for found in counts if len(found)), default=0.0)
    return max(MARGIN, _DECIDING * one / max(1, len(counts)))


def untuned(params: Sequence[dict]) -> int | None:
    """The setting to beat: n_reference=0.2, l1=1e-3, l2=1e-3, as far as a setting has these.

    None where the grid does not have it.
    """
    wanted = {"n_reference": 0.2, "l1": 1e-3, "l2": 1e-3, "side": "best"}
    known = [k for k, one in enumerate(params) if one.items() <= wanted.items()]
    return known[0] if known else None


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
