"""The paper's algorithm: descent, optimality, the published results, and odd inputs."""

from __future__ import annotations

import csv

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from optirank.ranks.definition import TIES, ranks_by_definition
from optirank.ranks.orders import order_samples
from optirank.solver.bpcd import Descent, push, solve_bpcd
from optirank.solver.capped_simplex import project_capped_simplex
from optirank.solver.feasible import CappedSimplex
from optirank.solver.problem import Problem, sample_weights
from optirank.solver.proximal import prox_elastic_net


def make_data(seed, n=80, d=12):
    """Counts with zeros and ties; the label raises some genes and lowers others."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 2).astype(float)
    effect = np.outer(y, rng.choice([-1.0, 0.0, 1.0], size=d))
    X = rng.poisson(np.exp(rng.normal(1, 0.7, size=d) + effect)).astype(float)
    return X, y


def make_problem(X, y, n_reference=3, l1=1e-3, l2=1e-3, **settings):
    return Problem(order_samples(X), y, sample_weights(y), n_reference, l1, l2, **settings)


def assert_a_set(gamma, size):
    assert set(np.unique(gamma)) <= {0.0, 1.0}
    assert gamma.sum() == size


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("seed", range(4))
def test_no_iteration_raises_the_objective(seed, ties):
    problem = make_problem(*make_data(seed), ties=ties)
    descent = Descent(problem)
    for lambda_p in (0.0, 1e-3, 1e-2, 1e-1):
        before = descent.loss + problem.penalty(descent.w) + lambda_p * push(descent.gamma)
        trace, _ = descent.solve(lambda_p, tol=0.0, max_iter=400, scale=1.0)
        assert (np.diff([before, *trace]) <= 0).all()


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("l1", [0.0, 5e-3])
@pytest.mark.parametrize("seed", range(3))
def test_the_relaxed_solution_meets_the_optimality_conditions_of_every_block(seed, l1, ties):
    problem = make_problem(*make_data(seed), l1=l1, l2=1e-2, ties=ties)
    solution = solve_bpcd(problem, tol=1e-14, max_iter=50_000, integral=False)
    w, b, gamma = solution.w, solution.b, solution.gamma
    slopes = problem.slopes(problem.scores(w, b, gamma))
    gradient_w = problem.gradient_w(gamma, slopes)
    gradient_gamma = problem.gradient_gamma(w, slopes)

    assert solution.converged
    assert abs(slopes.sum()) < 1e-4
    subgradient = -gradient_w - 2 * problem.l2 * w  # of l1 |w|
    on = w != 0
    np.testing.assert_allclose(subgradient[on], l1 * np.sign(w[on]), atol=1e-4)
    assert (np.abs(subgradient[~on]) <= l1 + 1e-4).all()
    np.testing.assert_allclose(w, prox_elastic_net(w - gradient_w, 1.0, l1, problem.l2), atol=1e-4)
    moved = project_capped_simplex(gamma - gradient_gamma, problem.n_reference)
    np.testing.assert_allclose(moved, gamma, atol=1e-4)
    np.testing.assert_allclose(gamma.sum(), problem.n_reference)


def convex_minimum(R, y, v, l1, l2):
    """The least objective over (w, b), by L-BFGS-B on the positive and negative parts of w."""
    d = R.shape[1]

    def value_and_gradient(x):
        w, b = x[:d] - x[d : 2 * d], x[-1]
        z = R @ w + b
        value = v @ (np.logaddexp(0, z) - y * z) + l1 * x[:-1].sum() + l2 * w @ w
        slopes = v * (1 / (1 + np.exp(-z)) - y)
        g = R.T @ slopes + 2 * l2 * w
        return value, np.r_[g + l1, -g + l1, slopes.sum()]

    bounds = [(0, None)] * (2 * d) + [(None, None)]
    options = {"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-14, "gtol": 1e-9}
    result = minimize(
        value_and_gradient, np.zeros(2 * d + 1), jac=True, bounds=bounds, options=options
    )
    return result.fun


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 1e-2), (5e-3, 1e-3)])
def test_with_all_genes_as_reference_it_is_logistic_regression_on_full_ranks(ties, l1, l2):
    X, y = make_data(0)
    d = X.shape[1]
    problem = make_problem(X, y, d, l1, l2, ties=ties)
    solution = solve_bpcd(problem, tol=1e-10, max_iter=100_000)
    R = ranks_by_definition(X, np.ones(d), ties) / d
    best = convex_minimum(R, y, problem.v, l1, l2)
    assert solution.converged
    assert len(solution.path) == 1
    assert_a_set(solution.gamma, d)
    assert -1e-7 <= solution.objective - best <= 1e-5 * best


ANCHORS = [
    pytest.param(
        problem,
        l1,
        fraction,
        marks=[pytest.mark.slow]
        if "d1000" in problem or (problem, fraction) == ("nb_n700_d200", 0.05)
        else [],
    )
    for problem in ("nb_n700_d50", "gauss_n700_d200", "nb_n700_d200", "nb_n1000_d1000")
    for l1 in (0.0, 0.001)
    for fraction in (0.05, 0.2, 0.6)
]


@pytest.mark.parametrize(("name", "l1", "fraction"), ANCHORS)
def test_it_reaches_the_published_objective(anchors_folder, name, l1, fraction):
    with (anchors_folder / "published.csv").open() as file:
        (published,) = [
            {key: float(value) for key, value in row.items() if key != "problem"}
            for row in csv.DictReader(file)
            if row["problem"] == name
            and float(row["lambda_1"]) == l1
            and float(row["s_over_d"]) == fraction
        ]
    data = np.load(anchors_folder / f"{name}.npz")
    s = int(published["s"])
    problem = make_problem(data["X"], data["y"].astype(float), s, l1, published["lambda_2"])
    solution = solve_bpcd(problem)

    assert solution.converged
    assert_a_set(solution.gamma, s)
    assert solution.objective == pytest.approx(published["objective"], rel=0.02)
    assert solution.path[0]["objective"] == pytest.approx(published["objective_relaxed"], rel=0.02)
    assert solution.n_iter == pytest.approx(published["iterations"], rel=0.5)


def test_the_path_tells_what_happened_at_each_lambda_p():
    told = []
    problem = make_problem(*make_data(1))
    solution = solve_bpcd(problem, callback=told.append)
    assert told == solution.path
    assert set(told[0]) == {"lambda_p", "iterations", "objective", "rho", "n_fractional"}
    lambdas = [entry["lambda_p"] for entry in told]
    assert lambdas[0] == 0
    assert len(told) > 1
    assert (np.diff(lambdas) > 0).all()
    assert solution.n_iter == sum(entry["iterations"] for entry in told)
    assert [entry["n_fractional"] > 0 for entry in told] == [True] * (len(told) - 1) + [False]
    assert solution.objective == pytest.approx(told[-1]["objective"], abs=1e-9)
    assert solution.objective == problem.objective(solution.w, solution.b, solution.gamma)


def test_without_the_push_gamma_may_stay_fractional():
    problem = make_problem(*make_data(1))
    relaxed = solve_bpcd(problem, integral=False)
    whole = solve_bpcd(problem)
    assert len(relaxed.path) == 1
    assert not relaxed.integral
    assert relaxed.gamma.sum() == pytest.approx(3)
    assert relaxed.objective == pytest.approx(whole.path[0]["objective"])


def test_sparse_and_dense_data_give_the_same_solution():
    X, y = make_data(2)
    dense = solve_bpcd(make_problem(X, y))
    sparse = solve_bpcd(make_problem(sp.csr_array(X), y))
    np.testing.assert_array_equal(sparse.gamma, dense.gamma)
    np.testing.assert_allclose(sparse.w, dense.w, atol=1e-6)


def test_the_same_input_gives_the_same_output():
    problem = make_problem(*make_data(3))
    first, second = solve_bpcd(problem), solve_bpcd(problem)
    np.testing.assert_array_equal(first.w, second.w)
    np.testing.assert_array_equal(first.gamma, second.gamma)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("n_reference", [1, 2, 11, 12])
def test_any_size_of_the_reference_ends_in_a_set_of_that_size(n_reference, ties):
    solution = solve_bpcd(make_problem(*make_data(4), n_reference, ties=ties))
    assert solution.converged
    assert_a_set(solution.gamma, n_reference)


def test_one_gene_has_nothing_to_say():
    X, y = make_data(0, d=1)
    solution = solve_bpcd(make_problem(X, y, 1))
    np.testing.assert_array_equal(solution.gamma, [1.0])
    assert solution.objective == pytest.approx(np.log(2))


def test_constant_genes_and_no_others_end_at_chance():
    solution = solve_bpcd(make_problem(np.ones((10, 6)), np.arange(10) % 2.0, 2))
    assert_a_set(solution.gamma, 2)
    assert solution.objective == pytest.approx(np.log(2))


def test_a_few_constant_genes_do_no_harm():
    X, y = make_data(5)
    X[:, [0, 3, 7]] = 0.0
    solution = solve_bpcd(make_problem(X, y, 4))
    assert_a_set(solution.gamma, 4)
    assert solution.objective < 0.6


def test_of_copies_of_one_gene_the_first_are_taken():
    X, y = make_data(6, d=6)
    solution = solve_bpcd(make_problem(np.hstack([X, X]), y, 5))
    assert_a_set(solution.gamma, 5)
    assert solution.converged
    assert len(solution.path) < 1000
    assert solution.path[-1]["n_fractional"] == 2
    assert solution.objective == pytest.approx(solution.path[-1]["objective"], abs=1e-9)


def test_one_sample_against_the_rest():
    X, _ = make_data(7, n=7)
    y = np.array([1.0, 0, 0, 0, 0, 0, 0])
    solution = solve_bpcd(make_problem(X, y, 2))
    assert_a_set(solution.gamma, 2)
    scores = Problem.scores(make_problem(X, y, 2), solution.w, solution.b, solution.gamma)
    assert scores[0] > scores[1:].max()


def test_a_penalty_that_leaves_no_weight_still_ends_in_a_set():
    solution = solve_bpcd(make_problem(*make_data(0), l1=10.0))
    assert_a_set(solution.gamma, 3)
    assert not solution.w.any()
    assert len(solution.path) == 1


def test_separable_data_without_penalties_end():
    X, y = make_data(0, n=12)
    solution = solve_bpcd(make_problem(X, y, 3, 0.0, 0.0))
    assert_a_set(solution.gamma, 3)
    assert solution.objective < 0.1


def test_too_few_iterations_are_admitted():
    solution = solve_bpcd(make_problem(*make_data(0)), max_iter=1, tol=1e-9, path_step=1e7)
    assert not solution.converged
    assert_a_set(solution.gamma, 3)


def test_the_nearest_set_takes_the_first_of_equal_entries():
    gamma = np.array([0.2, 0.5, 0.5, 0.9, 0.5])
    np.testing.assert_array_equal(CappedSimplex(3).vertex(gamma), [0, 1, 1, 1, 0])
