"""A pass over samples: the same blocks and results in this process and by dask."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from optirank.data.genes import join_profiles
from optirank.data.objects import profiles_of
from optirank.data.passes import is_dask, read_blocks, read_values, run_pass
from optirank.data.profiles import DataError, Profiles

anndata = pytest.importorskip("anndata")
array = pytest.importorskip("dask.array")
N_SAMPLES, N_GENES = 50, 12


def values() -> sparse.csr_matrix:
    rng = np.random.default_rng(0)
    return sparse.csr_matrix(rng.poisson(0.7, (N_SAMPLES, N_GENES)).astype("f4"))


def profiles(X, n_chunk=None, genes=None):
    """Profiles of some values; lazy with chunks of so many samples."""
    if n_chunk is not None:
        X = array.from_array(X, chunks=(n_chunk, 5), asarray=False)
        X = X.map_blocks(
            sparse.csr_matrix, dtype=X.dtype, meta=sparse.csr_matrix((0, 0))
        )
    genes = [f"g{j}" for j in range(N_GENES)] if genes is None else genes
    return profiles_of(anndata.AnnData(X, var=pd.DataFrame(index=pd.Index(genes))))


class Seen:
    """Keeps the blocks that it is shown."""

    def __init__(self, fail_at=None, genes=None):
        self.blocks = []
        self.genes = genes
        self._fail_at = fail_at

    def add(self, block, rows):
        if rows.start == self._fail_at:
            raise ValueError("a value is missing")
        self.blocks.append((rows, sparse.csr_matrix(block).toarray()))


def blocks_of(data, genes=None, **options):
    seen = Seen()
    run_pass(data, [seen], genes, **{"size": 16, **options})
    return seen.blocks


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

    genes = np.array([9, 2, 5])
    some_rows = np.flatnonzero(np.arange(N_SAMPLES) % 3)
    lazy = profiles(values(), n_chunk)
    assert is_dask(lazy.X)
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
    plain, lazy = profiles(values(), None, genes), profiles(values(), 20, genes)
    assert len(plain.genes) == N_GENES - 1
    assert is_dask(lazy.X)
    same(blocks_of(plain), blocks_of(lazy))
    adata = anndata.AnnData(values())
    lazy = anndata.AnnData(array.from_array(values().toarray(), chunks=(20, 5)))
    both = join_profiles([profiles_of(lazy), profiles_of(lazy)])
    mixed = join_profiles([profiles_of(lazy), profiles_of(adata)])
    plain = join_profiles([profiles_of(adata), profiles_of(adata)])
    rows = np.arange(5, 90)
    same(blocks_of(plain, rows=rows), blocks_of(both, rows=rows))
    same(blocks_of(plain, rows=rows), blocks_of(mixed, rows=rows))


@pytest.mark.filterwarnings("ignore:Variable names are not unique")
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, bool, np.float32])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_sums_of_small_integers_do_not_overflow(dtype, kind):
    X = np.full((3, 2), np.iinfo(dtype).max if dtype in (np.uint8, np.int16) else 1)
    frame = pd.DataFrame(index=["a", "a"])
    adata = anndata.AnnData(kind(X.astype(dtype)), var=frame)
    read = read_values(profiles_of(adata))
    np.testing.assert_array_equal(sparse.csr_matrix(read).toarray(), 2 * X[:, :1])
    assert dtype != np.float32 or read.dtype == dtype


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


def test_looks_get_the_genes_that_they_want_which_are_read_once():
    whole = values().toarray()
    wanted = [None, np.array([7, 2]), np.array([2, 11]), np.array([2, 7])]
    for chosen in (wanted, wanted[1:], wanted[1:2] * 2, wanted[:1] * 2):
        looks = [Seen(genes=genes) for genes in chosen]
        seen: dict[int, int] = {}
        run_pass(profiles(values()), looks, size=16, progress=seen.__setitem__)
        assert seen == {16: 50, 32: 50, 48: 50, 50: 50}
        for look, genes in zip(looks, chosen, strict=True):
            found = np.concatenate([block for _, block in look.blocks])
            np.testing.assert_array_equal(
                found, whole if genes is None else whole[:, genes]
            )


def test_profiles_in_memory_are_given_in_blocks_too():
    data = profiles(values())
    rows = np.array([1, 4, 20])
    found = [
        block.toarray()
        for block in read_blocks(data, np.array([7, 2]), size=2, rows=rows)
    ]
    assert [len(block) for block in found] == [2, 1]
    expected = values().toarray()[np.ix_(rows, [7, 2])]
    np.testing.assert_array_equal(np.vstack(found), expected)
    nothing = np.zeros(0, dtype=int)
    assert list(read_blocks(data, rows=nothing)) == []
    assert read_values(data, np.array([3]), nothing).shape == (0, 1)


def test_several_data_sets_are_used_over_their_common_genes():
    one = profiles(values())
    other = profiles(values()[:4, :3], genes=["g2", "new", "g0"])
    both = join_profiles([one, other])
    assert [part.genes.tolist() for part in both] == [["g0", "g2"]] * 2
    assert [set(part.obs["file"]) for part in both] == [{"adata 1"}, {"adata 2"}]
    assert isinstance(both[1], Profiles)
    found = read_values(both[1]).toarray()
    np.testing.assert_array_equal(found, values().toarray()[:4, [2, 0]])
    with pytest.raises(DataError, match="have 0 genes in common"):
        join_profiles([one, profiles(values()[:, :1], genes=["x"])])


def test_ensembl_ids_of_other_versions_are_the_same_genes_in_both():
    ids = [f"ENSG0000014151{k}.1" for k in range(3)]
    first = profiles(values()[:, :3], genes=ids)
    second = profiles(values()[:, :3], genes=[name.replace(".1", ".7") for name in ids])
    both = join_profiles([first, second])
    assert both[1].genes.tolist() == ids
