"""Centred matrices, and accelerated steps of either block on them, against
plain NumPy.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from solver_cases import CONTAINERS, gradients, make_data, make_problem

from optirank._compiled.solver_loops import curvature_bound
from optirank.ranks.scoring import TIES
from optirank.solver.blocks import (
    CappedSimplex,
    LogisticLoss,
    ProblemMatrices,
    accelerated_steps,
    curvature_scale,
    project_capped_simplex,
)
from optirank.solver.constants import GROW, INTERCEPT_CURVATURE, LARGEST_L, RELAX, SLACK
from optirank.solver.problem import Problem
from rank_definition import coranks_by_definition, ranks_by_definition

D, S = 11, 4


def a_problem(seed, container="dense", ties="average", n=60, **settings):
    X, y = make_data(seed, n, D)
    problem = make_problem(CONTAINERS[container](X), y, S, ties=ties, **settings)
    rng = np.random.default_rng(seed)
    return (
        problem,
        X,
        project_capped_simplex(rng.uniform(size=D), S),
        rng.normal(size=D),
    )


def block_of(problem, gamma, w, block):
    """The matrix, the start and the proximal map of a block."""
    matrices = ProblemMatrices(problem)
    if block == "w":
        return matrices.ranks(gamma), w, problem.penalty
    candidates = None if block == "gamma" else np.arange(D) % 3 > 0
    feasible = CappedSimplex(S, candidates)
    return matrices.coranks(w), feasible.prox(gamma), feasible


def take_steps(problem, matrix, x, proximal, n_steps, **settings):
    loss = LogisticLoss(problem.y, problem.v)
    L = settings.pop("L", None) or curvature_scale(matrix, problem.v)
    return accelerated_steps(matrix, loss, x, 0.1, proximal, L, n_steps, **settings)


def plain_steps(matrix, loss, x, b, proximal, L, n_steps, *, linear=None, tol=0.0):
    """The compiled loop in NumPy."""
    z = matrix.dot(x)
    b = loss.best_intercept(z, b)
    ahead, b_ahead, z_ahead = x, b, z  # the extrapolated point the gradient is taken at
    momentum_t, residual = 1.0, np.inf
    for taken in range(1, n_steps + 1):  # noqa: B007  (it is returned)
        loss.differentiate(z_ahead, b_ahead)
        gradient = matrix.transpose_dot(loss.slopes) + (
            0.0 if linear is None else linear
        )
        L_b = max(float(loss.curvatures.sum()), INTERCEPT_CURVATURE)
        while True:
            new = proximal.prox(ahead - gradient / L, 1.0 / L)
            b_new = b_ahead - float(loss.slopes.sum(dtype=np.float64)) / L_b
            z_new = matrix.dot(new)
            rise = curvature_bound(
                z_new, b_new, z_ahead, b_ahead, loss.curvatures, loss.v
            )
            allowed = 0.5 * (
                L * ((new - ahead) ** 2).sum() + L_b * (b_new - b_ahead) ** 2
            )
            if rise <= allowed + SLACK or L > LARGEST_L:
                break
            L, L_b = L * GROW, L_b * GROW
        turned = (ahead - new) @ (new - x) + (b_ahead - b_new) * (b_new - b) > 0
        next_t = 1.0 if turned else 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum_t**2))
        momentum = 0.0 if turned else (momentum_t - 1.0) / next_t
        residual = L * float(np.abs(new - ahead).max()) if tol else np.inf
        ahead, b_ahead = new + momentum * (new - x), b_new + momentum * (b_new - b)
        z_ahead = z_new + np.float32(momentum) * (z_new - z)
        x, b, z, momentum_t = new, b_new, z_new, next_t
        if residual <= tol:
            break
        L *= RELAX
    return x, b, z, L, residual, taken


def in_full(matrix):
    """The matrix itself, by its products with unit vectors."""
    return np.column_stack([matrix.dot(unit) for unit in np.eye(len(matrix.mean))])


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("container", CONTAINERS)
@given(seed=st.integers(0, 10**6))
def test_matrices_are_the_scaled_ranks_less_their_weighted_means(seed, container, ties):
    problem, X, gamma, w = a_problem(seed, container, ties, n=10)
    rng = np.random.default_rng(seed)
    matrices = ProblemMatrices(problem)
    ways = (
        (matrices.ranks, gamma, ranks_by_definition(X, gamma, ties) / S),
        (matrices.coranks, w, coranks_by_definition(X, w, ties) / S),
    )
    for make, a, expected in ways:
        expected = expected - problem.v @ expected
        matrix = make(a)
        np.testing.assert_allclose(in_full(matrix), expected, atol=2e-6)
        slopes = rng.normal(size=len(X)).astype(np.float32)
        np.testing.assert_allclose(
            matrix.transpose_dot(slopes), expected.T @ slopes, atol=2e-5
        )
        for genes in (rng.permutation(D)[:3], np.arange(D)):
            np.testing.assert_allclose(
                make(a).columns(genes), expected[:, genes], atol=2e-6
            )
        np.testing.assert_allclose(
            in_full(make(a)), expected, atol=2e-6
        )  # the buffer serves again


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("block", ["w", "gamma", "gamma of candidates"])
@pytest.mark.parametrize("n", [2, 3, 31, 70])
@pytest.mark.parametrize("with_linear", [True, False])
def test_the_compiled_loop_takes_the_steps_of_the_plain_one(
    container, block, n, with_linear
):
    problem, _, gamma, w = a_problem(7, container, n=n)
    matrix, x, proximal = block_of(problem, gamma, w, block)
    linear = np.random.default_rng(0).normal(size=D) / 10 if with_linear else None
    L = curvature_scale(matrix, problem.v) / 50  # so that some steps are refused
    for n_steps in (1, 2, 7):
        found = take_steps(
            problem, matrix, x, proximal, n_steps, linear=linear, tol=1e-12, L=L
        )
        loss = LogisticLoss(problem.y, problem.v)
        plain = plain_steps(
            matrix, loss, x, 0.1, proximal, L, n_steps, linear=linear, tol=1e-12
        )
        np.testing.assert_allclose(found.x, plain[0], atol=2e-4)
        np.testing.assert_allclose(found.z, plain[2], atol=2e-4)
        assert found.b == pytest.approx(plain[1], abs=2e-4)
        assert pytest.approx(plain[3], rel=1e-6) == found.L
        assert found.residual == pytest.approx(plain[4], rel=2e-2, abs=1e-5)
        assert found.n_steps == plain[5]


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("l1", [0.0, 5e-3])
def test_steps_on_w_end_where_no_proximal_step_moves(l1, container, ties):
    problem, _, gamma, _ = a_problem(1, container, ties, l1=l1)
    matrix = ProblemMatrices(problem).ranks(gamma)
    done = take_steps(problem, matrix, np.zeros(D), problem.penalty, 3000, tol=1e-6)
    assert done.residual <= 1e-6
    assert done.n_steps < 3000
    z = problem.scores(done.x, 0.0, gamma)
    b = LogisticLoss(problem.y, problem.v).best_intercept(z, 0.0)
    moved = problem.penalty.prox(done.x - gradients(problem, done.x, b, gamma)[0], 1.0)
    np.testing.assert_allclose(moved, done.x, atol=5e-6)
    again = take_steps(problem, matrix, done.x, problem.penalty, 3000, tol=1e-5)
    assert again.n_steps == 1


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("container", CONTAINERS)
def test_steps_on_gamma_end_at_the_minimum_an_independent_solver_finds(container, ties):
    problem, X, gamma, w = a_problem(2, container, ties)
    w = 5 * w
    matrix = ProblemMatrices(problem).coranks(w)
    done = take_steps(problem, matrix, gamma, CappedSimplex(S), 5000, tol=1e-6)
    V = coranks_by_definition(X, w, ties) / S

    def value_and_gradient(x):
        slopes = problem.slopes(V @ x[:-1] + x[-1])
        return problem.loss(V @ x[:-1] + x[-1]), np.append(slopes @ V, slopes.sum())

    best = minimize(
        value_and_gradient,
        np.append(gamma, 0.0),
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * D + [(None, None)],
        constraints={"type": "eq", "fun": lambda x: x[:-1].sum() - S},
        options={"maxiter": 2000, "ftol": 1e-12},
    )
    assert done.x.sum() == pytest.approx(S)
    z = V @ done.x
    b = LogisticLoss(problem.y, problem.v).best_intercept(z, 0.0)
    assert problem.loss(z + b) == pytest.approx(best.fun, abs=1e-6)


def test_a_linear_term_pulls_gamma_its_way():
    problem, _, gamma, w = a_problem(0)
    linear = np.where(np.arange(D) < S, -100.0, 0.0)
    matrix = ProblemMatrices(problem).coranks(w)
    done = take_steps(problem, matrix, gamma, CappedSimplex(S), 200, linear=linear)
    np.testing.assert_allclose(done.x, np.arange(D) < S, atol=1e-9)


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_matrix_of_constants_leaves_everything_where_it_is(container):
    problem: Problem = make_problem(
        CONTAINERS[container](np.zeros((6, 3))), np.arange(6) % 2.0, 1
    )
    matrix = ProblemMatrices(problem).ranks(np.full(3, 1 / 3))
    assert curvature_scale(matrix, problem.v) > 0
    done = take_steps(problem, matrix, np.zeros(3), problem.penalty, 10, tol=1e-9)
    np.testing.assert_array_equal(done.x, 0.0)
