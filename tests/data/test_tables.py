"""Tables of text and Parquet: read however they are written, refused in words where
something is wrong.
"""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expression_files import (
    assert_equal,
    expression,
    labels_of,
    make,
    read_expression,
    to_anndata,
    write_rows,
    write_table,
    write_tenx_folder,
)
from optirank.data.objects import profiles_of
from optirank.data.opening import open_profiles
from optirank.data.passes import read_values
from optirank.data.profiles import text_column
from optirank.datasets import DataError

COLUMNS = {"genes_in": "columns"}
ROWS = {"genes_in": "rows"}


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return make(rng.poisson(1.0, (23, 12)).astype(np.float32))


def written(tmp_path, name, text):
    path = tmp_path / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


@settings(max_examples=25)
@given(
    data=expression(),
    genes_in=st.sampled_from(["rows", "columns"]),
    name=st.sampled_from(["t.csv", "t.csv.gz"]),
)
def test_tables_are_read_as_written(data, genes_in, name):
    in_columns = genes_in == "columns"
    if in_columns and "cell_type" in data.var_names:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = (write_table if in_columns else write_rows)(data, Path(folder) / name)
        read = read_expression(path, genes_in=genes_in)
        assert_equal(read, data, labels=in_columns)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.txt"])
@pytest.mark.parametrize("sep", [",", "\t", ";"])
def test_the_separator_of_a_table_is_recognised(name, sep, tmp_path):
    lines = ["sample,kind,g1,g2", "s1,a,1.5,2", "s2,b,0,3.25"]
    path = written(tmp_path, name, "\n".join(lines).replace(",", sep))
    read = read_expression(path, label=["kind"])
    assert read.obs["kind"].tolist() == ["a", "b"]
    np.testing.assert_array_equal(read.X, [[1.5, 2.0], [0.0, 3.25]])


@pytest.mark.parametrize(
    "text",
    [
        "s1\ts2\nA\t1\t2\nB\t0.5\t4\n",  # as R writes it, without a corner
        "gene;s1;s2\nA;1,0;2\nB;0,5;4\n",  # semicolons go with decimal commas
        "# of the clinic\n# 2024\ngene\ts1\ts2\nA\t1\t2\nB\t0.5\t4\n",
        "#gene,s1,s2\nA,1,2\nB,0.5,4\n",
        "gene,s1,s2,\nA,1,2,\nB,0.5,4,\n",
        "gene,s1,s2\nA,1,2,\nB,0.5,4,\n",
        '"gene","s1","s2",,\n"A",1,2,,\n"B",0.5,4,,\n',
        "gene,s1 , s2\nA ,1,2\n B,0.5,4\n",
        "gene,type,s1,s2\nA,protein,1,2\nB,RNA,0.5,4\n",
    ],
)
def test_tables_of_other_habits_are_read(text, tmp_path):
    read = read_expression(written(tmp_path, "r.tsv", text), **ROWS)
    assert list(read.var_names) == ["A", "B"]
    assert list(read.obs_names) == ["s1", "s2"]
    np.testing.assert_array_equal(read.X, [[1, 0.5], [2, 4]])


def test_names_that_look_like_missing_values_are_names(tmp_path):
    text = "sample,NA,nan,cell_type\nNA,1,2,NA\nnull,3,4,b\n"
    read = read_expression(written(tmp_path, "t.csv", text), label=["cell_type"])
    assert list(read.var_names) == ["NA", "nan"]
    assert list(read.obs_names) == ["NA", "null"]
    assert labels_of(read) == ["NA", "b"]


@pytest.mark.parametrize("kind", ["UTF16.CSV", "table.Parquet", "named.parquet"])
def test_parquet_utf_16_and_suffixes_in_any_case_are_read(kind, tmp_path):
    frame = pd.DataFrame([[1.5, 2.0], [3.0, 4.0]], ["x", "y"], ["CD4", "CD8A"])
    path = tmp_path / kind
    if kind == "UTF16.CSV":
        frame.to_csv(path, index_label="sample", encoding="utf-16")
    else:
        pytest.importorskip("pyarrow")
        if kind == "named.parquet":
            frame.rename_axis("s").reset_index().to_parquet(path)
        else:
            frame.to_parquet(path)
    read = read_expression(path, known_genes=["CD4"])
    assert read.var_names.tolist() == ["CD4", "CD8A"]
    assert read.obs_names.tolist() == ["x", "y"]
    np.testing.assert_array_equal(read.X, frame)


def test_a_missing_extra_says_which_line_installs_it(tmp_path, monkeypatch):
    path = written(tmp_path, "table.parquet", "PAR1")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'optirank\[parquet\]'"):
        read_expression(path)


def test_umlauts_are_read_however_they_are_stored(tmp_path):
    one, two = "M\u00fcller", "Mu\u0308ller"  # composed, and a u with its dots apart
    path = written(tmp_path, "t.csv", f"s,{two},A\nx,{one},1\ny,{two},2\n")
    read = read_expression(path, label=[one])
    assert text_column(read.obs, one, "t.csv").tolist() == [one, one]
    path.write_bytes("s,centre,A\nx,Köln,1\ny,Zürich,2\n".encode("cp1252"))
    read = read_expression(path, label=["centre"])
    assert read.obs["centre"].tolist() == ["Köln", "Zürich"]


TABLE = "name,kind,CD4,CD8A\nx,a,1,2\ny,b,3,4\n"
TURNED = "name,symbol,x,y\nENSG1,CD4,1,3\nENSG2,CD8A,2,4\n"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (TABLE, {"known_genes": ["CD4", "ENSG2"]}),
        (TURNED, {"known_genes": ["CD4", "CD8A"]}),
        (TABLE, {"label": ["kind"]}),
        (TABLE.replace("a,", "1,").replace("b,", "2,"), {"label": ["kind"]}),
        (TURNED, {"samples": "about.csv", "gene_column": "symbol"}),
        (TABLE, {"samples": "about.csv"}),
        (TABLE.replace("a,", "1,").replace("b,", "2,"), COLUMNS | {"exclude": "kind"}),
    ],
)
def test_where_the_genes_are_is_told_by_what_is_known(text, options, tmp_path):
    about = written(tmp_path, "about.csv", "sample,type\nx,a\ny,b\n")
    options = dict(options)
    if "samples" in options:
        options["samples"] = about
    if "exclude" in options:
        options["exclude"] = [options["exclude"]]
    read = read_expression(written(tmp_path, "t.csv", text), **options)
    assert sorted(read.var_names) == ["CD4", "CD8A"]
    assert list(read.obs_names) == ["x", "y"]
    np.testing.assert_array_equal(read.X, [[1, 2], [3, 4]])


def test_columns_that_hold_no_numbers_are_annotations(tmp_path):
    text = "s,batch,A,B,paid\nx,one,1,2,True\ny,2,3,4,False\nz,three,5,6,True\n"
    read = read_expression(written(tmp_path, "t.csv", text), **COLUMNS)
    assert list(read.var_names) == ["A", "B"]
    assert read.obs["batch"].tolist() == ["one", "2", "three"]


def test_missing_integers_are_missing_values(tmp_path):
    frame = pd.DataFrame({"A": [1, 2], "B": [0.5, 2.0], "C": [True, False]}, ["x", "y"])
    for missing in (frame, frame.assign(D=["3", "4"])):
        plain = missing.astype({"A": "Int64"})
        missing = plain.mask(plain == 1)
        missing["C"] = frame["C"]
        plain.to_parquet(tmp_path / "t.parquet")
        missing.to_parquet(tmp_path / "m.parquet")
        read = read_expression(tmp_path / "t.parquet", **COLUMNS)
        np.testing.assert_array_equal(read.X[:, :2], frame[["A", "B"]])
        with pytest.raises(DataError, match=r"missing or infinite .* A \(1\)"):
            read_expression(tmp_path / "m.parquet", **COLUMNS)
    plain, missing = (profiles_of(part[["A", "B", "C"]]) for part in (plain, missing))
    assert plain.genes.tolist() == ["A", "B"]
    np.testing.assert_array_equal(read_values(plain), frame[["A", "B"]])
    np.testing.assert_array_equal(np.isnan(read_values(missing))[:, 0], [True, False])


COUNTS = """# Program:featureCounts v2.0.1
Geneid,Chr,Start,End,Strand,Length,x,y
CD4,1,10,20,+,10,1,3
CD8A,1,30,60,-,30,2,4
"""


def test_columns_about_genes_are_no_samples(tmp_path):
    read = read_expression(written(tmp_path, "t.csv", COUNTS), **ROWS)
    assert list(read.obs_names) == ["x", "y"]
    np.testing.assert_array_equal(read.X, [[1, 2], [3, 4]])


def test_missing_values_count_in_the_genes_of_a_model_only(tmp_path):
    path = written(tmp_path, "t.csv", "s,age,CD4,CD8A\nx,,1,2\ny,40,3,4\n")
    read = read_expression(path, known_genes=["CD4", "CD8A"])
    assert np.isnan(read.X).sum() == 1
    with pytest.raises(DataError, match=r"1 gene has missing .*: age \(1\)"):
        read_expression(path, **COLUMNS)
    with pytest.raises(DataError, match=r"age \(1\)"):
        read_expression(path, known_genes=["CD4", "Age"])


def test_a_table_about_the_samples_is_joined(data, tmp_path):
    folder = write_tenx_folder(data, tmp_path / "tenx")
    about = tmp_path / "about.csv"
    data.obs.iloc[::-1].iloc[:-1].to_csv(about)
    with open_profiles(folder, samples=about, label=["cell_type"]) as profiles:
        assert profiles.obs["cell_type"].tolist()[1:] == labels_of(data)[1:]
        assert profiles.notes == ("about.csv has no entry for 1 sample",)
    about.write_text("name,cell_type\nsomeone,alpha\n")
    with pytest.raises(DataError, match="names no sample"):
        read_expression(folder, samples=about)
    about.write_text("name,cell_type\ns0,alpha\ns0,beta\n")
    with pytest.raises(DataError, match="these samples more than once: s0"):
        read_expression(folder, samples=about)


def test_cycles_are_inverted_and_the_undetermined_ones_are_lowest(tmp_path):
    path = written(tmp_path, "t.csv", "s;A;B;C\nx;20;35,5;Undetermined\ny;21;22;30\n")
    with pytest.raises(DataError, match=r"'Undetermined'.*Ct of qPCR.*invert="):
        read_expression(path, **COLUMNS)
    with open_profiles(path, invert=True, **COLUMNS) as profiles:
        np.testing.assert_array_equal(profiles.X, [[16.5, 1, 0], [15.5, 14.5, 6.5]])
        assert "are inverted" in profiles.notes[0]


def test_equal_texts_are_equal_numbers_also_in_columns_with_words(tmp_path):
    texts = [repr(x) for x in np.random.default_rng(0).normal(25, 3, 200).tolist()]
    header = ",".join(f"A{k},B{k}" for k in range(len(texts)))
    same = ",".join(f"{text},{text}" for text in texts)
    words = ",".join("Undetermined,9" for _ in texts)  # A is text, B are numbers
    path = written(tmp_path, "t.csv", f"s,{header}\nx,{same}\ny,{words}\n")
    values = read_expression(path, invert=True, **COLUMNS).X[0]
    np.testing.assert_array_equal(values[::2], values[1::2])


LONG = "".join(f"s{k % 5},{gene},{k}\n" for k in range(30) for gene in ("CD4", "CD8A"))
BAD_TABLES = {
    "a word": (
        "s,A,B\nx,1,2\ny,3,high\nz,1,1\n",
        COLUMNS,
        ["'y'", "number 2", "'B'", "'high'", "exclude="],
    ),
    "an empty cell": ("s,A,B\nx,1,\ny,3,4\n", COLUMNS, ["'x'", "B (1)", "missing"]),
    "gaps": ("s,A,B\nx,NA,1\ny,3,-\n", COLUMNS, ["2 genes have", "A (1), B (1)"]),
    "a short line": ("s,A,B\nx,1,2\ny,3\n", COLUMNS, ["'y'", "B (1)"]),
    "a long line": ("s,A,B\nx,1,2\ny,3,4,5\n", COLUMNS, ["cannot be read"]),
    "no such label": (
        "s,A,t\nx,1,a\n",
        COLUMNS | {"label": ["type"]},
        ["no column 'type'", "are t"],
    ),
    "nothing tells": ("s,A,t\nx,1,2\n", {}, ["2 columns", "'rows'", "'columns'"]),
    "no orientation": ("s,A\nx,1\n", {"genes_in": "lines"}, ["'lines'", "'rows'"]),
    "one column": ("s A\nx 1\n", COLUMNS, ["single column", "tabs"]),
    "empty": ("", COLUMNS, ["empty"]),
    "words alone": ("s,A\nx,low\ny,high\n", COLUMNS, ["holds no numbers"]),
    "infinite": ("s,A\nx,inf\n", COLUMNS, ["A (1)", "infinite"]),
    "long": (f"sample,gene,count\n{LONG}", {}, ["60 lines with 5", "long table"]),
    "long with numbers": (
        "n,sample,gene,count\n"
        + "".join(f"{k},{line}\n" for k, line in enumerate(LONG.split())),
        {"known_genes": ["CD4", "CD8A"]},
        ["long table", "CD4, CD8A", "pivot"],
    ),
    "two columns of one name": (
        "s,kind,g1,kind\ns1,a,1,b\ns2,b,2,a\n",
        COLUMNS,
        ["several columns called kind"],
    ),
    "no gene column": (
        "g,s1\nA,1\n",
        ROWS | {"gene_column": "symbol"},
        ["no gene column 'symbol'"],
    ),
    "a layer": ("g,s1\nA,1\n", ROWS | {"layer": "x"}, ["layer=", "AnnData"]),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_bad_table_is_an_error_that_names_the_place(case, tmp_path):
    text, options, words = BAD_TABLES[case]
    path = written(tmp_path, "t.csv", text)
    with pytest.raises(DataError) as error:
        read_expression(path, **options)
    for word in (str(path), *words):
        assert word in str(error.value)


def test_options_of_tables_are_refused_for_others(data, tmp_path):
    path = tmp_path / "data.h5ad"
    to_anndata(data).write_h5ad(path)
    with pytest.raises(DataError, match="invert= is for tables"):
        read_expression(path, invert=True)
