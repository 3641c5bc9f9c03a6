"""Probabilities that mean something: calibration on held-out scores.

The label of a sample is the class of its highest score, everywhere. A calibration says how probable
that is, by one rising function of the scores that all classes share (see
:func:`optirank.ranks.scoring.probabilities`), so it never changes the order of the classes. It is
fitted on scores of samples that the model was not trained on, each class counting the same, so the
probabilities are those of a query in which the classes are equally frequent; see
``optirank.model.prior`` for others. A model carries a calibration as ``calibration_``, a few
numbers, and the model file keeps it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.model.values import decode_array
from optirank.ranks.scoring import by_class, probabilities

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_VERSION = 2
_SLOPES = (1e-3, 1e3)  # of scores divided by their spread
_OFFSET = 30.0  # beyond, the function is a power or constant to all digits


@dataclass(frozen=True)
class Calibration:
    """Probabilities ``p_k = g(z_k) / sum_m g(z_m)`` with ``g(z) = sigmoid(slope z + offset)``."""

    slope: float
    offset: float
    n_samples: int  # held-out samples that it was fitted on; 0 where that is not known

    @property
    def summary(self) -> str:
        """What it is, in a few words."""
        on = f"{self.n_samples} held-out samples" if self.n_samples else "held-out samples"
        return f"slope {self.slope:.3g}, offset {self.offset:.3g}, on {on}"

    def probabilities(self, scores: ArrayLike) -> NDArray:
        """Probabilities (n, classes) of scores, (n,) for two classes and (n, classes) for more."""
        return probabilities(np.asarray(scores, dtype=float), self.slope, self.offset)

    def to_plain(self) -> dict[str, Any]:
        """As JSON."""
        return {"version": _VERSION} | asdict(self)

    @classmethod
    def from_plain(cls, stored: Any, n_problems: int) -> Calibration:
        """From JSON, checked."""
        if is_old_calibration(stored):
            return _from_curves(stored, n_problems)
        names = {"version", "slope", "offset", "n_samples"}
        if not isinstance(stored, dict) or set(stored) != names or stored["version"] != _VERSION:
            raise ValueError("the calibration is incomplete, or of a newer version")
        slope, offset, n_samples = (stored[name] for name in ("slope", "offset", "n_samples"))
        if not type(slope) is type(offset) is float or type(n_samples) is not int or n_samples < 0:
            raise ValueError("the calibration has values of the wrong type")
        if not (0 < slope < np.inf and abs(offset) < np.inf):
            raise ValueError(f"the calibration has slope {slope} and offset {offset}")
        return cls(slope, offset, n_samples)


def is_old_calibration(stored: Any) -> bool:
    """Whether a stored calibration has curves per class, which could move labels."""
    return isinstance(stored, dict) and "curves" in stored


def _from_curves(stored: dict[str, Any], n_problems: int) -> Calibration:
    """A calibration of the first version: its curves' mean slope, on the log scale.

    There was one curve per class, a sigmoid ``(a, c)`` or an isotonic one. The offsets, which held
    the shares of the classes in training and moved labels towards frequent ones, are left out.
    """
    curves, method = stored["curves"], stored.get("method")
    if not isinstance(curves, list) or len(curves) != n_problems:
        raise ValueError("the calibration does not have one curve per problem of the model")
    if method not in ("sigmoid", "isotonic"):
        raise ValueError(f"the calibration method {method!r} is not known")
    slopes = []
    for curve in curves:
        if not isinstance(curve, list) or len(curve) != 2:
            raise ValueError("the calibration has a curve that is not two arrays")
        x, y = (decode_array(part) for part in curve)
        good = x.dtype == y.dtype == np.float64 and len(x) == len(y) > 0
        good = good and np.isfinite([x, y]).all() and (method == "isotonic" or len(x) == 1)
        if good and method == "isotonic":
            good = (np.diff(x) > 0).all() and (np.diff(y) >= 0).all() and 0 <= y[0] <= y[-1] <= 1
        if not good:
            raise ValueError("the calibration has a curve that does not rise, or is no curve")
        slopes.append(x[0] if method == "sigmoid" else _slope(x, y))
    return Calibration(float(np.exp(np.log(np.clip(slopes, *_SLOPES)).mean())), 0.0, 0)


def _slope(x: NDArray, y: NDArray) -> float:
    """The slope of the log odds of an isotonic curve, by least squares; 1 for a single point."""
    p = np.clip(y, 0.01, 0.99)
    return float(np.polyfit(x, np.log(p / (1 - p)), 1)[0]) if len(x) > 1 else 1.0


def fit_calibration(scores: ArrayLike, y: ArrayLike, classes: ArrayLike) -> Calibration:
    """Fit a calibration on held-out scores, by the log loss of balanced classes.

    The objective is ``-sum_i v_i sum_k t_ik log p_k(z_i)`` with ``v_i = 1 / n_k`` for a sample of a
    class with n_k samples; ``t`` is ``(n_k + 1) / (n_k + 2)`` at that class, and shared by the
    others, as Platt has it, so that it stays finite where held-out samples are all right.

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
        only = f"all {len(y)} held-out samples with scores are of class {classes[counts.argmax()]}"
        raise ValueError(
            f"{only if len(y) else 'no held-out sample has scores of all classes'}: calibration "
            "needs samples of at least two classes"
        )
    size = counts[known.argmax(axis=1)]
    weights = 1.0 / (size * np.count_nonzero(counts))
    wrong = 1.0 / (size + 2.0)
    target = np.where(known, (1.0 - wrong)[:, None], wrong[:, None] / (len(classes) - 1))
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
