"""The signature of a file or store changes when it is written again."""

from __future__ import annotations

import os

import numpy as np
import pytest

from optirank.io.reading import ChangedFileError, check_unchanged, signature

zarr = pytest.importorskip("zarr")


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("shape", [(40,), (8, 5)])
def test_a_chunk_that_is_written_again_changes_the_signature(version, shape, tmp_path):
    store = tmp_path / "atlas.zarr"
    group = zarr.open_group(str(store), mode="w", zarr_format=version)
    chunks = tuple(size // 2 for size in shape)
    array = group.create_array("X", shape=shape, chunks=chunks, dtype="f4")
    array[:] = np.arange(np.prod(shape)).reshape(shape)
    for folder, _, _ in os.walk(store):
        os.utime(folder, ns=(1, 1))
    mark = signature(store)
    check_unchanged(store, mark)
    array[:] = 7.0
    with pytest.raises(ChangedFileError, match=r"atlas\.zarr has changed"):
        check_unchanged(store, mark)


def test_chunks_are_not_looked_at_one_by_one(tmp_path, monkeypatch):
    chunks = tmp_path / "atlas.zarr" / "X" / "c"
    chunks.mkdir(parents=True)
    for number in range(1000):
        (chunks / str(number)).write_bytes(b"")
    looked_at = []
    is_file = type(chunks).is_file
    monkeypatch.setattr(
        type(chunks), "is_file", lambda path: looked_at.append(path) or is_file(path)
    )
    signature(tmp_path / "atlas.zarr")
    assert len(looked_at) < 50


def test_a_store_that_is_gone_is_named(tmp_path):
    (tmp_path / "atlas.h5ad").write_bytes(b"x")
    mark = signature(tmp_path / "atlas.h5ad")
    (tmp_path / "atlas.h5ad").unlink()
    with pytest.raises(
        ChangedFileError, match=r"atlas\.h5ad cannot be read on .* \(No such file"
    ):
        check_unchanged(tmp_path / "atlas.h5ad", mark)
