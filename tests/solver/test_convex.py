"""(w, b) at a fixed reference: optimality, agreement with scikit-learn and scipy,
Newton steps.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from solver_cases import CONTAINERS, assert_weights_optimal

from optirank.ranks.orders import order_samples
from optirank.ranks.scoring import TIES
from optirank.solver.blocks import ElasticNet, LogisticLoss
from optirank.solver.convex import (
    RidgeHessian,
    newton_steps,
    solve_at,
    steps_with_hessian,
)
from optirank.solver.problem import Problem, sample_weights
from rank_definition import ranks_by_definition

SHAPES = [(80, 12), (30, 60)]
PENALTIES = [
    (0.0, 1e-2),
    (0.0, 1e-3),
    (0.0, 1e-6),
    (0.0, 0.0),
    (5e-3, 1e-3),
    (1e-3, 0.0),
]


def make(shape, l1, l2, container="dense", ties="average", seed=0):
    """A problem with a third of the genes as reference, that reference, and
    the ranks.
    """
    n, d = shape
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 3 == 0).astype(float)
    effect = np.outer(y, rng.choice([-1.0, 0.0, 1.0], size=d))
    X = rng.poisson(np.exp(rng.normal(1, 0.7, size=d) + effect)).astype(float)
    gamma = (np.arange(d) % 3 == 0).astype(float)
    s = int(gamma.sum())
    problem = Problem(
        order_samples(CONTAINERS[container](X)), y, sample_weights(y), s, l1, l2, ties
    )
    return problem, gamma, ranks_by_definition(X, gamma, ties) / s


def least_by_scipy(R, problem):
    """The least objective over (w, b), by L-BFGS-B on the positive and negative
    parts of w.
    """
    d = R.shape[1]

    def value_and_gradient(x):
        w, b = x[:d] - x[d : 2 * d], x[-1]
        z = R @ w + b
        value = problem.loss(z) + problem.l1 * x[:-1].sum() + problem.l2 * w @ w
        slopes = problem.slopes(z)
        g = R.T @ slopes + 2 * problem.l2 * w
        return value, np.r_[g + problem.l1, -g + problem.l1, slopes.sum()]

    bounds = [(0, None)] * (2 * d) + [(None, None)]
    options = {"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-9}
    start = np.zeros(2 * d + 1)
    return minimize(
        value_and_gradient, start, jac=True, bounds=bounds, options=options
    ).fun


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("l1", "l2"), PENALTIES)
@pytest.mark.parametrize(("container", "atol"), [("dense", 1e-7), ("sparse", 5e-6)])
def test_the_solution_is_optimal_and_as_low_as_scipys(shape, l1, l2, container, atol):
    problem, gamma, R = make(shape, l1, l2, container)
    solution = solve_at(problem, gamma)
    assert solution.converged
    assert_weights_optimal(problem, solution, atol)
    assert solution.objective == problem.objective(solution.w, solution.b, gamma)
    best = least_by_scipy(R, problem)
    assert abs(solution.objective - best) <= (1e-6 if container == "dense" else 5e-6)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 1e-4), (2e-3, 1e-4)])
def test_every_way_to_rank_ties_is_solved(ties, l1, l2):
    problem, gamma, R = make((80, 12), l1, l2, ties=ties)
    solution = solve_at(problem, gamma)
    assert_weights_optimal(problem, solution, 1e-7)
    assert solution.objective == pytest.approx(least_by_scipy(R, problem), abs=1e-6)


def scikit_learn(R, problem):
    n, total = len(R), 2 * problem.l2 + problem.l1
    if problem.l1 == 0:
        model = LogisticRegression(
            C=1 / (n * total), tol=1e-10, max_iter=20_000, class_weight="balanced"
        )
    else:
        model = LogisticRegression(
            C=1 / (n * total), l1_ratio=problem.l1 / total, solver="saga", tol=1e-8,
            max_iter=20_000, class_weight="balanced", random_state=0,
        )  # fmt: skip
    return model.fit(R, problem.y)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("l1", "l2"), [(0.0, 1e-3), (0.0, 1e-6), (5e-3, 1e-3), (2e-2, 1e-2)]
)
def test_it_agrees_with_scikit_learn_at_the_matching_penalties(shape, l1, l2):
    problem, gamma, R = make(shape, l1, l2, seed=1)
    solution = solve_at(problem, gamma)
    theirs = scikit_learn(R, problem)
    objective = problem.objective(theirs.coef_[0], float(theirs.intercept_[0]), gamma)
    assert solution.objective == pytest.approx(objective, abs=1e-6)
    np.testing.assert_allclose(
        problem.scores(solution.w, solution.b, gamma),
        theirs.decision_function(R),
        atol=2e-3 * np.abs(solution.w).max(),
    )


@pytest.mark.parametrize(("l1", "l2"), [(0.0, 1e-6), (5e-3, 1e-3)])
def test_problems_too_large_for_exact_steps_are_solved_too(l1, l2):
    problem, gamma, R = make((420, 400), l1, l2, seed=2)
    solution = solve_at(problem, gamma)
    assert solution.converged
    assert_weights_optimal(problem, solution, 1e-5)
    assert solution.objective == pytest.approx(least_by_scipy(R, problem), abs=5e-6)


def test_fractional_reference_weights_are_as_good_as_a_set():
    problem, _, _ = make((80, 12), 1e-3, 1e-3)
    gamma = np.random.default_rng(0).dirichlet(np.ones(12)) * problem.n_reference
    solution = solve_at(problem, gamma)
    assert_weights_optimal(problem, solution, 1e-7)
    np.testing.assert_array_equal(solution.gamma, gamma)


@pytest.mark.parametrize(("l1", "l2"), [(0.0, 1e-6), (1e-3, 1e-4)])
def test_the_start_does_not_matter(l1, l2):
    problem, gamma, _ = make((80, 12), l1, l2)
    rng = np.random.default_rng(0)
    cold = solve_at(problem, gamma)
    for scale in (0.1, 10.0, 1000.0):
        warm = solve_at(problem, gamma, w=scale * rng.normal(size=12), b=float(scale))
        assert warm.objective == pytest.approx(cold.objective, abs=1e-7)


def test_a_start_at_the_solution_ends_at_once():
    problem, gamma, _ = make((80, 12), 1e-3, 1e-3)
    cold = solve_at(problem, gamma)
    warm = solve_at(problem, gamma, w=cold.w, b=cold.b)
    assert warm.n_iter < cold.n_iter
    np.testing.assert_allclose(warm.w, cold.w, atol=1e-6)


def test_a_large_l1_leaves_no_weight():
    problem, gamma, _ = make((80, 12), 10.0, 1e-3)
    solution = solve_at(problem, gamma)
    assert not solution.w.any()
    assert solution.objective == pytest.approx(np.log(2))


def test_too_few_iterations_are_admitted():
    problem, gamma, _ = make((80, 12), 0.0, 1e-6)
    assert not solve_at(problem, gamma, max_iter=2).converged
    assert solve_at(problem, gamma, max_iter=2).n_iter < 20


def test_all_weight_on_one_sample_of_each_class_is_allowed():
    problem, gamma, _ = make((30, 12), 0.0, 1e-3)
    weights = np.zeros(30)
    weights[[0, 1]] = 1.0
    alone = Problem(
        problem.orders, problem.y, sample_weights(problem.y, weights), 4, 0.0, 1e-3
    )
    solution = solve_at(alone, gamma)
    assert solution.converged
    assert_weights_optimal(alone, solution, 1e-7)


# Newton steps

MATRICES = {"more rows": (40, 9), "more columns": (9, 40), "blocks": (1100, 6)}


def labelled(shape, dtype=np.float64):
    """A matrix, a loss that its first column explains in part, and a generator."""
    rng = np.random.default_rng(1)
    y = (np.arange(shape[0]) % 2).astype(float)
    values = rng.normal(size=shape)
    values[:, 0] += 0.7 * (2 * y - 1)
    loss = LogisticLoss(y, np.full(shape[0], 1 / shape[0]), dtype)
    return values.astype(dtype), loss, rng


@pytest.mark.parametrize("shape", MATRICES.values(), ids=MATRICES)
@pytest.mark.parametrize(
    ("dtype", "accuracy"), [(np.float64, 1e-9), (np.float32, 1e-3)]
)
def test_the_hessian_solves_as_the_dense_matrix_does(shape, dtype, accuracy):
    values, _, rng = labelled(shape, dtype)
    curvatures = rng.uniform(1e-3, 1.0, size=shape[0]) / shape[0]
    hessian = RidgeHessian(values, curvatures, 2e-3)
    full = np.column_stack([values, np.ones(shape[0])]).astype(np.float64)
    H = full.T @ (curvatures[:, None] * full)
    H = (
        H[:-1, :-1] - np.outer(H[:-1, -1], H[-1, :-1]) / H[-1, -1]
    )  # the intercept eliminated
    root = hessian.scaled(slice(None))
    np.testing.assert_allclose(root.T @ root, H, atol=1e-3 * accuracy)
    for right in (rng.normal(size=shape[1]), rng.normal(size=(shape[1], 3))):
        expected = np.linalg.solve(H + 2e-3 * np.eye(shape[1]), right)
        error = np.abs(hessian.solve(right) - expected).max()
        assert error <= accuracy * np.abs(expected).max()


def test_the_hessian_copes_with_columns_that_say_nothing_and_tiny_penalties():
    values, loss, rng = labelled((40, 9), np.float32)
    values[:, 0] = 0.0
    values[:, 2] = values[:, 1]
    loss.evaluate(np.zeros(40), 0.0)
    hessian = RidgeHessian(values, loss.curvatures, 2e-7)
    assert np.isfinite(hessian.solve(rng.normal(size=9))).all()


def test_dependent_columns_without_a_ridge_are_solved_all_the_same():
    rng = np.random.default_rng(0)
    values = np.repeat(rng.normal(size=(500, 6)), 5, axis=1).astype(np.float32)
    hessian = RidgeHessian(values, np.full(500, 0.25), 0.0)
    assert np.isfinite(hessian.solve(rng.normal(size=30))).all()


@pytest.mark.parametrize("l1", [0.0, 1e-2])
def test_newton_steps_only_descend_and_cross_no_zero_under_l1(l1):
    values, loss, rng = labelled((60, 8))
    start, penalty = rng.normal(size=8), ElasticNet(l1, 1e-3)
    ends = [
        newton_steps(values, loss, start, 0.0, penalty, k, tol=1e-16) for k in range(8)
    ]
    rounding = 4 * np.finfo(float).eps  # objectives here are of order one
    assert (np.diff([objective for _, _, objective, _ in ends]) <= rounding).all()
    w, b, objective, _ = ends[-1]
    loss.differentiate(values @ w, b)
    if l1 > 0:
        assert (w * np.sign(start) >= 0).all()
    else:
        assert np.abs(loss.slopes @ values + 2e-3 * w).max() < 1e-8
    assert objective == pytest.approx(
        loss.value(values @ w, b) + penalty.value(w), rel=1e-12
    )


@pytest.mark.parametrize("shape", MATRICES.values(), ids=MATRICES)
def test_steps_with_a_nearby_hessian_descend_to_the_minimum(shape):
    values, loss, rng = labelled(shape)
    start, l2 = 0.3 * rng.normal(size=shape[1]), 1e-1
    loss.evaluate(values @ start, 0.0)
    penalty = ElasticNet(0.0, l2)
    shaken = values + 0.03 * rng.normal(size=shape)
    nearby = RidgeHessian(shaken, loss.curvatures, penalty.curvature)
    _, _, best, _ = newton_steps(values, loss, start, 0.0, penalty, 50, tol=1e-16)
    target = best * (1 + 1e-7)
    ends = [
        steps_with_hessian(nearby, values, loss, start, 0.0, penalty, k, target)[2]
        for k in (1, 2, 4, 60)
    ]
    assert (np.diff(ends) <= 0).all()
    assert ends[-1] == pytest.approx(best, rel=1e-6)
    _, _, out_of_reach = steps_with_hessian(
        nearby, values, loss, start, 0.0, penalty, 50, -10.0
    )
    assert out_of_reach > ends[0]
