"""The problem's objective and gradients, against the definition and against numerical ones."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import approx_fprime

from optirank.ranks.definition import TIES, ranks_by_definition
from optirank.ranks.orders import order_samples
from optirank.solver.problem import RIDGE_FLOOR, Problem, Solution, sample_weights, sigmoid

CONTAINERS = {"dense": np.asarray, "sparse": sp.csr_array}


def make_problem(seed, container="dense", ties="average", balanced=True, **settings):
    """A small problem full of ties and zeros, weighted samples; also its data and a point."""
    rng = np.random.default_rng(seed)
    n, d = 12, 9
    X = rng.integers(-2, 4, size=(n, d)) * (rng.random((n, d)) < 0.7)
    y = (np.arange(n) % 3 == 0).astype(float)
    v = sample_weights(y, rng.uniform(0.5, 2.0, n), balanced=balanced)
    orders = order_samples(CONTAINERS[container](X.astype(float)))
    problem = Problem(orders, y, v, 4, ties=ties, **settings)
    point = rng.normal(size=d), float(rng.normal()), rng.dirichlet(np.ones(d)) * 4
    return problem, X, point


EACH = [
    pytest.mark.parametrize("container", CONTAINERS),
    pytest.mark.parametrize("ties", TIES),
    pytest.mark.parametrize("balanced", [True, False]),
    pytest.mark.parametrize("seed", range(6)),
]


def each_problem(test):
    for mark in EACH:
        test = mark(test)
    return test


@each_problem
def test_objective_is_the_formula(container, ties, balanced, seed):
    problem, X, (w, b, gamma) = make_problem(seed, container, ties, balanced, l1=0.2, l2=0.3)
    z = ranks_by_definition(X, gamma, ties) @ w / 4 + b
    p = 1 / (1 + np.exp(-z))
    loss = -(problem.y * np.log(p) + (1 - problem.y) * np.log(1 - p)) @ problem.v
    np.testing.assert_allclose(problem.scores(w, b, gamma), z, atol=1e-12)
    np.testing.assert_allclose(
        problem.objective(w, b, gamma), loss + 0.2 * np.abs(w).sum() + 0.3 * (w**2).sum()
    )


@each_problem
def test_gradients_equal_numerical_ones(container, ties, balanced, seed):
    problem, _, (w, b, gamma) = make_problem(seed, container, ties, balanced)
    slopes = problem.slopes(problem.scores(w, b, gamma))

    def numerical(f, x):
        h = 1e-6
        forward, backward = approx_fprime(x, f, h), approx_fprime(x, f, -h)
        return (forward + backward) / 2

    def loss(w_=w, b_=b, gamma_=gamma):
        return problem.loss(problem.scores(w_, b_, gamma_))

    np.testing.assert_allclose(
        problem.gradient_w(gamma, slopes), numerical(lambda x: loss(w_=x), w), atol=1e-8
    )
    np.testing.assert_allclose(
        problem.gradient_gamma(w, slopes), numerical(lambda x: loss(gamma_=x), gamma), atol=1e-8
    )
    np.testing.assert_allclose(
        slopes.sum(), numerical(lambda x: loss(b_=x[0]), np.array([b]))[0], atol=1e-8
    )


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("container", CONTAINERS)
def test_scores_are_linear_in_w_by_the_ranks_and_in_gamma_by_the_coranks(ties, container):
    problem, _, (w, b, gamma) = make_problem(0, container, ties)
    R = problem.orders.ranks(gamma, ties, np.float64)
    V = problem.orders.coranks(w, ties, np.float64)
    z = problem.scores(w, b, gamma)
    np.testing.assert_allclose(R.dot(w) / 4 + b, z, atol=1e-12)
    np.testing.assert_allclose((V.dot(gamma) - problem.offset * w.sum()) / 4 + b, z, atol=1e-12)


def test_loss_and_slopes_stay_finite_and_exact_at_extreme_scores():
    z = np.array([-1e4, -800.0, -40.0, 0.0, 40.0, 800.0, 1e4])
    np.testing.assert_array_equal(sigmoid(z)[[0, 1, 3, 5, 6]], [0, 0, 0.5, 1, 1])
    np.testing.assert_allclose(sigmoid(z)[2], np.exp(-40.0), rtol=1e-14)
    np.testing.assert_allclose(sigmoid(z) + sigmoid(-z), 1.0)
    orders = order_samples(np.zeros((7, 1)))
    for label, expected in ((0.0, np.maximum(z, 0)), (1.0, np.maximum(-z, 0))):
        problem = Problem(orders, np.full(7, label), np.full(7, 1 / 7), 1)
        np.testing.assert_allclose(problem.loss(z), expected.mean() + np.log(2) / 7)
        assert np.isfinite(problem.slopes(z)).all()


def test_balanced_weights_give_each_class_one_half():
    y = np.array([1.0, 0, 0, 0, 1, 0])
    v = sample_weights(y)
    np.testing.assert_allclose(v, [1 / 4, 1 / 8, 1 / 8, 1 / 8, 1 / 4, 1 / 8])
    q = np.array([1.0, 2, 3, 4, 5, 6])
    v = sample_weights(y, q)
    np.testing.assert_allclose([v[y == 1].sum(), v[y == 0].sum()], 0.5)
    np.testing.assert_allclose(v[0] / v[4], 1 / 5)


def test_unbalanced_weights_are_the_sample_weights_made_to_sum_to_one():
    y = np.array([1.0, 0, 0, 0])
    np.testing.assert_allclose(sample_weights(y, balanced=False), 0.25)
    np.testing.assert_allclose(
        sample_weights(y, [1, 2, 3, 4], balanced=False), np.array([1, 2, 3, 4]) / 10
    )


def test_a_sample_of_weight_two_counts_as_two_samples():
    problem, X, (w, b, gamma) = make_problem(3)
    y = problem.y
    twice = np.r_[np.arange(12), 5]
    weights = np.ones(12)
    weights[5] = 2
    weighted = Problem(problem.orders, y, sample_weights(y, weights), 4)
    repeated = Problem(order_samples(X[twice]), y[twice], sample_weights(y[twice]), 4)
    np.testing.assert_allclose(
        weighted.objective(w, b, gamma), repeated.objective(w, b, gamma), rtol=1e-12
    )


def test_without_penalties_a_small_ridge_stands_in():
    problem, _, _ = make_problem(0, l1=0.0, l2=0.0)
    assert problem.l2 == RIDGE_FLOOR
    problem, _, _ = make_problem(0, l1=1e-3, l2=0.0)
    assert problem.l2 == 0


def test_a_solution_is_integral_when_gamma_is_exactly_zeros_and_ones():
    assert Solution(np.zeros(3), 0.0, np.array([0.0, 1, 1]), 0.5).integral
    assert not Solution(np.zeros(3), 0.0, np.array([0.5, 0.5, 1]), 0.5).integral
