"""Training on more samples than a search has time for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from optirank.ranks.orders import order_samples
from optirank.solver.joint_blocks import BlockMap
from optirank.solver.joint_problem import JointProblem, joint_weights
from optirank.workflow.large import RowsOf, order_in_blocks


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_rows_that_are_taken_when_used_are_those_of_a_copy(make, monkeypatch):
    monkeypatch.setattr("optirank.solver.joint_blocks._BLOCK", 100)  # several blocks
    rng = np.random.default_rng(0)
    orders = order_samples(make(rng.poisson(0.7, (40, 12)).astype(float)))
    rows = np.sort(rng.permutation(40)[:25])
    codes = np.arange(25) % 3
    gamma = np.repeat([1.0, 0.0], 6)
    W = rng.normal(size=(12, 3))

    def scores(some):
        problem = JointProblem(some, codes, 3, joint_weights(codes, 3), 6, 1e-3, 1e-3)
        return BlockMap.of(problem, gamma).dot(W)

    lazy = RowsOf(orders, rows)
    assert (lazy.n_samples, lazy.n_genes) == (25, 12)
    np.testing.assert_array_equal(scores(lazy), scores(orders.take(rows)))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_samples_sorted_in_blocks_have_the_same_orders(make, monkeypatch):
    monkeypatch.setattr("optirank.workflow.large._BLOCK", 7)
    rng = np.random.default_rng(0)
    X = rng.poisson(0.7, (40, 12)).astype(np.float32)
    X[7:14] = 0  # a block without entries
    genes = np.arange(1, 12, 2)
    found, whole = order_in_blocks(make(X), genes, 1), order_samples(make(X[:, genes]))
    assert (found.n_samples, found.n_genes) == (40, 6)
    w, gamma = rng.normal(size=6), rng.random(6)
    np.testing.assert_array_equal(found.scores(w, gamma), whole.scores(w, gamma))
    some = np.array([3, 8, 22, 39])
    np.testing.assert_array_equal(
        found.take(some).scores(w, gamma), whole.take(some).scores(w, gamma)
    )
