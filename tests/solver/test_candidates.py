"""Reference sets within candidate genes: both algorithms and grids; the weights stay free."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

from optirank.ranks.orders import order_samples
from optirank.solver.convex import solve_at
from optirank.solver.grid import solve_grid
from optirank.solver.problem import Problem, sample_weights
from optirank.solver.solve import ALGORITHMS, solve

D, S = 9, 2
CANDIDATES = np.arange(D) % 3 > 0
GRID = [(l1, l2) for l1 in (0.0, 1e-3) for l2 in (1e-2, 1e-3)]


def make_problem(seed, candidates=CANDIDATES, container=np.asarray, n_reference=S, **settings):
    rng = np.random.default_rng(seed)
    y = (np.arange(80) % 2).astype(float)
    effect = np.outer(y, rng.choice([-1.0, 0.0, 1.0], size=D))
    X = rng.poisson(np.exp(rng.normal(0.5, 0.7, size=D) + effect)).astype(float)
    settings = {"l1": 1e-3, "l2": 1e-3, "candidates": candidates, **settings}
    return Problem(order_samples(container(X)), y, sample_weights(y), n_reference, **settings)


def all_objectives(problem, candidates):
    """The objective of every reference set within the candidates."""
    free = replace(problem, candidates=None)
    objectives = {}
    for chosen in combinations(np.flatnonzero(candidates), problem.n_reference):
        gamma = np.zeros(D)
        gamma[list(chosen)] = 1.0
        objectives[chosen] = solve_at(free, gamma).objective
    return objectives


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("seed", range(3))
def test_the_set_is_within_the_candidates_and_weights_are_not(algorithm, seed):
    problem = make_problem(seed, l1=0.0)
    (solution,) = solve(problem, algorithm=algorithm)
    assert solution.integral
    assert solution.gamma.sum() == S
    assert not solution.gamma[~CANDIDATES].any()
    assert solution.w[~CANDIDATES].any()


@pytest.mark.parametrize("seed", range(4))
def test_the_best_set_of_all_within_the_candidates_is_found(seed):
    problem = make_problem(seed)
    objectives = all_objectives(problem, CANDIDATES)
    (solution,) = solve(problem)
    assert solution.objective == pytest.approx(min(objectives.values()), abs=1e-6)
    assert tuple(np.flatnonzero(solution.gamma)) in objectives
    (free,) = solve(replace(problem, candidates=None))
    assert free.objective <= solution.objective + 1e-6


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("integral", [True, False])
def test_all_genes_as_candidates_change_nothing(algorithm, integral):
    free, (all_genes,) = (
        solve(make_problem(0, candidates), algorithm=algorithm, integral=integral)
        for candidates in (None, np.ones(D, bool))
    )
    np.testing.assert_array_equal(free[0].gamma, all_genes.gamma)
    assert free[0].objective == pytest.approx(all_genes.objective, rel=1e-12)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_fractional_solution_stays_within_the_candidates(algorithm):
    (solution,) = solve(make_problem(1), algorithm=algorithm, integral=False)
    assert solution.gamma.sum() == pytest.approx(S)
    assert not solution.gamma[~CANDIDATES].any()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_dense_and_sparse_data_lead_to_the_same_set(algorithm):
    dense, sparse = (
        solve(make_problem(2, container=container), algorithm=algorithm)[0]
        for container in (np.asarray, sp.csr_array)
    )
    np.testing.assert_array_equal(dense.gamma, sparse.gamma)
    assert dense.objective == pytest.approx(sparse.objective, abs=1e-6)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_as_many_candidates_as_reference_genes_are_the_set(algorithm):
    candidates = np.isin(np.arange(D), (3, 7))
    problem = make_problem(0, candidates)
    (solution,) = solve(problem, algorithm=algorithm)
    np.testing.assert_array_equal(solution.gamma, candidates)
    best = solve_at(problem, candidates.astype(float)).objective
    assert solution.objective == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("side", ["best", "rising", "falling"])
def test_grids_stay_within_the_candidates_and_find_good_sets(side):
    problem = make_problem(3)
    for (l1, l2), solution in solve_grid(problem, GRID, side=side).items():
        assert solution.integral
        assert solution.gamma.sum() == S
        assert not solution.gamma[~CANDIDATES].any()
        if side == "best":
            best = min(all_objectives(replace(problem, l1=l1, l2=l2), CANDIDATES).values())
            assert solution.objective <= best + 1e-4


def test_grids_of_the_only_set_there_is():
    candidates = np.isin(np.arange(D), (3, 7))
    found = solve_grid(make_problem(3, candidates), GRID, side="best")
    assert set(found) == set(GRID)
    for solution in found.values():
        np.testing.assert_array_equal(solution.gamma, candidates)


def test_too_few_candidates_are_refused():
    with pytest.raises(ValueError, match=r"n_reference=7 reference genes .* 6 candidate genes"):
        make_problem(0, n_reference=7)


@pytest.mark.parametrize("candidates", [np.ones(D), np.ones(D + 1, bool), np.arange(3)])
def test_what_is_no_mask_of_the_genes_is_refused(candidates):
    with pytest.raises(ValueError, match=r"boolean mask with one entry per gene, shape \(9,\)"):
        make_problem(0, candidates)
