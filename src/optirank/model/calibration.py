"""Probabilities that mean something: calibration on held-out scores, and when to say nothing.

Both are fitted on scores of samples that the model was not trained on, with scikit-learn's tools,
and kept as a few numbers: no object of scikit-learn's is stored. A model carries them as
``calibration_`` and ``rejection_``, and the model file keeps them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.model.values import decode_array, encode_array
from optirank.solver.problem import sigmoid

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

METHODS = ("sigmoid", "isotonic")


@dataclass(frozen=True)
class Calibration:
    """A curve from scores to probabilities for each binary problem.

    ``curves`` has two arrays a problem: for ``"sigmoid"`` slope a and intercept c of
    ``1 / (1 + exp(-(a z + c)))``, for ``"isotonic"`` scores and the probabilities at them, with
    straight lines between and the end values beyond.
    """

    method: str
    curves: tuple[tuple[NDArray, NDArray], ...]

    def probabilities(self, scores: NDArray) -> NDArray:
        """Probabilities (n, classes) of scores, (n,) for two classes and (n, classes) for more."""
        scores = np.asarray(scores, dtype=float)
        columns = scores if scores.ndim == 2 else scores[:, None]
        if columns.shape[1] != len(self.curves):
            raise ValueError(
                f"scores of {columns.shape[1]} problems, but the calibration is for "
                f"{len(self.curves)}"
            )
        found = np.column_stack(
            [
                self._curve(column, *curve)
                for column, curve in zip(columns.T, self.curves, strict=True)
            ]
        )
        return share_out(found)

    def _curve(self, z: NDArray, x: NDArray, y: NDArray) -> NDArray:
        return sigmoid(x * z + y) if self.method == "sigmoid" else np.interp(z, x, y)

    def subset(self, problems: NDArray) -> Calibration:
        """The calibration of some of the problems."""
        return Calibration(self.method, tuple(self.curves[k] for k in problems))

    def to_plain(self) -> dict[str, Any]:
        """As JSON."""
        curves = [[encode_array(x), encode_array(y)] for x, y in self.curves]
        return {"method": self.method, "curves": curves}

    @classmethod
    def from_plain(cls, stored: Any, n_problems: int) -> Calibration:
        """From JSON, checked."""
        curves = stored.get("curves") if isinstance(stored, dict) else None
        if not isinstance(curves, list) or len(curves) != n_problems:
            raise ValueError("the calibration is not one of the model's problems")
        if stored.get("method") not in METHODS:
            raise ValueError(f"the calibration method {stored.get('method')!r} is not known")
        isotonic = stored["method"] == "isotonic"
        found = tuple(tuple(decode_array(part) for part in _pair(curve)) for curve in curves)
        for x, y in found:
            good = x.dtype == y.dtype == np.float64 and len(x) == len(y) > 0
            good = good and np.isfinite([x, y]).all() and (isotonic or len(x) == 1)
            if isotonic and good:
                good = (np.diff(x) > 0).all() and (np.diff(y) >= 0).all() and y[0] >= 0
                good = good and y[-1] <= 1
            if not good:
                raise ValueError("the calibration has a curve that is none")
        return cls(stored["method"], found)


@dataclass(frozen=True)
class Rejection:
    """The confidence below which a label is withheld, and why."""

    threshold: float
    target_error: float
    error: float  # among the held-out samples that keep their label
    accepted: float  # share of the held-out samples that keep their label
    n_samples: int
    reason: str

    def to_plain(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def from_plain(cls, stored: Any, _: int = 0) -> Rejection:
        """From JSON, checked."""
        kinds = dict(cls.__annotations__)
        if not isinstance(stored, dict) or set(stored) != set(kinds):
            raise ValueError("the rejection threshold is incomplete")
        for name, kind in kinds.items():
            if type(stored[name]).__name__ != kind:
                raise ValueError(f"the rejection's {name} is not of type {kind}")
        shares = (stored["threshold"], stored["target_error"], stored["error"], stored["accepted"])
        if not all(0 <= share <= 1 for share in shares):
            raise ValueError("the rejection has shares that are none")
        return cls(**stored)


def fit_calibration(
    scores: ArrayLike, y: ArrayLike, classes: ArrayLike, method: str = "sigmoid"
) -> Calibration:
    """Fit a calibration on held-out scores.

    Parameters
    ----------
    scores : the model's decision function on samples it was not fitted on: (n,) for two classes,
        (n, classes) for more.
    y : their labels.
    classes : the model's ``classes_``.
    method : ``"sigmoid"`` (Platt's, two numbers a class) or ``"isotonic"`` (any rising curve, for
        a thousand held-out samples or more).
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r} is not known: use one of {', '.join(METHODS)}")
    classes, y = np.asarray(classes), np.asarray(y)
    scores = np.asarray(scores, dtype=float)
    columns = scores if scores.ndim == 2 else scores[:, None]
    positives = classes[1:] if len(classes) == 2 else classes
    if columns.shape != (len(y), len(positives)):
        raise ValueError(
            f"scores of shape {scores.shape} for {len(y)} labels of {len(classes)} classes: one "
            "row a sample and, beyond two classes, one column a class are needed"
        )
    fit = _fit_sigmoid if method == "sigmoid" else _fit_isotonic
    curves = []
    for column, label in zip(columns.T, positives, strict=True):
        positive = y == label
        if positive.all() or not positive.any():
            raise ValueError(
                f"{'all' if positive.all() else 'none'} of the held-out samples are of class "
                f"{label!s}: calibration needs samples inside and outside of each class"
            )
        curves.append(fit(column, positive))
    return Calibration(method, tuple(curves))


def fit_rejection(confidence: ArrayLike, correct: ArrayLike, target_error: float) -> Rejection:
    """The lowest threshold at which the labels that are kept are wrong no more often than asked.

    Parameters
    ----------
    confidence : the probability of the label given to each held-out sample.
    correct : whether that label is right.
    target_error : the share of wrong labels to allow among those kept, such as 0.05.
    """
    confidence, correct = np.asarray(confidence, dtype=float), np.asarray(correct, dtype=bool)
    if not 0 < target_error < 1:
        raise ValueError(f"target error {target_error!r}: use a share between 0 and 1, as 0.05")
    if not len(confidence) or confidence.shape != correct.shape:
        raise ValueError("give one confidence and one verdict a held-out sample, at least one")
    order = np.argsort(-confidence, kind="stable")
    values = confidence[order]
    kept = np.arange(1, len(values) + 1)
    wrong = np.cumsum(~correct[order])
    whole = np.append(values[1:] != values[:-1], True)  # a threshold keeps equal confidences
    fits = np.flatnonzero(whole & (wrong <= target_error * kept))
    overall = wrong[-1] / len(values)
    if not fits.size:
        raise ValueError(
            f"no threshold brings the error to {target_error:.3g}: of {len(values)} held-out "
            f"samples {overall:.1%} are wrong, and even the most confident ones too often; allow a "
            "larger error, or improve the model"
        )
    last = fits[-1]
    n_kept, n_wrong = int(kept[last]), int(wrong[last])
    threshold = 0.0 if n_kept == len(values) else float(values[last])
    reason = (
        f"on {len(values)} held-out samples {overall:.1%} of the labels were wrong; with a "
        f"confidence of at least {threshold:.3f}, {n_kept / len(values):.1%} keep their label and "
        f"{n_wrong / n_kept:.1%} of those are wrong (at most {_upper(n_wrong, n_kept):.1%} with "
        f"95 % certainty, for samples like these); asked for: {target_error:.3g}"
    )
    error, accepted = n_wrong / n_kept, n_kept / len(values)
    return Rejection(threshold, float(target_error), error, accepted, len(values), reason)


def share_out(positive: NDArray) -> NDArray:
    """Probabilities of all classes from those of the problems: rows divided by their sums."""
    if positive.shape[1] == 1:
        return np.hstack([1.0 - positive, positive])
    total = positive.sum(axis=1, keepdims=True)
    equal = np.full_like(positive, 1.0 / positive.shape[1])
    return np.divide(positive, total, out=equal, where=total > 0)


def _fit_sigmoid(z: NDArray, positive: NDArray) -> tuple[NDArray, NDArray]:
    """Platt's: logistic regression on the score, with targets just inside 0 and 1."""
    from sklearn.linear_model import LogisticRegression

    n_positive = positive.sum()
    target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (len(z) - n_positive + 2))
    scale = np.abs(z).max() or 1.0
    twice = np.concatenate([z, z])[:, None] / scale
    label = np.repeat([1, 0], len(z))
    fitted = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(
        twice, label, sample_weight=np.concatenate([target, 1 - target])
    )
    return fitted.coef_[0] / scale, fitted.intercept_


def _fit_isotonic(z: NDArray, positive: NDArray) -> tuple[NDArray, NDArray]:
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    fitted.fit(z, positive.astype(float))
    return fitted.X_thresholds_, fitted.y_thresholds_


def _pair(curve: Any) -> list:
    if not isinstance(curve, list) or len(curve) != 2:
        raise ValueError("the calibration has a curve that is not two arrays")
    return curve


def _upper(n_wrong: int, n: int) -> float:
    """Clopper and Pearson's upper bound of an error rate."""
    from scipy.stats import beta

    return 1.0 if n_wrong == n else float(beta.ppf(0.95, n_wrong + 1, n - n_wrong))
