"""How far a label can be trusted: calibrated probabilities and error control.

The label of a sample is the class of its highest score, everywhere. A calibration says how probable
that is, by one rising function of the scores that all classes share (see
:func:`optirank.ranks.scoring.probabilities`), so it never changes the order of the classes. It is
fitted on scores of samples that the model was not trained on, each class counting the same, so the
probabilities are those of a query in which the classes are equally frequent. A model stores it as
``calibration_``.

Labels can be withheld so that those given are wrong no more often than asked for: a label is given
where its confidence reaches the lowest threshold at which the error among the held-out samples
above it is at most the target. That error is its upper bound by Clopper and Pearson, with classes
counted equally, since a query may have other shares of them than the training data. It holds for
samples like the held-out ones: on another platform labels may be wrong more often. A model stores
the bounds as ``error_control_``, so that any target can be asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optirank.model.linear import class_codes
from optirank.ranks.scoring import by_class, probabilities

_SLOPES = (1e-3, 1e3)  # of scores divided by their spread: flat, and a step
NEVER = (
    -100.0
)  # score of a class that could not be learned: far below those of ranks in [0, 1]
_OFFSET = 30.0  # beyond, the function is a power or constant to all digits
_CERTAINTY = (
    0.8  # one-sided: 32 samples without an error show 5 %; with 0.95 it takes 59
)
_STORED = 250  # thresholds kept, evenly over the held-out samples: half a percent each


@dataclass(frozen=True)
class Calibration:
    """Probabilities ``p_k = g(z_k) / sum_m g(z_m)`` with ``g(z) = sigmoid(slope z + offset)``."""

    slope: float
    offset: float
    n_samples: int  # held-out samples that it was fitted on

    def __post_init__(self) -> None:
        if not (0 < self.slope < np.inf and abs(self.offset) < np.inf):
            raise ValueError(
                f"the calibration has slope {self.slope} and offset {self.offset}"
            )

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
        (n, classes) for more; -inf for a class that could not be learned without the sample.
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
    codes = class_codes(y, classes)
    counts = np.bincount(codes, minlength=len(classes))
    if np.count_nonzero(counts) < 2:
        only = f"all {len(y)} held-out samples are of class {classes[counts.argmax()]}"
        raise ValueError(
            f"{only if len(y) else 'no sample was held out'}: calibration needs held-out samples "
            "of at least two classes"
        )
    weights = 1.0 / (counts[codes] * np.count_nonzero(counts))
    wrong = 1.0 / (len(y) + 2.0)
    known = codes[:, None] == np.arange(len(classes))
    there = np.isfinite(z)
    others = np.where(
        there, wrong / np.maximum(there.sum(axis=1, keepdims=True) - 1, 1), 0.0
    )
    target = np.where(known, 1.0 - wrong, others)
    scale, z = float(np.abs(z[there]).mean()) or 1.0, np.maximum(z, NEVER)

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
    found = [
        minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
        for start in starts
    ]
    log_slope, offset = min(found, key=lambda one: one.fun).x
    return Calibration(float(np.exp(log_slope) / scale), float(offset), len(y))


@dataclass(frozen=True)
class Withholding:
    """The confidence below which labels are withheld, and what held-out samples say of it."""

    threshold: float
    target_error: float
    error: float  # among the held-out samples that keep their label, classes counted equally
    kept: float  # share of the held-out samples that keep their label
    n_samples: int

    @property
    def reason(self) -> str:
        """Why the threshold is what it is, in one sentence."""
        return (
            f"at a confidence of at least {self.threshold:.3f}, {self.kept:.1%} of the "
            f"{self.n_samples} held-out samples keep their label, and {self.error:.1%} of these "
            f"labels are wrong, classes counted equally (asked for: at most "
            f"{self.target_error:.3g}, with {_CERTAINTY:.0%} certainty, on samples like these)"
        )


@dataclass(frozen=True)
class ErrorControl:
    """Errors of held-out samples above each of some thresholds, the highest threshold first."""

    thresholds: NDArray  # confidences, falling
    errors: NDArray  # share of wrong labels above each, classes counted equally
    bounds: NDArray  # the upper bound of that error
    kept: NDArray  # share of the held-out samples above each
    n_samples: int
    target_error: float | None = None  # that prediction uses unless told otherwise

    def __post_init__(self) -> None:
        columns = np.array(
            [self.thresholds, self.errors, self.bounds, self.kept], dtype=float
        )
        falling = (np.diff(columns[0]) < 0).all()
        if columns.ndim != 2 or not columns.size or not falling:
            raise ValueError("the error control has no falling thresholds")
        if not ((columns >= 0) & (columns <= 1)).all():
            raise ValueError("the error control has shares outside of 0 to 1")
        if self.target_error is not None:
            _check_target(self.target_error)

    def at(self, target_error: float | None = None) -> Withholding:
        """The threshold for a target error, by default that of the training.

        A ValueError where the held-out samples cannot show such an error at any threshold.
        """
        target = self.target_error if target_error is None else target_error
        _check_target(target)
        fits = np.flatnonzero(self.bounds <= target)
        if not fits.size:
            raise ValueError(
                f"target error {target:.3g}: {self.n_samples} held-out samples cannot show it. "
                f"With {_CERTAINTY:.0%} certainty the error of the most confident ones is at most "
                f"{self.bounds.min():.1%}, classes counted equally; of all, {self.errors[-1]:.1%} "
                "are wrong. Allow a larger error, or train on more samples"
            )
        k = fits[-1]
        threshold = 0.0 if self.kept[k] == 1.0 else float(self.thresholds[k])
        shares = float(self.errors[k]), float(self.kept[k])
        return Withholding(threshold, float(target), *shares, self.n_samples)


def fit_error_control(
    confidence: ArrayLike,
    correct: ArrayLike,
    truth: ArrayLike | None = None,
    target_error: float | None = None,
) -> ErrorControl:
    """How often labels of held-out samples are wrong above each confidence.

    Parameters
    ----------
    confidence : the probability of the label given to each held-out sample.
    correct : whether that label is right.
    truth : the true class of each, so that classes count equally; None to count samples.
    target_error : the share of wrong labels to allow among those given, such as 0.05; stored for
        prediction, and refused where the samples cannot show it.
    """
    confidence, correct = (
        np.asarray(confidence, dtype=float),
        np.asarray(correct, dtype=bool),
    )
    if not len(confidence) or confidence.shape != correct.shape:
        raise ValueError(
            "give one confidence and one verdict per held-out sample, at least one"
        )
    weights = np.ones(len(correct))
    if truth is not None:
        _, codes, counts = np.unique(
            np.asarray(truth), return_inverse=True, return_counts=True
        )
        weights = 1.0 / counts[codes]
    order = np.argsort(-confidence, kind="stable")
    values, right, w = confidence[order], correct[order], weights[order]
    total = np.cumsum(w)
    errors = np.minimum(1.0, np.cumsum(np.where(right, 0.0, w)) / total)
    bounds = _upper_bounds(errors, total**2 / np.cumsum(w**2))
    last = np.flatnonzero(
        np.append(values[1:] != values[:-1], True)
    )  # equal ones stay together
    if len(last) > _STORED:
        last = last[np.linspace(0, len(last) - 1, _STORED).round().astype(int)]
    control = ErrorControl(
        values[last], errors[last], bounds[last], (last + 1) / len(values), len(values),
        target_error,
    )  # fmt: skip
    if target_error is not None:
        control.at()
    return control


def _upper_bounds(errors: NDArray, n: NDArray) -> NDArray:
    """Upper bounds by Clopper and Pearson for shares of n samples of equal weight."""
    from scipy.stats import beta

    wrong = errors * n
    bounds = np.ones(len(errors))
    some_right = n - wrong > 0
    bounds[some_right] = beta.ppf(
        _CERTAINTY, wrong[some_right] + 1.0, (n - wrong)[some_right]
    )
    return bounds


def _check_target(target: float | None) -> None:
    if not isinstance(target, float | int) or not 0 < target < 1:
        raise ValueError(
            f"target error {target!r}: use a share between 0 and 1, such as 0.05"
        )
