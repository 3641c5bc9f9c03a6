"""Error control: which labels are given so that few of them are wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from optirank.model.confidence import fit_error_control, raise_threshold


def clopper_pearson(correct: np.ndarray) -> float:
    wrong = int((~correct).sum())
    return binomtest(wrong, len(correct)).proportion_ci(0.6, "exact").high


@given(
    st.lists(
        st.tuples(st.sampled_from([0.5, 0.6, 0.7, 0.9]), st.booleans()), min_size=1
    ),
    st.floats(0.01, 0.99),
)
def test_thresholds_are_tested_from_the_top_until_the_first_fails(samples, target):
    confidence = np.array([value for value, _ in samples])
    correct = np.array([right for _, right in samples])
    control = fit_error_control(confidence, correct)
    assert control.thresholds.tolist() == sorted(control.thresholds, reverse=True)
    passed = None
    for threshold in control.thresholds:
        given_labels = correct[confidence >= threshold]
        if clopper_pearson(np.ones(len(given_labels), bool)) > target:
            continue  # too few samples to show it, even without an error
        if clopper_pearson(given_labels) > target:
            break
        passed = threshold
    if passed is None:
        with pytest.raises(ValueError, match="held-out samples cannot show it"):
            control.at(target)
        return
    threshold, reason = control.at(target)
    kept = confidence >= threshold
    assert kept.mean() == np.mean(confidence >= passed)
    assert f"{np.mean(~correct[kept]):.1%} of these labels are wrong" in reason


def test_the_error_asked_for_is_exceeded_in_at_most_a_fifth_of_trainings():
    """With 80 % confidence: simulated trainings whose true error is known."""
    rng = np.random.default_rng(0)
    grid = (np.arange(1000) + 0.5) / 1000
    exceeded = 0
    trainings = 400
    for _ in range(trainings):
        confidence = rng.uniform(size=300)
        correct = rng.uniform(size=300) < 0.8 + 0.2 * confidence
        control = fit_error_control(confidence, correct)
        try:
            threshold = control.at(0.05)[0]
        except ValueError:
            continue
        true_error = np.mean(0.2 - 0.2 * grid[grid >= threshold])
        exceeded += true_error > 0.05
    assert exceeded / trainings <= 0.2


def test_classes_count_equally():
    confidence = np.full(220, 0.9)
    correct = np.r_[np.ones(200, bool), np.zeros(10, bool), np.ones(10, bool)]
    truth = np.repeat(["common", "rare"], [200, 20])
    assert fit_error_control(confidence, correct).errors[-1] == pytest.approx(10 / 220)
    with pytest.raises(ValueError, match=r"25\.0% are wrong"):
        fit_error_control(confidence, correct, truth).at(0.1)


def test_few_samples_that_show_nothing_are_named():
    control = fit_error_control(np.linspace(0.5, 1, 6), np.ones(6, bool))
    with pytest.raises(ValueError, match=r"6 held-out samples cannot show it.*23\.5%"):
        control.at(0.05)


def test_the_query_s_own_confidences_raise_the_threshold():
    sure = np.full(90, 0.99)
    unsure = np.full(10, 0.6)
    confidence = np.concatenate([sure, unsure])
    assert raise_threshold(confidence, 0.0, 0.2) == 0.0
    assert raise_threshold(confidence, 0.0, 0.02) == 0.99
    assert raise_threshold(confidence, 0.995, 0.02) == 0.995  # nothing is given
    assert raise_threshold(unsure, 0.0, 0.05) > 1.0  # no label can be given


@given(
    st.lists(st.floats(0.3, 1.0), min_size=1, max_size=40),
    st.floats(0, 1),
    st.floats(0.01, 0.5),
)
def test_labels_that_are_given_are_expected_to_keep_the_error(values, lowest, target):
    confidence = np.array(values)
    threshold = raise_threshold(confidence, lowest, target)
    kept = confidence >= threshold
    assert threshold >= lowest
    if kept.any():
        assert np.mean(1 - confidence[kept]) <= target + 1e-12
    more = (confidence >= lowest) & (confidence < threshold)
    if more.any():  # the next lower ones would not do
        following = kept | (confidence == confidence[more].max())
        assert np.mean(1 - confidence[following]) > target - 1e-12
