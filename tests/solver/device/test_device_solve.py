"""Fits side by side on a device, against the solver of single fits."""

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

from optirank.ranks.orders import order_samples
from optirank.solver.alternating import solve_alternating
from optirank.solver.convex import solve_at
from optirank.solver.device.backend import Backend, DeviceError, backend_of
from optirank.solver.device.orders import order_on_device
from optirank.solver.device.solve import Options, Setting, solve_batch
from optirank.solver.problem import Problem, sample_weights


def problem_data(n=90, d=20, seed=0, counts=False):
    rng = np.random.default_rng(seed)
    X = rng.poisson(1.0, (n, d)).astype(float) if counts else rng.normal(size=(n, d))
    y = (X[:, :3].sum(axis=1) - X[:, 3:6].sum(axis=1) + rng.normal(size=n) > 0).astype(float)
    return X, y


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("ties", ["average", "min"])
def test_objectives_are_not_above_those_of_single_fits(backend, counts, ties):
    X, y = problem_data(counts=counts)
    v = sample_weights(y)
    orders = order_samples(X)
    cases = [(s, l1, l2) for s in (1, 4, 20) for l1 in (0.0, 3e-3) for l2 in (0.0, 1e-2)]
    found = solve_batch(
        order_on_device(backend, X),
        [Setting(y, v, s, l1, l2) for s, l1, l2 in cases],
        Options(ties=ties),
    )
    for (s, l1, l2), one in zip(cases, found, strict=True):
        single = solve_alternating(Problem(orders, y, v, s, l1, l2, ties))
        solution = one.solution
        assert solution.gamma.sum() == s
        assert set(np.unique(solution.gamma)) <= {0.0, 1.0}
        assert solution.objective <= single.objective + 1e-4
        problem = Problem(orders, y, v, s, l1, l2, ties)
        exact = problem.objective(solution.w, solution.b, solution.gamma)
        assert solution.objective == pytest.approx(exact, abs=1e-5)
        np.testing.assert_allclose(
            one.scores, problem.scores(solution.w, solution.b, solution.gamma), atol=2e-3
        )


def test_weights_are_optimal_at_the_final_set(backend):
    X, y = problem_data(seed=3)
    v = sample_weights(y)
    [one] = solve_batch(order_on_device(backend, X), [Setting(y, v, 5, 2e-3, 1e-3)])
    problem = Problem(order_samples(X), y, v, 5, 2e-3, 1e-3)
    best = solve_at(problem, one.solution.gamma)
    assert one.solution.converged
    assert one.solution.objective <= best.objective + 1e-6


def test_held_out_samples_of_weight_zero_do_not_count(backend):
    X, y = problem_data(seed=1)
    rows = np.arange(90) % 3 != 0
    whole = solve_batch(
        order_on_device(backend, X),
        [Setting(y, sample_weights(y, rows.astype(float)), 4, 1e-3, 1e-3)],
    )[0]
    part = solve_batch(
        order_on_device(backend, X[rows]),
        [Setting(y[rows], sample_weights(y[rows]), 4, 1e-3, 1e-3)],
    )[0]
    assert whole.solution.objective == pytest.approx(part.solution.objective, abs=1e-6)
    np.testing.assert_array_equal(whole.solution.gamma, part.solution.gamma)


def test_small_problems_reach_the_best_of_all_sets(backend):
    X, y = problem_data(n=60, d=7, seed=5)
    v = sample_weights(y)
    orders = order_samples(X)
    [one] = solve_batch(order_on_device(backend, X), [Setting(y, v, 2, 0.0, 1e-2)])
    best = np.inf
    for genes in combinations(range(7), 2):
        gamma = np.isin(np.arange(7), genes).astype(float)
        best = min(best, solve_at(Problem(orders, y, v, 2, 0.0, 1e-2), gamma).objective)
    assert one.solution.objective <= best + 1e-4


def test_reference_sets_stay_among_the_candidates(backend):
    X, y = problem_data(seed=2)
    allowed = np.arange(20) % 2 == 0
    [one] = solve_batch(
        order_on_device(backend, X),
        [Setting(y, sample_weights(y), 4, 0.0, 1e-3)],
        Options(candidates=allowed),
    )
    assert one.solution.gamma.sum() == 4
    assert not one.solution.gamma[~allowed].any()


def test_without_a_push_gamma_is_fractional_and_lower(backend):
    X, y = problem_data(seed=4)
    setting = Setting(y, sample_weights(y), 4, 0.0, 1e-2)
    orders = order_on_device(backend, X)
    relaxed = solve_batch(orders, [setting], Options(integral=False))[0].solution
    integral = solve_batch(orders, [setting])[0].solution
    assert relaxed.gamma.sum() == pytest.approx(4)
    assert relaxed.objective <= integral.objective + 1e-3


def test_a_side_leads_to_its_own_minimum(backend):
    X, y = problem_data(seed=6)
    v = sample_weights(y)
    orders = order_on_device(backend, X)
    sides = ("rising", "falling", "best")
    found = solve_batch(orders, [Setting(y, v, 3, 0.0, 1e-2, side) for side in sides])
    rising, falling, best = (one.solution.objective for one in found)
    assert best <= min(rising, falling) + 1e-4


@pytest.mark.parametrize("factored", [0, 300])
def test_full_ranks_are_one_matrix_for_all_problems(backend, monkeypatch, factored):
    monkeypatch.setattr("optirank.solver.device.newton.FACTORED", factored)
    X, y = problem_data(seed=8)
    part = (np.arange(90) % 3 != 0).astype(float)
    weights = [sample_weights(y), sample_weights(y, part)]
    cases = [(v, l1, l2) for v in weights for l1 in (0.0, 3e-3) for l2 in (1e-4, 1e-2)]
    orders = order_on_device(backend, X)
    found = solve_batch(orders, [Setting(y, v, 20, l1, l2) for v, l1, l2 in cases])
    for (v, l1, l2), one in zip(cases, found, strict=True):
        best = solve_at(Problem(order_samples(X), y, v, 20, l1, l2), np.ones(20))
        assert one.solution.objective == pytest.approx(best.objective, abs=1e-6)


@pytest.mark.parametrize("large", [1, 1 << 22])
@pytest.mark.parametrize("n_matrices", [1, 3])
def test_products_of_many_problems(backend, monkeypatch, large, n_matrices):
    monkeypatch.setattr("optirank.solver.device.backend._LARGE", large)
    rng = np.random.default_rng(0)
    M, x, a = (rng.normal(size=shape) for shape in ((n_matrices, 5, 4), (3, 4), (3, 5)))
    many, back = rng.normal(size=(3, 2, 4)), rng.normal(size=(3, 2, 5))
    single, alone = many[:, :1], back[:, :1]
    each = np.broadcast_to(M, (3, 5, 4))
    here = {
        "bnd,bd->bn": backend.dot(backend.array(M), backend.array(x)),
        "bnd,bn->bd": backend.transpose_dot(backend.array(a), backend.array(M)),
        "bnd,bmd->bmn": backend.rows_dot(backend.array(M), backend.array(many)),
        "bnd,bmn->bmd": backend.rows_transpose_dot(backend.array(M), backend.array(back)),
        "bnd,bkd->bkn": backend.rows_dot(backend.array(M), backend.array(single)),
        "bnd,bkn->bkd": backend.rows_transpose_dot(backend.array(M), backend.array(alone)),
    }
    others = (x, a, many, back, single, alone)
    for (formula, found), other in zip(here.items(), others, strict=True):
        expected = np.einsum(formula, each, other)
        np.testing.assert_allclose(backend.host(found), expected, atol=1e-12)


@pytest.mark.parametrize("n", [1, 33, 700])
@pytest.mark.parametrize("d", [1, 6, 128, 500])
def test_products_in_single_precision(backend, n, d):
    rng = np.random.default_rng(n + d)
    M, x, a = (rng.normal(size=s).astype("f4") for s in ((5, n, d), (5, d), (5, n)))
    there = backend.array(M)
    np.testing.assert_allclose(
        backend.host(backend.dot(there, backend.array(x))),
        np.einsum("bnd,bd->bn", M.astype(float), x), atol=1e-4,
    )  # fmt: skip
    np.testing.assert_allclose(
        backend.host(backend.transpose_dot(backend.array(a), there)),
        np.einsum("bnd,bn->bd", M.astype(float), a), atol=1e-4,
    )  # fmt: skip


def test_an_order_that_memory_cannot_hold_is_refused_before_sorting(monkeypatch):
    monkeypatch.setattr(Backend, "free_bytes", lambda self: 1000)
    X = sparse.random_array((60, 50), density=0.1, format="csr", random_state=0)
    with pytest.raises(DeviceError, match=r"order of 60 samples x 50 genes.*fewer genes"):
        order_on_device(Backend(np, on_gpu=True), X)


def test_a_small_batch_gives_what_a_large_one_does(monkeypatch):
    backend = backend_of("numpy")
    X, y = problem_data()
    settings = [Setting(y, sample_weights(y), s, 0.0, 1e-3) for s in (2, 5, 9)]
    orders = order_on_device(backend, X)
    together = solve_batch(orders, settings)
    monkeypatch.setattr(type(backend), "free_bytes", lambda self: 1)
    for one, other in zip(together, solve_batch(orders, settings), strict=True):
        assert one.solution.objective == pytest.approx(other.solution.objective, abs=1e-7)


def test_intercepts_are_those_of_plain_ranks_in_single_precision(backend, monkeypatch):
    from optirank.solver.device import solve

    monkeypatch.setattr(solve, "_EXACT_SIZE", 0)  # as with thousands of genes
    X, y = problem_data(seed=7)
    v = sample_weights(y)
    [one] = solve_batch(order_on_device(backend, X), [Setting(y, v, 5, 1e-3, 1e-2)])
    solution = one.solution
    scores = Problem(order_samples(X), y, v, 5).scores(solution.w, solution.b, solution.gamma)
    np.testing.assert_allclose(one.scores, scores, atol=1e-3)
