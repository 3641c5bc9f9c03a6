"""The fast algorithm: sets of the right size, optimality, both minima, the published
results.
"""

from __future__ import annotations

import csv
import warnings
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from solver_cases import (
    CONTAINERS,
    assert_a_set,
    assert_relaxed_optimal,
    assert_weights_optimal,
    make_data,
    make_problem,
)

from optirank._util.numbers import product
from optirank.datasets import make_unstable_ranks
from optirank.ranks import orders
from optirank.ranks.scoring import TIES, weighted_ranks
from optirank.solver import blocks, convex, exchange
from optirank.solver.bpcd import solve_bpcd
from optirank.solver.constants import STARTS
from optirank.solver.convex import solve_at
from optirank.solver.exchange import exchange_batches, exchange_pairs
from optirank.solver.solve import (
    Run,
    State,
    solve_alternating,
    solve_grid,
)

# What comes out


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("l1", [0.0, 5e-3])
@pytest.mark.parametrize("n_reference", [1, 2, 5, 11])
def test_it_ends_in_a_set_of_the_size_asked_for_with_optimal_weights(
    n_reference, l1, ties
):
    problem = make_problem(*make_data(4), n_reference, l1, ties=ties)
    solution = solve_alternating(problem)
    assert solution.converged
    assert_a_set(solution.gamma, n_reference)
    assert_weights_optimal(problem, solution, 1e-7)
    assert solution.objective == problem.objective(
        solution.w, solution.b, solution.gamma
    )


@pytest.mark.parametrize("l1", [0.0, 5e-3])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("side", STARTS)
def test_polishing_never_ends_above_the_rounded_set(seed, l1, side):
    problem = make_problem(*make_data(seed, n=100, d=30), 6, l1)
    rough = solve_alternating(problem, polish=False, side=side)
    polished = solve_alternating(problem, side=side)
    assert polished.objective <= rough.objective + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_the_refit_only_lowers_the_objective(seed):
    problem = make_problem(*make_data(seed))
    left = solve_alternating(problem, refit=False)
    refitted = solve_alternating(problem)
    np.testing.assert_array_equal(left.gamma, refitted.gamma)
    assert refitted.objective <= left.objective + 1e-12


@pytest.mark.parametrize("l1", [0.0, 5e-3])
@pytest.mark.parametrize("seed", range(4))
def test_no_single_exchange_of_two_genes_would_be_better_on_small_problems(seed, l1):
    problem = make_problem(*make_data(seed, d=9), 3, l1)
    solution = solve_alternating(problem)
    inside, outside = (
        np.flatnonzero(solution.gamma),
        np.flatnonzero(solution.gamma == 0),
    )
    for goes in inside:
        for comes in outside:
            gamma = solution.gamma.copy()
            gamma[[goes, comes]] = 0.0, 1.0
            assert solve_at(problem, gamma).objective >= solution.objective * (1 - 1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_it_is_no_worse_than_the_papers_algorithm(seed):
    problem = make_problem(*make_data(seed, n=100, d=25), 5)
    theirs = solve_bpcd(problem)
    assert solve_alternating(problem).objective <= theirs.objective * (1 + 1e-3)


@pytest.mark.parametrize("integral", [True, False])
@pytest.mark.parametrize("side", ["best", "rising", "falling"])
def test_the_same_input_gives_the_same_bits(side, integral):
    problem = make_problem(*make_data(3, d=40), 8)
    first, second = (
        solve_alternating(problem, side=side, integral=integral) for _ in range(2)
    )
    np.testing.assert_array_equal(first.w, second.w)
    np.testing.assert_array_equal(first.gamma, second.gamma)
    assert (first.b, first.objective) == (second.b, second.objective)


def test_the_path_tells_the_stages_and_ends_at_the_objective():
    solution = solve_alternating(make_problem(*make_data(1)))
    told = solution.path
    assert {"relaxed", "rounded", "exchanged"} <= {entry["stage"] for entry in told}
    assert solution.path[-1] == {"stage": "end", "objective": solution.objective}
    assert all(np.isfinite(entry["objective"]) for entry in told)


# Without the push


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("l1", [0.0, 5e-3])
@pytest.mark.parametrize("seed", range(3))
def test_the_relaxed_solution_meets_the_optimality_conditions_of_every_block(
    seed, l1, ties, container
):
    X, y = make_data(seed)
    problem = make_problem(container(X), y, l1=l1, l2=1e-2, ties=ties)
    solution = solve_alternating(problem, integral=False, tol=1e-9, max_iter=50_000)
    assert solution.converged
    assert_relaxed_optimal(problem, solution, 2e-5)


@pytest.mark.parametrize("seed", range(4))
def test_the_relaxed_minimum_is_below_every_set(seed):
    problem = make_problem(*make_data(seed))
    relaxed = solve_alternating(problem, integral=False)
    assert relaxed.objective <= solve_alternating(problem).objective + 1e-6
    assert relaxed.objective <= solve_bpcd(problem, integral=False).objective * (
        1 + 1e-3
    )


# Two minima


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("integral", [True, False])
def test_the_best_side_is_the_lower_of_the_two(seed, integral):
    problem = make_problem(*make_data(seed), 3 if integral else 4)
    best = solve_alternating(problem, integral=integral)
    sides = {
        side: solve_alternating(problem, side=side, integral=integral)
        for side in STARTS
    }
    # small problems carry both starts to the end
    assert best.objective == pytest.approx(
        min(s.objective for s in sides.values()), abs=1e-6
    )


def up_and_down(n=400, d=60, seed=0):
    """Genes of the first third rise with the label, those of the last third fall."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 2).astype(float)
    effect = np.repeat([0.6, 0.0, -0.6], d // 3)
    return rng.normal(size=(n, d)) + rng.normal(size=d) + np.outer(y - 0.5, effect), y


def test_each_side_puts_the_reference_among_the_genes_it_is_named_after():
    X, y = up_and_down()
    problem = make_problem(X, y, 8, 0.0, 1e-2)
    rising, falling = (solve_alternating(problem, side=side) for side in STARTS)
    assert rising.gamma[:20].sum() > rising.gamma[40:].sum()
    assert falling.gamma[40:].sum() > falling.gamma[:20].sum()


# All kinds of input


@pytest.mark.parametrize("seed", range(4))
def test_sparse_and_dense_data_give_nearly_the_same_objective(seed):
    # pairs of genes are exchanged on dense orders only, so the sets may differ
    X, y = make_data(seed)
    dense = solve_alternating(make_problem(X, y))
    sparse = solve_alternating(make_problem(sp.csr_array(X), y))
    assert_a_set(sparse.gamma, 3)
    assert sparse.objective <= dense.objective * 1.03
    rough = [
        solve_alternating(make_problem(kind(X), y), polish=False)
        for kind in (np.asarray, sp.csr_array)
    ]
    assert rough[0].objective == pytest.approx(rough[1].objective, rel=0.02)


@pytest.mark.parametrize(("l1", "l2"), [(0.0, 1e-3), (1e-3, 1e-3), (0.0, 0.0)])
def test_with_all_genes_as_reference_it_is_the_convex_problem(l1, l2):
    problem = make_problem(*make_data(0), 12, l1, l2)
    solution = solve_alternating(problem)
    convex = solve_at(problem, np.ones(12))
    np.testing.assert_array_equal(solution.w, convex.w)
    np.testing.assert_array_equal(solution.gamma, np.ones(12))


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_one_gene_has_nothing_to_say(container):
    X, y = make_data(0, d=1)
    solution = solve_alternating(make_problem(container(X), y, 1))
    np.testing.assert_array_equal(solution.gamma, [1.0])
    assert solution.objective == pytest.approx(np.log(2))


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_of_two_genes_either_may_be_the_reference(container):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2.0
    X = rng.normal(size=(40, 2)) + np.outer(y, [2.0, -2.0])
    solution = solve_alternating(make_problem(container(X), y, 1, 0.0, 1e-6))
    assert_a_set(solution.gamma, 1)
    scores = make_problem(X, y, 1).scores(solution.w, solution.b, solution.gamma)
    np.testing.assert_array_equal(scores > 0, X[:, 0] > X[:, 1])


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("integral", [True, False])
def test_two_samples_are_enough(container, integral, monkeypatch):
    def finite_product(a, b):
        assert np.isfinite(a).all()
        assert np.isfinite(b).all()
        result = product(a, b)
        assert np.isfinite(result).all()
        return result

    # Products ignore a flag that BLAS can raise on finite numbers; these are finite
    for module in (orders, blocks, convex, exchange):
        monkeypatch.setattr(module, "product", finite_product)
    X = np.array([[1.0, 2, 3, 4, 0], [4.0, 3, 2, 1, 0]])
    problem = make_problem(container(X), np.array([0.0, 1.0]), 2)
    solution = solve_alternating(problem, integral=integral)
    scores = problem.scores(solution.w, solution.b, solution.gamma)
    assert scores[0] < 0 < scores[1]


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("integral", [True, False])
def test_constant_genes_and_no_others_end_at_chance(container, value, integral):
    problem = make_problem(container(np.full((10, 6), value)), np.arange(10) % 2.0, 2)
    solution = solve_alternating(problem, integral=integral)
    if integral:
        assert_a_set(solution.gamma, 2)
    assert solution.objective == pytest.approx(np.log(2))


def test_a_few_constant_genes_and_empty_samples_do_no_harm():
    X, y = make_data(5)
    X[:, [0, 3, 7]] = 0.0
    X[[4, 9]] = 0.0
    solution = solve_alternating(make_problem(X, y, 4))
    assert_a_set(solution.gamma, 4)
    assert solution.objective < 0.6


def test_one_sample_against_the_rest():
    X, _ = make_data(7, n=7)
    y = np.array([1.0, 0, 0, 0, 0, 0, 0])
    problem = make_problem(X, y, 2)
    solution = solve_alternating(problem)
    assert_a_set(solution.gamma, 2)
    scores = problem.scores(solution.w, solution.b, solution.gamma)
    assert scores[0] > scores[1:].max()


@pytest.mark.parametrize("integral", [True, False])
def test_a_penalty_that_leaves_no_weight_still_ends(integral):
    solution = solve_alternating(
        make_problem(*make_data(0), l1=10.0), integral=integral
    )
    if integral:
        assert_a_set(solution.gamma, 3)
    assert not solution.w.any()
    assert solution.objective == pytest.approx(np.log(2))


@pytest.mark.parametrize("l2", [0.0, 1e-6])
def test_separable_data_with_hardly_a_penalty_end(l2):
    problem = make_problem(*make_data(0, n=12), 3, 0.0, l2)
    solution = solve_alternating(problem)
    assert_a_set(solution.gamma, 3)
    assert solution.objective < 1e-2
    assert solution.converged


def test_too_few_iterations_are_admitted():
    problem = make_problem(*make_data(0), l2=1e-6, l1=0.0)
    assert not solve_alternating(problem, max_iter=1, tol=1e-9).converged
    assert not solve_alternating(
        problem, max_iter=1, tol=1e-12, integral=False
    ).converged


# Problems with known results


ANCHORS = [
    (problem, l1, fraction)
    for problem in ("nb_n700_d50", "gauss_n700_d200", "nb_n700_d200", "nb_n1000_d1000")
    for l1 in (0.0, 0.001)
    for fraction in (0.05, 0.2, 0.6)
]


@pytest.mark.parametrize(("name", "l1", "fraction"), ANCHORS)
def test_it_reaches_the_refitted_published_objective(
    anchors_folder, name, l1, fraction
):
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
    solution = solve_alternating(problem)
    assert solution.converged
    assert_a_set(solution.gamma, s)
    assert solution.objective <= published["objective_refit"] + 1e-4


def unstable(seed):
    data = make_unstable_ranks(700, random_state=seed)
    problem = make_problem(data.X, data.y.astype(float), 10, 0.0, 1e-6)
    return (
        solve_alternating(problem),
        solve_at(problem, data.reference.astype(float)),
        data,
    )


def test_the_synthetic_models_reference_set_is_found_on_most_seeds():
    found = [unstable(seed) for seed in range(10)]
    as_low = [ours.objective <= true.objective + 1e-4 for ours, true, _ in found]
    assert sum(as_low) >= 8
    assert (
        np.mean([ours.gamma @ data.reference / 10 for ours, _, data in found]) >= 0.90
    )


@pytest.fixture(scope="module")
def immune_cells(data_folder):
    """Counts, cell types and centred full ranks of zilionis_mouse_immune."""
    anndata = pytest.importorskip("anndata", reason="reads the real data sets")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells = anndata.read_h5ad(data_folder / "zilionis_mouse_immune.h5ad")
    X = cells.X.toarray()
    ranks = weighted_ranks(X, np.ones(X.shape[1]))
    ranks -= ranks.mean(axis=0)
    return X, cells.obs["cell_type"].to_numpy().astype(str), ranks


@pytest.mark.slow
@pytest.mark.parametrize("l2", [1e-3, 0.0])
@pytest.mark.parametrize("fraction", [0.2, 0.6])
@pytest.mark.parametrize("cell_type", ["b cell", "granulocyte", "nk cell", "t cell"])
def test_cells_on_which_a_path_stalled_end_in_a_set(
    immune_cells, cell_type, fraction, l2
):
    X, cell_types, ranks = immune_cells
    y = (cell_types == cell_type).astype(float)
    spread = np.maximum(np.linalg.norm(ranks, axis=0), 1e-12)
    correlation = np.abs((y - y.mean()) @ ranks) / spread
    genes = np.sort(np.argsort(-correlation, kind="stable")[:1000])
    s = int(1000 * fraction)
    solution = solve_alternating(make_problem(X[:, genes], y, s, 0.0, l2))
    assert solution.converged
    assert_a_set(solution.gamma, s)
    assert solution.n_iter < 3000


@pytest.mark.parametrize("l1", [1e-5, 1e-3])
def test_a_lasso_without_ridge_ends_with_more_genes_than_samples(l1):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 150))
    y = (X[:, 0] + X[:, 1] > X[:, 2] + X[:, 3]).astype(float)
    problem = make_problem(X, y, 5, l1, 0.0)
    solution = solve_alternating(problem)
    assert solution.gamma.sum() == 5
    assert solution.objective < np.log(2)


def test_the_start_that_ends_lower_is_chosen_though_its_set_looked_worse(
    anchors_folder,
):
    """Before (w, b) converge, the sets of the two starts are in the wrong
    order here.
    """
    data = np.load(anchors_folder / "nb_n700_d50.npz")
    problem = make_problem(data["X"], data["y"].astype(float), 2, 1e-3, 1e-3)
    ends = [solve_alternating(problem, side=side).objective for side in STARTS]
    assert solve_alternating(problem).objective == pytest.approx(min(ends), abs=1e-7)
    assert min(ends) < 0.6345


# Exchanges of genes at a set


def batches(run, state):
    return exchange_batches(run, state, 20)


def pairs(run, state):
    return exchange_pairs(run, state, n_models=8)


def start_at(problem, gamma):
    """A state at a set, after a few steps on w."""
    run = Run(problem)
    state = State(np.zeros(problem.n_genes), 0.0, gamma)
    return run, run.steps_on_w(state, 100)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("l1", [0.0, 5e-3])
@pytest.mark.parametrize("n_reference", [1, 6, 29])
@pytest.mark.parametrize("exchange", [batches, pairs])
def test_a_random_set_becomes_a_better_one_of_the_same_size(
    exchange, n_reference, l1, ties, container
):
    X, y = make_data(0, 120, 30)
    problem = make_problem(CONTAINERS[container](X), y, n_reference, l1, ties=ties)
    gamma = (np.random.default_rng(0).permutation(30) < n_reference).astype(float)
    run, state = start_at(problem, gamma)
    new = exchange(run, state)
    assert_a_set(new.gamma, n_reference)
    assert new.objective <= state.objective + 1e-9
    z = problem.scores(new.w, 0.0, new.gamma)
    b = run.loss.best_intercept(z, 0.0)
    assert new.objective == pytest.approx(
        problem.objective(new.w, b, new.gamma), abs=2e-5
    )
    refitted = [solve_at(problem, each.gamma).objective for each in (state, new)]
    assert refitted[1] <= refitted[0] * (0.99 if n_reference == 6 else 1 + 1e-4)


def test_pairs_lead_from_a_spoilt_set_to_one_as_good_as_the_true_one():
    data = make_unstable_ranks(700, random_state=0)
    problem = make_problem(data.X, data.y.astype(float), 10, 0.0, 1e-6)
    true = data.reference.astype(float)
    spoilt = true.copy()
    spoilt[np.flatnonzero(true)[:2]] = 0.0
    spoilt[np.flatnonzero(true == 0)[:2]] = 1.0
    new = pairs(*start_at(problem, spoilt))
    assert (
        solve_at(problem, new.gamma).objective
        <= solve_at(problem, true).objective + 1e-4
    )


# Reference sets within candidate genes; the weights stay free

CANDIDATES = np.arange(9) % 3 > 0
GRID = [(l1, l2) for l1 in (0.0, 1e-3) for l2 in (1e-2, 1e-3)]


def restricted(seed, candidates=CANDIDATES, **settings):
    return make_problem(*make_data(seed, d=9), 2, candidates=candidates, **settings)


def best_of_all(problem):
    """The lowest objective of all reference sets within the candidates."""
    sets = combinations(np.flatnonzero(problem.candidates), problem.n_reference)
    gammas = (
        np.isin(np.arange(problem.n_genes), chosen).astype(float) for chosen in sets
    )
    return min(solve_at(problem, gamma).objective for gamma in gammas)


@pytest.mark.parametrize("solve", [solve_alternating, solve_bpcd])
@pytest.mark.parametrize("integral", [True, False])
def test_the_reference_is_within_the_candidates_and_weights_are_not(solve, integral):
    solution = solve(restricted(1, l1=0.0), integral=integral)
    assert solution.gamma.sum() == pytest.approx(2)
    assert not solution.gamma[~CANDIDATES].any()
    assert solution.w[~CANDIDATES].any()


@pytest.mark.parametrize("seed", range(3))
def test_the_best_set_within_the_candidates_is_found_alone_and_in_grids(seed):
    problem = restricted(seed)
    solution = solve_alternating(problem)
    assert solution.objective == pytest.approx(best_of_all(problem), abs=1e-6)
    for (l1, l2), one in solve_grid(problem, GRID).items():
        assert_a_set(one.gamma, 2)
        assert one.objective <= best_of_all(replace(problem, l1=l1, l2=l2)) + 1e-4


@pytest.mark.parametrize("solve", [solve_alternating, solve_bpcd])
def test_as_many_candidates_as_reference_genes_are_the_set(solve):
    candidates = np.isin(np.arange(9), (3, 7))
    problem = restricted(0, candidates)
    solution = solve(problem)
    np.testing.assert_array_equal(solution.gamma, candidates)
    best = solve_at(problem, candidates.astype(float)).objective
    assert solution.objective == pytest.approx(best, abs=1e-7)
    for one in solve_grid(problem, GRID).values():
        np.testing.assert_array_equal(one.gamma, candidates)
