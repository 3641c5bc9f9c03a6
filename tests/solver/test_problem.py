"""The problem's objective and gradients, its penalty, and the weights of its
samples.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from solver_cases import CONTAINERS, gradients

from optirank.ranks.orders import order_samples
from optirank.ranks.scoring import TIES
from optirank.solver.blocks import ElasticNet
from optirank.solver.problem import RIDGE_FLOOR, Problem, sample_weights, sigmoid
from rank_definition import ranks_by_definition


def a_problem(seed, container="dense", ties="average", balanced=True, **settings):
    """A small problem full of ties and zeros, weighted samples; also its data and
    a point.
    """
    rng = np.random.default_rng(seed)
    n, d = 12, 9
    X = rng.integers(-2, 4, size=(n, d)) * (rng.random((n, d)) < 0.7)
    y = (np.arange(n) % 3 == 0).astype(float)
    v = sample_weights(y, rng.uniform(0.5, 2.0, n), balanced=balanced)
    orders = order_samples(CONTAINERS[container](X.astype(float)))
    problem = Problem(orders, y, v, 4, ties=ties, **settings)
    point = rng.normal(size=d), float(rng.normal()), rng.dirichlet(np.ones(d)) * 4
    return problem, X, point


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("balanced", [True, False])
def test_objective_and_gradients_are_those_of_the_formula(container, ties, balanced):
    problem, X, (w, b, gamma) = a_problem(1, container, ties, balanced, l1=0.2, l2=0.3)
    z = ranks_by_definition(X, gamma, ties) @ w / 4 + b
    p = 1 / (1 + np.exp(-z))
    loss = -(problem.y * np.log(p) + (1 - problem.y) * np.log(1 - p)) @ problem.v
    np.testing.assert_allclose(problem.scores(w, b, gamma), z, atol=1e-12)
    np.testing.assert_allclose(
        problem.objective(w, b, gamma),
        loss + 0.2 * np.abs(w).sum() + 0.3 * (w**2).sum(),
    )

    def loss_at(x):
        return problem.loss(problem.scores(x[:9], x[9], x[10:]))

    x = np.r_[w, b, gamma]
    numerical = (approx_fprime(x, loss_at, 1e-6) + approx_fprime(x, loss_at, -1e-6)) / 2
    np.testing.assert_allclose(
        np.r_[gradients(problem, w, b, gamma)], numerical, atol=1e-8
    )


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("container", CONTAINERS)
def test_scores_are_linear_in_w_by_the_ranks_and_in_gamma_by_the_coranks(
    ties, container
):
    problem, _, (w, b, gamma) = a_problem(0, container, ties)
    R = problem.orders.ranks(gamma, ties, np.float64)
    V = problem.orders.coranks(w, ties, np.float64)
    z = problem.scores(w, b, gamma)
    np.testing.assert_allclose(R.dot(w) / 4 + b, z, atol=1e-12)
    np.testing.assert_allclose(
        (V.dot(gamma) - TIES[ties][1] * w.sum()) / 4 + b, z, atol=1e-12
    )


def test_loss_and_slopes_stay_finite_and_exact_at_extreme_scores():
    z = np.array([-1e4, -800.0, -40.0, 0.0, 40.0, 800.0, 1e4])
    np.testing.assert_array_equal(sigmoid(z)[[0, 1, 3, 5, 6]], [0, 0, 0.5, 1, 1])
    np.testing.assert_allclose(sigmoid(z)[2], np.exp(-40.0), rtol=1e-14)
    orders = order_samples(np.zeros((7, 1)))
    for label, expected in ((0.0, np.maximum(z, 0)), (1.0, np.maximum(-z, 0))):
        problem = Problem(orders, np.full(7, label), np.full(7, 1 / 7), 1)
        np.testing.assert_allclose(problem.loss(z), expected.mean() + np.log(2) / 7)
        assert np.isfinite(problem.slopes(z)).all()


@given(
    x=st.floats(-10, 10),
    step=st.floats(1e-3, 100),
    l1=st.floats(0, 5),
    l2=st.floats(0, 5),
)
def test_the_proximal_map_of_the_elastic_net_is_the_minimiser_on_a_fine_grid(
    x, step, l1, l2
):
    penalty = ElasticNet(l1, l2)
    (w,) = penalty.prox(np.array([x]), step)

    def cost(w):
        return (w - x) ** 2 / (2 * step) + penalty.value(np.array([w]))

    assert cost(w) <= min(map(cost, [*np.linspace(-11, 11, 301), 0.0, x])) + 1e-12 * (
        1 + cost(w)
    )


def test_balanced_weights_give_each_class_one_half():
    y = np.array([1.0, 0, 0, 0, 1, 0])
    np.testing.assert_allclose(
        sample_weights(y), [1 / 4, 1 / 8, 1 / 8, 1 / 8, 1 / 4, 1 / 8]
    )
    v = sample_weights(y, np.arange(1.0, 7))
    np.testing.assert_allclose([v[y == 1].sum(), v[y == 0].sum()], 0.5)
    np.testing.assert_allclose(v[0] / v[4], 1 / 5)
    np.testing.assert_allclose(
        sample_weights(y, np.arange(6), balanced=False), np.arange(6) / 15
    )


def test_a_sample_of_weight_two_counts_as_two_samples():
    problem, X, point = a_problem(3)
    y, twice, weights = problem.y, np.r_[np.arange(12), 5], np.ones(12)
    weights[5] = 2
    weighted = Problem(problem.orders, y, sample_weights(y, weights), 4)
    repeated = Problem(order_samples(X[twice]), y[twice], sample_weights(y[twice]), 4)
    np.testing.assert_allclose(
        weighted.objective(*point), repeated.objective(*point), rtol=1e-12
    )


def test_without_penalties_a_small_ridge_stands_in():
    assert a_problem(0, l1=0.0, l2=0.0)[0].l2 == RIDGE_FLOOR
    assert a_problem(0, l1=1e-3, l2=0.0)[0].l2 == 0
