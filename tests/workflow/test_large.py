"""Training on more samples than a search has time for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from optirank.datasets.data import ExpressionData
from optirank.ranks.orders import order_samples
from optirank.solver.joint_blocks import BlockMap
from optirank.solver.joint_problem import JointProblem, joint_weights
from optirank.workflow.large import RowsOf, order_in_blocks
from optirank.workflow.preparation import KeptRows, prepare
from optirank.workflow.train import train_prepared


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


def test_values_of_some_samples_are_found_by_their_places_among_all():
    X = np.random.default_rng(0).poisson(0.7, (40, 12)).astype(np.float32)
    rows = np.array([2, 3, 11, 39])
    kept = KeptRows(sparse.csr_matrix(X[rows]), rows, 40)
    assert kept.shape == (40, 12)
    np.testing.assert_array_equal(kept[np.array([39, 2, 2])].toarray(), X[[39, 2, 2]])
    for absent in (0, 12, 40):
        with pytest.raises(IndexError, match="let go"):
            kept[np.array([3, absent])]


def test_letting_go_of_values_changes_no_model(monkeypatch):
    monkeypatch.setattr("optirank.workflow.train.fit_into", lambda *_: None)
    rng = np.random.default_rng(0)
    y = np.arange(600) % 3
    X = sparse.csr_matrix(rng.poisson(0.4 + (np.arange(30) % 3 == y[:, None]), (600, 30)))
    names = np.array([f"g{j}" for j in range(30)], dtype=object)
    obs = pd.DataFrame({"kind": y.astype(str)}, index=[f"s{i}" for i in range(600)])
    data = ExpressionData(X.astype(np.float32), names, obs.index.to_numpy(), obs, "counts")
    found = []
    for many in (20_000, 100):
        monkeypatch.setattr("optirank.workflow.large._MANY", many)
        monkeypatch.setattr("optirank.workflow.large._COMPARED", 60)
        monkeypatch.setattr("optirank.workflow.large._REMEMBERED", 50)
        monkeypatch.setattr("optirank.workflow.large.REMEMBERED", 50)
        monkeypatch.setattr("optirank.workflow.finishing.REMEMBERED", 50)
        prepared = prepare(data, "kind")
        found.append(train_prepared(prepared, budget=60, n_jobs=1))
        assert found[-1].plan.large
        assert isinstance(prepared.X, KeptRows) == (many == 100)
    assert prepared.X.X.shape[0] < 400
    assert data.X.nnz == X.nnz
    one, other = (result.model for result in found)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.experience_.profiles, other.experience_.profiles)
    assert found[0].held_out.equals(found[1].held_out)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("part", [slice(3, 9), slice(0, 0), slice(30, 60), slice(0, 40, 3)])
def test_a_slice_of_orders_is_the_same_as_its_positions(make, part):
    X = np.random.default_rng(0).poisson(0.7, (40, 12)).astype(np.float32)
    orders = order_samples(make(X))
    w, gamma = np.linspace(-1, 1, 12), np.linspace(0, 1, 12)
    found, expected = orders.take(part), orders.take(np.arange(40)[part])
    np.testing.assert_array_equal(found.lengths(), expected.lengths())
    np.testing.assert_array_equal(found.scores(w, gamma), expected.scores(w, gamma))
