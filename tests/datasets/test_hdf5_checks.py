"""HDF5 files whose numbers would make the library loop or fill the memory are refused before."""

from __future__ import annotations

import struct
import tracemalloc

import h5py
import numpy as np
import pytest

from expression_files import make, to_anndata, write_tenx_h5
from optirank.datasets import DataError, read_expression
from optirank.datasets.hdf5_checks import check_array, check_heaps

HEAP = b"GCOL\x01\x00\x00\x00"


@pytest.fixture(params=["h5ad", "10x"])
def path(request, tmp_path):
    data = make(np.random.default_rng(0).poisson(1.0, (23, 12)).astype(np.float32))
    if request.param == "10x":
        path = write_tenx_h5(data, tmp_path / "data.h5")
        with h5py.File(path, "a") as file:  # 10x writes texts of fixed length; others do not
            del file["matrix/barcodes"]
            names = np.array(data.sample_names, dtype=object)
            file.create_dataset("matrix/barcodes", data=names, dtype=h5py.string_dtype())
        return path
    path = tmp_path / "data.h5ad"
    to_anndata(data).write_h5ad(path)
    return path


def last_object(content: bytes, start: int) -> int:
    """Where the header of the last object of a heap is: that of its free space."""
    (length,) = struct.unpack_from("<Q", content, start + 8)
    at = start + 16
    while True:
        index, _, _, size = struct.unpack_from("<HHLQ", content, at)
        step = 16 + -(-size // 8) * 8 if index else size
        if at + step >= start + length:
            return at
        at += step


def test_a_file_as_written_passes(path):
    check_heaps(path)
    assert read_expression(path).n_samples == 23


@pytest.mark.parametrize("size", [0, 1, 1 << 40])
def test_a_heap_that_would_be_read_for_ever_is_refused(path, size):
    content = bytearray(path.read_bytes())
    at = last_object(content, content.index(HEAP))
    content[at : at + 16] = struct.pack("<HHLQ", 0, 0, 0, size)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"data\.h5.*texts stored at byte \d+ are damaged"):
        read_expression(path)


@pytest.mark.parametrize("length", [17, 1 << 40])
def test_a_heap_that_is_longer_or_shorter_than_its_objects_is_refused(path, length):
    content = bytearray(path.read_bytes())
    at = content.index(HEAP)
    content[at + 8 : at + 16] = struct.pack("<Q", length if length > 17 else 4096 - 8)
    path.write_bytes(content)
    with pytest.raises(DataError, match="damaged"):
        read_expression(path)


def test_a_text_longer_than_its_file_is_refused(path):
    with h5py.File(path) as file:
        name = "var/_index" if path.suffix == ".h5ad" else "matrix/barcodes"
        at = file[name].id.get_offset()
    content = bytearray(path.read_bytes())
    content[at : at + 4] = b"\xf0\xff\xff\xff"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="a text of 4294967280 characters, more than fit"):
            read_expression(path)
        assert tracemalloc.get_traced_memory()[1] < 2e8
    finally:
        tracemalloc.stop()


def test_an_array_larger_than_its_file_is_refused(tmp_path):
    path = tmp_path / "data.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("long", shape=(10**11,), chunks=(1000,), dtype="f4")
        file.create_dataset("piece", shape=(10**8,), chunks=(10**8,), dtype="f4")
        file.create_dataset("good", data=np.zeros(10**6), compression="gzip", chunks=(10**5,))
    with h5py.File(path) as file:
        check_array(file["good"], path)
        for name in ("long", "piece"):
            with pytest.raises(DataError, match=f"{name} says it has"):
                check_array(file[name], path)


def test_an_indptr_larger_than_its_file_is_refused(tmp_path):
    data = make(np.random.default_rng(0).poisson(1.0, (23, 12)).astype(np.float32))
    path = tmp_path / "data.h5ad"
    to_anndata(data).write_h5ad(path)
    with h5py.File(path, "a") as file:
        del file["X/indptr"]
        file.create_dataset("X/indptr", shape=(10**11,), chunks=(1000,), dtype="i8")
    with pytest.raises(DataError, match="/X/indptr says it has 100000000000 values"):
        read_expression(path)
