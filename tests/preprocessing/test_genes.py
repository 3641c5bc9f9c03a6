"""SingleCellNet's selection of genes."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import scipy.sparse as sp

from optirank.preprocessing import SingleCellNetGenes
from optirank.preprocessing.singlecellnet import label_correlations


@pytest.fixture
def expression():
    rng = np.random.default_rng(0)
    X = np.log1p(rng.poisson(1 + rng.gamma(1, 5, size=50), size=(90, 50)) * 1.5)
    return X, np.arange(90) % 3


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_correlations_agree_with_numpy(expression, kind):
    X, y = expression
    found = label_correlations(kind(X), y, 3)
    for k in range(3):
        expected = [np.corrcoef(x, y == k)[0, 1] for x in X.T]
        np.testing.assert_allclose(found[k], expected, atol=1e-12)


def test_more_classes_give_the_union_of_their_own_choices(expression):
    X, y = expression
    chosen = SingleCellNetGenes(3).fit(X, y).get_support()
    union = np.zeros(50, dtype=bool)
    for k in range(3):
        union |= SingleCellNetGenes(3).fit(X, y == k).get_support()
    np.testing.assert_array_equal(chosen, union)


def test_marker_genes_are_chosen_from_counts():
    rng = np.random.default_rng(1)
    y = np.arange(200) % 2
    rate = np.full((200, 300), 8.0)
    rate[y == 1, 10] = 40
    rate[y == 0, 20] = 40
    X = sp.csr_array(rng.poisson(rate * rng.uniform(0.7, 5, size=(200, 1))))
    model = SingleCellNetGenes(1, random_state=0).fit(X, y)
    assert model.get_support(indices=True).tolist() == [10, 20]
    assert model.transform(X).shape == (200, 2)


@pytest.mark.parametrize("spoil", [lambda X: X - 1, lambda X: X + 0.5, np.log1p])
def test_data_that_are_not_counts_are_used_as_they_are_and_the_log_says_so(spoil, caplog):
    rng = np.random.default_rng(3)
    X, y = spoil(rng.poisson(3, size=(40, 30)) + 0.0), np.arange(40) % 2
    with caplog.at_level(logging.INFO, logger="optirank"):
        model = SingleCellNetGenes(20).fit(X, y)
    assert "not counts" in caplog.text
    np.testing.assert_allclose(model.correlations_, label_correlations(X, y, 2))


def test_rare_genes_pass_only_when_strongly_expressed():
    n = 100
    X = np.tile(np.linspace(1, 2, n)[:, None], (1, 4)) + 0.1
    X[:, 1:] = 0
    X[:5, 1] = 1.5  # in 5 % of the samples, which is not more than 5 %
    X[:6, 2] = 1.5  # in more than 5 %
    X[:1, 3] = 2.5  # in one sample, above the mean asked for
    model = SingleCellNetGenes().fit(X, np.arange(n) % 2)
    assert model.get_support().tolist() == [True, False, True, True]
    stricter = SingleCellNetGenes(min_expressed=0.02).fit(X, np.arange(n) % 2)
    assert stricter.get_support().tolist() == [True, False, True, False]


def test_fewer_genes_than_asked_for_are_all_taken_and_constant_ones_never(expression, caplog):
    X, y = expression
    X[:, 7] = 1.1
    with caplog.at_level(logging.INFO, logger="optirank"):
        model = SingleCellNetGenes(500).fit(X, y)
    assert "49 genes pass the filter, fewer than 2 x n_top = 1000" in caplog.text
    assert np.flatnonzero(~model.get_support()).tolist() == [7]


def test_genes_of_pancreas_cells_include_the_hormones(data_folder):
    anndata = pytest.importorskip("anndata")
    baron = anndata.read_h5ad(data_folder / "baron_h1.h5ad")
    model = SingleCellNetGenes(20, random_state=0).fit(baron.X, baron.obs["cell_type"])
    assert {"INS", "GCG", "SST", "PPY"} <= set(baron.var_names[model.get_support()])
