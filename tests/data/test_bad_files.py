"""Bad files of every kind: the error names the file, the place and the remedy."""

from __future__ import annotations

import gzip
import subprocess
import sys

import h5py
import numpy as np
import pytest

from expression_files import (
    dense,
    make,
    read_expression,
    to_anndata,
    write_h5ad,
    write_table,
    write_tenx_folder,
)
from optirank.datasets import DataError


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return make(rng.poisson(1.0, (23, 12)).astype(np.float32))


def test_wrong_choices_list_what_there_is(data, tmp_path):
    path = tmp_path / "data.h5ad"
    to_anndata(data).write_h5ad(path)
    for options, words in (
        ({"label": "typ"}, ["'typ'", "cell_type"]),
        ({"layer": "raw"}, ["no 'raw'", "double"]),
        ({"layer": "log"}, ["'log'", "double"]),
        ({"table": "cells"}, ["single table"]),
        ({"gene_column": "symbol"}, ["'symbol'", "ensembl"]),
    ):
        with pytest.raises(DataError) as error:
            read_expression(path, **options)
        for word in words:
            assert word in str(error.value)


def test_a_missing_file_and_an_unknown_name(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.h5ad does not exist"):
        read_expression(tmp_path / "nothing.h5ad")
    (tmp_path / "data.bin").write_bytes(b"x")
    with pytest.raises(DataError, match="no ending of a known format"):
        read_expression(tmp_path / "data.bin")
    with pytest.raises(DataError, match=r"without matrix\.mtx"):
        read_expression(tmp_path)


@pytest.mark.parametrize("name", ["data.h5ad", "data.h5", "t.csv.gz"])
def test_a_file_of_another_format_is_told(name, tmp_path):
    path = tmp_path / name
    path.write_text("this is text")
    with pytest.raises(DataError, match=name):
        read_expression(path, genes_in="rows" if name.startswith("t") else None)


DAMAGE = """
import random, sys
from pathlib import Path
from optirank.data.opening import open_profiles
from optirank.data.passes import read_values
from optirank.datasets import DataError
good, seed = Path(sys.argv[1]).read_bytes(), int(sys.argv[2])
rng, path = random.Random(seed), Path(sys.argv[1]).with_name(f"bad{seed}.h5ad")
for _ in range(30):
    content = bytearray(good)
    if rng.random() < 0.5:
        del content[rng.randrange(1, len(content)):]
    else:
        content[rng.randrange(len(content))] = rng.randrange(256)
    path.write_bytes(content)
    try:
        with open_profiles(path) as profiles:
            read_values(profiles)
        print("read")
    except DataError as error:
        print("refused" if str(path) in str(error) else error)
    except MemoryError:
        print("refused")
"""


@pytest.mark.parametrize("seed", range(2))
def test_a_damaged_h5ad_is_read_or_refused_in_words(seed, data, tmp_path):
    """In a process of its own: the HDF5 library itself may crash on damaged bytes."""
    path = write_h5ad(data, tmp_path / "data.h5ad")
    command = [sys.executable, "-c", DAMAGE, str(path), str(seed)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode <= 0, done.stderr  # negative: ended by a signal
    assert set(done.stdout.split("\n")) <= {"read", "refused", ""}


@pytest.mark.parametrize(
    ("part", "place", "value"),
    [("indices", 3, 999), ("indices", 3, -1), ("indptr", 2, 999), ("indptr", -1, 5)],
)
@pytest.mark.parametrize("storage", ["csr", "csc"])
def test_a_sparse_matrix_that_points_outside_itself_is_told(
    storage, part, place, value, data, tmp_path
):
    path = tmp_path / "data.h5ad"
    to_anndata(data, storage).write_h5ad(path)
    with h5py.File(path, "a") as file:
        file["X"][part][place] = value
    with pytest.raises(DataError, match=r"data\.h5ad.*sparse matrix"):
        read_expression(path)


def test_a_file_without_x_asks_for_a_layer(data, tmp_path):
    path = tmp_path / "data.h5ad"
    whole = to_anndata(data)
    whole.X = None
    whole.write_h5ad(path)
    with pytest.raises(DataError, match="no X"):
        read_expression(path)
    np.testing.assert_array_equal(
        dense(read_expression(path, layer="double").X), data.X * 2
    )


def test_truncated_tables_and_10x_folders_are_told(data, tmp_path):
    path = write_table(data, tmp_path / "t.csv.gz")
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataError, match="truncated"):
        read_expression(path, genes_in="columns", label="cell_type")
    folder = write_tenx_folder(data, tmp_path / "tenx")
    with gzip.open(folder / "barcodes.tsv.gz", "wt") as file:
        file.write("one\n")
    with pytest.raises(DataError, match="1 cells"):
        read_expression(folder)
    (folder / "matrix.mtx.gz").write_bytes(b"")
    with pytest.raises(DataError, match=r"matrix\.mtx\.gz cannot be read"):
        read_expression(folder)
    (folder / "features.tsv.gz").unlink()
    with pytest.raises(DataError, match=r"no features\.tsv"):
        read_expression(folder)


MTX = "%%MatrixMarket matrix coordinate integer general\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            MTX + "12 23 100000000000\n1 1 1\n",
            "100000000000 entries, more than its places",
        ),
        (MTX + "12 23 4\n1 1 1\n", "cannot be read"),
        (MTX + "12 23 1\n13 1 1\n", "cannot be read"),
        (MTX + "12 23 1\n1 1 x\n", "cannot be read"),
        (
            MTX + "2 3 1\n1 1 1\n",
            "holds 2 genes x 3 cells, but the other files name 12",
        ),
        (MTX.replace("coordinate", "array") + "12 23\n", "no general sparse matrix"),
        ("2 2 1\n1 1 1\n", "cannot be read"),
    ],
)
def test_a_bad_matrix_market_file_is_told(text, message, data, tmp_path):
    folder = write_tenx_folder(data, tmp_path / "tenx", version=2)
    (folder / "matrix.mtx").write_text(text)
    with pytest.raises(DataError, match=message):
        read_expression(folder)


def test_an_array_that_says_it_is_larger_than_its_file_is_refused(data, tmp_path):
    path = tmp_path / "data.h5ad"
    to_anndata(data).write_h5ad(path)
    with h5py.File(path, "a") as file:
        del file["X/indptr"]
        file.create_dataset("X/indptr", shape=(10**11,), chunks=(1000,), dtype="i8")
    with pytest.raises(
        DataError, match=r"/X/indptr says it has \(100000000000,\) values"
    ):
        read_expression(path)
