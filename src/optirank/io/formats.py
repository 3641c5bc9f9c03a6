"""What a file format is: how its files are named, which options it takes, what
opens them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from optirank.io.data import DataError, need, readable
from optirank.io.options import ReadOptions

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from anndata import AnnData


@dataclass(frozen=True)
class Format:
    """A file format: one entry of `optirank.io.reading.FORMATS`.

    ``open`` gives all features with the names that the file has for them, and the
    matrix left where it is: `make_profiles` makes such an AnnData. ``open_matrix``
    gives the matrix alone, where that is less work: it is what a worker needs.
    """

    name: str
    suffixes: tuple[str, ...]  # in lower case
    open: Callable[[Path, ReadOptions], AbstractContextManager[AnnData]]
    takes: tuple[str, ...] = ()  # options that only some formats have
    open_matrix: Callable[[Path, ReadOptions], AbstractContextManager[Any]] | None = (
        None
    )


@contextlib.contextmanager
def open_hdf5(path: Path) -> Iterator[Any]:
    """Open an HDF5 file and give its root group."""
    h5py = need("h5py", "anndata", f"reading {path}")
    if not h5py.is_hdf5(path):
        raise DataError(
            f"{path} is not an HDF5 file: give its format (such as 'table'), or fetch "
            "it again if it should be one"
        )
    with readable(path):
        file = h5py.File(path, "r")
    with file:
        yield file


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


def _stored_bytes(element: Any) -> int:
    """Bytes that an array of HDF5 or zarr takes in its file."""
    low = getattr(element, "id", None)
    if low is not None and hasattr(low, "get_storage_size"):
        return int(low.get_storage_size())
    stored: Any = element.nbytes_stored
    count: Any = stored() if callable(stored) else stored  # a method in zarr 3
    return int(count)


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
    stored = _stored_bytes(element)
    count = int(np.prod(element.shape, dtype=object))
    declared = count * max(1, element.dtype.itemsize)
    # Any array may have 64 MiB, such as one that was never written. Compressors reach
    # more than the thousand of deflate; a bomb exceeds 16,384
    if declared > max(1 << 26, (1 << 14) * stored):
        raise DataError(
            f"{path} cannot be read, {element.name} says it has {tuple(element.shape)} "
            "values, more than are stored: it may be damaged (copy or fetch it again)"
        )
