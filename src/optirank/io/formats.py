"""What a file format is, and how files of HDF5 and folders of zarr are opened: sizes
that are said to be larger than what is stored, parts that do not fit together and
chunks that are not there are found before anything is read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from optirank.io.data import DataError
from optirank.io.options import ReadOptions

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from anndata import AnnData


@dataclass(frozen=True)
class Format:
    """A file format: one entry of `optirank.io.reading.FORMATS`.

    ``open`` gives all features with the names that the file has for them, and the
    matrix left where it is: `make_profiles` makes such an AnnData. What it raises
    becomes an error that names the file (`readable`).
    """

    name: str
    suffixes: tuple[str, ...]  # in lower case
    open: Callable[[Path, ReadOptions], AbstractContextManager[AnnData]]
    takes: tuple[str, ...] = ()  # options that only some formats have
    is_folder: Callable[[Path], bool] = lambda folder: False  # of one that is a folder


@contextlib.contextmanager
def open_hdf5(path: Path) -> Iterator[Any]:
    """Open an HDF5 file and give its root group."""
    import h5py

    if not h5py.is_hdf5(path):
        raise DataError(
            f"{path} is not an HDF5 file: give its format (such as 'table'), or fetch "
            "it again if it should be one"
        )
    with h5py.File(path, "r") as file:
        yield file


def check_matrix(element: Any, path: Path, what: str) -> None:
    """Refuse an array that is no matrix of numbers."""
    if len(element.shape) != 2 or np.dtype(element.dtype).kind not in "fiub":
        raise DataError(
            f"{path}: {what} has shape {tuple(element.shape)} and type "
            f"{element.dtype}; it should be a matrix of numbers"
        )


def open_sparse(group: Any, path: Path, shape: tuple[int, int]) -> Any:
    """anndata's matrix of a group that holds one, left where it is stored.

    That of half precision is read, in single precision.
    """
    from anndata.io import sparse_dataset

    check_sizes(group, path)
    stored = sparse_dataset(group)
    _check_pointers(group, shape[stored.format == "csc"])
    if np.dtype(group["data"].dtype) == np.float16:  # which no sparse matrix holds
        parts = (group["data"][...].astype(np.float32), group["indices"][...])
        made = sparse.csc_matrix if stored.format == "csc" else sparse.csr_matrix
        return made((*parts, group["indptr"][...]), shape=shape)
    return stored


def _check_pointers(group: Any, count: int) -> None:
    """Refuse a sparse matrix whose parts do not fit together."""
    data = group["data"]
    pointers = np.asarray(group["indptr"][:], dtype=np.int64)
    if np.dtype(data.dtype).kind not in "fiub":
        raise ValueError(f"its values are of type {data.dtype}, not numbers")
    if (
        len(pointers) != count + 1
        or pointers[0] != 0
        or (np.diff(pointers) < 0).any()
        or pointers[-1] != data.shape[0]
        or data.shape != group["indices"].shape
    ):
        raise ValueError("the parts of its sparse matrix do not fit together")


def check_sizes(element: Any, path: Path) -> None:
    """Refuse an array, or a group of arrays, that says it is far larger than
    is stored.
    """
    if hasattr(element, "keys"):
        for key in element:
            check_sizes(element[key], path)
        return
    if element.shape is None:
        return
    count = int(np.prod(element.shape, dtype=object))
    declared = count * max(1, element.dtype.itemsize)
    # Any array may have 64 MiB, such as one that was never written. Compressors reach
    # more than the thousand of deflate; a bomb exceeds 16,384
    if declared > max(1 << 26, (1 << 14) * _stored_bytes(element)):
        raise DataError(
            f"{path} cannot be read, {element.name} says it has {tuple(element.shape)} "
            "values, more than are stored: it may be damaged (copy or fetch it again)"
        )


def _stored_bytes(element: Any) -> int:
    """Bytes that an array of HDF5 or zarr takes in its file."""
    if hasattr(getattr(element, "id", None), "get_storage_size"):
        return int(element.id.get_storage_size())
    stored: Any = element.nbytes_stored
    count: Any = stored() if callable(stored) else stored  # a method in zarr 3
    return int(count)


def absent_notes(element: Any) -> list[str]:
    """Notes on chunks that are not there, of an array, or of the group of a sparse
    matrix, in zarr: they read as zeros, as if nothing were expressed.

    zarr leaves out chunks of zeros, so that a chunk that is not there may be right.
    """
    is_group = hasattr(element, "keys")
    array = element.get("data") if is_group else element
    if not hasattr(array, "nchunks_initialized"):  # of HDF5
        return []
    if is_group:
        _refuse_lost_positions(element)
    n_absent = _n_absent(array)
    if not 0 < n_absent < int(array.nchunks):
        return []
    return [
        f"{n_absent} of the {array.nchunks} chunks of {array.name} are not stored and "
        "are read as zeros: right if all their values are zero, else copy or fetch "
        "the folder again"
    ]


def _n_absent(array: Any) -> int:
    return int(array.nchunks) - int(array.nchunks_initialized)


def _refuse_lost_positions(group: Any) -> None:
    """Refuse a sparse matrix whose positions (``indices``) have lost a chunk.

    A chunk of zeros cannot be right there, save where every row in it has a single
    entry, in the first column.
    """
    indices = group["indices"]
    if not _n_absent(indices):
        return
    indptr = np.asarray(group["indptr"][...])
    length = int(indices.chunks[0])
    n_lost = 0
    for first in range(0, int(indices.shape[0]), length):
        positions = np.asarray(indices[first : first + length])
        entries = np.arange(first, first + len(positions))
        lines = np.searchsorted(indptr, entries, side="right")
        # Two entries of one line are never in the same column
        n_lost += not positions.any() and len(np.unique(lines)) < len(lines)
    if n_lost:
        raise DataError(
            f"{n_lost} of the {indices.nchunks} chunks of {indices.name} are not "
            "there: the folder is not complete, copy or fetch it again"
        )
