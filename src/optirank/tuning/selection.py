"""Scores of settings from decision scores, and the choice of one setting."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import balanced_accuracy_score

from optirank._util.metrics import balanced_accuracy, standard_error
from optirank.ranks.scoring import best_class, probabilities
from optirank.solver.constants import DEFAULTS
from optirank.tuning.search import UnitResult

RULES = ("one_se", "best")
TRANSFER = "transfer"  # the rule of `select_for_transfer`, with simulated platforms
# A setting must beat the default by more: about the noise of held-out accuracies
MARGIN = 0.02
_LIMITS = (("l1", 0), ("l2", 0), ("n_reference", 1))  # nothing is beyond these
DIGITS = 12  # to which scores are equal: the order of the folds must not decide


class FixedScores(ClassifierMixin, BaseEstimator):
    """A classifier whose decision scores are known already, to be given to
    any scorer.
    """

    def __init__(self, classes_: NDArray, scores: NDArray) -> None:
        self.classes_ = classes_
        self.scores = scores  # samples x problems

    def decision_function(self, X: object) -> NDArray:
        """The known scores."""
        return self.scores[:, 0] if self.scores.shape[1] == 1 else self.scores

    def predict(self, X: object) -> NDArray:
        """The class of the highest score."""
        return self.classes_[best_class(self.scores)]

    def predict_proba(self, X: object) -> NDArray:
        """Probabilities from the scores."""
        return probabilities(self.decision_function(X))


def score_table(
    results: Sequence[UnitResult],
    truths: Sequence[NDArray],
    classes: NDArray,
    view: str,
    scorer,
) -> NDArray:
    """Scores of all settings by a scorer of scikit-learn, settings x units.

    Where a scorer cannot say, such as an area under a curve without one of the classes,
    the score is nan.
    """
    failure = None
    # The checks of the default scorer would take most of the time of a grid
    default = getattr(scorer, "_score_func", None) is balanced_accuracy_score
    plain = default and not getattr(scorer, "_kwargs", None)
    table = np.empty((len(results[0].params), len(results)))
    for k, (result, truth) in enumerate(zip(results, truths, strict=True)):
        for i in range(len(table)):
            model = FixedScores(classes, result.decision(i, view))
            if plain:
                table[i, k] = balanced_accuracy(truth, model.predict(None))
                continue
            with warnings.catch_warnings():  # a validation part may lack a class
                warnings.simplefilter("ignore", UserWarning)
                try:
                    table[i, k] = scorer(model, np.zeros((len(truth), 1)), truth)
                except ValueError as error:
                    table[i, k] = np.nan
                    failure = error
    if failure is not None and not np.isfinite(table).any():
        raise failure
    return table


def scored_folds(scores: NDArray) -> NDArray:
    """Mask of the folds in which some setting has a score; an area needs both
    classes in one.
    """
    return np.asarray(np.isfinite(scores).any(axis=0))


def select(scores: NDArray, n_genes: NDArray, rule: str = "one_se") -> int:
    """The setting chosen from scores and numbers of genes, both settings x folds.

    "best" takes the highest mean score, of equal ones that with the fewest genes.
    "one_se", the one-standard-error rule, takes among the settings whose mean is at
    least the best mean minus its standard error the one with the fewest genes (mean
    over folds); of equal ones the highest score, then the lowest standard error, then
    the first.
    """
    error, genes = standard_error(scores), n_genes.mean(axis=1)
    mean = _comparable(scores.mean(axis=1))
    best = np.lexsort((error, genes, -mean))[0]
    if rule == "best":
        return int(best)
    allowed = np.flatnonzero(mean >= np.round(mean[best] - error[best], DIGITS))
    order = np.lexsort((error[allowed], -mean[allowed], genes[allowed]))
    return int(allowed[order[0]])


def select_for_transfer(
    plain: NDArray,
    shifted: NDArray,
    n_genes: NDArray,
    *,
    default: int | None,
    real: bool = False,
) -> int:
    """The setting that should work best on another platform, by its `transfer_scores`.

    ``plain`` are scores of held-out samples (settings x folds), ``shifted`` those on
    simulated platforms (settings x folds x platforms). Held-out scores of one platform
    differ by less than their noise between settings that do very differently on
    another: so the ``default``, which did best over real pairs of platforms, is left
    only for one that is better by more than ``MARGIN``.
    """
    score = _comparable(transfer_scores(plain, shifted, real=real))
    best = int(np.lexsort((n_genes.mean(axis=1), -score))[0])
    if default is not None and score[best] <= score[default] + MARGIN:
        return default
    return best


def transfer_scores(plain: NDArray, shifted: NDArray, *, real: bool = False) -> NDArray:
    """What `select_for_transfer` judges by: the plain score counts once, the platforms
    twice.

    Where folds leave whole sources out (``real`` shifts), or without platforms, it is
    the plain score. Folds that have no score do not count; NaN where none has.
    """
    there = scored_folds(plain)
    if not there.any():
        return np.full(len(plain), np.nan)
    score = plain[:, there].mean(axis=1)
    if real or not shifted.shape[2]:
        return score
    return (score + 2 * shifted[:, there].mean(axis=(1, 2))) / 3


def default_setting(params: Sequence[dict]) -> int | None:
    """The setting to beat: the default of the estimators, as far as a setting has its
    parameters.

    None where the grid does not have it.
    """
    known = [k for k, values in enumerate(params) if values.items() <= DEFAULTS.items()]
    return known[0] if known else None


def edges_of_grid(params: Sequence[dict], scores: NDArray) -> list[str]:
    """What to say of the best setting where a value of it ends its part of the grid.

    A part of fewer than three values, and a limit that cannot be passed (l1 = 0, all
    genes or one gene), are left out, and so is a value whose score another value
    reaches too.
    """
    finite = np.where(np.isfinite(scores), scores, -np.inf).round(DIGITS)
    best = params[int(np.argmax(finite))]
    notes = []
    for name, value in best.items():
        values = sorted({setting[name] for setting in params})
        limit = (name, value) in _LIMITS
        if len(values) < 3 or limit or value not in (values[0], values[-1]):
            continue
        elsewhere = [
            score
            for setting, score in zip(params, finite, strict=True)
            if setting[name] != value
        ]
        if max(elsewhere) < finite.max():
            which = "smallest" if value == values[0] else "largest"
            notes.append(
                f"the best setting has {name}={value:g}, the {which} of the grid: "
                f"{'smaller' if which == 'smallest' else 'larger'} values may be "
                f"better, give them in {name}s"
            )
    return notes


def _comparable(scores: NDArray) -> NDArray:
    """Scores rounded, minus infinity where there is none; an error where no setting
    has one.
    """
    if not np.isfinite(scores).any():
        raise ValueError(
            "no setting has a finite mean score: check the scorer and the folds"
        )
    return np.where(np.isfinite(scores), scores.round(DIGITS), -np.inf)
