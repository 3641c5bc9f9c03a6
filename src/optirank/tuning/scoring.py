"""Scores of settings: balanced accuracy, or any scorer of scikit-learn, from decision scores."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import balanced_accuracy_score

from optirank.ranks.scoring import best_class, probabilities

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.tuning.search import UnitResult


def balanced_accuracy(truth: NDArray, labels: NDArray, classes: NDArray | None = None) -> float:
    """Mean over the classes that are there of the share that got its label.

    NaN where there are no samples, or none of one of the ``classes``, where these are given.
    scikit-learn's ``balanced_accuracy_score`` warns where labels are given that ``truth`` lacks,
    which is usual for the small parts of a cross-validation.
    """
    present = np.unique(truth)
    if not len(present) or (classes is not None and len(present) < len(classes)):
        return float("nan")
    return float(np.mean([(labels[truth == one] == one).mean() for one in present]))


def predicted(decisions: NDArray, classes: NDArray) -> NDArray:
    """Labels of decision scores: one column for two classes, one per class for more."""
    return classes[best_class(decisions[:, 0] if decisions.shape[1] == 1 else decisions)]


class FixedScores(ClassifierMixin, BaseEstimator):
    """A classifier whose decision scores are known already, to be given to any scorer."""

    def __init__(self, classes: NDArray, scores: NDArray) -> None:
        self.classes = classes
        self.scores = scores  # samples x problems

    @property
    def classes_(self) -> NDArray:
        """The classes."""
        return self.classes

    def decision_function(self, X: object) -> NDArray:
        """The known scores."""
        return self.scores[:, 0] if self.scores.shape[1] == 1 else self.scores

    def predict(self, X: object) -> NDArray:
        """The class of the highest score."""
        return predicted(self.scores, self.classes)

    def predict_proba(self, X: object) -> NDArray:
        """Probabilities from the scores."""
        return probabilities(self.decision_function(X))

    def __sklearn_is_fitted__(self) -> bool:
        return True


def score_table(
    results: Sequence[UnitResult],
    truths: Sequence[NDArray],
    classes: NDArray,
    view: str,
    scorer,
) -> NDArray:
    """Scores of all settings by a scorer of scikit-learn, settings x units.

    Where a scorer cannot say, such as an area under a curve without one of the classes, the score
    is nan.
    """
    failure = None
    plain = _is_balanced_accuracy(scorer)
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
                    table[i, k], failure = np.nan, error
    if failure is not None and not np.isfinite(table).any():
        raise failure
    return table


def _is_balanced_accuracy(scorer: object) -> bool:
    """Whether a scorer is the default one, whose checks would take most of the time of a grid."""
    given = getattr(scorer, "_kwargs", None)
    return getattr(scorer, "_score_func", None) is balanced_accuracy_score and not given
