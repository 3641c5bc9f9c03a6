"""Chunks that a zarr folder lacks are named, those that are rightly left out are not."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from optirank.datasets import DataError
from optirank.io.formats import absent_notes

zarr = pytest.importorskip("zarr")


def group_of(path, version, **arrays):
    group = zarr.open_group(str(path), mode="w", zarr_format=version)
    for name, (values, chunks) in arrays.items():
        array = group.create_array(
            name, shape=values.shape, chunks=chunks, dtype=values.dtype
        )
        array[...] = values
    return zarr.open_group(str(path), mode="r")


def lose(path, version, name, key):
    (path / name / (key if version == 2 else f"c/{key.replace('.', '/')}")).unlink()


def sparse_arrays(X, length):
    return {
        "indices": (X.indices, (length,)),
        "data": (X.data, (length,)),
        "indptr": (X.indptr, (len(X.indptr),)),
    }


@pytest.mark.parametrize("version", [2, 3])
def test_lost_positions_of_a_sparse_matrix_are_refused(version, tmp_path):
    X = sp.random(80, 30, 0.3, format="csr", random_state=0)
    group = group_of(tmp_path / "x", version, **sparse_arrays(X, 100))
    assert absent_notes(group) == []
    lose(tmp_path / "x", version, "data", "1")
    (note,) = absent_notes(group)
    assert "1 of the 8 chunks of /data are not stored" in note
    lose(tmp_path / "x", version, "indices", "2")
    with pytest.raises(DataError, match="1 of the 8 chunks of /indices are not there"):
        absent_notes(group)


@pytest.mark.parametrize("version", [2, 3])
def test_lost_chunks_of_dense_values_are_noted(version, tmp_path):
    X = np.random.default_rng(0).random((40, 20)) + 1
    group = group_of(tmp_path / "x", version, X=(X, (10, 20)))
    assert absent_notes(group["X"]) == []
    lose(tmp_path / "x", version, "X", "3.0")
    (note,) = absent_notes(group["X"])
    assert "1 of the 4 chunks of /X" in note


def test_chunks_of_zeros_are_rightly_left_out(tmp_path):
    X = sp.csr_matrix(np.eye(1, 5).repeat(40, axis=0))  # all in the first column
    group = group_of(tmp_path / "x", 3, **sparse_arrays(X, 10))
    assert group["indices"].nchunks_initialized == 0
    assert absent_notes(group) == []
    empty = group_of(tmp_path / "y", 3, X=(np.zeros((40, 20)), (10, 20)))
    assert absent_notes(empty["X"]) == []
