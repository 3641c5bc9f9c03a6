"""Weights on many samples: blocks are the whole matrix, steps end in time and go downhill."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

from optirank.ranks.orders import order_samples
from optirank.solver import joint_blocks
from optirank.solver.joint_blocks import BlockMap, fit_weights_in_time
from optirank.solver.joint_problem import JointProblem, joint_weights


def make_problem(kind: str, n: int = 90, d: int = 30, n_classes: int = 3, **options):
    rng = np.random.default_rng(0)
    codes = np.arange(n) % n_classes
    X = rng.poisson(0.6, (n, d)).astype(float)
    X[:, :6] += rng.poisson(2.0, (n, 6)) * (codes[:, None] == np.arange(6) % n_classes)
    orders = order_samples(sparse.csr_matrix(X) if kind == "sparse" else X)
    problem = JointProblem(orders, codes, n_classes, joint_weights(codes, n_classes), 8, **options)
    gamma = np.zeros(d)
    gamma[10:18] = 1.0
    return problem, gamma


@pytest.mark.parametrize("kind", ["sparse", "held", "made anew"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blocks_are_the_centred_ranks(kind, n_jobs, monkeypatch):
    monkeypatch.setattr(joint_blocks, "_BLOCK", 200)
    monkeypatch.setattr(joint_blocks, "_HELD", 0 if kind == "made anew" else 10**6)
    problem, gamma = make_problem(kind)
    matrix = BlockMap.of(problem, gamma, n_jobs)
    assert len(matrix.blocks) > 5
    dense = problem.orders.ranks(gamma / 8, dtype=np.float64)
    whole = dense.values if hasattr(dense, "values") else dense.columns(np.arange(30))
    whole = whole - problem.v @ whole
    rng = np.random.default_rng(1)
    W, G = rng.normal(size=(30, 3)), rng.normal(size=(90, 3)).astype(np.float32)
    np.testing.assert_allclose(matrix.dot(W), whole @ W, atol=1e-4)
    np.testing.assert_allclose(matrix.transpose_dot(G), whole.T @ G, atol=1e-4)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_weights_are_optimal_where_there_is_time(kind, n_classes):
    problem, gamma = make_problem(kind, n_classes=n_classes, l1=1e-3, l2=1e-3)
    zero = np.zeros((30, n_classes)), np.zeros(n_classes)
    found = fit_weights_in_time(problem, gamma, *zero, until=np.inf, tol=1e-5, max_iter=5000)
    assert found.converged
    assert found.objective == pytest.approx(problem.objective(found.W, found.b, gamma), rel=1e-5)
    rng = np.random.default_rng(2)
    for _ in range(20):
        step = 1e-2 * rng.normal(size=found.W.shape), 1e-2 * rng.normal(size=found.b.shape)
        near = problem.objective(found.W + step[0], found.b + step[1], gamma)
        assert near >= found.objective - 1e-7


def test_steps_end_with_the_time_and_each_lowers_the_objective():
    problem, gamma = make_problem("sparse", l2=1e-3)
    W, b = np.zeros((30, 3)), np.zeros(3)
    before = problem.objective(W, b, gamma)
    for until in (1, 4, 8):
        ticks = itertools.count()
        found = fit_weights_in_time(
            problem, gamma, W, b, until=until, tol=0.0, clock=lambda ticks=ticks: next(ticks)
        )
        assert found.objective < before
        assert not found.converged
        before = found.objective
    assert found.n_iter < 200
