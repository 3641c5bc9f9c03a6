"""The paper's algorithm: descent, optimality, the published results, and odd inputs."""

from __future__ import annotations

import csv
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from solver_cases import assert_a_set, assert_relaxed_optimal, make_data, make_problem

from optirank.ranks.scoring import TIES
from optirank.solver import bpcd
from optirank.solver.bpcd import Descent, push
from optirank.solver.convex import solve_at

solve_bpcd = partial(bpcd.solve_bpcd, refit=False)  # as the paper has it


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("seed", range(2))
def test_no_iteration_raises_the_objective(seed, ties):
    problem = make_problem(*make_data(seed), ties=ties)
    descent = Descent(problem)
    for lambda_p in (0.0, 1e-3, 1e-2, 1e-1):
        before = (
            descent.loss
            + problem.penalty.value(descent.w)
            + lambda_p * push(descent.gamma)
        )
        trace, _ = descent.solve(lambda_p, tol=0.0, max_iter=400, scale=1.0)
        assert (np.diff([before, *trace]) <= 0).all()


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("l1", [0.0, 5e-3])
@pytest.mark.parametrize("seed", range(3))
def test_the_relaxed_solution_meets_the_optimality_conditions_of_every_block(
    seed, l1, ties
):
    problem = make_problem(*make_data(seed), l1=l1, l2=1e-2, ties=ties)
    solution = solve_bpcd(problem, tol=1e-14, max_iter=50_000, integral=False)
    assert solution.converged
    assert_relaxed_optimal(problem, solution, 1e-4)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 1e-2), (5e-3, 1e-3)])
def test_with_all_genes_as_reference_it_is_logistic_regression_on_full_ranks(
    ties, l1, l2
):
    X, y = make_data(0)
    d = X.shape[1]
    problem = make_problem(X, y, d, l1, l2, ties=ties)
    solution = solve_bpcd(problem, tol=1e-10, max_iter=100_000)
    best = solve_at(problem, np.ones(d)).objective
    assert len(solution.path) == 1
    assert_a_set(solution.gamma, d)
    assert -1e-7 <= solution.objective - best <= 1e-5 * best


ANCHORS = [
    pytest.param(
        problem,
        l1,
        fraction,
        marks=[pytest.mark.slow]
        if "d1000" in problem
        or problem == "nb_n700_d200"
        or (l1, fraction) == (0.0, 0.05)
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
    problem = make_problem(
        data["X"], data["y"].astype(float), s, l1, published["lambda_2"]
    )
    solution = solve_bpcd(problem)

    assert solution.converged
    assert_a_set(solution.gamma, s)
    assert solution.objective == pytest.approx(published["objective"], rel=0.01)
    assert solution.path[0]["objective"] == pytest.approx(
        published["objective_relaxed"], rel=0.005
    )
    assert solution.n_iter == pytest.approx(published["iterations"], rel=0.1)
    relaxations = len(solution.path) - 1
    assert relaxations == pytest.approx(published["relaxations"], rel=0.1, abs=1)


def test_the_path_tells_what_happened_at_each_lambda_p():
    problem = make_problem(*make_data(1))
    solution = solve_bpcd(problem)
    told = solution.path
    assert set(told[0]) == {
        "lambda_p",
        "iterations",
        "objective",
        "rho",
        "n_fractional",
    }
    lambdas = [entry["lambda_p"] for entry in told]
    assert lambdas[0] == 0
    assert len(told) > 1
    assert (np.diff(lambdas) > 0).all()
    assert solution.n_iter == sum(entry["iterations"] for entry in told)
    assert [entry["n_fractional"] > 0 for entry in told] == [True] * (len(told) - 1) + [
        False
    ]
    assert solution.objective == pytest.approx(told[-1]["objective"], abs=1e-9)
    assert solution.objective == problem.objective(
        solution.w, solution.b, solution.gamma
    )


def test_without_the_push_gamma_may_stay_fractional():
    problem = make_problem(*make_data(1))
    relaxed = solve_bpcd(problem, integral=False)
    whole = solve_bpcd(problem)
    assert len(relaxed.path) == 1
    assert ((relaxed.gamma > 0) & (relaxed.gamma < 1)).any()
    assert relaxed.gamma.sum() == pytest.approx(3)
    assert relaxed.objective == pytest.approx(whole.path[0]["objective"])


def test_sparse_and_dense_data_give_the_same_solution():
    X, y = make_data(2)
    dense = solve_bpcd(make_problem(X, y))
    sparse = solve_bpcd(make_problem(sp.csr_array(X), y))
    np.testing.assert_array_equal(sparse.gamma, dense.gamma)
    np.testing.assert_allclose(sparse.w, dense.w, atol=1e-6)


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


def test_of_copies_of_one_gene_the_first_are_taken():
    X, y = make_data(6, d=6)
    solution = solve_bpcd(make_problem(np.hstack([X, X]), y, 5))
    assert_a_set(solution.gamma, 5)
    assert solution.converged
    assert len(solution.path) < 1000
    assert solution.path[-1]["n_fractional"] == 2
    assert solution.objective == pytest.approx(solution.path[-1]["objective"], abs=1e-9)


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
    solution = solve_bpcd(
        make_problem(*make_data(0)), max_iter=1, tol=1e-9, path_step=1e7
    )
    assert not solution.converged
    assert_a_set(solution.gamma, 3)
