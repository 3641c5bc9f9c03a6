"""Simulated platforms: every gene has a factor of its own."""

from __future__ import annotations

import numpy as np
import pytest

from optirank.panel.drills import log_factors, with_factors


def test_factors_are_normal_of_the_strength_and_the_same_every_time():
    logs = log_factors(4000, 2.0, 3)
    assert logs.std() == pytest.approx(2.0, rel=0.05)
    assert abs(logs.mean()) < 0.1
    np.testing.assert_array_equal(logs[:10], log_factors(4000, 2.0, 3)[:10])
    assert abs(np.corrcoef(logs, log_factors(4000, 2.0, 4))[0, 1]) < 0.1


def test_counts_below_a_factor_of_one_are_lost_by_chance():
    counts = np.full((2000, 2), 10.0)
    values = with_factors(counts, np.log([0.3, 2.0]), "counts")
    assert values[:, 0].mean() == pytest.approx(3.0, rel=0.05)
    assert values[:, 0].var() == pytest.approx(2.1, rel=0.15)
    assert (values[:, 1] == 20.0).all()


@pytest.mark.parametrize("scale", ["counts", "linear", "log"])
def test_what_was_not_detected_stays_so(scale):
    values = np.array([[0.0, 3.0, 7.0], [2.0, 0.0, 1.0]])
    other = with_factors(values, np.array([-3.0, 0.5, 2.0]), scale)
    assert (other[values == 0] == 0).all()
    assert (other >= 0).all()


def test_logarithms_are_shifted():
    values = np.array([[1.5, -2.0], [0.5, 1.0]])
    shifted = with_factors(values, np.array([1.0, -1.0]), "log")
    np.testing.assert_allclose(shifted, values + np.array([1.0, -1.0]))
