"""Reading for training: rows and genes are chosen before they are read, with equal results."""

from __future__ import annotations

from dataclasses import replace

import anndata as ad
import numpy as np
import pandas as pd
import pytest
from optirank.datasets.anndata_objects import profiles_of
from scipy import sparse

from optirank.datasets import ExpressionData, open_expression
from optirank.workflow import preparation
from optirank.workflow.preparation import prepare

N, D = 300, 3200


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    kinds = np.arange(N) % 4
    level = np.exp(rng.normal(-2.5, 1, D))
    factor = np.where(np.arange(D)[None, :] % 40 == kinds[:, None], 6.0, 1.0)
    X = sparse.csr_matrix(rng.poisson(level * factor).astype(np.float32))
    names = np.array([f"g{k}" for k in range(D)], dtype=object)
    samples = np.array([f"s{k}" for k in range(N)], dtype=object)
    obs = pd.DataFrame({"kind": [f"k{one}" for one in kinds]}, index=samples)
    return ExpressionData(X, names, samples, obs, "made")


def as_anndata(data, X=None):
    var = pd.DataFrame(index=data.gene_names)
    return ad.AnnData(data.X if X is None else X, obs=data.obs, var=var)


def same(one, other):
    assert one.genes.tolist() == other.genes.tolist()
    assert one.y.tolist() == other.y.tolist()
    assert (one.X != other.X).nnz == 0
    for a, b in zip(one.folds, other.folds, strict=True):
        np.testing.assert_array_equal(one.chooser(a[0]), other.chooser(b[0]))


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_a_file_gives_what_memory_gives(data, tmp_path, form):
    as_anndata(data, data.X.asformat(form)).write_h5ad(tmp_path / "a.h5ad")
    with open_expression(tmp_path / "a.h5ad") as opened:
        same(prepare(opened, "kind"), prepare(data, "kind"))


def test_a_backed_anndata_gives_what_memory_gives(data, tmp_path):
    as_anndata(data).write_h5ad(tmp_path / "a.h5ad")
    backed = ad.read_h5ad(tmp_path / "a.h5ad", backed="r")
    same(prepare(profiles_of(backed, None, None), "kind"), prepare(data, "kind"))
    backed.file.close()


def test_lazy_arrays_give_what_memory_gives(data):
    array = pytest.importorskip("dask.array")
    X = array.from_array(data.X.toarray(), chunks=(64, D)).map_blocks(sparse.csr_matrix)
    same(prepare(profiles_of(as_anndata(data, X), None, None), "kind"), prepare(data, "kind"))


def test_only_genes_that_some_fold_uses_are_read(data):
    found = prepare(data, "kind")
    assert found.n_genes == D
    assert 1000 <= len(found.genes) < D
    used = np.zeros(len(found.genes), dtype=bool)
    for train, _ in found.folds:
        used[found.chooser(train)] = True
    used[found.chooser()] = True
    assert used.all()
    markers = {f"g{k}" for k in range(D) if k % 40 < 4}
    assert len(markers & set(found.genes[found.chooser()])) > 0.8 * len(markers)


def test_genes_of_a_fold_do_not_depend_on_its_held_out_samples(data):
    found = prepare(data, "kind")
    train, test = found.folds[0]
    X = data.X.toarray()
    X[test] = np.random.default_rng(1).poisson(3.0, (len(test), D))
    other = prepare(replace(data, X=sparse.csr_matrix(X)), "kind")
    before = set(found.genes[found.chooser(train)])
    assert before == set(other.genes[other.chooser(other.folds[0][0])])


def test_samples_beyond_the_memory_are_left_out_evenly(data, monkeypatch):
    monkeypatch.setattr(preparation, "MOST_ENTRIES", 10_000)
    found = prepare(data, "kind")
    assert found.X.nnz < 12_000
    assert len(set(np.unique(found.y, return_counts=True)[1].tolist())) == 1
    assert any("memory is limited: at most" in note for note in found.notes)
    assert sorted(np.concatenate([test for _, test in found.folds])) == list(range(len(found.y)))


@pytest.mark.parametrize("dense", [False, True])
def test_the_limit_of_memory_holds_for_few_genes_too(data, monkeypatch, dense):
    most = 7500 if dense else 700
    monkeypatch.setattr(preparation, "MOST_ENTRIES", most)
    few = data.select_genes(np.arange(50))
    few = replace(few, X=few.X.toarray()) if dense else few
    found = prepare(few, "kind")
    assert found.n_genes == len(found.genes) == 50
    entries = found.X.size if dense else found.X.nnz
    assert 0.5 * most < entries < 1.3 * most
    assert any("memory is limited: at most" in note for note in found.notes)
    assert sorted(np.concatenate([test for _, test in found.folds])) == list(range(len(found.y)))


def test_what_cannot_be_read_in_time_is_left_out_before(data, monkeypatch):
    monkeypatch.setattr(preparation, "_TIME_MATTERS", 100)
    found = prepare(data, "kind", seconds=1e-9)
    assert len(found.y) == 100
    assert any("takes too long for the time allowed" in note for note in found.notes)


def test_empty_samples_among_others_are_left_out(data):
    X = data.X.toarray()
    X[[3, 17]] = 0
    found = prepare(replace(data, X=sparse.csr_matrix(X)), "kind")
    assert len(found.y) == N - 2
    assert not {"s3", "s17"} & set(found.samples)
    assert any("2 samples are left out: empty" in note for note in found.notes)


def test_fractions_are_compared_as_they_are(data):
    X = data.X.copy()
    X.data[-1] += 0.5  # in the last block: counts that turn out to be none
    found = prepare(replace(data, X=X), "kind")
    assert 1000 <= len(found.genes) < D
