"""How far a label can be trusted: calibrated probabilities and error control.

The label of a sample is the class of its highest score, everywhere. A calibration says
how probable that is, by one rising function of the scores that all classes share (see
:func:`optirank.ranks.scoring.probabilities`), so it never changes the order of the
classes. It is fitted on scores of samples that the model was not trained on, each class
counting the same, so the probabilities are those of a query in which the classes are
equally frequent.

Labels can be withheld so that those given are wrong no more often than asked for. The
held-out samples are ordered by confidence, and the labels of the most confident 5 %,
10 %, ... of them are tested in this order: is the error among them, with 80 %
confidence, at most the one asked for? The tests stop at the first failure
(fixed-sequence testing), so that looking at many thresholds does not raise the risk of
a wrong one. The error is its upper bound by Clopper and Pearson, with classes counted
equally, since a query may have other shares of them than the training data. It holds
for samples like the held-out ones. A query can be harder: where its own confidences say
that more labels are wrong than asked for, :func:`raise_threshold` raises the threshold
until they do not.

Where labels are a tree (see `optirank.model.tree`), every sample has one confidence per
level, which falls from coarse to fine, and its label is the finest that reaches the
threshold. The same tests then run over one threshold for all levels: with each step
down, more samples get a label, and labels get finer. A label that is coarser than the
truth is right. The error is that of all labels given, coarse and fine together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optirank._util.work import one_blas_thread
from optirank.ranks.scoring import by_class, probabilities

NEVER = -100.0  # score of a class that could not be learned: far below those of ranks
# One-sided: 32 samples without an error show 5 %; with 0.95 it takes 59
CERTAINTY = 0.8
_SLOPES = (1e-3, 1e3)  # of scores divided by their spread: flat, and a step
_OFFSET = 30.0  # beyond, the function is a power or constant to all digits
_STEPS = 20  # shares of the held-out samples that are tested: 5 %, 10 %, ..., 100 %


@dataclass(frozen=True)
class Calibration:
    """Probabilities ``p_k = g(z_k) / sum_m g(z_m)``.

    ``g(z) = sigmoid(slope z + offset)`` is the same function for all classes.
    """

    slope: float
    offset: float
    n_samples: int  # held-out samples that it was fitted on

    def __post_init__(self) -> None:
        if not (0 < self.slope < np.inf and abs(self.offset) < np.inf):
            raise ValueError(
                f"the calibration has slope {self.slope} and offset {self.offset}"
            )

    def probabilities(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Probabilities (n, classes) of scores: (n,) for two classes, else (n,
        classes).
        """
        return probabilities(np.asarray(scores, dtype=float), self.slope, self.offset)


def class_codes(labels: ArrayLike, classes: NDArray) -> NDArray[np.intp]:
    """The position of each held-out sample's label among the classes of a model."""
    return (np.asarray(labels)[:, None] == classes).argmax(axis=1)


def fit_calibration(scores: ArrayLike, y: ArrayLike, classes: ArrayLike) -> Calibration:
    """Fit a calibration on held-out scores, by the log loss of balanced classes.

    The objective is ``-sum_i v_i sum_k t_ik log p_k(z_i)`` with ``v_i = 1 / n_k`` for a
    sample of a class with n_k samples; ``t`` is ``(n + 1) / (n + 2)`` at that class,
    with n all samples, and the rest is shared by the others, so that it stays finite
    where no held-out sample is wrong.

    Parameters
    ----------
    scores : the model's decision function on samples it was not fitted on: (n,) for two
        classes, (n, classes) for more; -inf for a class that could not be learned
        without the sample.
    y : their labels.
    classes : the model's ``classes_``.
    """
    from scipy.optimize import minimize

    classes = np.asarray(classes)
    y = np.asarray(y)
    z = by_class(np.asarray(scores, dtype=float))
    codes = class_codes(y, classes)
    counts = np.bincount(codes, minlength=len(classes))
    if np.count_nonzero(counts) < 2:
        only = f"all {len(y)} held-out samples are of class {classes[counts.argmax()]}"
        raise ValueError(
            f"{only if len(y) else 'no sample was held out'}: calibration needs "
            "held-out samples of at least two classes"
        )
    loss = _BalancedLogLoss(z, codes)
    # The loss has a flat end on each side in the offset: start between, and towards the
    # softmax
    bounds = [tuple(np.log(_SLOPES)), (-_OFFSET, _OFFSET)]
    first_slope = np.clip(np.log(loss.scale), *bounds[0])
    starts = [(first_slope, 0.0), (0.0, 0.0), (0.0, -3.0)]
    with one_blas_thread():  # with more, threads of two numbers wait for each other
        fits = [
            minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
            for start in starts
        ]
    log_slope, offset = min(fits, key=lambda fit: fit.fun).x
    return Calibration(float(np.exp(log_slope) / loss.scale), float(offset), len(y))


class _BalancedLogLoss:
    """The log loss of held-out scores, classes counted equally, and its gradient."""

    def __init__(self, z: NDArray[np.float64], codes: NDArray[np.intp]) -> None:
        n_samples, n_classes = z.shape
        counts = np.bincount(codes, minlength=n_classes)
        self._weights = 1.0 / (counts[codes] * np.count_nonzero(counts))
        wrong = 1.0 / (n_samples + 2.0)
        learned = np.isfinite(z)
        n_others = np.maximum(learned.sum(axis=1, keepdims=True) - 1, 1)
        is_truth = codes[:, None] == np.arange(n_classes)
        others = np.where(learned, wrong / n_others, 0.0)
        self._target = np.where(is_truth, 1.0 - wrong, others)
        self.scale = float(np.abs(z[learned]).mean()) or 1.0
        self._z = np.maximum(z, NEVER)

    def __call__(self, x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        slope = np.exp(x[0]) / self.scale
        offset = x[1]
        p = probabilities(self._z, slope, offset)
        log_p = np.log(np.maximum(p, 1e-300))
        value = -(self._weights @ (self._target * log_p).sum(axis=1))
        u = slope * self._z + offset
        slopes = self._weights[:, None] * (p - self._target)
        slopes /= 1.0 + np.exp(np.minimum(u, 700.0))
        return value, np.array([slope * (slopes * self._z).sum(), slopes.sum()])


@dataclass(frozen=True)
class ErrorControl:
    """Errors of held-out samples above each of some thresholds, the highest first.

    Attributes
    ----------
    thresholds : confidences, falling.
    errors : share of wrong labels above each, classes counted equally.
    bounds : the upper bound of that error.
    least : the upper bound if none of these labels were wrong.
    kept : share of the held-out samples above each threshold.
    n_samples : held-out samples.
    """

    thresholds: NDArray[np.float64]
    errors: NDArray[np.float64]
    bounds: NDArray[np.float64]
    least: NDArray[np.float64]
    kept: NDArray[np.float64]
    n_samples: int

    def __post_init__(self) -> None:
        curves = np.array(
            [self.thresholds, self.errors, self.bounds, self.least, self.kept]
        )
        falls = (np.diff(self.thresholds) < 0).all()
        if not (falls and curves.size and ((curves >= 0) & (curves <= 1)).all()):
            raise ValueError("the error control has no shares at falling thresholds")

    def at(self, target_error: float, *, by_level: bool = False) -> tuple[float, str]:
        """The confidence below which labels are withheld for a target error, and why,
        in one sentence; ``by_level`` of labels of a tree.

        A ValueError where the held-out samples cannot show such an error.
        """
        step = self._last_step_that_passes(target_error)
        if step is None:
            raise ValueError(
                f"target error {target_error:.3g}: {self.n_samples} held-out samples "
                f"cannot show it. With {CERTAINTY:.0%} confidence the error of the "
                f"most confident ones is at most {self.bounds.min():.1%}, classes "
                f"counted equally; of all, {self.errors[-1]:.1%} are wrong. Allow a "
                "larger error, or train on more samples"
            )
        kept = float(self.kept[step])
        threshold = 0.0 if kept == 1.0 else float(self.thresholds[step])
        what, these = "their label", "these labels"
        if by_level:
            what, these = "their finest label", "all labels given, coarse and fine,"
        return threshold, (
            f"at a confidence of at least {threshold:.3f}, {kept:.1%} of the "
            f"{self.n_samples} held-out samples keep {what}, and "
            f"{self.errors[step]:.1%} of {these} are wrong, classes counted equally "
            f"(asked for: at most {target_error:.3g}, with {CERTAINTY:.0%} "
            "confidence, on samples like these)"
        )

    def _last_step_that_passes(self, target_error: float) -> int | None:
        """Test from the most confident samples down, and stop at the first failure.

        The first test is at the first step with samples enough to pass without an
        error, which does not depend on whether labels are right.
        """
        possible = np.flatnonzero(self.least <= target_error)
        if not possible.size:
            return None
        first = int(possible[0])
        passes = self.bounds[first:] <= target_error
        n_passed = len(passes) if passes.all() else int(passes.argmin())
        return first + n_passed - 1 if n_passed else None


def fit_error_control(
    confidence: ArrayLike,
    correct: ArrayLike,
    truth: ArrayLike | None = None,
) -> ErrorControl:
    """How often labels of held-out samples are wrong above each confidence.

    Parameters
    ----------
    confidence : the probability of the label given to each held-out sample; (n, levels)
        for labels from coarse to fine, of which the finest above the threshold is
        given. ``kept`` then is the share of the samples that keep the finest.
    correct : whether that label is right.
    truth : the true class of each, so that classes count equally; None: samples count.
    """
    confidence = np.asarray(confidence, dtype=float)
    correct = np.asarray(correct, dtype=bool)
    weights = np.ones(len(correct))
    if truth is not None:
        _, codes, counts = np.unique(
            np.asarray(truth), return_inverse=True, return_counts=True
        )
        weights = 1.0 / counts[codes]
    steps = _Steps(confidence)
    total = steps.over_samples(weights)
    wrong = steps.over_labels(np.where(correct.T, 0.0, weights).T)
    errors = np.clip(wrong / total, 0.0, 1.0)
    n_equal = total**2 / steps.over_samples(weights**2)  # samples of equal weight
    last = _ends_of_steps(steps.values)
    return ErrorControl(
        thresholds=steps.values[last],
        errors=errors[last],
        bounds=_upper_bounds(errors[last], n_equal[last]),
        least=_upper_bounds(np.zeros(len(last)), n_equal[last]),
        kept=steps.n_finest()[last] / len(confidence),
        n_samples=len(confidence),
    )


def raise_threshold(
    confidence: NDArray[np.float64], threshold: float, target_error: float
) -> float:
    """The threshold at which a query's own confidences expect the target error.

    A confidence of 0.7 says that 3 of 10 such labels are wrong. The threshold is raised
    until the mean of these shares over the labels that are given is at most the target.
    It is above 1 where no label can be given. ``confidence`` is (n,), or (n, levels) as
    in :func:`fit_error_control`.
    """
    steps = _Steps(confidence)
    n_given = np.count_nonzero(steps.values >= threshold)
    if not n_given:
        return threshold
    values = steps.values[:n_given]
    labelled = steps.over_samples(np.ones(len(confidence)))[:n_given]
    expected = steps.over_labels(1.0 - confidence)[:n_given] / labelled
    ends = np.append(values[1:] != values[:-1], True)  # equal ones stay together
    fits = np.flatnonzero(ends & (expected <= target_error))
    if not fits.size:
        return float(np.nextafter(1.0, 2.0))
    return threshold if fits[-1] == n_given - 1 else float(values[fits[-1]])


class _Steps:
    """Labels in the order in which a falling threshold gives them.

    A sample has one label, or one per level from coarse to fine, each of which takes
    the place of the coarser one before it. ``values`` are their confidences.
    """

    def __init__(self, confidence: NDArray[np.float64]) -> None:
        self._n_levels = 1 if confidence.ndim == 1 else confidence.shape[1]
        flat = confidence.ravel()  # stable: of equal ones the coarser label is first
        self._order = np.argsort(-flat, kind="stable")
        self.values = flat[self._order]

    def over_samples(self, of_sample: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums over the samples that have a label, after each step."""
        is_first = self._order % self._n_levels == 0
        return np.cumsum(
            np.where(is_first, of_sample[self._order // self._n_levels], 0)
        )

    def over_labels(self, of_label: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums over the labels that stand, after each step."""
        rows = of_label.reshape(-1, self._n_levels)
        return np.cumsum(np.diff(rows, axis=1, prepend=0.0).ravel()[self._order])

    def n_finest(self) -> NDArray[np.intp]:
        """Samples that have their finest label, after each step."""
        return np.cumsum(self._order % self._n_levels == self._n_levels - 1)


def _ends_of_steps(falling: NDArray[np.float64]) -> NDArray[np.intp]:
    """Positions where the most confident 5 %, 10 %, ... of the samples end.

    Samples of the same confidence stay together, in the step in which they begin.
    """
    n_samples = len(falling)
    wanted = np.ceil(n_samples * np.arange(1, _STEPS + 1) / _STEPS).astype(np.intp) - 1
    group_ends = np.flatnonzero(np.append(falling[1:] != falling[:-1], True))
    places = np.searchsorted(group_ends, wanted)
    return np.unique(group_ends[places])


def _upper_bounds(
    errors: NDArray[np.float64], n: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Upper bounds by Clopper and Pearson for shares of n samples of equal weight."""
    from scipy.special import betaincinv

    wrong = errors * n
    bounds = np.ones(len(errors))
    some_right = n - wrong > 0
    bounds[some_right] = betaincinv(
        wrong[some_right] + 1.0, (n - wrong)[some_right], CERTAINTY
    )
    return bounds
