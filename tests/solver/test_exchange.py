"""Exchanges keep a set of the same size, lower the objective, and repair a spoilt set."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from optirank.datasets import make_unstable_ranks
from optirank.ranks.definition import TIES
from optirank.ranks.orders import order_samples
from optirank.solver.alternation import Alternation, State
from optirank.solver.exchange import exchange_batches, exchange_pairs
from optirank.solver.convex import solve_at
from optirank.solver.problem import Problem, sample_weights

PAIRS = {"n_models": 8, "n_candidates": 60, "n_failures": 25}


def batches(alternation, state):
    return exchange_batches(alternation, state, 20)


def pairs(alternation, state):
    return exchange_pairs(alternation, state, **PAIRS)


def start_at(problem, gamma):
    """A state at a set, after a few steps on w."""
    alternation = Alternation(problem)
    state = State(np.zeros(problem.n_genes), 0.0, gamma)
    return alternation, alternation.steps_on_w(state, 100)


def make_problem(
    seed, n_reference, l1=0.0, l2=1e-3, ties="average", container=np.asarray, d=30, **settings
):
    rng = np.random.default_rng(seed)
    y = (np.arange(120) % 2).astype(float)
    effect = np.outer(y, rng.choice([-1.0, 0.0, 1.0], size=d))
    X = rng.poisson(np.exp(rng.normal(1, 0.7, size=d) + effect)).astype(float)
    orders = order_samples(container(X))
    problem = Problem(orders, y, sample_weights(y), n_reference, l1, l2, ties, **settings)
    return problem, (rng.permutation(d) < n_reference).astype(float)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("l1", [0.0, 5e-3])
@pytest.mark.parametrize("n_reference", [1, 6, 29])
@pytest.mark.parametrize("exchange", [batches, pairs])
def test_a_random_set_becomes_a_better_one_of_the_same_size(exchange, n_reference, l1, ties):
    problem, gamma = make_problem(0, n_reference, l1, ties=ties)
    alternation, state = start_at(problem, gamma)
    new = exchange(alternation, state)
    assert set(np.unique(new.gamma)) <= {0.0, 1.0}
    assert new.gamma.sum() == n_reference
    assert new.objective <= state.objective + 1e-9
    refitted = [solve_at(problem, each.gamma).objective for each in (state, new)]
    assert refitted[1] <= refitted[0] * (1 + 1e-4)
    if n_reference == 6:
        assert refitted[1] < 0.99 * refitted[0]


@pytest.mark.parametrize("l1", [0.0, 5e-3])
@pytest.mark.parametrize("exchange", [batches, pairs])
def test_the_objective_kept_is_that_of_the_state(exchange, l1):
    problem, gamma = make_problem(1, 6, l1)
    new = exchange(*start_at(problem, gamma))
    z = problem.scores(new.w, 0.0, new.gamma)
    b = Alternation(problem).loss.best_intercept(z, 0.0)
    assert new.objective == pytest.approx(problem.objective(new.w, b, new.gamma), abs=2e-5)


@pytest.mark.parametrize("seed", range(3))
def test_pairs_lead_from_a_spoilt_set_to_one_as_good_as_the_true_one(seed):
    data = make_unstable_ranks(700, random_state=seed)
    y = data.y.astype(float)
    problem = Problem(order_samples(data.X), y, sample_weights(y), 10, 0.0, 1e-6)
    true = data.reference.astype(float)
    spoilt = true.copy()
    spoilt[np.flatnonzero(true)[:2]] = 0.0
    spoilt[np.flatnonzero(true == 0)[:2]] = 1.0
    new = pairs(*start_at(problem, spoilt))
    assert solve_at(problem, new.gamma).objective <= solve_at(problem, true).objective + 1e-4


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("l1", [0.0, 5e-3])
@pytest.mark.parametrize("exchange", [batches, pairs])
def test_dense_and_sparse_orders_exchange_the_same_genes(exchange, l1, ties):
    ends = []
    for container in (np.asarray, sp.csr_array):
        problem, gamma = make_problem(2, 6, l1, ties=ties, container=container)
        alternation, state = start_at(problem, gamma)
        ends.append(exchange(alternation, state))
        assert ends[-1].objective < state.objective
    np.testing.assert_array_equal(ends[0].gamma, ends[1].gamma)
    assert ends[0].objective == pytest.approx(ends[1].objective, rel=1e-4)


@pytest.mark.parametrize("exchange", [batches, pairs])
def test_only_candidates_come_in(exchange):
    candidates = np.arange(30) % 3 > 0
    problem, _ = make_problem(5, 6, candidates=candidates)
    worst = np.zeros(30)
    worst[np.flatnonzero(candidates)[:6]] = 1.0
    alternation, state = start_at(problem, worst)
    new = exchange(alternation, state)
    assert new.gamma.sum() == 6
    assert not new.gamma[~candidates].any()
    assert new.objective < state.objective


@pytest.mark.parametrize("exchange", [batches, pairs])
def test_a_state_without_weights_is_left_alone(exchange):
    problem, gamma = make_problem(3, 6, l1=10.0)
    alternation, state = start_at(problem, gamma)
    new = exchange(alternation, state)
    np.testing.assert_array_equal(new.gamma, gamma)
    assert not new.w.any()


@pytest.mark.parametrize("exchange", [batches, pairs])
def test_a_second_go_at_the_end_changes_nothing(exchange):
    problem, gamma = make_problem(4, 6)
    alternation, state = start_at(problem, gamma)
    for _ in range(10):
        new = exchange(alternation, state)
        if np.array_equal(new.gamma, state.gamma):
            break
        state = alternation.steps_on_w(replace(new, n_iter=0), 200)
    np.testing.assert_array_equal(exchange(alternation, state).gamma, state.gamma)
