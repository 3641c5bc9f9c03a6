"""Zarr folders whose sizes do not fit what is stored are refused before memory is allocated."""

from __future__ import annotations

import json
import tracemalloc
import warnings

import anndata
import numpy as np
import pytest

from expression_files import dense, make, to_anndata
from optirank.datasets import DataError, read_expression

ARRAYS = ("X/indptr", "X/data", "obs/_index", "var/_index", "obs/cell_type/codes")


@pytest.fixture
def path(tmp_path):
    data = make(np.random.default_rng(0).poisson(1.0, (30, 20)).astype(np.float32))
    path = tmp_path / "data.zarr"
    with anndata.settings.override(zarr_write_format=2), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what anndata will do when writing some day
        to_anndata(data).write_zarr(path)
    np.testing.assert_array_equal(dense(read_expression(path).X), data.X)
    return path


def set_number(path, array: str, **numbers) -> None:
    own = path / array / ".zarray"
    own.write_text(json.dumps(json.loads(own.read_text()) | numbers))
    if (path / ".zmetadata").exists():
        every = json.loads((path / ".zmetadata").read_text())
        every["metadata"][f"{array}/.zarray"] |= numbers
        (path / ".zmetadata").write_text(json.dumps(every))


def assert_refused(path, words: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=words):
            read_expression(path)
        assert tracemalloc.get_traced_memory()[1] < 5e7
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize("what", ["shape", "chunks"])
def test_a_false_size_is_refused(path, array, what):
    set_number(path, array, **{what: [10**9]})
    assert_refused(path, f"{array} says it has")


def test_millions_of_pieces_that_are_not_there_are_refused(path):
    set_number(path, "X/indptr", shape=[10**7], chunks=[1])
    assert_refused(path, "says it has 10000000 pieces and has 1")


@pytest.mark.parametrize("array", ARRAYS)
def test_a_truncated_piece_is_refused(path, array):
    piece = path / array / "0"
    piece.write_bytes(piece.read_bytes()[:-5])
    assert_refused(path, f"{array} has a piece that is damaged")


def test_a_piece_that_says_it_unpacks_to_gigabytes_is_refused(path):
    piece = path / "obs" / "_index" / "0"
    content = bytearray(piece.read_bytes())
    content[4:8] = (2**31 - 17).to_bytes(4, "little")
    piece.write_bytes(content)
    assert_refused(path, "obs/_index has a piece that is damaged")
