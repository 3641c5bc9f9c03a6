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
    make,
    to_anndata,
    write_rows,
    write_tenx_folder,
    write_tenx_h5,
)
from optirank.datasets import DataError, concatenate, open_expression, read_expression
from optirank.io.reading import write_h5ad, write_table

PLAIN = st.from_regex(r"[A-Za-z][A-Za-z0-9.-]{0,7}", fullmatch=True)
few = settings(max_examples=25)


def blocks_of(path, genes, size):
    with open_expression(path) as opened:
        return list(opened.blocks(genes, size))


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


def _double(data):
    return make(
        dense(data.X) * 2,
        [f"ENSG{j}" for j in range(data.n_genes)],
        list(data.sample_names),
        list(data.labels("cell_type")),
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
            if genes_in == "columns" and "cell_type" not in data.gene_names
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
        assert read_expression(tenx, gene_column="id").gene_names[0] == "ENSG0"


@few
@given(data=expression(NAMES), block=st.integers(1, 7), draw=st.data())
def test_any_genes_in_any_order_and_blocks_equal_the_whole(data, block, draw):
    storage = draw.draw(st.sampled_from(["csr", "csc", "dense", "10x"]))
    wanted = draw.draw(
        st.lists(st.integers(0, data.n_genes - 1), unique=True, min_size=1)
    )
    genes = [data.gene_names[j] for j in wanted]
    with tempfile.TemporaryDirectory() as folder:
        if storage == "10x":
            path = write_tenx_h5(data, Path(folder) / "t.h5", antibodies=2)
        else:
            path = Path(folder) / "data.h5ad"
            to_anndata(data, storage).write_h5ad(path)
        for asked in (genes, np.array(wanted)):
            blocks = blocks_of(path, asked, block)
            assert max(b.n_samples for b in blocks) <= block
            np.testing.assert_array_equal(
                np.vstack([dense(b.X) for b in blocks]), dense(data.X)[:, wanted]
            )
            assert list(np.concatenate([b.sample_names for b in blocks])) == list(
                data.sample_names
            )
        assert_equal(
            read_expression(path, genes=genes),
            data.select_genes(genes),
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
    assert list(read.gene_names) == ["A", "B"]
    np.testing.assert_array_equal(read.X, [[1, 0.5], [2, 4]])


def test_names_that_look_like_missing_values_are_names(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("sample,NA,nan,cell_type\nNA,1,2,NA\nnull,3,4,b\n")
    read = read_expression(path, genes_in="columns", label="cell_type")
    assert list(read.gene_names) == ["NA", "nan"]
    assert list(read.sample_names) == ["NA", "null"]
    assert list(read.labels("cell_type")) == ["NA", "b"]


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
    assert read.duplicated_genes == ["A"]
    with pytest.raises(DataError, match="several genes called A"):
        read.select_genes(["A"])
    np.testing.assert_array_equal(read.select_genes([2, 1]).X, [[2, 1], [5, 4]])
    np.testing.assert_array_equal(read.merge_duplicates("sum").X, [[2, 1], [8, 4]])
    np.testing.assert_array_equal(read.merge_duplicates("first").X, [[0, 1], [3, 4]])
    assert list(read.merge_duplicates("drop").gene_names) == ["B"]
    with pytest.raises(ValueError, match="how='mean'"):
        read.merge_duplicates("mean")


def test_a_matrix_stored_by_genes_says_so_when_read_whole(data, tmp_path, caplog):
    path = tmp_path / "csc.h5ad"
    to_anndata(data, "csc").write_h5ad(path)
    caplog.clear()
    blocks_of(path, ["G1"], 5)
    assert caplog.text == ""
    assert_equal(read_expression(path), data)
    assert "by genes (CSC)" in caplog.text


def test_a_missing_extra_says_which_line_installs_it(data, tmp_path, monkeypatch):
    path = write_h5ad(data, tmp_path / "data.h5ad")
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(ImportError, match=r"pip install 'optirank\[anndata\]'"):
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
    assert read_expression(path, genes_in="columns", annotations=[column]).n_genes == 30
    assert read_expression(path, genes_in="columns", any_scale=True).n_genes == 31


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
    with pytest.raises(DataError, match=r"G3 \(2\), G9 \(1\).*--drop-missing-genes"):
        read_expression(path, genes_in="columns")
    read = read_expression(path, genes_in="columns", drop_missing=True)
    assert read.n_genes == 28
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
    blocks = list(data.blocks(["G7", "G2"], 2, rows))
    assert [list(block.sample_names) for block in blocks] == [["s1", "s4"], ["s20"]]
    found = np.vstack([block.X for block in blocks])
    np.testing.assert_array_equal(found, data.X[np.ix_(rows, [7, 2])])
    assert_equal(data.read(), data)
    nothing = np.zeros(0, dtype=int)
    assert list(data.blocks(rows=nothing)) == []
    assert data.select_samples(nothing).read(["G3"]).X.shape == (0, 1)


def test_several_files_become_one_over_their_common_genes(data):
    other = make(np.ones((4, 3)), ["G2", "new", "G0"], ["a", "b", "c", "d"])
    both = concatenate([data, other], column="file")
    assert list(both.gene_names) == ["G0", "G2"]
    assert both.n_samples == data.n_samples + 4
    assert set(both.obs["file"]) == {"these data"}
    np.testing.assert_array_equal(both.X[:-4], data.X[:, [0, 2]])
    with pytest.raises(DataError, match="no gene in common"):
        concatenate([data, make(np.ones((1, 1)), ["other"])])


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
    assert found.gene_names.tolist() == ["CD4", "CD8A"]
    assert found.sample_names.tolist() == ["x", "y"]
    np.testing.assert_array_equal(found.X, frame)


def test_raw_of_a_file_is_read_if_asked_for_and_its_genes_are_known(data, tmp_path):
    whole = to_anndata(data)
    few = whole[:, :3].copy()
    few.raw = whole
    few.write_h5ad(tmp_path / "raw.h5ad")
    with open_expression(tmp_path / "raw.h5ad") as opened:
        assert opened.n_genes == 3
        assert opened.raw_gene_names.tolist() == data.gene_names.tolist()
    raw = read_expression(tmp_path / "raw.h5ad", use_raw=True)
    np.testing.assert_array_equal(dense(raw.X), dense(data.X))


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
    assert read.labels("type").tolist() == [one, one]


def test_panel_genes_of_a_very_wide_table_are_read_alone(tmp_path):
    n_columns = 200_000
    names = [f"g{k}" for k in range(n_columns)]
    lines = [",".join(["s", *names]), ",".join(["x", *["1"] * n_columns])]
    (tmp_path / "wide.csv").write_text("\n".join([*lines, ""]))
    with open_expression(tmp_path / "wide.csv", genes_in="columns") as opened:
        start = time.process_time()
        found = opened.read(["g199999", "g7"])
        seconds = time.process_time() - start
    assert found.gene_names.tolist() == ["g199999", "g7"]
    assert seconds < 4.0  # a million columns within 20 s
