"""Probabilities that mean something: calibration on held-out scores, and prior shares of classes.

The label of a sample is the class of its highest score, everywhere. A calibration says how probable
that is, by one rising function of the scores that all classes share (see
:func:`optirank.ranks.scoring.probabilities`), so it never changes the order of the classes. It is
fitted on scores of samples that the model was not trained on, each class counting the same, so the
probabilities are those of a query in which the classes are equally frequent. A model stores it as
``calibration_``.

With other shares ``pi_k`` of the classes the probabilities become ``p_k pi_k / sum_m p_m pi_m``
(Bayes' rule), and the label is then the most probable class: a chosen prior may move labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.model.linear import carried, linear_model
from optirank.ranks.scoring import by_class, probabilities

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

PRIORS = ("balanced", "training")
Prior = str | Mapping[Any, float]
_SLOPES = (1e-3, 1e3)  # of scores divided by their spread: flat, and a step
_OFFSET = 30.0  # beyond, the function is a power or constant to all digits


@dataclass(frozen=True)
class Calibration:
    """Probabilities ``p_k = g(z_k) / sum_m g(z_m)`` with ``g(z) = sigmoid(slope z + offset)``."""

    slope: float
    offset: float
    n_samples: int  # held-out samples that it was fitted on

    def __post_init__(self) -> None:
        if not (0 < self.slope < np.inf and abs(self.offset) < np.inf):
            raise ValueError(f"the calibration has slope {self.slope} and offset {self.offset}")

    def probabilities(self, scores: ArrayLike) -> NDArray:
        """Probabilities (n, classes) of scores, (n,) for two classes and (n, classes) for more."""
        return probabilities(np.asarray(scores, dtype=float), self.slope, self.offset)


def fit_calibration(scores: ArrayLike, y: ArrayLike, classes: ArrayLike) -> Calibration:
    """Fit a calibration on held-out scores, by the log loss of balanced classes.

    The objective is ``-sum_i v_i sum_k t_ik log p_k(z_i)`` with ``v_i = 1 / n_k`` for a sample of a
    class with n_k samples; ``t`` is ``(n + 1) / (n + 2)`` at that class, with n all samples, and
    the rest is shared by the others, so that it stays finite where no held-out sample is wrong.

    Parameters
    ----------
    scores : the model's decision function on samples it was not fitted on: (n,) for two classes,
        (n, classes) for more.
    y : their labels.
    classes : the model's ``classes_``.
    """
    from scipy.optimize import minimize

    classes, y = np.asarray(classes), np.asarray(y)
    z = by_class(np.asarray(scores, dtype=float))
    if z.shape != (len(y), len(classes)):
        raise ValueError(
            f"scores of shape {np.shape(scores)} for {len(y)} labels of {len(classes)} classes: "
            "one row per sample and, beyond two classes, one column per class are needed"
        )
    known = y[:, None] == classes
    counts = known.sum(axis=0)
    if not known.any(axis=1).all():
        strange = y[~known.any(axis=1)][0]
        raise ValueError(f"a held-out sample is of class {strange!s}, which the model lacks")
    if np.count_nonzero(counts) < 2:
        only = f"all {len(y)} held-out samples are of class {classes[counts.argmax()]}"
        raise ValueError(
            f"{only if len(y) else 'no sample was held out'}: calibration needs held-out samples "
            "of at least two classes"
        )
    weights = 1.0 / (counts[known.argmax(axis=1)] * np.count_nonzero(counts))
    wrong = 1.0 / (len(y) + 2.0)
    target = np.where(known, 1.0 - wrong, wrong / (len(classes) - 1))
    scale = float(np.abs(z).mean()) or 1.0

    def loss(x: NDArray) -> tuple[float, NDArray]:
        slope, offset = np.exp(x[0]) / scale, x[1]
        p = probabilities(z, slope, offset)
        u = slope * z + offset
        value = -(weights @ (target * np.log(np.maximum(p, 1e-300))).sum(axis=1))
        slopes = weights[:, None] * (p - target) / (1.0 + np.exp(np.minimum(u, 700.0)))
        return value, np.array([slope * (slopes * z).sum(), slopes.sum()])

    # The loss has a flat end on each side in the offset: start between and towards the softmax
    bounds = [tuple(np.log(_SLOPES)), (-_OFFSET, _OFFSET)]
    starts = [(np.clip(np.log(scale), *bounds[0]), 0.0), (0.0, 0.0), (0.0, -3.0)]
    found = [minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds) for start in starts]
    log_slope, offset = min(found, key=lambda one: one.fun).x
    return Calibration(float(np.exp(log_slope) / scale), float(offset), len(y))


def class_shares(model: Any, prior: Prior) -> dict[Any, float] | None:
    """The share of each class of a model; None where all count the same.

    Parameters
    ----------
    model : a fitted linear classifier on ranks.
    prior : ``"balanced"``; ``"training"``, the shares of the classes in the training data; or a
        mapping from every class (itself, or as text) to its share, or to a number of samples.
    """
    classes = linear_model(model).classes_.tolist()
    if isinstance(prior, str):
        if prior == "balanced":
            return None
        if prior != "training":
            raise ValueError(
                f"prior={prior!r} is not known: use 'balanced', 'training' or a mapping of classes "
                "to shares"
            )
        prior = _training_counts(model, set(map(str, classes)))
    given = {str(label): share for label, share in prior.items()}
    if missing := [label for label in classes if str(label) not in given]:
        raise ValueError(
            f"the prior has no share for {len(missing)} of the {len(classes)} classes, such as "
            f"{missing[0]!r}: give one for every class of the model, 0 for those that are absent"
        )
    if unknown := sorted(set(given) - set(map(str, classes))):
        raise ValueError(
            f"the prior has a share for {unknown[0]!r}, which is not a class of the model: its "
            f"classes are {classes}"
        )
    shares = {label: _number(label, given[str(label)]) for label in classes}
    total = sum(shares.values())
    if total <= 0:
        raise ValueError("the shares of the prior are all 0: give some class a positive one")
    return {label: share / total for label, share in shares.items()}


def with_shares(probabilities: NDArray, shares: NDArray) -> NDArray:
    """Balanced probabilities (n, classes) under other shares of the classes."""
    each = probabilities * shares
    total = each.sum(axis=1, keepdims=True)
    equal = np.tile(shares / shares.sum(), (len(each), 1))  # only classes of share 0 were possible
    return np.divide(each, total, out=equal, where=total > 0)


def _training_counts(model: Any, kept: set[str]) -> Mapping[Any, float]:
    counts = (carried(model, "training_summary_") or {}).get("class_counts")
    if not isinstance(counts, dict):
        raise ValueError(
            "prior='training': the model does not store how many samples of each class it was "
            "trained on; give the shares themselves"
        )
    return {label: n for label, n in counts.items() if str(label) in kept}  # a subset has them all


def _number(label: Any, share: Any) -> float:
    try:
        number = float(share)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number < np.inf:
        raise ValueError(f"the prior share of {label!r} is {share!r}: use a number of at least 0")
    return number
