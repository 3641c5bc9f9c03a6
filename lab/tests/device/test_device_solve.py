"""Fits side by side on a device, against the solver of single fits."""

from itertools import combinations

import numpy as np
import pytest

from numpy_device import NumpyBackend
from optirank.ranks.orders import order_samples
from optirank.solver import constants
from optirank.solver.problem import Problem, Solution, sample_weights
from optirank.solver.solve import solve_alternating
from optirank_lab.device.backend import DeviceError, order_on_device
from optirank_lab.device.solve import leaders, solve_together


def problem_data(n=90, d=20, seed=0, counts=False):
    rng = np.random.default_rng(seed)
    X = rng.poisson(1.0, (n, d)).astype(float) if counts else rng.normal(size=(n, d))
    y = (X[:, :3].sum(axis=1) - X[:, 3:6].sum(axis=1) + rng.normal(size=n) > 0).astype(
        float
    )
    return X, y


def on_cpu(*arguments) -> Solution:
    """The solution of one problem."""
    return solve_alternating(Problem(*arguments))


def at_set(X, y, v, gamma, l1, l2) -> Solution:
    """The best (w, b) at a reference set, which is all that the candidates allow."""
    s = int(gamma.sum())
    return on_cpu(order_samples(X), y, v, s, l1, l2, "average", gamma > 0)


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("ties", ["average", "min"])
def test_objectives_are_not_above_those_of_single_fits(backend, counts, ties):
    X, y = problem_data(counts=counts)
    v = sample_weights(y)
    orders = order_samples(X)
    penalties = [(0.0, 0.0), (3e-3, 0.0), (3e-3, 1e-2)]
    cases = [(s, l1, l2) for s in (1, 4) for l1, l2 in penalties] + [(20, 0.0, 1e-2)]
    there = order_on_device(backend, X)
    found = solve_together(
        [Problem(there, y, v, s, l1, l2, ties) for s, l1, l2 in cases]
    )
    for (s, l1, l2), solution in zip(cases, found, strict=True):
        single = on_cpu(orders, y, v, s, l1, l2, ties)
        assert solution.gamma.sum() == s
        assert set(np.unique(solution.gamma)) <= {0.0, 1.0}
        if l1 or l2:  # without a penalty, roundoff decides which of many sets is found
            assert solution.objective <= single.objective + 1e-4
        problem = Problem(orders, y, v, s, l1, l2, ties)
        exact = problem.objective(solution.w, solution.b, solution.gamma)
        assert solution.objective == pytest.approx(exact, abs=1e-5)
        scores = there.scores_of_many(solution.w[None], solution.gamma[None], ties)[0]
        expected = problem.scores(solution.w, solution.b, solution.gamma)
        np.testing.assert_allclose(scores / s + solution.b, expected, atol=2e-3)


@pytest.mark.parametrize(("d", "l1"), [(20, 2e-3), (320, 2e-3), (320, 0.0)])
def test_weights_are_optimal_at_the_final_set(backend, d, l1):
    X, y = problem_data(d=d, seed=3)
    v = sample_weights(y)
    [one] = solve_together([Problem(order_on_device(backend, X), y, v, 5, l1, 1e-3)])
    assert one.converged
    best = at_set(X, y, v, one.gamma, l1, 1e-3)
    assert one.objective == pytest.approx(best.objective, rel=1e-5)


@pytest.mark.parametrize("s", [5, 320])
def test_fits_that_stop_early_have_not_converged(backend, s):
    X, y = problem_data(d=320, seed=3)
    problem = Problem(order_on_device(backend, X), y, sample_weights(y), s, 0.0, 1e-7)
    [early], [late] = (solve_together([problem], max_iter=m) for m in (1, 100))
    assert not early.converged
    assert late.objective < early.objective


def test_fits_that_stall_have_not_converged(backend, monkeypatch):
    from optirank_lab.device import sets

    def refuse(batch, matrix, w, b, n_steps, *, tol=0.0):
        """Newton steps none of which lowers the objective."""
        return w, b, batch.xp.ones(len(b)), batch.xp.zeros(len(b))

    monkeypatch.setattr(sets, "newton_steps", refuse)
    X, y = problem_data(n=900, d=310, seed=3)
    orders = order_on_device(backend, X)
    easy, hard = (
        Problem(orders, y, sample_weights(y), 310, 0.0, l2) for l2 in (1e-1, 1e-6)
    )
    found = solve_together([easy, hard])
    assert [one.converged for one in found] == [True, False]


def test_held_out_samples_of_weight_zero_do_not_count(backend):
    X, y = problem_data(seed=1)
    rows = np.arange(90) % 3 != 0
    orders = order_on_device(backend, X)
    weights = sample_weights(y, rows.astype(float))
    own = orders.take(rows), y[rows], sample_weights(y[rows])
    alone = (order_on_device(backend, X[rows]), *own[1:])
    whole, other, part = (
        solve_together([Problem(*data, 4, 1e-3, 1e-3)])[0]
        for data in ((orders, y, weights), own, alone)
    )
    assert other.objective == pytest.approx(whole.objective, abs=1e-9)
    assert whole.objective == pytest.approx(part.objective, abs=1e-6)
    np.testing.assert_array_equal(whole.gamma, part.gamma)


def test_small_problems_reach_the_best_of_all_sets(backend):
    X, y = problem_data(n=60, d=7, seed=5)
    v = sample_weights(y)
    [one] = solve_together([Problem(order_on_device(backend, X), y, v, 2, 0.0, 1e-2)])
    best = np.inf
    for genes in combinations(range(7), 2):
        gamma = np.isin(np.arange(7), genes).astype(float)
        best = min(best, at_set(X, y, v, gamma, 0.0, 1e-2).objective)
    assert one.objective <= best + 1e-4


def test_reference_sets_stay_among_the_candidates(backend):
    X, y = problem_data(seed=2)
    allowed = np.arange(20) % 2 == 0
    orders = order_on_device(backend, X)
    for s in (4, 10):  # 10: all of them
        problem = Problem(
            orders, y, sample_weights(y), s, 0.0, 1e-3, candidates=allowed
        )
        [one] = solve_together([problem])
        assert one.gamma.sum() == s
        assert not one.gamma[~allowed].any()


@pytest.mark.parametrize("d", [20, 320])
def test_full_ranks_of_many_problems(backend, d):
    X, y = problem_data(d=d, seed=8)
    part = (np.arange(90) % 3 != 0).astype(float)
    weights = [sample_weights(y), sample_weights(y, part)]
    cases = [(v, l1, l2) for v in weights for l1 in (0.0, 3e-3) for l2 in (1e-4, 1e-2)]
    orders = order_on_device(backend, X)
    found = solve_together([Problem(orders, y, v, d, l1, l2) for v, l1, l2 in cases])
    for (v, l1, l2), one in zip(cases, found, strict=True):
        best = at_set(X, y, v, np.ones(d), l1, l2)
        assert one.objective == pytest.approx(best.objective, abs=1e-6)


@pytest.mark.parametrize("large", [1, 1 << 22])
def test_products_of_many_problems(backend, monkeypatch, large):
    monkeypatch.setattr("optirank_lab.device.backend.FILLS_DEVICE", large)
    rng = np.random.default_rng(0)
    M, x, a = (rng.normal(size=shape) for shape in ((3, 5, 4), (3, 4), (3, 5)))
    many, back = rng.normal(size=(3, 2, 4)), rng.normal(size=(3, 2, 5))
    single, alone = many[:, :1], back[:, :1]
    here = {
        "bnd,bd->bn": backend.dot(backend.array(M), backend.array(x)),
        "bnd,bn->bd": backend.transpose_dot(backend.array(a), backend.array(M)),
        "bnd,bmd->bmn": backend.dot(backend.array(M), backend.array(many)),
        "bnd,bmn->bmd": backend.transpose_dot(backend.array(back), backend.array(M)),
        "bnd,bkd->bkn": backend.dot(backend.array(M), backend.array(single)),
        "bnd,bkn->bkd": backend.transpose_dot(backend.array(alone), backend.array(M)),
    }
    others = (x, a, many, back, single, alone)
    for (formula, found), other in zip(here.items(), others, strict=True):
        expected = np.einsum(formula, M, other)
        np.testing.assert_allclose(backend.host(found), expected, atol=1e-12)


def test_a_small_batch_gives_what_a_large_one_does():
    X, y = problem_data()
    found = []
    for memory in (2 << 30, 200_000):
        orders = order_on_device(NumpyBackend(memory), X)
        sizes = (2, 5, 20)
        problems = [Problem(orders, y, sample_weights(y), s, 0.0, 1e-3) for s in sizes]
        found.append(solve_together(problems))
    large, small = found
    for one, other in zip(large, small, strict=True):
        assert one.objective == pytest.approx(other.objective, abs=1e-7)


def test_a_fit_that_memory_cannot_hold_is_refused():
    X, y = problem_data()
    orders = order_on_device(NumpyBackend(memory=100_000), X)
    with pytest.raises(DeviceError, match=r"fit of 90 samples x 20 genes.*fewer genes"):
        solve_together([Problem(orders, y, sample_weights(y), 5, 0.0, 1e-3)])


def test_settings_of_a_grid_start_from_the_middle_of_their_penalties(
    backend, monkeypatch
):
    monkeypatch.setattr(constants, "CHEAP", 0.0)  # else each setting starts on its own
    X, y = problem_data()
    v = sample_weights(y)
    there = order_on_device(backend, X)
    l2s = (1e-2, 1e-4, 1e-3)
    cases = [(s, l1, l2) for s in (4, 6) for l1 in (0.0, 3e-3) for l2 in l2s]
    problems = [Problem(there, y, v, s, l1, l2) for s, l1, l2 in cases]
    assert leaders(problems).tolist() == [2] * 3 + [5] * 3 + [8] * 3 + [11] * 3
    solutions = solve_together(problems, thorough=False)
    orders = order_samples(X)
    for (s, l1, l2), solution in zip(cases, solutions, strict=True):
        single = on_cpu(orders, y, v, s, l1, l2)
        assert solution.gamma.sum() == s
        assert solution.objective <= 1.05 * single.objective
