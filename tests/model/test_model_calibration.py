"""Calibrated probabilities, and other shares of the classes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from optirank.model.confidence import Calibration, fit_calibration
from optirank.ranks.scoring import best_class, by_class


def of_classes(n: int = 900, seed: int = 0, shares=(1, 1, 1)):
    """Scores of three classes that are too sure of themselves, the classes in
    given shares.
    """
    rng = np.random.default_rng(seed)
    codes = rng.choice(3, size=n, p=np.array(shares) / sum(shares))
    truth = rng.normal(size=(n, 3)) + 2.0 * np.eye(3)[codes]
    return 2.5 * truth - 1.0, np.array(["a", "b", "c"])[codes]


scores_of_samples = st.integers(2, 5).flatmap(
    lambda k: arrays(
        float,
        st.tuples(st.integers(1, 6), st.just(k)),
        elements=st.floats(-50, 50, width=32),
    )
)


@given(scores_of_samples, st.floats(1e-3, 10), st.floats(-30, 30), st.booleans())
def test_a_calibration_never_changes_the_order_of_the_classes(
    scores, slope, offset, two
):
    scores = scores[:, 0] if two else scores
    found = Calibration(slope, offset, 10).probabilities(scores)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    label = best_class(scores)
    np.testing.assert_allclose(
        found[np.arange(len(found)), label], found.max(axis=1), rtol=1e-12
    )
    order = by_class(scores).argsort(axis=1, kind="stable")
    assert (np.diff(np.take_along_axis(found, order, axis=1)) >= -1e-15).all()


@pytest.mark.parametrize("shares", [(1, 1, 1), (20, 4, 1)])
def test_probabilities_are_those_of_equally_frequent_classes(shares):
    calibration = fit_calibration(*of_classes(6000, 0, shares), ["a", "b", "c"])
    scores, y = of_classes(6000, 1)
    found = calibration.probabilities(scores)
    confidence, right = (
        found.max(axis=1),
        np.array(["a", "b", "c"])[found.argmax(axis=1)] == y,
    )
    assert abs(confidence.mean() - right.mean()) < 0.02
    for low in (0.4, 0.6, 0.8):
        there = (confidence >= low) & (confidence < low + 0.2)
        assert abs(confidence[there].mean() - right[there].mean()) < 0.06


def test_the_fit_minimises_the_balanced_log_loss():
    scores, y = of_classes(300, 2, (8, 2, 1))
    classes = np.array(["a", "b", "c"])
    fitted = fit_calibration(scores, y, classes)
    codes = np.searchsorted(classes, y)
    size = np.bincount(codes)[codes]
    wrong = 1 / (len(y) + 2)
    target = np.where(np.eye(3)[codes] > 0, 1 - wrong, wrong / 2)

    def loss(slope, offset):
        p = Calibration(slope, offset, 0).probabilities(scores)
        return -((target * np.log(p)).sum(axis=1) / size).sum() / 3

    least = loss(fitted.slope, fitted.offset)
    for slope in fitted.slope * np.array([0.5, 0.9, 0.99, 1.01, 1.1, 2]):
        assert loss(slope, fitted.offset) >= least - 1e-9
    for offset in fitted.offset + np.array([-1, -0.1, -0.01, 0.01, 0.1, 1]):
        assert loss(fitted.slope, offset) >= least - 1e-9


def test_separable_scores_and_lacking_classes_stay_finite():
    calibration = fit_calibration([-3, -2, 2, 3.0], [0, 0, 1, 1], [0, 1])
    assert np.isfinite([calibration.slope, calibration.offset]).all()
    assert calibration.probabilities(np.array([3.0]))[0, 1] < 1
    scores, y = of_classes(300)
    found = fit_calibration(scores[y != "b"], y[y != "b"], ["a", "b", "c"])
    assert found.n_samples == (y != "b").sum()


@pytest.mark.parametrize(
    ("scores", "y", "classes", "message"),
    [
        ([1.0, 2], [0, 0], [0, 1], "all 2 held-out samples are of class 0"),
        (np.zeros((0, 3)), [], [0, 1, 2], "no sample was held out"),
    ],
)
def test_what_cannot_be_calibrated_is_refused(scores, y, classes, message):
    with pytest.raises(ValueError, match=message):
        fit_calibration(scores, y, classes)


def test_a_class_that_could_not_be_learned_does_not_soften_the_others():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 80)
    z = 0.1 * rng.normal(size=(240, 3)) + 0.3 * (
        y[:, None] == np.array(["a", "b", "c"])
    )
    plain = fit_calibration(z, y, ["a", "b", "c"])
    wider = np.column_stack([z, np.full(240, -np.inf)])
    found = fit_calibration(wider, y, ["a", "b", "c", "d"])
    assert found.slope == pytest.approx(plain.slope, rel=1e-3)
    assert found.offset == pytest.approx(plain.offset, rel=1e-2, abs=1e-2)
