"""A pass over samples: the same blocks and results in this process and by dask."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from optirank.io.data import DataError, matrix_of
from optirank.io.objects import join, profiles_of
from optirank.io.passes import is_dask, run_pass, unique_genes

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


class Seen:
    """Accumulates the blocks, and the order in which they were put together."""

    def __init__(self, fail_at=None):
        self.blocks = []
        self.order = ""
        self._fail_at = fail_at

    def add(self, block, rows):
        if rows.start == self._fail_at:
            raise ValueError("a value is missing")
        self.blocks = [*self.blocks, (rows, sparse.csr_matrix(block).toarray())]
        self.order = f"({self.order}+{rows.start})" if self.order else f"{rows.start}"

    def merge(self, other):
        self.blocks = self.blocks + other.blocks
        self.order = f"{self.order}|{other.order}" if self.order else other.order

    def result(self):
        return self.blocks


def blocks_of(data, genes=None, **options):
    seen = Seen()
    run_pass(data, [seen], genes, **{"size": 16, **options})
    return seen.result()


def same(blocks, lazy_blocks):
    assert len(blocks) == len(lazy_blocks) > 1
    for (rows, values), (lazy_rows, lazy_values) in zip(
        blocks, lazy_blocks, strict=True
    ):
        assert rows == lazy_rows
        np.testing.assert_array_equal(values, lazy_values)


@pytest.mark.parametrize("n_chunk", [7, 16, 60])
@pytest.mark.parametrize("scheduler", ["threads", "sync"])
def test_lazy_data_have_the_blocks_of_data_in_memory(n_chunk, scheduler):
    import dask

    genes = ["g9", "g2", "g5"]
    some_rows = np.flatnonzero(np.arange(N_SAMPLES) % 3)
    lazy = profiles(values(), n_chunk)
    assert is_dask(matrix_of(lazy))
    with dask.config.set(scheduler=scheduler):
        for rows in (None, some_rows):
            same(
                blocks_of(profiles(values()), genes, rows=rows),
                blocks_of(lazy, genes, rows=rows),
            )
    expected = values().toarray()[np.ix_(some_rows, [9, 2, 5])]
    seen = blocks_of(lazy, genes, rows=some_rows)
    np.testing.assert_array_equal(
        np.concatenate([block for _, block in seen]), expected
    )


@pytest.mark.filterwarnings("ignore:Variable names are not unique")
def test_genes_of_one_name_and_several_objects_are_read_lazily():
    genes = ["a", "b", "a", *(f"g{j}" for j in range(N_GENES - 3))]
    plain = unique_genes(profiles(values(), None, genes))
    lazy = unique_genes(profiles(values(), 20, genes))
    assert is_dask(matrix_of(lazy))
    same(blocks_of(plain), blocks_of(lazy))
    adata = anndata.AnnData(values())
    lazy = anndata.AnnData(array.from_array(values().toarray(), chunks=(20, 5)))
    both = join([profiles_of(lazy), profiles_of(lazy)])
    mixed = join([profiles_of(lazy), profiles_of(adata)])
    plain = join([profiles_of(adata), profiles_of(adata)])
    rows = np.arange(5, 90)
    same(blocks_of(plain, rows=rows), blocks_of(both, rows=rows))
    same(blocks_of(plain, rows=rows), blocks_of(mixed, rows=rows))


def test_an_error_names_the_samples_of_its_block():
    for data in (profiles(values()), profiles(values(), 20)):
        with pytest.raises(DataError, match="adata, samples 17 to 32: a value is mis"):
            run_pass(data, [Seen(fail_at=16)], size=16)


@pytest.mark.parametrize("n_chunk", [20, 50])
def test_a_chunk_of_lazy_data_is_computed_for_all_its_blocks_at_once(n_chunk):
    computed = []

    def seen(chunk):
        computed.append(chunk.shape[0])
        return chunk

    X = array.from_array(values().toarray(), chunks=(n_chunk, N_GENES))
    X = X.map_blocks(seen, dtype=X.dtype, meta=np.zeros((0, 0)))
    lazy = profiles_of(anndata.AnnData(X))
    assert [len(block) for _, block in blocks_of(lazy, size=5)] == [5] * 10
    assert len(computed) == -(-N_SAMPLES // n_chunk)


def test_groups_of_blocks_are_folded_and_merged_in_one_order():
    for data in (profiles(values()), profiles(values(), 20)):
        seen = Seen()
        counted: dict[int, int] = {}
        run_pass(data, [seen], size=10, together=3, progress=counted.__setitem__)
        assert seen.order == "((0+10)+20)|(30+40)"
        assert counted == {30: 50, 50: 50}


def test_several_accumulators_share_a_pass():
    seen, others = Seen(), Seen()
    run_pass(profiles(values()), [seen, others], size=16)
    same(seen.blocks, others.blocks)
