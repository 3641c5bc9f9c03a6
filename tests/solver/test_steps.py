"""Accelerated steps of either block: they descend, and end where an independent solver ends."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from optirank.ranks.definition import TIES, coranks_by_definition
from optirank.ranks.orders import order_samples
from optirank.solver.capped_simplex import project_capped_simplex
from optirank.solver.feasible import CappedSimplex
from optirank.solver.losses import LogisticLoss
from optirank.solver.matrices import ProblemMatrices
from optirank.solver.problem import Problem, sample_weights
from optirank.solver.proximal import prox_elastic_net
from optirank.solver.steps import ElasticNet, accelerated_steps, curvature_scale, plain_steps

CONTAINERS = {"dense": np.asarray, "sparse": sp.csr_array}
S = 4


def make_problem(seed, container="dense", ties="average", l1=1e-3, l2=1e-3, n=60, d=11):
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 2).astype(float)
    effect = np.outer(y, rng.choice([-1.0, 0.0, 1.0], size=d))
    X = rng.poisson(np.exp(rng.normal(1, 0.7, size=d) + effect)).astype(float)
    orders = order_samples(CONTAINERS[container](X))
    problem = Problem(orders, y, sample_weights(y), S, l1, l2, ties)
    gamma = project_capped_simplex(rng.uniform(size=d), S)
    return problem, X, gamma, rng


def take_steps(matrix, problem, x, proximal, n_steps, **settings):
    loss = LogisticLoss(problem.y, problem.v)
    L = curvature_scale(matrix, problem.v)
    return accelerated_steps(matrix, loss, x, 0.0, proximal, L, n_steps, **settings)


def objective_of_block(problem, z, b, penalty):
    loss = LogisticLoss(problem.y, problem.v)
    return loss.evaluate(z, loss.best_intercept(z, b)) + penalty


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("l1", [0.0, 5e-3])
@pytest.mark.parametrize("seed", range(3))
def test_steps_on_w_end_where_no_proximal_step_moves(seed, l1, container, ties):
    problem, _, gamma, _ = make_problem(seed, container, ties, l1)
    matrix = ProblemMatrices(problem).ranks(gamma)
    done = take_steps(matrix, problem, np.zeros(11), ElasticNet(l1, 1e-3), 3000, tol=1e-6)
    assert done.residual <= 1e-6
    assert done.n_steps < 3000
    z = problem.scores(done.x, 0.0, gamma)
    b = LogisticLoss(problem.y, problem.v).best_intercept(z, 0.0)
    gradient = problem.gradient_w(gamma, problem.slopes(z + b))
    moved = prox_elastic_net(done.x - gradient, 1.0, l1, 1e-3)
    np.testing.assert_allclose(moved, done.x, atol=5e-6)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("seed", range(3))
def test_steps_on_gamma_end_at_the_minimum_an_independent_solver_finds(seed, container, ties):
    problem, X, gamma, rng = make_problem(seed, container, ties)
    w = 5 * rng.normal(size=11)
    matrix = ProblemMatrices(problem).coranks(w)
    done = take_steps(matrix, problem, gamma, CappedSimplex(S), 5000, tol=1e-6)
    assert done.x.sum() == pytest.approx(S)
    assert ((done.x >= 0) & (done.x <= 1)).all()
    V = coranks_by_definition(X, w, ties) / S

    def value_and_gradient(x):
        z = V @ x[:-1] + x[-1]
        slopes = problem.slopes(z)
        return problem.loss(z), np.append(slopes @ V, slopes.sum())

    best = minimize(
        value_and_gradient,
        np.append(gamma, 0.0),
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * 11 + [(None, None)],
        constraints={
            "type": "eq",
            "fun": lambda x: x[:-1].sum() - S,
            "jac": lambda x: np.append(np.ones(11), 0.0),
        },
        options={"maxiter": 2000, "ftol": 1e-12},
    )
    assert best.success
    assert objective_of_block(problem, V @ done.x, 0.0, 0.0) == pytest.approx(best.fun, abs=1e-6)


@pytest.mark.parametrize("block", ["w", "gamma"])
@pytest.mark.parametrize("seed", range(5))
def test_a_few_steps_already_descend(seed, block):
    problem, _, gamma, rng = make_problem(seed)
    w = rng.normal(size=11)
    matrices = ProblemMatrices(problem)
    if block == "w":
        matrix, x, proximal = matrices.ranks(gamma), w, ElasticNet(problem.l1, problem.l2)
    else:
        matrix, x, proximal = matrices.coranks(w), gamma, CappedSimplex(S)
    penalty = problem.penalty if block == "w" else lambda _: 0.0
    objectives = [objective_of_block(problem, matrix.dot(x), 0.0, penalty(x))]
    for n_steps in (1, 3, 10, 100):
        done = take_steps(matrix, problem, x, proximal, n_steps)
        assert done.n_steps == n_steps
        np.testing.assert_allclose(done.z, matrix.dot(done.x), atol=1e-5)
        objectives.append(objective_of_block(problem, done.z, done.b, penalty(done.x)))
    assert (np.diff(objectives) < 1e-9).all()
    assert objectives[-1] < objectives[0]


@pytest.mark.parametrize("block", ["w", "gamma", "gamma of candidates"])
@pytest.mark.parametrize("n", [2, 3, 31, 70])
@pytest.mark.parametrize("n_steps", [1, 2, 7])
@pytest.mark.parametrize("with_linear", [True, False])
def test_the_compiled_loop_takes_the_steps_of_the_plain_one(block, n, n_steps, with_linear):
    problem, _, gamma, rng = make_problem(7, n=n)
    w = rng.normal(size=11)
    matrices, feasible = ProblemMatrices(problem), CappedSimplex(S)
    if block == "w":
        matrix, x, proximal = matrices.ranks(gamma), w, ElasticNet(problem.l1, problem.l2)
    else:
        if block != "gamma":
            feasible = CappedSimplex(S, np.arange(11) % 3 > 0)
        matrix, x, proximal = matrices.coranks(w), feasible.centre(11), feasible
    linear = rng.normal(size=11) / 10 if with_linear else None
    loss = LogisticLoss(problem.y, problem.v)
    L = curvature_scale(matrix, problem.v) / 50  # so that some steps are refused
    ends = [
        way(matrix, loss, x, 0.1, proximal, L, n_steps, linear=linear, tol=1e-12)
        for way in (accelerated_steps, plain_steps)
    ]
    compiled, plain = ends
    np.testing.assert_allclose(compiled.x, plain.x, atol=2e-4)
    np.testing.assert_allclose(compiled.z, plain.z, atol=2e-4)
    assert compiled.b == pytest.approx(plain.b, abs=2e-4)
    np.testing.assert_allclose(compiled.L, plain.L, rtol=1e-6)
    assert compiled.n_steps == plain.n_steps
    assert compiled.residual == pytest.approx(plain.residual, rel=2e-2, abs=1e-5)


@pytest.mark.parametrize("block", ["w", "gamma"])
@pytest.mark.parametrize("seed", range(3))
def test_dense_and_sparse_matrices_lead_to_the_same_point(seed, block):
    ends = []
    for container in CONTAINERS:
        problem, _, gamma, rng = make_problem(seed, container)
        w = rng.normal(size=11)
        matrices = ProblemMatrices(problem)
        if block == "w":
            arguments = matrices.ranks(gamma), problem, w, ElasticNet(problem.l1, problem.l2)
        else:
            arguments = matrices.coranks(w), problem, gamma, CappedSimplex(S)
        ends.append(take_steps(*arguments, 5))
    np.testing.assert_allclose(ends[0].x, ends[1].x, atol=1e-3)
    np.testing.assert_allclose(ends[0].z, ends[1].z, atol=1e-3)


def test_a_linear_term_pulls_gamma_its_way():
    problem, _, gamma, rng = make_problem(0)
    matrix = ProblemMatrices(problem).coranks(rng.normal(size=11))
    linear = np.zeros(11)
    linear[:S] = -100.0
    done = take_steps(matrix, problem, gamma, CappedSimplex(S), 200, linear=linear)
    np.testing.assert_allclose(done.x, np.arange(11) < S, atol=1e-9)


def test_a_start_at_the_minimum_takes_one_step():
    problem, _, gamma, _ = make_problem(1)
    matrix = ProblemMatrices(problem).ranks(gamma)
    proximal = ElasticNet(problem.l1, problem.l2)
    done = take_steps(matrix, problem, np.zeros(11), proximal, 3000, tol=1e-6)
    again = take_steps(matrix, problem, done.x, proximal, 3000, tol=1e-5)
    assert again.n_steps == 1


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_matrix_of_constants_leaves_everything_where_it_is(container):
    y = np.arange(6) % 2.0
    orders = order_samples(CONTAINERS[container](np.zeros((6, 3))))
    problem = Problem(orders, y, sample_weights(y), 1)
    matrix = ProblemMatrices(problem).ranks(np.full(3, 1 / 3))
    assert curvature_scale(matrix, problem.v) > 0
    done = take_steps(matrix, problem, np.zeros(3), ElasticNet(0.0, 1e-3), 10, tol=1e-9)
    np.testing.assert_array_equal(done.x, 0.0)
