"""Models on their whole panel: every gene that is needed is compared with, and has a weight."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from optirank.ranks.orders import order_samples
from optirank.solver.alternating import solve_alternating
from optirank.solver.device.backend import backend_of
from optirank.solver.device.orders import order_on_device
from optirank.solver.joint import solve_joint
from optirank.solver.joint_problem import JointProblem, joint_weights
from optirank.solver.panel import joint_on_whole_panel, on_whole_panel
from optirank.solver.problem import Problem, sample_weights


def counts(n=90, d=30, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    X = rng.poisson(1.0, (n, d)).astype(float)
    for k in range(3):
        X[codes == k, 4 * k : 4 * k + 4] += rng.poisson(2.0, ((codes == k).sum(), 4))
    return X, codes


def binary(X, codes, **more):
    y = (codes == 0).astype(float)
    return Problem(order_samples(X), y, sample_weights(y), 5, 1e-2, 1e-3, **more)


def joint(X, codes, **more):
    return JointProblem(order_samples(X), codes, 3, joint_weights(codes, 3), 5, 1e-2, 1e-3, **more)


@pytest.mark.parametrize("make", [lambda X: X, sparse.csr_array])
def test_orders_over_some_genes_are_those_of_their_values(make):
    X, _ = counts()
    genes = np.array([2, 3, 7, 20])
    some, alone = order_samples(make(X)).over(genes), order_samples(X[:, genes])
    np.testing.assert_array_equal(some.groups, alone.groups)
    np.testing.assert_array_equal(some.n_groups, alone.n_groups)


def test_orders_on_a_device_over_some_genes_are_those_of_their_values():
    X, _ = counts()
    genes, rows = np.array([2, 3, 7, 20]), np.arange(0, 90, 2)
    backend = backend_of("numpy")
    some = order_on_device(backend, X).take(rows).over(genes)
    alone = order_on_device(backend, X[:, genes])
    gamma = np.array([[1.0, 0.0, 1.0, 1.0]])
    found, expected = some.whole.ranks(gamma, "average"), alone.ranks(gamma, "average")
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(some.rows, rows)


def test_the_panel_stays_and_all_of_it_is_used():
    X, codes = counts()
    problem = binary(X, codes)
    sparse_model = solve_alternating(problem)
    whole = on_whole_panel(problem, sparse_model)
    panel = (sparse_model.w != 0) | (sparse_model.gamma > 0)
    assert panel.sum() < 30
    np.testing.assert_array_equal(whole.gamma, panel.astype(float))
    np.testing.assert_array_equal(whole.w != 0, panel)


def test_weights_are_optimal_under_l2_on_the_panel():
    X, codes = counts(seed=1)
    problem = binary(X, codes)
    whole = on_whole_panel(problem, solve_alternating(problem), tol=1e-9)
    panel = whole.gamma > 0
    last = replace(problem, n_reference=int(panel.sum()), l1=0.0)
    z = last.scores(whole.w, whole.b, whole.gamma)
    gradient = last.gradient_w(whole.gamma, last.slopes(z)) + 2 * last.l2 * whole.w
    np.testing.assert_allclose(gradient[panel], 0.0, atol=1e-7)
    assert whole.objective == pytest.approx(last.objective(whole.w, whole.b, whole.gamma))


def test_all_classes_together_use_one_whole_panel():
    X, codes = counts(seed=2)
    problem = joint(X, codes)
    sparse_model = solve_joint(problem)
    whole = joint_on_whole_panel(problem, sparse_model, tol=1e-9)
    panel = sparse_model.W.any(axis=1) | (sparse_model.gamma > 0)
    np.testing.assert_array_equal(whole.gamma, panel.astype(float))
    last = replace(problem, n_reference=int(panel.sum()), l1=0.0)
    value = last.objective(whole.W, whole.b, whole.gamma)
    assert whole.objective == pytest.approx(value)
    rng = np.random.default_rng(0)
    for _ in range(20):  # a minimum: no step within the panel lowers the objective
        step = 1e-3 * rng.normal(size=whole.W.shape) * panel[:, None]
        assert last.objective(whole.W + step, whole.b, whole.gamma) >= value - 1e-9


@pytest.mark.parametrize("solve", ["binary", "joint"])
def test_only_candidates_join_the_reference_set(solve):
    X, codes = counts(seed=3)
    allowed = np.arange(30) % 2 == 0
    if solve == "binary":
        problem = binary(X, codes, candidates=allowed)
        whole = on_whole_panel(problem, solve_alternating(problem))
        weighted = whole.w != 0
    else:
        problem = joint(X, codes, candidates=allowed)
        whole = joint_on_whole_panel(problem, solve_joint(problem))
        weighted = whole.W.any(axis=1)
    assert not whole.gamma[~allowed].any()
    assert weighted[~allowed].any()
    np.testing.assert_array_equal(whole.gamma > 0, weighted & allowed)
