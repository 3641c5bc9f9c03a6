"""The joint solver: optimality, an independent reference, and what must not matter."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from joint_cases import SlowJoint, make_counts, make_problem
from scipy.optimize import approx_fprime
from scipy.special import softmax

from optirank.solver.fixed import solve_at
from optirank.solver.joint import JointRun, solve_joint
from optirank.solver.joint_grid import solve_joint_grid
from optirank.solver.joint_matrices import GammaMap
from optirank.solver.joint_problem import joint_weights
from optirank.solver.problem import Problem, sample_weights
from optirank.solver.softmax import SoftmaxLoss


@pytest.mark.parametrize("ties", ["average", "min", "max"])
def test_gradients_are_the_numerical_ones(ties):
    X, codes = make_counts(20, 6)
    problem = make_problem(X, codes, 2, l1=0.0, l2=1e-7, ties=ties)
    rng = np.random.default_rng(0)
    W, b, gamma = rng.normal(size=(6, 3)), rng.normal(size=3), rng.random(6)
    in_W, in_b, in_gamma = SlowJoint(X, problem).gradients(W, b, gamma)

    def loss(W, b, gamma):
        return problem.loss(problem.scores(W, b, gamma))

    numerical = approx_fprime(W.ravel(), lambda x: loss(x.reshape(6, 3), b, gamma), 1e-7)
    np.testing.assert_allclose(in_W.ravel(), numerical, atol=1e-6)
    np.testing.assert_allclose(in_b, approx_fprime(b, lambda x: loss(W, x, gamma), 1e-7), atol=1e-6)
    numerical = approx_fprime(gamma, lambda x: loss(W, b, x), 1e-7)
    np.testing.assert_allclose(in_gamma, numerical, atol=1e-6)
    # the solver's own are centred, which changes nothing at the best intercepts
    run = JointRun(problem).alternation
    b = run.loss.best_intercept(problem.scores(W, np.zeros(3), gamma), b)
    run.loss.differentiate(problem.scores(W, np.zeros(3), gamma), b)
    matrix = run.matrices.ranks(gamma)
    in_W, _, _ = SlowJoint(X, problem).gradients(W, b, gamma)
    np.testing.assert_allclose(matrix.transpose_dot(run.loss.slopes), in_W, atol=1e-5)
    _, _, in_gamma = SlowJoint(X, problem).gradients(W, b, gamma)
    found = GammaMap(run.matrices, W).transpose_dot(run.loss.slopes)
    np.testing.assert_allclose(found, in_gamma, atol=1e-5)


@pytest.mark.parametrize("l1", [0.0, 3e-3, 3e-2])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_the_weights_are_optimal_at_the_final_set(l1, as_sparse):
    X, codes = make_counts(200, 300, 4)
    problem = make_problem(X, codes, 20, l1=l1, l2=1e-3, as_sparse=as_sparse)
    solution = solve_joint(problem, tol=1e-6)
    assert solution.converged
    assert set(np.unique(solution.gamma)) <= {0.0, 1.0}
    assert solution.gamma.sum() == 20
    in_W, in_b, _ = SlowJoint(X, problem).gradients(solution.W, solution.b, solution.gamma)
    norms = np.linalg.norm(solution.W, axis=1)
    used = norms > 0
    smooth = in_W + 2 * problem.l2 * solution.W
    subgradient = smooth[used] + l1 * solution.W[used] / norms[used, None]
    assert np.abs(subgradient).max(initial=0.0) < 1e-5
    assert (np.linalg.norm(in_W[~used], axis=1) <= l1 + 1e-5).all()
    assert np.abs(in_b).max() < 1e-6
    if l1 == 3e-2:
        assert 0 < used.sum() < 300
    np.testing.assert_allclose(solution.W.sum(axis=1), 0.0, atol=1e-6)
    expected = SlowJoint(X, problem).objective(solution.W, solution.b, solution.gamma)
    assert solution.objective == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("l1", [0.0, 2e-2])
def test_small_problems_end_at_roundoff(l1):
    X, codes = make_counts(60, 10, 3)
    problem = make_problem(X, codes, 3, l1=l1, l2=1e-2)
    solution = solve_joint(problem)
    in_W, in_b, _ = SlowJoint(X, problem).gradients(solution.W, solution.b, solution.gamma)
    norms = np.linalg.norm(solution.W, axis=1)
    used = norms > 0
    gradient = (in_W + 2 * problem.l2 * solution.W)[used]
    assert np.abs(gradient + l1 * solution.W[used] / norms[used, None]).max() < 1e-12
    assert np.abs(in_b).max() < 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_the_objective_is_not_above_that_of_exact_alternation(seed):
    X, codes = make_counts(60, 10, 3, seed=seed)
    problem = make_problem(X, codes, 3, l2=3e-3)
    assert solve_joint(problem).objective <= SlowJoint(X, problem).alternate() + 1e-4


def test_no_exchange_of_one_gene_lowers_the_objective_on_a_small_problem():
    X, codes = make_counts(50, 8, 3, seed=5)
    problem = make_problem(X, codes, 2, l2=3e-3)
    slow = SlowJoint(X, problem)
    solution = solve_joint(problem)
    inside, outside = np.flatnonzero(solution.gamma), np.flatnonzero(solution.gamma == 0)
    for goes, comes in product(inside, outside):
        gamma = solution.gamma.copy()
        gamma[[goes, comes]] = 0.0, 1.0
        W, b = slow.best_weights(gamma, solution.W, solution.b)
        assert slow.objective(W, b, gamma) >= solution.objective - 1e-5


@pytest.mark.parametrize("l1", [0.0, 1e-2])
def test_dense_and_sparse_data_give_the_same(l1):
    X, codes = make_counts(120, 30, 4)
    dense = solve_joint(make_problem(X, codes, 5, l1=l1))
    other = solve_joint(make_problem(X, codes, 5, l1=l1, as_sparse=True))
    np.testing.assert_array_equal(dense.gamma, other.gamma)
    np.testing.assert_allclose(dense.W, other.W, atol=1e-3)
    assert dense.objective == pytest.approx(other.objective, abs=1e-7)


def test_two_classes_are_the_binary_problem_with_matching_penalties():
    X, codes = make_counts(80, 10, 2)
    gamma = np.isin(np.arange(10), (1, 4, 7)).astype(float)
    l1, l2 = 4e-3, 2e-3
    problem = make_problem(X, codes, 3, l1=np.sqrt(2) * l1, l2=2 * l2)
    run = JointRun(problem)
    joint = run.finish(run.start(gamma), 1e-7, 10_000)
    binary = solve_at(
        Problem(problem.orders, codes.astype(float), sample_weights(codes), 3, l1, l2), gamma
    )
    np.testing.assert_allclose(problem.v, sample_weights(codes))
    assert joint.objective == pytest.approx(binary.objective, abs=1e-8)
    np.testing.assert_allclose(joint.W[:, 1] - joint.W[:, 0], binary.w, atol=1e-3)
    assert joint.b[1] - joint.b[0] == pytest.approx(binary.b, abs=1e-3)


def test_the_reference_set_is_within_the_candidates():
    X, codes = make_counts(80, 20, 3)
    candidates = np.arange(20) % 2 == 0
    problem = make_problem(X, codes, 4, candidates=candidates)
    solution = solve_joint(problem)
    assert solution.gamma.sum() == 4
    assert not solution.gamma[~candidates].any()
    assert solution.W[~candidates].any()  # weights stay free
    free = solve_joint(make_problem(X, codes, 4))
    every = solve_joint(make_problem(X, codes, 4, candidates=np.ones(20, bool)))
    assert every.objective == free.objective
    forced = solve_joint(make_problem(X, codes, 10, candidates=candidates))
    np.testing.assert_array_equal(forced.gamma, candidates.astype(float))
    with pytest.raises(ValueError, match="more than the 10 candidate genes"):
        make_problem(X, codes, 11, candidates=candidates)


def test_full_ranks_leave_nothing_to_choose():
    X, codes = make_counts(60, 8, 3)
    solution = solve_joint(make_problem(X, codes, 8))
    np.testing.assert_array_equal(solution.gamma, np.ones(8))


def test_the_relaxed_solution_is_a_stationary_point_of_the_simplex():
    X, codes = make_counts(80, 15, 3)
    problem = make_problem(X, codes, 4, l2=1e-2)
    relaxed = solve_joint(problem, integral=False, tol=1e-8)
    assert relaxed.gamma.sum() == pytest.approx(4)
    assert ((relaxed.gamma >= 0) & (relaxed.gamma <= 1)).all()
    slow, W, b = SlowJoint(X, problem), relaxed.W, relaxed.b
    better_W, better_b = slow.best_weights(relaxed.gamma, W, b)
    assert slow.objective(better_W, better_b, relaxed.gamma) > relaxed.objective - 1e-4
    better = slow.best_gamma(relaxed.gamma, W, b, np.zeros(15))
    assert slow.objective(W, b, better) > relaxed.objective - 1e-4


def test_stages_never_raise_the_objective_once_gamma_is_a_set():
    X, codes = make_counts(100, 25, 3)
    entries = []
    solution = solve_joint(make_problem(X, codes, 5), callback=entries.append)
    assert {one["stage"] for one in entries} == {"relaxed", "rounded", "exchanged"}
    assert solution.path[-1]["stage"] == "end"
    best = {
        stage: min(one["objective"] for one in solution.path if one["stage"] == stage)
        for stage in ("rounded", "exchanged", "end")
    }
    assert best["end"] <= best["exchanged"] + 1e-7 <= best["rounded"] + 2e-7
    unpolished = solve_joint(make_problem(X, codes, 5), polish=False)
    assert solution.objective <= unpolished.objective + 1e-7


def test_a_grid_gives_every_setting_about_the_objective_of_a_fit_of_its_own():
    X, codes = make_counts(100, 30, 3)
    problem = make_problem(X, codes, 6)
    penalties = [(l1, l2) for l1 in (0.0, 1e-2) for l2 in (0.0, 1e-3, 1e-2)]
    found = solve_joint_grid(problem, penalties)
    assert set(found) == set(penalties)
    for (l1, l2), solution in found.items():
        alone = solve_joint(replace(problem, l1=l1, l2=l2))
        assert solution.converged
        assert solution.gamma.sum() == 6
        assert solution.objective <= alone.objective * 1.1 + 1e-4
        assert solution.objective == pytest.approx(
            replace(problem, l1=l1, l2=l2).objective(solution.W, solution.b, solution.gamma),
            abs=1e-9,
        )


def test_samples_of_weight_zero_do_not_matter():
    X, codes = make_counts(90, 12, 3)
    weights = np.r_[np.ones(60), np.zeros(30)]
    with_zeros = solve_joint(make_problem(X, codes, 3, weights=weights))
    without = solve_joint(make_problem(X[:60], codes[:60], 3))
    assert with_zeros.objective == pytest.approx(without.objective, abs=1e-6)
    np.testing.assert_array_equal(with_zeros.gamma, without.gamma)


def test_balanced_weights_give_every_class_the_same_total():
    codes = np.array([0, 0, 0, 1, 2, 2])
    v = joint_weights(codes, 3, np.array([1.0, 2, 3, 4, 5, 6]))
    np.testing.assert_allclose(np.bincount(codes, weights=v), 1 / 3)
    np.testing.assert_allclose(joint_weights(codes, 3, balanced=False), 1 / 6)


@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
def test_the_best_intercepts_have_the_right_class_totals(scale):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, 200)
    z = rng.normal(size=(200, 4)) * scale
    z[np.arange(200), codes] += 1.0
    v = np.full(200, 1 / 200)
    b = SoftmaxLoss(codes, 4, v).best_intercept(z, np.array([5.0, -5.0, 0.0, 0.0]))
    totals = v @ softmax(z + b, axis=1)
    np.testing.assert_allclose(totals, np.bincount(codes) / 200, atol=1e-6)
    assert b.sum() == pytest.approx(0.0, abs=1e-9)


def test_a_solve_without_time_still_gives_a_set_and_weights():
    problem = make_problem(*make_counts(200, 300, 4), 20, l1=3e-3, l2=1e-3)
    hurried, full = solve_joint(problem, until=0.0), solve_joint(problem)
    assert set(np.unique(hurried.gamma)) <= {0.0, 1.0}
    assert hurried.gamma.sum() == problem.n_reference
    assert hurried.objective == pytest.approx(
        problem.objective(hurried.W, hurried.b, hurried.gamma), rel=1e-6
    )
    assert full.objective <= hurried.objective < np.log(problem.n_classes)
    assert hurried.n_iter < full.n_iter
    assert not hurried.converged
