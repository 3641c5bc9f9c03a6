"""Calibrated probabilities and the threshold below which a label is withheld."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from model_cases import assert_refused, make_model, pack, unpack
from scipy.stats import binomtest

from optirank.model import Calibration, fit_calibration, fit_rejection, load, save
from optirank.ranks.scoring import best_class, by_class, probabilities


def of_classes(n: int = 900, seed: int = 0, shares=(1, 1, 1)):
    """Scores of three classes that are too sure of themselves, the classes in given shares."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(3, size=n, p=np.array(shares) / sum(shares))
    truth = rng.normal(size=(n, 3)) + 2.0 * np.eye(3)[codes]
    return 2.5 * truth - 1.0, np.array(["a", "b", "c"])[codes]


scores_of_samples = st.integers(2, 5).flatmap(
    lambda k: arrays(
        float, st.tuples(st.integers(1, 6), st.just(k)), elements=st.floats(-50, 50, width=32)
    )
)


@given(scores_of_samples, st.floats(1e-3, 10), st.floats(-30, 30), st.booleans())
def test_a_calibration_never_changes_the_order_of_the_classes(scores, slope, offset, two):
    scores = scores[:, 0] if two else scores
    found = Calibration(slope, offset, 10).probabilities(scores)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    label = best_class(scores)
    np.testing.assert_allclose(found[np.arange(len(found)), label], found.max(axis=1), rtol=1e-12)
    order = by_class(scores).argsort(axis=1, kind="stable")
    assert (np.diff(np.take_along_axis(found, order, axis=1)) >= -1e-15).all()


def test_without_a_calibration_probabilities_are_logistic():
    z = np.linspace(-30, 30, 13)
    np.testing.assert_allclose(probabilities(z)[:, 1], 1 / (1 + np.exp(-z)), rtol=1e-12)
    each = 1 / (1 + np.exp(-np.array([[1.0, -2, 0.5]])))
    np.testing.assert_allclose(probabilities(np.array([[1.0, -2, 0.5]])), each / each.sum())
    softmax = np.exp([1.0, -2, 0.5]) / np.exp([1.0, -2, 0.5]).sum()
    found = probabilities(np.array([[1.0, -2, 0.5]]), offset=-np.inf)
    np.testing.assert_allclose(found, softmax[None])
    np.testing.assert_allclose(probabilities(np.array([[1.0, -2, 0.5]]), offset=-30.0), found)


def test_scores_far_below_zero_keep_their_order():
    found = probabilities(np.array([[-1e4, -2e4, -1.1e4], [-np.inf] * 3]))
    np.testing.assert_allclose(found, [[1, 0, 0], [1 / 3] * 3], atol=1e-12)


def test_scores_that_are_too_sure_are_put_right():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)
    log_odds = 2 * rng.normal(2 * y - 1, 1.0)  # of two normal classes two apart
    found = fit_calibration(3 * log_odds, y, [0, 1]).probabilities(3 * log_odds)
    assert np.abs(found[:, 1] - 1 / (1 + np.exp(-log_odds))).mean() < 0.02


@pytest.mark.parametrize("shares", [(1, 1, 1), (20, 4, 1)])
def test_probabilities_are_those_of_equally_frequent_classes(shares):
    calibration = fit_calibration(*of_classes(6000, 0, shares), ["a", "b", "c"])
    scores, y = of_classes(6000, 1)
    found = calibration.probabilities(scores)
    confidence, right = found.max(axis=1), np.array(["a", "b", "c"])[found.argmax(axis=1)] == y
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
    wrong = 1 / (size + 2)
    target = np.where(np.eye(3)[codes] > 0, 1 - wrong[:, None], wrong[:, None] / 2)

    def loss(slope, offset):
        p = Calibration(slope, offset, 0).probabilities(scores)
        return -((target * np.log(p)).sum(axis=1) / size).sum() / 3

    least = loss(fitted.slope, fitted.offset)
    for slope in fitted.slope * np.array([0.5, 0.9, 0.99, 1.01, 1.1, 2]):
        assert loss(slope, fitted.offset) >= least - 1e-9
    for offset in fitted.offset + np.array([-1, -0.1, -0.01, 0.01, 0.1, 1]):
        assert loss(fitted.slope, offset) >= least - 1e-9


def test_separable_scores_stay_finite():
    calibration = fit_calibration([-3, -2, 2, 3.0], [0, 0, 1, 1], [0, 1])
    assert np.isfinite([calibration.slope, calibration.offset]).all()
    assert calibration.probabilities(np.array([3.0]))[0, 1] < 1


def test_a_class_without_held_out_samples_needs_no_curve_of_its_own():
    scores, y = of_classes(300)
    kept = y != "b"
    found = fit_calibration(scores[kept], y[kept], ["a", "b", "c"])
    assert found.n_samples == kept.sum()
    assert found.slope > 0


@pytest.mark.parametrize(
    ("scores", "y", "classes", "message"),
    [
        ([1.0, 2], [0, 0], [0, 1], "all 2 held-out samples with scores are of class 0"),
        (np.zeros((0, 3)), [], [0, 1, 2], "no held-out sample has scores"),
        ([1.0, 2], [0, 7], [0, 1], "is of class 7, which the model lacks"),
        ([1.0, 2], [0, 1], [0, 1, 2], r"scores of shape \(2,\) for 2 labels"),
        ([1.0, 2, 3], [0, 1], [0, 1], "scores of shape"),
    ],
)
def test_what_cannot_be_calibrated_is_refused(scores, y, classes, message):
    with pytest.raises(ValueError, match=message):
        fit_calibration(scores, y, classes)


@given(
    st.lists(st.tuples(st.sampled_from([0.5, 0.6, 0.7, 0.9]), st.booleans()), min_size=1),
    st.floats(0.01, 0.99),
)
def test_the_threshold_is_the_lowest_that_keeps_the_error(samples, target):
    confidence = np.array([c for c, _ in samples])
    correct = np.array([r for _, r in samples])

    def bound(threshold):  # of Clopper and Pearson
        kept = correct[confidence >= threshold]
        return binomtest((~kept).sum(), len(kept)).proportion_ci(0.6, "exact").high

    reachable = [t for t in sorted(set(confidence)) if bound(t) <= target]
    if not reachable:
        with pytest.raises(ValueError, match="cannot be promised"):
            fit_rejection(confidence, correct, target)
        return
    found = fit_rejection(confidence, correct, target)
    kept = confidence >= found.threshold
    assert found.error == np.mean(~correct[kept]) <= target
    assert bound(found.threshold) <= target + 1e-9
    assert found.accepted == kept.mean() == np.mean(confidence >= reachable[0])
    assert found.n_samples == len(samples)


def test_the_threshold_comes_with_its_reason():
    confidence = np.linspace(0.5, 1, 101)
    correct = np.arange(101) >= 20
    found = fit_rejection(confidence, correct, 0.05)
    assert found.reason == (
        "on 101 held-out samples 19.8% of the labels were wrong; with a confidence of at least "
        "0.595, 81.2% keep their label and 1.2% of those are wrong (at most 3.6% with 80% "
        "certainty, each class counting equally, for samples like these), nothing is known of "
        "other platforms; asked for: 0.05"
    )
    assert fit_rejection(confidence, correct, 0.5).threshold == 0.0


@pytest.mark.parametrize("target", [0, 1, -0.1, 5])
def test_a_target_that_is_no_share_is_refused(target):
    with pytest.raises(ValueError, match="target error "):
        fit_rejection([0.5], [True], target)


def test_a_rejection_needs_samples():
    with pytest.raises(ValueError, match="at least one"):
        fit_rejection([], [], 0.1)
    with pytest.raises(ValueError, match="one confidence and one verdict per"):
        fit_rejection([0.5], [True, False], 0.1)


@pytest.fixture
def stored(tmp_path):
    """A file of a calibrated model, taken apart."""
    rng = np.random.default_rng(0)
    model = make_model(n_classes=2)
    scores, y = rng.normal(size=40), model.classes_[np.arange(40) % 2]
    model.calibration_ = fit_calibration(scores, y, model.classes_)
    model.rejection_ = fit_rejection(rng.uniform(size=40), np.arange(40) > 0, 0.2)
    model.training_summary_ = {"held_out": {"confidence": [0.5], "correct": [True]}, "n_samples": 9}
    save(model, tmp_path / "m")
    return tmp_path / "m", *unpack(tmp_path / "m"), model


def test_a_calibration_comes_back(stored):
    path, _, _, model = stored
    assert load(path).calibration_ == model.calibration_
    assert load(path).rejection_ == model.rejection_


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slope": 0.0}, "slope 0.0"),
        ({"slope": -1.0}, "slope -1.0"),
        ({"slope": 1}, "wrong type"),
        ({"offset": "0"}, "wrong type"),
        ({"n_samples": -1}, "wrong type"),
        ({"n_samples": True}, "wrong type"),
        ({"version": 3}, "newer version"),
        ({"more": 1}, "incomplete"),
    ],
)
def test_wrong_calibrations_are_refused(stored, change, message):
    path, document, numbers, _ = stored
    pack(path, document | {"calibration": document["calibration"] | change}, numbers)
    assert_refused(path, message)


def test_wrong_rejections_are_refused(stored):
    path, document, numbers, _ = stored
    for change in ({"threshold": 2.0}, {"threshold": "0.5"}, {"n_samples": 1.5}):
        pack(path, document | {"rejection": document["rejection"] | change}, numbers)
        assert_refused(path, "rejection")


def array(*values: float, dtype: str = "float64") -> dict:
    return {"dtype": dtype, "values": list(values)}


@pytest.mark.parametrize("schema", [1, 2])
@pytest.mark.parametrize(
    ("method", "curve", "slope"),
    [
        ("sigmoid", [array(2.0), array(-1.5)], 2.0),
        ("isotonic", [array(-2.0, 2.0), array(1 / (1 + np.e), np.e / (1 + np.e))], 0.5),
        ("isotonic", [array(0.5), array(0.5)], 1.0),
    ],
)
def test_curves_of_the_first_version_open_as_their_slope(stored, schema, method, curve, slope):
    path, document, numbers, _ = stored
    old = {"schema": schema, "calibration": {"method": method, "curves": [curve]}}
    pack(path, document | old, numbers)
    model = load(path)
    assert model.calibration_ == Calibration(pytest.approx(slope), 0.0, 0)
    assert not hasattr(model, "rejection_")  # its threshold was one of other probabilities
    assert "held_out" not in model.training_summary_


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize(
    ("curves", "message"),
    [
        ([[array(0.5), array(0.5), array(0.5)]], "two arrays"),
        ([[array(0.5), array(1, 2)]], "another type"),
        ([[array(0.5), array(0.1, 0.2)]], "does not rise, or is no curve"),
        ([[array(0.5), array(0.5, dtype="float32")]], "does not rise, or is no curve"),
        ([[array(0.5), array()]], "does not rise, or is no curve"),
        ([], "one curve per problem"),
    ],
)
def test_wrong_curves_of_the_first_version_are_refused(stored, method, curves, message):
    path, document, numbers, _ = stored
    wrong = {"calibration": {"method": method, "curves": curves}}
    pack(path, document | wrong, numbers)
    assert_refused(path, message)
    pack(path, document | {"calibration": {"method": "magic", "curves": curves[:1]}}, numbers)
    assert_refused(path, "'magic' is not known" if curves else "one curve per problem")
