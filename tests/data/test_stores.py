"""Files of AnnData and 10x: what is written is read, some of it or all."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import anndata
import numpy as np
import pytest
import scipy.sparse as sp
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from expression_files import (
    NAMES,
    assert_equal,
    dense,
    expression,
    labels_of,
    make,
    read_expression,
    to_anndata,
    write_h5ad,
    write_tenx_folder,
    write_tenx_h5,
)
from optirank.data.objects import profiles_of
from optirank.data.opening import open_profiles
from optirank.datasets import DataError
from profiles import changed, values

PLAIN = st.from_regex(r"[A-Za-z][A-Za-z0-9.-]{0,7}", fullmatch=True)
few = settings(max_examples=25)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return make(rng.poisson(1.0, (23, 12)).astype(np.float32))


def notes_of(path, **options):
    with open_profiles(path, **options) as profiles:
        return profiles.notes


def write_zarr(data, path, version=3, **options):
    with (
        anndata.settings.override(zarr_write_format=version),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # of what anndata will do some day
        data.write_zarr(path, **options)


@few
@given(data=expression(), storage=st.sampled_from(["csr", "csc", "dense"]))
def test_h5ad_is_read_as_written(data, storage):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.h5ad"
        to_anndata(data, storage).write_h5ad(path)
        read = read_expression(path, label=["cell_type"])
        assert_equal(read, data)
        assert sp.issparse(read.X) == (storage != "dense")
        double = make(
            dense(data.X) * 2,
            [f"ENSG{j}" for j in range(data.n_vars)],
            list(data.obs_names),
            labels_of(data),
        )
        read = read_expression(path, gene_column="ensembl", layer="double")
        assert_equal(read, double)


@pytest.mark.parametrize("version", [2, 3])
@settings(max_examples=6)
@given(data=expression(PLAIN), storage=st.sampled_from(["csr", "dense"]))
def test_zarr_is_read_as_written(data, storage, version):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.zarr"
        write_zarr(to_anndata(data, storage), path, version)
        assert_equal(read_expression(path), data)


@few
@given(data=expression(PLAIN), version=st.sampled_from([2, 3]))
def test_10x_is_read_as_written(data, version):
    with tempfile.TemporaryDirectory() as folder:
        tenx = write_tenx_folder(data, Path(folder) / "tenx", version)
        read = read_expression(tenx)
        np.testing.assert_allclose(dense(read.X), dense(data.X), rtol=1e-15)
        path = write_tenx_h5(data, Path(folder) / "t.h5", version)
        assert_equal(read_expression(path), data, labels=False)
        for source in (tenx, path):
            names = read_expression(source, gene_column="id").var_names
            assert names[0] == "ENSG0"


@few
@given(data=expression(NAMES), block=st.integers(1, 7), draw=st.data())
def test_any_genes_in_any_order_and_blocks_equal_the_whole(data, block, draw):
    storage = draw.draw(st.sampled_from(["csr", "csc", "dense", "10x"]))
    positions = st.integers(0, data.n_vars - 1)
    wanted = draw.draw(st.lists(positions, unique=True, min_size=1))
    genes = [data.var_names[j] for j in wanted]
    with tempfile.TemporaryDirectory() as folder:
        if storage == "10x":
            path = write_tenx_h5(data, Path(folder) / "t.h5", antibodies=2)
        else:
            path = Path(folder) / "data.h5ad"
            to_anndata(data, storage).write_h5ad(path)
        with open_profiles(path) as profiles:
            found = values(profiles, genes, block)
        np.testing.assert_array_equal(found, dense(data.X)[:, wanted])


@pytest.mark.parametrize("storage", ["csr", "csc", "dense"])
@pytest.mark.parametrize("kind", ["h5ad", "zarr"])
@pytest.mark.filterwarnings("ignore:.*(zarr|sharding)")
def test_x_of_an_opened_file_stays_in_its_store(data, storage, kind, tmp_path):
    path = tmp_path / f"data.{kind}"
    getattr(to_anndata(data, storage), f"write_{kind}")(path)
    rows = np.array([0, 3, 22])
    with open_profiles(path) as profiles:
        assert not isinstance(profiles.X, np.ndarray | sp.spmatrix)
        found = values(profiles, ["G7", "G2"], 2, rows)
    np.testing.assert_array_equal(found, dense(data.X)[np.ix_(rows, [7, 2])])


@pytest.mark.parametrize("storage", ["csr", "csc", "dense"])
def test_genes_of_one_name_are_summed_if_they_are_counts(storage, tmp_path):
    form = {"csr": sp.csr_matrix, "csc": sp.csc_matrix, "dense": np.asarray}[storage]
    data = make(np.arange(6.0).reshape(2, 3), ["A", "B", "A"])
    half = changed(data, X=data.X + 0.5)
    for whole, merged, note in (
        (data, [[2, 1], [8, 4]], "their counts are summed"),
        (half, [[0.5, 1.5], [3.5, 4.5]], "the first of each is used"),
    ):
        path = write_h5ad(changed(whole, X=form(whole.X)), tmp_path / "data.h5ad")
        with open_profiles(path) as profiles:
            assert profiles.genes.tolist() == ["A", "B"]
            assert profiles.notes == (f"1 gene name occurs more than once, {note}: A",)
            merged = np.array(merged)
            np.testing.assert_array_equal(values(profiles), merged)
            turned = values(profiles, ["B", "A"], 1)
            np.testing.assert_array_equal(turned, merged[:, ::-1])
            one = profiles.with_genes(np.array([0]))
            np.testing.assert_array_equal(values(one), merged[:, :1])


def test_features_that_are_no_genes_are_left_out_and_said(data, tmp_path):
    path = write_tenx_h5(data, tmp_path / "t.h5", antibodies=2)
    with open_profiles(path) as profiles:
        assert profiles.genes.tolist() == data.var_names.tolist()
        np.testing.assert_array_equal(values(profiles, size=5), dense(data.X))
        assert profiles.notes == (
            "2 features are left out, they are no genes: Antibody Capture",
        )
    probes = changed(data, genes=["Blank-1", "NegControlProbe_00", *data.var_names[2:]])
    assert profiles_of(probes).genes.tolist() == data.var_names[2:].tolist()


def test_raw_is_read_if_asked_for_and_where_x_lacks_the_genes_of_a_model(
    data, tmp_path
):
    whole = to_anndata(data)
    few_genes = whole[:, :3].copy()
    few_genes.raw = whole
    path = tmp_path / "raw.h5ad"
    few_genes.write_h5ad(path)
    with open_profiles(path) as profiles:
        assert len(profiles.genes) == 3
        assert profiles.raw_genes == set(data.var_names)
    raw = read_expression(path, layer="raw")
    np.testing.assert_array_equal(dense(raw.X), dense(data.X))
    known = data.var_names.tolist()
    for found in (
        profiles_of(few_genes, known_genes=known),
        profiles_of(few_genes, layer="raw"),
    ):
        assert found.genes.tolist() == known
    note = "raw is read: X has 3 of the 12 genes of the model, raw has 12"
    assert notes_of(path, known_genes=known) == (note,)
    assert notes_of(path, known_genes=known[:3]) == ()
    assert notes_of(path, known_genes=["other"] * 3) == ()


def test_genes_are_named_by_the_column_that_has_far_more_of_the_models(data, tmp_path):
    adata = to_anndata(data)
    path = tmp_path / "data.h5ad"
    adata.write_h5ad(path)
    for known, first in ((["ENSG0", "ENSG1"], "ENSG0"), (["G0", "ENSG1"], "G0")):
        with open_profiles(path, known_genes=known) as profiles:
            assert profiles.genes[0] == first
            named = "genes are named by the column 'ensembl'" in " ".join(
                profiles.notes
            )
            assert named == (first == "ENSG0")


def test_names_that_samples_share_are_said(data):
    adata = to_anndata(data)
    adata.obs_names = ["twice"] * 2 + adata.obs_names[2:].tolist()
    (note,) = profiles_of(adata).notes
    assert note == "1 sample name occurs more than once: twice"


def test_tables_of_containers_are_named(data, tmp_path):
    path = tmp_path / "two.zarr"
    group = zarr.open_group(str(path), mode="w")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("cells", "nuclei"):
            anndata.io.write_elem(group, f"tables/{name}", to_anndata(data))
    assert_equal(read_expression(path, table="nuclei"), data)
    with pytest.raises(DataError, match=r"2 tables, cells, nuclei: .*\(table=\)"):
        read_expression(path)
    with pytest.raises(DataError, match="no table 'x': there are cells, nuclei"):
        read_expression(path, table="x")


def write_sparse_zarr(data, path, version, length):
    """A folder whose sparse matrix is stored in chunks of so many entries."""
    write_zarr(to_anndata(data), path, version)
    group = zarr.open_group(str(path), mode="r+", use_consolidated=False)["X"]
    for name in ("data", "indices"):
        stored, attributes = group[name][...], dict(group[name].attrs)
        del group[name]
        array = group.create_array(
            name, shape=stored.shape, chunks=(length,), dtype=stored.dtype
        )
        array[...] = stored
        array.attrs.update(attributes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return zarr.consolidate_metadata(str(path))["X"]


def lose(path, version, name, key):
    (path / name / (key if version == 2 else f"c/{key.replace('.', '/')}")).unlink()


@pytest.mark.parametrize("version", [2, 3])
def test_chunks_of_a_zarr_folder_that_are_not_there_are_said(version, tmp_path):
    path = tmp_path / "dense.zarr"
    data = make(np.random.default_rng(0).random((40, 20)) + 1)
    write_zarr(to_anndata(data, "dense"), path, version, chunks=(10, 20))
    assert notes_of(path) == ()
    lose(path, version, "X", "3.0")
    (note,) = notes_of(path)
    assert "1 of the 4 chunks of /X are not stored and are read as zeros" in note


@pytest.mark.parametrize("version", [2, 3])
def test_lost_positions_of_a_sparse_matrix_are_refused(version, tmp_path):
    path = tmp_path / "sparse.zarr"
    data = make(sp.random(80, 30, 0.3, format="csr", random_state=0))
    write_sparse_zarr(data, path, version, 100)
    assert notes_of(path) == ()
    lose(path, version, "X/data", "1")
    assert "1 of the 8 chunks of /X/data" in notes_of(path)[0]
    lose(path, version, "X/indices", "2")
    with pytest.raises(DataError, match="a chunk of /X/indices is not there"):
        read_expression(path)
