"""One rule for labels and probabilities everywhere, and other shares of the classes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from model_cases import make_model, make_samples

from optirank import OptirankClassifier, load, save
from optirank.datasets import make_unstable_ranks
from optirank.model import Predictor, fit_calibration, remember_training, subset
from optirank.model.predict import withheld_word
from optirank.model.prior import class_shares, with_shares


@pytest.fixture(scope="module")
def imbalanced():
    """A calibrated model of two classes, 12 samples of one and 148 of the other, and a query."""
    data = make_unstable_ranks(700, 30, 20, random_state=3)
    kept = np.r_[np.flatnonzero(data.y == 1)[:12], np.flatnonzero(data.y == 0)[:148]]
    rest = np.setdiff1d(np.arange(700), kept)
    names = [f"G{j}" for j in range(30)]
    X = pd.DataFrame(data.X + np.random.default_rng(0).normal(0, 0.1, data.X.shape), columns=names)
    y = np.where(data.y == 1, "rare", "usual")
    model = OptirankClassifier(n_reference=8, l2=1e-3).fit(X.iloc[kept], y[kept])
    remember_training(model, X.iloc[kept], y[kept])
    scores = model.decision_function(X.iloc[rest[:200]])
    mix = np.r_[
        np.flatnonzero(y[rest[:200]] == "usual"), np.flatnonzero(y[rest[:200]] == "rare")[:8]
    ]
    model.calibration_ = fit_calibration(scores[mix], y[rest[:200]][mix], model.classes_)
    return model, X.iloc[rest[200:]], y[rest[200:]]


def test_labels_and_probabilities_are_the_same_whoever_predicts(imbalanced, tmp_path):
    model, X, _ = imbalanced
    save(model, tmp_path / "m")
    found = Predictor(model, X.columns).predict(X)
    for one in (model, load(tmp_path / "m")):
        np.testing.assert_array_equal(one.predict(X), found.labels)
        np.testing.assert_array_equal(one.predict_proba(X), found.probabilities)
    by_probability = model.classes_[found.probabilities.argmax(axis=1)]
    np.testing.assert_array_equal(by_probability, found.labels)
    uncalibrated = Predictor(model, X.columns, calibrated=False).predict(X)
    np.testing.assert_array_equal(uncalibrated.labels, found.labels)


def test_the_training_prior_moves_labels_to_the_frequent_class(imbalanced):
    model, X, _ = imbalanced
    balanced = Predictor(model, X.columns).predict(X)
    predictor = Predictor(model, X.columns, prior="training")
    found = predictor.predict(X)
    assert any("assume these shares" in note and "rare 7.5%" in note for note in predictor.notes())
    odds = balanced.probabilities * [12 / 160, 148 / 160]
    np.testing.assert_allclose(found.probabilities, odds / odds.sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(found.labels, model.classes_[odds.argmax(axis=1)])
    assert (found.labels == "usual").sum() > (balanced.labels == "usual").sum()
    given = Predictor(model, X.columns, prior={"rare": 12, "usual": 148}).predict(X)
    np.testing.assert_allclose(given.probabilities, found.probabilities)


def test_equal_shares_are_the_balanced_prior(imbalanced):
    model, X, _ = imbalanced
    equal = Predictor(model, X.columns, prior={"rare": 0.5, "usual": 0.5}).predict(X)
    balanced = Predictor(model, X.columns, prior="balanced").predict(X)
    np.testing.assert_allclose(equal.probabilities, balanced.probabilities, rtol=1e-12)
    np.testing.assert_array_equal(equal.labels, balanced.labels)


def test_a_class_of_share_zero_is_never_predicted():
    model = make_model(n_classes=3)
    X = make_samples(0, 40, 12)
    found = Predictor(model, prior={"type 0": 0, "type 1": 3, "type 2": 1}).predict(X)
    assert not found.probabilities[:, 0].any()
    assert set(found.labels) <= {"type 1", "type 2"}


def test_samples_sure_of_an_impossible_class_get_the_shares():
    found = with_shares(np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]), np.array([0.0, 0.25, 0.75]))
    np.testing.assert_allclose(found, [[0, 0.25, 0.75], [0, 1, 0]])


def test_classes_left_out_need_no_share_of_their_own():
    model = make_model(n_classes=4)
    model.training_summary_ = {"class_counts": dict.fromkeys(model.classes_.tolist(), 5)}
    small = subset(model, ["type 0", "type 1", "type 3"])
    shares = class_shares(small, "training")
    assert shares == pytest.approx({"type 0": 1 / 3, "type 1": 1 / 3, "type 3": 1 / 3})


def test_labels_that_are_numbers_are_found_as_text():
    model = make_model(n_classes=3, labels="int")
    assert class_shares(model, {"-1": 1, "2": 2, "5": 1}) == {-1: 0.25, 2: 0.5, 5: 0.25}


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ("even", "prior='even' is not known"),
        ("training", "does not know how many samples"),
        ({"type 0": 1}, "no share for 2 of the 3 classes, such as 'type 1'"),
        ({"type 0": 1, "type 1": 1, "type 2": 1, "x": 1}, "share for 'x', which is not a class"),
        ({"type 0": 1, "type 1": 1, "type 2": -1}, "share of 'type 2' is -1"),
        ({"type 0": 1, "type 1": 1, "type 2": "many"}, "share of 'type 2' is 'many'"),
        ({"type 0": 0, "type 1": 0, "type 2": 0}, "all 0"),
        ({"type 0": 1, "type 1": float("inf"), "type 2": 0}, "share of 'type 1' is inf"),
    ],
)
def test_a_prior_that_is_none_is_refused(prior, message):
    with pytest.raises(ValueError, match=message):
        Predictor(make_model(), prior=prior)


def test_the_word_for_withheld_labels_is_no_class():
    assert withheld_word(["a", "b"]) == "unassigned"
    assert withheld_word(["a", "unassigned"]) == "withheld"
    assert withheld_word(["withheld", "unassigned", "withheld 2"]) == "withheld 3"
