"""Calibrated probabilities and the threshold below which a label is withheld."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_cases import assert_refused, make_model, pack, unpack
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression

from optirank.model import fit_calibration, fit_rejection, save


def held_out(n: int = 4000, seed: int = 0):
    """Scores that are too sure of themselves by a factor 3, and off by 1."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n) * 2
    y = np.where(rng.uniform(size=n) < 1 / (1 + np.exp(-truth)), "yes", "no")
    return 3 * truth + 1, y, 1 / (1 + np.exp(-truth))


class Scores(ClassifierMixin, BaseEstimator):
    """A classifier whose scores are its input."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0]

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0).astype(int)]


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_probabilities_are_those_of_scikit_learn(method):
    scores, y, _ = held_out(500)
    ours = fit_calibration(scores, y, ["no", "yes"], method).probabilities(scores)
    theirs = CalibratedClassifierCV(
        FrozenEstimator(Scores().fit(scores[:, None], y)), method=method, cv=2, ensemble=False
    )
    theirs = theirs.fit(scores[:, None], y).predict_proba(scores[:, None])
    np.testing.assert_allclose(ours, theirs, atol=2e-4)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_scores_that_are_too_sure_are_put_right(method):
    scores, y, truth = held_out()
    found = fit_calibration(scores, y, ["no", "yes"], method).probabilities(scores)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert np.abs(found[:, 1] - truth).mean() < 0.03


def test_the_isotonic_curve_is_scikit_learn_s_beyond_the_data_too():
    scores, y, _ = held_out(300)
    ours = fit_calibration(scores, y, ["no", "yes"], "isotonic")
    theirs = IsotonicRegression(out_of_bounds="clip").fit(scores, y == "yes")
    at = np.linspace(-100, 100, 1001)
    np.testing.assert_allclose(ours.probabilities(at)[:, 1], theirs.predict(at), atol=1e-12)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_each_class_has_a_curve_and_rows_sum_to_one(method):
    rng = np.random.default_rng(0)
    classes = np.array(["a", "b", "c"])
    codes = rng.integers(0, 3, 600)
    scores = rng.normal(size=(600, 3)) + 3 * np.eye(3)[codes] - 1
    found = fit_calibration(scores, classes[codes], classes, method)
    probabilities = found.probabilities(scores)
    assert len(found.curves) == 3
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (classes[probabilities.argmax(axis=1)] == classes[codes]).mean() > 0.7
    certain = found.probabilities(np.full((1, 3), -1e9))
    np.testing.assert_allclose(certain.sum(), 1)


def test_separable_scores_stay_finite():
    calibration = fit_calibration([-3, -2, 2, 3.0], [0, 0, 1, 1], [0, 1])
    ((slope, intercept),) = calibration.curves
    assert np.isfinite([slope, intercept]).all()
    assert calibration.probabilities(np.array([3.0]))[0, 1] < 1


@pytest.mark.parametrize(
    ("scores", "y", "classes", "method", "message"),
    [
        ([1.0, 2], [0, 0], [0, 1], "sigmoid", "none of the held-out samples are of class 1"),
        ([1.0, 2], [1, 1], [0, 1], "sigmoid", "all of the held-out"),
        (
            [[1.0, 2, 3]] * 2,
            [0, 1],
            [0, 1, 2],
            "isotonic",
            "none of the held-out samples are of class 2",
        ),
        ([1.0, 2], [0, 1], [0, 1, 2], "sigmoid", r"scores of shape \(2,\) for 2 labels"),
        ([1.0, 2, 3], [0, 1], [0, 1], "sigmoid", "scores of shape"),
        ([1.0, 2], [0, 1], [0, 1], "beta", "method='beta' is not known"),
    ],
)
def test_what_cannot_be_calibrated_is_refused(scores, y, classes, method, message):
    with pytest.raises(ValueError, match=message):
        fit_calibration(scores, y, classes, method)


def test_scores_of_another_model_are_refused():
    calibration = fit_calibration([-1.0, 1], [0, 1], [0, 1])
    with pytest.raises(ValueError, match="scores of 3 problems, but the calibration is for 1"):
        calibration.probabilities(np.zeros((4, 3)))


@given(
    st.lists(st.tuples(st.sampled_from([0.5, 0.6, 0.7, 0.9]), st.booleans()), min_size=1),
    st.floats(0.01, 0.99),
)
def test_the_threshold_is_the_lowest_that_keeps_the_error(samples, target):
    confidence = np.array([c for c, _ in samples])
    correct = np.array([r for _, r in samples])

    def error(threshold):
        return np.mean(~correct[confidence >= threshold])

    reachable = [t for t in sorted(set(confidence)) if error(t) <= target]
    if not reachable:
        with pytest.raises(ValueError, match="no threshold brings the error to"):
            fit_rejection(confidence, correct, target)
        return
    found = fit_rejection(confidence, correct, target)
    kept = confidence >= found.threshold
    assert found.error == error(found.threshold) <= target
    assert found.accepted == kept.mean() == np.mean(confidence >= reachable[0])
    assert found.n_samples == len(samples)


def test_the_threshold_comes_with_its_reason():
    confidence = np.linspace(0.5, 1, 101)
    correct = np.arange(101) >= 20
    found = fit_rejection(confidence, correct, 0.05)
    assert found.reason == (
        "on 101 held-out samples 19.8% of the labels were wrong; with a confidence of at least "
        "0.580, 84.2% keep their label and 4.7% of those are wrong (at most 10.4% with 95 % "
        "certainty, for samples like these); asked for: 0.05"
    )
    assert fit_rejection(confidence, correct, 0.5).threshold == 0.0


@pytest.mark.parametrize("target", [0, 1, -0.1, 5])
def test_a_target_that_is_no_share_is_refused(target):
    with pytest.raises(ValueError, match="target error "):
        fit_rejection([0.5], [True], target)


def test_a_rejection_needs_samples():
    with pytest.raises(ValueError, match="at least one"):
        fit_rejection([], [], 0.1)
    with pytest.raises(ValueError, match="one confidence and one verdict"):
        fit_rejection([0.5], [True, False], 0.1)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_wrong_calibrations_are_refused(tmp_path, method):
    rng = np.random.default_rng(0)
    model = make_model(n_classes=2)
    scores, y = rng.normal(size=40), model.classes_[np.arange(40) % 2]
    model.calibration_ = fit_calibration(scores, y, model.classes_, method)
    model.rejection_ = fit_rejection(rng.uniform(size=40), np.arange(40) > 0, 0.2)
    save(model, tmp_path / "m")
    document, arrays = unpack(tmp_path / "m")
    curve = document["calibration"]["curves"][0]
    one = {"dtype": "float64", "values": [0.5]}
    for curves, word in (
        ([[curve[0], one, one]], "two arrays"),
        ([[one, {"dtype": "float64", "values": [1, 2]}]], "another type"),
        ([[one, {"dtype": "float64", "values": [0.1, 0.2]}]], "curve that is none"),
        ([[one, {"dtype": "float32", "values": [0.5]}]], "curve that is none"),
        ([[one, {"dtype": "float64", "values": []}]], "curve that is none"),
    ):
        wrong = {"calibration": {"method": method, "curves": curves}}
        pack(tmp_path / "m", document | wrong, arrays)
        assert_refused(tmp_path / "m", word)
    wrong = {"calibration": {"method": "magic", "curves": [curve]}}
    pack(tmp_path / "m", document | wrong, arrays)
    assert_refused(tmp_path / "m", "'magic' is not known")
    for change in ({"threshold": 2.0}, {"threshold": "0.5"}, {"n_samples": 1.5}):
        wrong = {"rejection": document["rejection"] | change}
        pack(tmp_path / "m", document | wrong, arrays)
        assert_refused(tmp_path / "m", "rejection")
