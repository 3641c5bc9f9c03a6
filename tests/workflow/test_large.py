"""Training on more samples than a search has time for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from optirank.ranks.orders import order_samples
from optirank.solver.joint_blocks import BlockMap
from optirank.solver.joint_problem import JointProblem, joint_weights
from optirank.workflow.large import RowsOf


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
