"""(w, b) at a fixed reference: optimality, and agreement with scikit-learn and scipy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from optirank.ranks.definition import TIES, ranks_by_definition
from optirank.ranks.orders import order_samples
from optirank.solver.convex import fit_weights
from optirank.solver.convex import solution_at, solve_at
from optirank.solver.losses import LogisticLoss
from optirank.solver.matrices import ProblemMatrices
from optirank.solver.problem import Problem, sample_weights

CONTAINERS = {"dense": np.asarray, "sparse": sp.csr_array}
SHAPES = [(80, 12), (30, 60), (150, 40)]
PENALTIES = [(0.0, 1e-2), (0.0, 1e-3), (0.0, 1e-6), (0.0, 0.0), (5e-3, 1e-3), (1e-3, 0.0)]


def make(shape, l1, l2, container="dense", ties="average", seed=0):
    """A problem with a third of the genes as reference, that reference, and the ranks."""
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
    """The least objective over (w, b), by L-BFGS-B on the positive and negative parts of w."""
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
    return minimize(value_and_gradient, start, jac=True, bounds=bounds, options=options).fun


def assert_optimal(problem, solution, atol):
    """The subgradient conditions of (w, b)."""
    w, l1 = solution.w, problem.l1
    slopes = problem.slopes(problem.scores(w, solution.b, solution.gamma))
    gradient = problem.gradient_w(solution.gamma, slopes) + 2 * problem.l2 * w
    on = w != 0
    assert abs(slopes.sum()) < 1e-9
    np.testing.assert_allclose(gradient[on], -l1 * np.sign(w[on]), atol=atol)
    assert (np.abs(gradient[~on]) <= l1 + atol).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("l1", "l2"), PENALTIES)
@pytest.mark.parametrize(("container", "atol"), [("dense", 1e-7), ("sparse", 5e-6)])
def test_the_solution_is_optimal_and_as_low_as_scipys(shape, l1, l2, container, atol):
    problem, gamma, R = make(shape, l1, l2, container)
    solution = solve_at(problem, gamma)
    assert solution.converged
    assert_optimal(problem, solution, atol)
    assert solution.objective == problem.objective(solution.w, solution.b, gamma)
    best = least_by_scipy(R, problem)
    assert abs(solution.objective - best) <= (1e-6 if container == "dense" else 5e-6)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 1e-4), (2e-3, 1e-4)])
def test_every_way_to_rank_ties_is_solved(ties, l1, l2):
    problem, gamma, R = make((80, 12), l1, l2, ties=ties)
    solution = solve_at(problem, gamma)
    assert_optimal(problem, solution, 1e-7)
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
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 1e-3), (0.0, 1e-6), (5e-3, 1e-3), (2e-2, 1e-2)])
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
    assert_optimal(problem, solution, 1e-5)
    assert solution.objective == pytest.approx(least_by_scipy(R, problem), abs=5e-6)


def test_fractional_reference_weights_are_as_good_as_a_set():
    problem, _, _ = make((80, 12), 1e-3, 1e-3)
    gamma = np.random.default_rng(0).dirichlet(np.ones(12)) * problem.n_reference
    solution = solve_at(problem, gamma)
    assert_optimal(problem, solution, 1e-7)
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


@pytest.mark.parametrize("container", CONTAINERS)
def test_fit_weights_counts_its_steps_and_keeps_to_their_limit(container):
    problem, gamma, _ = make((80, 12), 1e-3, 0.0, container)
    matrix = ProblemMatrices(problem).ranks(gamma)
    loss = LogisticLoss(problem.y, problem.v)
    found = fit_weights(matrix, loss, problem.l1, problem.l2, max_iter=5)
    assert found.n_iter == 5
    assert not found.converged


def test_solution_at_has_the_best_intercept_and_the_float64_objective():
    problem, gamma, _ = make((80, 12), 1e-3, 1e-3)
    w = 1e3 * np.random.default_rng(0).normal(size=12)
    solution = solution_at(problem, w, gamma, n_iter=3, converged=False)
    slopes = problem.slopes(problem.scores(w, solution.b, gamma))
    assert abs(slopes.sum()) < 1e-9
    assert solution.objective == problem.objective(w, solution.b, gamma)
    assert (solution.n_iter, solution.converged) == (3, False)


def test_all_weight_on_one_sample_of_each_class_is_allowed():
    problem, gamma, _ = make((30, 12), 0.0, 1e-3)
    weights = np.zeros(30)
    weights[[0, 1]] = 1.0
    alone = Problem(problem.orders, problem.y, sample_weights(problem.y, weights), 4, 0.0, 1e-3)
    solution = solve_at(alone, gamma)
    assert solution.converged
    assert_optimal(alone, solution, 1e-7)
