"""Readers: what is written is read, some of it or all, in any format; bad files
are named.
"""

from __future__ import annotations

import logging
import tempfile
import time
import warnings
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from expression_files import (
    NAMES,
    assert_equal,
    dense,
    expression,
    labels_of,
    make,
    to_anndata,
    write_rows,
    write_tenx_folder,
    write_tenx_h5,
)
from optirank.datasets import DataError, open_expression, read_expression
from optirank.io.data import about, gene_names, notes_of, text_column
from optirank.io.objects import join, profiles_of
from optirank.io.passes import blocks, unique_genes
from optirank.io.reading import open_file, write_h5ad, write_table
from profiles import changed, take_genes, take_samples, values

PLAIN = st.from_regex(r"[A-Za-z][A-Za-z0-9.-]{0,7}", fullmatch=True)
few = settings(max_examples=25)


def blocks_of(path, genes, size):
    with open_file(path) as opened:
        return list(blocks(opened, genes, size))


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return make(rng.poisson(1.0, (23, 12)).astype(np.float32))


@few
@given(data=expression(), storage=st.sampled_from(["csr", "csc", "dense"]))
def test_h5ad_is_read_as_written(data, storage):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.h5ad"
        to_anndata(data, storage).write_h5ad(path)
        read = read_expression(path, label="cell_type")
        assert_equal(read, data)
        assert sp.issparse(read.X) == (storage != "dense")
        assert_equal(
            read_expression(path, gene_column="ensembl", layer="double"), _double(data)
        )


def to_matrix(X, storage):
    return {"csr": sp.csr_matrix, "csc": sp.csc_matrix, "dense": dense}[storage](X)


def _double(data):
    return make(
        dense(data.X) * 2,
        [f"ENSG{j}" for j in range(data.n_vars)],
        list(data.obs_names),
        labels_of(data),
    )


@pytest.mark.parametrize("version", [2, 3])
@settings(max_examples=6)
@given(data=expression(PLAIN), storage=st.sampled_from(["csr", "dense"]))
def test_zarr_is_read_as_written(data, storage, version):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.zarr"
        with (
            anndata.settings.override(zarr_write_format=version),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter(
                "ignore"
            )  # of what anndata will do when writing some day
            to_anndata(data, storage).write_zarr(path)
        assert_equal(read_expression(path), data)


@few
@given(
    data=expression(),
    genes_in=st.sampled_from(["rows", "columns"]),
    name=st.sampled_from(["t.csv", "t.csv.gz"]),
)
def test_tables_are_read_as_written(data, genes_in, name):
    with tempfile.TemporaryDirectory() as folder:
        write = write_rows if genes_in == "rows" else write_table
        path = write(data, Path(folder) / name)
        label = (
            "cell_type"
            if genes_in == "columns" and "cell_type" not in data.var_names
            else None
        )
        if genes_in == "columns" and label is None:
            return
        read = read_expression(path, genes_in=genes_in, label=label, any_scale=True)
        assert_equal(read, data, labels=label is not None)


@few
@given(data=expression(PLAIN), version=st.sampled_from([2, 3]))
def test_10x_is_read_as_written(data, version):
    with tempfile.TemporaryDirectory() as folder:
        tenx = write_tenx_folder(data, Path(folder) / "tenx", version)
        np.testing.assert_allclose(
            dense(read_expression(tenx).X), dense(data.X), rtol=1e-15
        )
        assert_equal(
            read_expression(write_tenx_h5(data, Path(folder) / "t.h5", version)),
            data,
            labels=False,
        )
        assert read_expression(tenx, gene_column="id").var_names[0] == "ENSG0"


@few
@given(data=expression(NAMES), block=st.integers(1, 7), draw=st.data())
def test_any_genes_in_any_order_and_blocks_equal_the_whole(data, block, draw):
    storage = draw.draw(st.sampled_from(["csr", "csc", "dense", "10x"]))
    wanted = draw.draw(
        st.lists(st.integers(0, data.n_vars - 1), unique=True, min_size=1)
    )
    genes = [data.var_names[j] for j in wanted]
    with tempfile.TemporaryDirectory() as folder:
        if storage == "10x":
            path = write_tenx_h5(data, Path(folder) / "t.h5", antibodies=2)
        else:
            path = Path(folder) / "data.h5ad"
            to_anndata(data, storage).write_h5ad(path)
        found = blocks_of(path, genes, block)
        assert max(b.shape[0] for b in found) <= block
        np.testing.assert_array_equal(
            np.vstack([dense(b) for b in found]), dense(data.X)[:, wanted]
        )
        for asked in (genes, np.array(wanted)):
            assert_equal(
                read_expression(path, genes=asked),
                take_genes(data, wanted),
                labels=storage != "10x",
            )


@pytest.mark.parametrize(
    "text",
    [
        "s1\ts2\nA\t1\t2\nB\t0.5\t4\n",  # as R writes it, without a corner
        "gene;s1;s2\nA;1,0;2\nB;0,5;4\n",  # semicolons go with decimal commas
    ],
)
def test_tables_of_other_habits_are_read(text, tmp_path):
    path = tmp_path / "r.tsv"
    path.write_text(text)
    read = read_expression(path, genes_in="rows")
    assert list(read.var_names) == ["A", "B"]
    np.testing.assert_array_equal(read.X, [[1, 0.5], [2, 4]])


def test_names_that_look_like_missing_values_are_names(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("sample,NA,nan,cell_type\nNA,1,2,NA\nnull,3,4,b\n")
    read = read_expression(path, genes_in="columns", label="cell_type")
    assert list(read.var_names) == ["NA", "nan"]
    assert list(read.obs_names) == ["NA", "null"]
    assert labels_of(read) == ["NA", "b"]


def test_a_table_about_the_samples_is_joined(data, tmp_path):
    folder = write_tenx_folder(data, tmp_path / "tenx")
    about = tmp_path / "about.csv"
    data.obs.iloc[::-1].to_csv(about)
    assert_equal(read_expression(folder, samples=about, label="cell_type"), data)
    about.write_text("name,cell_type\nsomeone,alpha\n")
    with pytest.raises(DataError, match="names no sample"):
        read_expression(folder, samples=about)


def test_duplicated_gene_names_are_reported_and_never_guessed(tmp_path, caplog):
    data = make(np.arange(6.0).reshape(2, 3), ["A", "B", "A"])
    path = tmp_path / "t.csv"
    write_table(data, path)
    with caplog.at_level(logging.WARNING):
        read = read_expression(path, genes_in="columns", label="cell_type")
    assert "1 gene name occurs more than once: A" in caplog.text
    assert list(read.var_names) == ["A", "B", "A"]
    options = {"genes_in": "columns", "label": "cell_type"}
    with pytest.raises(DataError, match="several genes called A"):
        read_expression(path, genes=["A"], **options)
    by_position = read_expression(path, genes=[2, 1], **options)
    np.testing.assert_array_equal(by_position.X, [[2, 1], [5, 4]])


@pytest.mark.parametrize("storage", ["csr", "csc", "dense"])
def test_genes_of_one_name_are_summed_if_they_are_counts(storage, tmp_path):
    data = make(np.arange(6.0).reshape(2, 3), ["A", "B", "A"])
    half = changed(data, X=data.X + 0.5)
    for whole, merged, note in (
        (data, [[2, 1], [8, 4]], "their counts are summed"),
        (half, [[0.5, 1.5], [3.5, 4.5]], "the first of each is used"),
    ):
        path = tmp_path / "data.h5ad"
        write_h5ad(changed(whole, X=to_matrix(whole.X, storage)), path)
        with open_file(path) as opened:
            unique = unique_genes(opened)
            assert gene_names(unique).tolist() == ["A", "B"]
            np.testing.assert_array_equal(values(unique), merged)
            np.testing.assert_array_equal(
                values(unique, ["B", "A"], 1), np.array(merged)[:, ::-1]
            )
            np.testing.assert_array_equal(
                values(unique, ["A"], rows=[1]), [[merged[1][0]]]
            )
            assert unique.uns["optirank"]["notes"] == [
                f"1 gene name occurs more than once, {note}: A"
            ]
            assert unique_genes(unique) is unique


def test_a_matrix_stored_by_genes_says_so_when_read_whole(data, tmp_path, caplog):
    path = tmp_path / "csc.h5ad"
    to_anndata(data, "csc").write_h5ad(path)
    caplog.clear()
    blocks_of(path, ["G1"], 5)
    assert caplog.text == ""
    assert_equal(read_expression(path), data)
    assert caplog.text.count("by genes (CSC)") == 1
    blocks_of(path, None, 5)
    assert caplog.text.count("by genes (CSC)") == 2


def test_a_missing_extra_says_which_line_installs_it(tmp_path, monkeypatch):
    path = tmp_path / "table.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r"pip install 'optirank\[parquet\]'"):
        read_expression(path)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.txt"])
@pytest.mark.parametrize("sep", [",", "\t", ";"])
def test_the_separator_of_a_table_is_recognised(name, sep, tmp_path):
    path = tmp_path / name
    lines = [
        ["sample", "kind", "g1", "g2"],
        ["s1", "a", "1.5", "2"],
        ["s2", "b", "0", "3.25"],
    ]
    path.write_text("\n".join(sep.join(line) for line in lines))
    data = read_expression(path, genes_in="columns", label="kind")
    assert data.obs["kind"].tolist() == ["a", "b"]
    np.testing.assert_array_equal(data.X, [[1.5, 2.0], [0.0, 3.25]])


def table_of(tmp_path, genes, column=None, values=None, name="t.csv"):
    """A table of logarithms with 30 genes, and one column more."""
    frame = pd.DataFrame(np.random.default_rng(0).normal(8, 2, (12, 30)).round(3))
    frame.columns = genes or [f"G{j}" for j in range(30)]
    if column:
        frame[column] = values
    frame.to_csv(tmp_path / name, index_label="sample")
    return tmp_path / name


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("Age", range(40, 52)),
        ("er_ihc", [0.1] * 12),
        ("tumour %", [8.1] * 12),
        ("marker", range(60, 72)),
        ("X1", np.linspace(500, 900, 12)),
    ],
)
def test_clinical_columns_among_genes_are_refused_until_they_are_named(
    column, values, tmp_path
):
    path = table_of(tmp_path, None, column, values)
    with pytest.raises(
        DataError, match=f"columns {column} look like clinical.*annotations="
    ):
        read_expression(path, genes_in="columns")
    assert read_expression(path, genes_in="columns", annotations=[column]).n_vars == 30
    assert read_expression(path, genes_in="columns", any_scale=True).n_vars == 31


def test_missing_values_name_all_their_genes_which_can_be_left_out(tmp_path):
    path = table_of(tmp_path, None)
    lines = path.read_text().splitlines()
    for row, (gene, text) in {2: (3, "NA"), 5: (3, ""), 7: (9, "nan")}.items():
        fields = lines[row].split(",")
        fields[gene + 1] = text
        lines[row] = ",".join(fields)
    path.write_text("\n".join(lines))
    with pytest.raises(
        DataError, match=r"2 of 30 genes have .*in 3 of 12 samples \(first '1'\): "
    ):
        read_expression(path, genes_in="columns")
    with pytest.raises(DataError, match=r"G3 \(2\), G9 \(1\).*drop_missing=True"):
        read_expression(path, genes_in="columns")
    read = read_expression(path, genes_in="columns", drop_missing=True)
    assert read.n_vars == 28
    assert np.isfinite(read.X).all()


def test_gene_names_that_a_spreadsheet_made_dates_are_pointed_out_once(
    tmp_path, caplog
):
    genes = ["1-Mar", "2-Sep", "Dec-1", *[f"G{j}" for j in range(27)]]
    for _ in range(2):
        read_expression(table_of(tmp_path, genes), genes_in="columns")
    told = "1-Mar, 2-Sep, Dec-1 look like gene names that a spreadsheet"
    assert caplog.text.count(told) == 1  # a file that is read again says it once


def test_profiles_in_memory_are_given_in_blocks_too(data):
    rows = np.array([1, 4, 20])
    found = list(blocks(data, ["G7", "G2"], 2, rows))
    assert [len(block) for block in found] == [2, 1]
    np.testing.assert_array_equal(np.vstack(found), data.X[np.ix_(rows, [7, 2])])
    np.testing.assert_array_equal(values(data), data.X)
    nothing = np.zeros(0, dtype=int)
    assert list(blocks(data, rows=nothing)) == []
    assert list(blocks(take_samples(data, nothing), ["G3"])) == []
    with pytest.raises(DataError, match="lacks 1 of the 2 genes asked for: G77"):
        next(blocks(data, ["G7", "G77"]))


def test_several_data_sets_are_used_over_their_common_genes(data):
    other = make(np.ones((4, 3)), ["G2", "new", "G0"], ["a", "b", "c", "d"])
    both = join([data, other])
    assert gene_names(both).tolist() == ["G0", "G2"]
    assert [set(part.obs["file"]) for part in both] == [
        {"these data 1"},
        {"these data 2"},
    ]
    with pytest.raises(DataError, match="have 0 genes in common"):
        join([data, make(np.ones((1, 1)), ["other"])])


def test_features_that_are_no_genes_are_left_out_and_said(data, tmp_path):
    path = write_tenx_h5(data, tmp_path / "t.h5", antibodies=2)
    note = "2 features are left out, they are no genes: Antibody Capture"
    with open_file(path) as opened:
        assert gene_names(opened).tolist() == data.var_names.tolist()
        np.testing.assert_array_equal(values(opened, size=5), dense(data.X))
        assert opened.uns["optirank"]["notes"] == [note]
    read = read_expression(path)
    assert read.uns["optirank"]["notes"] == [note]
    assert read.var_names.tolist() == data.var_names.tolist()


@pytest.mark.parametrize("storage", ["csr", "csc", "dense"])
@pytest.mark.parametrize("kind", ["h5ad", "zarr"])
@pytest.mark.filterwarnings("ignore:.*(zarr|sharding)")
def test_x_of_an_opened_file_stays_in_its_store(data, storage, kind, tmp_path):
    path = tmp_path / f"data.{kind}"
    getattr(to_anndata(data, storage), f"write_{kind}")(path)
    with open_expression(path) as opened:
        assert isinstance(opened, anndata.AnnData)
        assert not isinstance(opened.X, np.ndarray | sp.spmatrix)
        np.testing.assert_array_equal(dense(opened[3:5].X), dense(data.X)[3:5])
        np.testing.assert_array_equal(
            values(opened, ["G7", "G2"], 4), dense(data.X)[:, [7, 2]]
        )


def test_numbers_of_a_table_are_read_with_it(data, tmp_path):
    path = write_rows(data, tmp_path / "t.csv")
    with open_expression(path, genes_in="rows") as opened:
        np.testing.assert_array_equal(opened.X, data.X)


@pytest.mark.parametrize("kind", ["UTF16.CSV", "table.Parquet", "blanks.csv"])
def test_parquet_utf_16_suffixes_in_any_case_and_blanks_of_names_are_read(
    kind, tmp_path
):
    frame = pd.DataFrame([[1.5, 2.0], [3.0, 4.0]], ["x", "y"], ["CD4", "CD8A"])
    path = tmp_path / kind
    if kind == "UTF16.CSV":
        frame.to_csv(path, index_label="sample", encoding="utf-16")
    elif kind == "table.Parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    else:
        frame.rename(columns="{} ".format).to_csv(path, index_label="sample")
    found = read_expression(path, genes_in="columns")
    assert found.var_names.tolist() == ["CD4", "CD8A"]
    assert found.obs_names.tolist() == ["x", "y"]
    np.testing.assert_array_equal(found.X, frame)


def test_raw_of_a_file_is_read_if_asked_for_and_its_genes_are_known(data, tmp_path):
    whole = to_anndata(data)
    few = whole[:, :3].copy()
    few.raw = whole
    few.write_h5ad(tmp_path / "raw.h5ad")
    with open_expression(tmp_path / "raw.h5ad") as opened:
        assert opened.n_vars == 3
        assert about(opened)["raw_genes"] == data.var_names.tolist()
    raw = read_expression(tmp_path / "raw.h5ad", use_raw=True)
    np.testing.assert_array_equal(dense(raw.X), dense(data.X))


def test_raw_of_a_file_is_read_where_x_lacks_the_genes_of_a_model(data, tmp_path):
    whole = to_anndata(data)
    few = whole[:, :3].copy()
    few.raw = whole
    few.write_h5ad(tmp_path / "raw.h5ad")
    known = data.var_names.tolist()
    raw = read_expression(tmp_path / "raw.h5ad", known_genes=known)
    np.testing.assert_array_equal(dense(raw.X), dense(data.X))
    assert notes_of(raw) == [
        f"raw is read: X has 3 of the {len(known)} genes of the model, raw has "
        f"{len(known)}"
    ]
    assert not about(read_expression(tmp_path / "raw.h5ad", known_genes=known[:3]))[
        "notes"
    ]


def test_chunks_of_a_zarr_folder_that_are_not_there_are_named(data, tmp_path):
    path = tmp_path / "lost.zarr"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of formats to come
        to_anndata(data, "dense").write_zarr(path, chunks=(2, data.n_vars))
    assert not notes_of(read_expression(path))
    chunks = [one for one in (path / "X").rglob("*") if one.is_file()]
    chunks = [one for one in chunks if one.name[0] in "0123456789"]
    chunks[0].unlink()
    (note,) = notes_of(read_expression(path))
    assert "1 of the" in note
    assert "are read as zeros" in note


def test_names_that_samples_share_and_a_genome_in_those_of_genes_are_said(
    data, tmp_path
):
    adata = to_anndata(data)
    adata.obs_names = ["twice"] * 2 + adata.obs_names[2:].tolist()
    adata.var_names = [f"{name}_hg38" for name in adata.var_names]
    adata.write_h5ad(tmp_path / "names.h5ad")
    for found in (read_expression(tmp_path / "names.h5ad"), profiles_of(adata)):
        assert found.var_names.tolist() == data.var_names.tolist()
        spelling, samples = notes_of(found)
        assert "without the genome" in spelling
        assert "1 sample name occurs more than once" in samples
        assert "twice" in samples


@pytest.mark.parametrize("storage", ["csr", "csc", "dense"])
def test_values_of_half_precision_are_added_like_any(data, storage, tmp_path):
    path = tmp_path / "half.h5ad"
    to_anndata(data, storage).write_h5ad(path)
    with h5py.File(path, "r+") as file:
        name = "X" if storage == "dense" else "X/data"
        half, attributes = file[name][...].astype(np.float16), dict(file[name].attrs)
        del file[name]
        file.create_dataset(name, data=half).attrs.update(attributes)
    read = read_expression(path)
    assert_equal(read, data)
    totals = np.asarray(read.X.sum(axis=0, dtype=np.float64)).ravel()
    np.testing.assert_array_equal(totals, dense(data.X).sum(axis=0))


def test_labels_are_the_same_class_however_their_accents_are_stored(tmp_path):
    one, two = "M\u00fcller", "Mu\u0308ller"  # composed, and a u with its dots apart
    path = tmp_path / "t.csv"
    path.write_text(f"s,type,A\nx,{one},1\ny,{two},2\n", encoding="utf-8")
    read = read_expression(path, genes_in="columns", label="type")
    assert text_column(read.obs, "type", "t.csv").tolist() == [one, one]


def test_panel_genes_of_a_very_wide_table_are_read_alone(tmp_path):
    n_columns = 200_000
    names = [f"g{k}" for k in range(n_columns)]
    lines = [",".join(["s", *names]), ",".join(["x", *["1"] * n_columns])]
    (tmp_path / "wide.csv").write_text("\n".join([*lines, ""]))
    with open_file(tmp_path / "wide.csv", genes_in="columns") as opened:
        start = time.process_time()
        found = values(opened, ["g199999", "g7"])
        seconds = time.process_time() - start
    assert found.tolist() == [[1.0, 1.0]]
    assert seconds < 4.0  # a million columns within 20 s
