"""Error rates that are promised: thresholds from held-out samples and from simulated platforms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optirank.model import Outcomes, Rejection, fit_rejection
from optirank.model.promises import lowest_threshold


def outcomes(n: int, floor: float, seed: int, n_platforms: int = 3) -> Outcomes:
    """Labels that are right with a probability of ``floor`` more than their confidence."""
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(0.5, 1.0, n)
    correct = rng.random(n) < np.clip(confidence + floor, 0, 1)
    return Outcomes(confidence, correct, np.arange(n) % n_platforms)


@given(st.integers(0, 2**32 - 1), st.floats(0.02, 0.5))
def test_no_lower_threshold_would_do(seed, target):
    one = outcomes(60, 0.0, seed)
    found = lowest_threshold(one.confidence, one.correct, target)
    possible = [
        t for t in [0.0, *one.confidence] if (~one.correct[one.confidence >= t]).mean() <= target
    ]
    assert found == (min(possible) if possible else None)


@given(st.integers(0, 2**32 - 1))
def test_a_threshold_keeps_the_promise_on_both_kinds_of_samples(seed):
    here, there = outcomes(300, 0.2, seed), outcomes(300, 0.1, seed + 1)
    found = fit_rejection(here.confidence, here.correct, 0.1, elsewhere=there)
    assert found.error <= 0.1
    kept = there.confidence >= found.threshold
    if "nothing can be promised" not in found.reason and kept.any():
        assert (~there.correct[kept]).mean() <= 0.1
    assert found.elsewhere == (
        min(there.errors(found.threshold)),
        max(there.errors(found.threshold)),
    )


def test_simulated_platforms_withhold_more_and_both_figures_are_told():
    here, there = outcomes(2000, 0.3, 0), outcomes(2000, 0.05, 1)
    alone = fit_rejection(here.confidence, here.correct, 0.1)
    both = fit_rejection(here.confidence, here.correct, 0.1, elsewhere=there)
    assert both.threshold > alone.threshold
    assert "nothing is known of other platforms" in alone.reason
    assert (
        f"on simulated platforms {both.elsewhere[0]:.1%} to {both.elsewhere[1]:.1%}" in both.reason
    )


def test_nothing_is_promised_where_no_confidence_is_enough():
    confidence = np.linspace(0.5, 1.0, 50)
    bad = Outcomes(confidence, np.arange(50) % 2 == 1, np.zeros(50, int))
    bad.correct[-1] = False
    found = fit_rejection(confidence, np.ones(50, bool), 0.05, elsewhere=bad)
    assert "nothing can be promised on another platform" in found.reason


@pytest.mark.parametrize(("n", "possible"), [(25, False), (40, True)])
def test_few_held_out_samples_promise_little(n, possible):
    confidence, correct = np.linspace(0.6, 1.0, n), np.ones(n, bool)
    if possible:
        assert fit_rejection(confidence, correct, 0.05).threshold == 0.0
        return
    with pytest.raises(ValueError, match=f"of {n} held-out samples 0.0% are wrong.*more samples"):
        fit_rejection(confidence, correct, 0.05)
    assert fit_rejection(confidence, correct, 0.1).threshold == 0.0


def test_classes_count_equally_whatever_their_shares():
    """Of 200 samples 20 are of a class half of whose unsure samples are wrong."""
    confidence = np.tile(np.linspace(0.5, 1.0, 20), 10)
    truth = (np.arange(200) < 20).astype(int)
    correct = (truth == 0) | (confidence > 0.75) | (np.arange(200) % 2 == 0)
    alike = fit_rejection(confidence, correct, 0.1)
    balanced = fit_rejection(confidence, correct, 0.1, truth=truth)
    assert alike.threshold == 0.0
    assert balanced.threshold > 0.5
    kept = confidence >= balanced.threshold
    errors = [np.mean(~correct[kept & (truth == k)]) for k in (0, 1)]
    assert np.mean(errors) < 0.1


@given(st.integers(0, 2**32 - 1))
def test_equal_classes_and_unknown_ones_have_the_same_threshold(seed):
    one = outcomes(200, 0.2, seed)
    known = fit_rejection(one.confidence, one.correct, 0.2, truth=np.arange(200) % 4)
    assert known == fit_rejection(one.confidence, one.correct, 0.2)


def test_samples_between_classes_are_withheld():
    confidence = np.linspace(0.5, 1.0, 101)
    found = fit_rejection(confidence, np.ones(101, bool), 0.05, between=0.2)
    assert found.threshold == pytest.approx(0.6)
    assert found.accepted == pytest.approx(81 / 101)


@pytest.mark.parametrize("elsewhere", [None, (0.02, 0.3)])
def test_a_rejection_is_read_back(elsewhere):
    one = Rejection(0.7, 0.05, 0.04, 0.9, 100, "because", elsewhere)
    assert Rejection.from_plain(one.to_plain()) == one


def test_a_rejection_of_an_old_file_is_read():
    old = Rejection(0.7, 0.05, 0.04, 0.9, 100, "because").to_plain()
    del old["elsewhere"]
    assert Rejection.from_plain(old).elsewhere is None


@pytest.mark.parametrize("value", [[0.1], [0.1, 2.0], "far", [1, 2]])
def test_a_damaged_rejection_is_refused(value):
    stored = Rejection(0.7, 0.05, 0.04, 0.9, 100, "because").to_plain()
    with pytest.raises(ValueError, match="rejection"):
        Rejection.from_plain(stored | {"elsewhere": value})


@pytest.mark.parametrize("found", [{}, None, {"confidence": [0.5]}, {"confidence": []}, 3])
def test_a_summary_without_platforms_has_no_outcomes(found):
    assert Outcomes.from_summary({"elsewhere": found}) is None
    assert Outcomes.from_summary(None) is None
