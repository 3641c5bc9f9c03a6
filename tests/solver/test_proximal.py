"""Proximal maps minimise what they say they minimise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optirank.solver.proximal import prox_elastic_net, soft_threshold

numbers = st.floats(-10, 10)
penalties = st.floats(0, 5)


@given(x=numbers, step=st.floats(1e-3, 100), l1=penalties, l2=penalties)
def test_prox_elastic_net_is_the_minimiser_on_a_fine_grid(x, step, l1, l2):
    def cost(w):
        return (w - x) ** 2 / (2 * step) + l1 * np.abs(w) + l2 * w**2

    w = float(prox_elastic_net(np.array([x]), step, l1, l2)[0])
    grid = np.concatenate([np.linspace(-11, 11, 2001), [0.0, x]])
    assert cost(w) <= cost(grid).min() + 1e-12 * (1 + cost(w))


@pytest.mark.parametrize("seed", range(5))
def test_prox_elastic_net_meets_its_subgradient_condition(seed):
    rng = np.random.default_rng(seed)
    x, step, l1, l2 = rng.normal(size=30), *rng.uniform(0.1, 1, size=3)
    w = prox_elastic_net(x, step, l1, l2)
    slope = (x - w) / step - 2 * l2 * w  # must be a subgradient of l1 |w|
    np.testing.assert_allclose(slope[w != 0], l1 * np.sign(w[w != 0]), atol=1e-12)
    assert (np.abs(slope[w == 0]) <= l1 + 1e-12).all()
    assert (w == 0).any()
    assert (w != 0).any()


def test_soft_threshold_gives_exact_zeros_and_keeps_signs():
    x = np.array([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])
    np.testing.assert_array_equal(soft_threshold(x, 1.0), [-1, 0, 0, 0, 0, 0, 1])


def test_without_penalty_the_prox_is_the_identity():
    x = np.array([-3.0, 0.1, 7.0])
    np.testing.assert_array_equal(prox_elastic_net(x, 0.3, 0.0, 0.0), x)
