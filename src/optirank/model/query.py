"""A query beside the training data: where its classes lie, and what its values look like.

On another platform the order of the samples by a class's score mostly survives, but the scores
shift. The shifts are estimated from the scores of the whole unlabelled query, in two steps:

1. The prevalences ``pi`` of the classes by expectation and maximisation on the class probabilities
   ``p_ik`` of the samples, shrunk halfway to equal ones in every step:
   ``pi_k <- (1/2) mean_i (p_ik pi_k / sum_m p_im pi_m) + 1/(2 K)``.
2. Intercepts are shifted until the mean probability of each class equals its prevalence.

The probabilities are the softmax of the scores (the logistic function for two classes), without a
calibration: soft probabilities make it safe, as a query of one class alone then hardly changes.

Ranks within a sample do not change under any rising function of its values, so counts, CPM and
log(CPM + 1) are all the same to a model on ranks. They do change when each gene is scaled or
centred, smoothed or imputed, and zeros are ties. A model stores shares of its training data, over
the genes of its panel, in ``training_summary_["values"]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optirank.ranks.scoring import best_class, probabilities

_SHRINK = 0.5  # halfway to equal prevalences: 0.2 harms queries of equal ones, 0.8 of one class
_STEPS = 100  # each halves what is left of the way, or is a Newton step: both end long before
_TOLERANCE = 1e-9  # of shares and shifts: far below what moves a label
_SCALED = (
    "ranks within a sample change when genes are scaled or centred: if they were, give counts or "
    "their logarithm (layer=, --layer)"
)


@dataclass(frozen=True)
class Adaptation:
    """Shifts of the intercepts of a model for one query."""

    offsets: NDArray  # (scores,): added to the scores, one for two classes, else one per class
    prevalences: NDArray  # (classes,): estimated, halfway to equal ones
    n_changed: int  # labels that change
    n_samples: int

    def apply(self, scores: NDArray) -> NDArray:
        """The adapted scores, (n,) for two classes and (n, classes) for more."""
        return scores + self.offsets

    def note(self, adapted: bool) -> str | None:
        """What adapting did, or that it may help; None where there is nothing to say."""
        n, changed = self.n_samples, self.n_changed
        if adapted:
            return f"adapting to the query changed {changed} of {n} labels"
        # Fewer than 5 %, or 5 of a small query, also change on related platforms and by chance
        if changed < max(5, 0.05 * n):
            return None
        return (
            f"the classes may be shifted in this query: adapting to it would change {changed} of "
            f"{n} labels (--adapt, adapt=True)"
        )


def match_prevalences(scores: ArrayLike) -> Adaptation:
    """Estimate how far the scores of a query are shifted.

    Parameters
    ----------
    scores : of all samples of the query, (n,) for two classes, (n, classes) for more, as the
        model's ``decision_function`` has them.
    """
    scores = np.asarray(scores, dtype=float)
    z = np.column_stack([np.zeros(len(scores)), scores]) if scores.ndim == 1 else scores
    n, n_classes = z.shape
    equal = np.full(n_classes, 1.0 / n_classes)
    if not n:
        return Adaptation(np.zeros(1 if scores.ndim == 1 else n_classes), equal, 0, 0)
    if not np.isfinite(z).all():
        raise ValueError(
            "scores have NaN or infinite values: give those of samples with ranks"
        )
    p, pi = probabilities(z, offset=-np.inf), equal
    for _ in range(_STEPS):
        before = pi
        posterior = pi * ((1.0 / (p @ pi)) @ p) / n
        pi = (1.0 - _SHRINK) * posterior + _SHRINK * equal
        if np.abs(pi - before).max() < _TOLERANCE:
            break
    shifts = _matching_shifts(z, pi)
    offsets = shifts[1:] - shifts[0] if scores.ndim == 1 else shifts
    changed = best_class(scores + offsets) != best_class(scores)
    return Adaptation(offsets, pi, int(np.count_nonzero(changed)), n)


def _matching_shifts(z: NDArray, pi: NDArray) -> NDArray:
    """Shifts o of the classes' scores, of mean 0, with ``mean_i softmax(z_i + o) = pi``.

    They minimise the convex ``mean_i log sum_k exp(z_ik + o_k) - pi . o``, by Newton steps that are
    halved until it falls.
    """

    def mismatch(o: NDArray) -> float:
        top = (z + o).max(axis=1)
        sums = np.exp(z + o - top[:, None]).sum(axis=1)
        return float(np.mean(top + np.log(sums)) - pi @ o)

    o = np.zeros(len(pi))
    value = mismatch(o)
    for _ in range(_STEPS):
        p = probabilities(z + o, offset=-np.inf)
        gradient = p.mean(axis=0) - pi
        if np.abs(gradient).max() < _TOLERANCE:
            break
        hessian = np.diag(p.mean(axis=0)) - p.T @ p / len(p)
        ridge = _TOLERANCE * np.eye(len(pi)) + 1.0 / len(
            pi
        )  # shifts of all classes do nothing
        step = np.linalg.solve(hessian + ridge, gradient)
        while (new := mismatch(o - step)) > value and np.abs(step).max() > _TOLERANCE:
            step /= 2.0
        o, value = o - step, min(new, value)
    return o - o.mean()


@dataclass
class ValueSummary:
    """Zeros, negative values and the scale of data, added up block by block."""

    n: int = 0
    n_zero: int = 0
    n_negative: int = 0
    scale: str | None = None  # of the first block with values: counts, linear or log

    def add(self, X: Any) -> None:
        """Count the values of a block, dense or sparse."""
        values = X.data if hasattr(X, "indptr") else np.asarray(X)
        n = int(np.prod(X.shape))
        self.n += n
        self.n_zero += n - int(np.count_nonzero(values))
        self.n_negative += int(np.count_nonzero(values < 0))
        if self.scale is None and values.size:
            from optirank._util.scales import value_scale  # scipy loads

            self.scale = value_scale(X)

    @property
    def zeros(self) -> float:
        """Share of the values that are zero."""
        return self.n_zero / max(1, self.n)

    @property
    def negative(self) -> float:
        """Share of the values that are negative."""
        return self.n_negative / max(1, self.n)

    def to_plain(self) -> dict[str, Any]:
        """As ``training_summary_["values"]`` has it."""
        shares = {"zeros": round(self.zeros, 6), "negative": round(self.negative, 6)}
        return {"scale": self.scale, **shares}

    def notes(self, trained: Any) -> list[str]:
        """How these values differ from those of the training data, in ways that matter.

        ``trained`` is ``training_summary_["values"]``; None or another form gives no notes.
        """
        shares = (
            [trained.get(key) for key in ("zeros", "negative")] if trained else [None]
        )
        if not self.n or not all(isinstance(share, float | int) for share in shares):
            return []
        zeros, negative = shares
        notes = []
        if self.n_negative and not negative:
            notes.append(
                f"{self.negative:.1%} of the values are negative, and none were in the training "
                f"data: {_SCALED}"
            )
        if not self.n_zero and zeros >= 0.1:
            notes.append(
                f"no value is zero, and {zeros:.0%} were in the training data: that is usual for a "
                "microarray; smoothed or imputed values would change ranks"
            )
        elif (
            self.zeros - zeros > 0.35
        ):  # a third of the panel more is tied: a guess, not measured
            notes.append(
                f"{self.zeros:.0%} of the values are zero, and {zeros:.0%} were in the training "
                "data: zeros are ties, so labels are less certain; a larger panel may do better"
            )
        return notes
