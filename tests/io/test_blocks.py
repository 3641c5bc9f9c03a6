"""Work over blocks: the same blocks and results in this process and by dask."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from optirank.io import blocks
from optirank.io.blocks import BlockJob, is_lazy, lazily, one_by_one, run_blocks
from optirank.io.data import DataError
from optirank.io.objects import joined_profiles_of, profiles_of

anndata = pytest.importorskip("anndata")
array = pytest.importorskip("dask.array")
N_SAMPLES, N_GENES = 50, 12


def values() -> sparse.csr_matrix:
    rng = np.random.default_rng(0)
    return sparse.csr_matrix(rng.poisson(0.7, (N_SAMPLES, N_GENES)).astype("f4"))


def profiles(X, n_chunk=None, genes=None):
    """An AnnData of some values; lazy with chunks of so many samples."""
    if n_chunk is not None:
        X = array.from_array(X, chunks=(n_chunk, 5), asarray=False)
        X = X.map_blocks(
            sparse.csr_matrix, dtype=X.dtype, meta=sparse.csr_matrix((0, 0))
        )
    genes = [f"g{j}" for j in range(N_GENES)] if genes is None else genes
    return profiles_of(anndata.AnnData(X, var=pd.DataFrame(index=pd.Index(genes))))


def look_at(X, rows, *own):
    return rows, sparse.csr_matrix(X).toarray(), *own


def same(job, lazy_job):
    results = list(run_blocks(job))
    lazy_results = list(run_blocks(lazy_job))
    assert len(results) == len(lazy_results) > 1
    for (rows, result), (lazy_rows, lazy_result) in zip(
        results, lazy_results, strict=True
    ):
        assert rows == lazy_rows
        for part, lazy_part in zip(result, lazy_result, strict=True):
            np.testing.assert_array_equal(part, lazy_part)


@pytest.mark.parametrize("n_chunk", [7, 16, 60])
@pytest.mark.parametrize("scheduler", ["threads", "sync"])
def test_lazy_data_have_the_blocks_of_data_in_memory(n_chunk, scheduler):
    import dask

    columns = np.array([9, 2, 5])
    rows = np.flatnonzero(np.arange(N_SAMPLES) % 3)
    weights = np.arange(len(rows))
    lazy = profiles(values(), n_chunk)
    assert is_lazy(lazy)
    with dask.config.set(scheduler=scheduler):
        for chosen, own in ((None, ()), (rows, (weights,))):
            same(
                BlockJob(look_at, profiles(values()), columns, 16, chosen, own),
                BlockJob(look_at, lazy, columns, 16, chosen, own),
            )


@pytest.mark.filterwarnings("ignore:Variable names are not unique")
def test_genes_of_one_name_and_several_objects_are_read_lazily():
    genes = ["a", "b", "a", *(f"g{j}" for j in range(N_GENES - 3))]
    plain = profiles(values(), None, genes).unique_genes()
    lazy = profiles(values(), 20, genes).unique_genes()
    assert is_lazy(lazy)
    same(BlockJob(look_at, plain, None, 16), BlockJob(look_at, lazy, None, 16))
    adata = anndata.AnnData(values())
    lazy = anndata.AnnData(array.from_array(values().toarray(), chunks=(20, 5)))
    both = joined_profiles_of([lazy, lazy])
    assert is_lazy(both)
    assert not is_lazy(joined_profiles_of([lazy, adata]))
    plain = joined_profiles_of([adata, adata])
    rows = np.arange(5, 90)
    same(
        BlockJob(look_at, plain, None, 16, rows),
        BlockJob(look_at, both, None, 16, rows),
    )


def test_an_error_names_the_samples_of_its_block():
    def fail(X, rows):
        if rows.start == 16:
            raise ValueError("a value is missing")

    for data in (profiles(values()), profiles(values(), 20)):
        with pytest.raises(DataError, match="adata, samples 17 to 32: a value is mis"):
            list(run_blocks(BlockJob(fail, data, None, 16)))


def test_lazy_tasks_are_given_to_the_scheduler_some_at_a_time(monkeypatch):
    monkeypatch.setattr(blocks, "_LEAST_TOGETHER", 2)
    monkeypatch.setattr(blocks, "_PER_THREAD", 0)
    import dask.base

    calls = []
    compute = dask.base.compute
    job = BlockJob(look_at, profiles(values(), 10), None, 10)
    in_order = [rows for rows, _ in one_by_one(job)]
    monkeypatch.setattr(
        dask.base, "compute", lambda *tasks: calls.append(len(tasks)) or compute(*tasks)
    )
    assert [rows for rows, _ in lazily(job)] == in_order
    assert calls == [2, 2, 1]


def test_results_of_a_group_of_blocks_are_combined_in_one_order():
    def spell(X, rows):
        return f"{rows.start}"

    def join(first, second):
        return f"({first}+{second})"

    for data in (profiles(values()), profiles(values(), 20)):
        job = BlockJob(spell, data, None, 10, together=3, combine=join)
        assert list(run_blocks(job)) == [
            (slice(0, 30), "((0+10)+20)"),
            (slice(30, 50), "(30+40)"),
        ]


@pytest.mark.filterwarnings("ignore:.*sharding")
@pytest.mark.parametrize("shards", [None, 40])
def test_entries_of_a_zarr_array_are_unpacked_once_per_chunk(shards, tmp_path):
    zarr = pytest.importorskip("zarr", "3")
    from optirank.io.chunks import ZarrEntries

    values = np.arange(137)
    array = zarr.create_array(
        str(tmp_path / "a"), data=values, chunks=(10,), shards=shards and (shards,)
    )
    entries = ZarrEntries(array)
    reads = []

    class Counted:
        chunks = array.chunks
        dtype = array.dtype
        shape = array.shape

        def __getitem__(self, rows):
            reads.append(rows)
            return array[rows]

    counted = ZarrEntries(Counted())
    for start, stop in (
        (0, 3),
        (3, 10),
        (8, 31),
        (31, 39),
        (39, 137),
        (5, 5),
        (90, 95),
    ):
        np.testing.assert_array_equal(entries[start:stop], values[start:stop])
        np.testing.assert_array_equal(counted[start:stop], values[start:stop])
    expected = [(0, 10), (10, 40), (40, 137), (90, 100)]
    assert [(rows.start, rows.stop) for rows in reads] == expected
