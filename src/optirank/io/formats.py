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

from optirank.io.data import DataError, need, readable
from optirank.io.options import ReadOptions
from optirank.io.stored import StoredMatrix

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import pandas as pd


@dataclass(frozen=True)
class Contents:
    """What a file holds: a matrix of samples by features, and tables of both."""

    matrix: StoredMatrix
    var: pd.DataFrame  # features; their names are the index
    obs: pd.DataFrame  # samples; their names are the index
    raw_genes: np.ndarray | None = None  # names of the genes of raw, if it was not read


@dataclass(frozen=True)
class Format:
    """A file format: one entry of `optirank.io.reading.FORMATS`."""

    name: str
    suffixes: tuple[str, ...]  # in lower case
    open: Callable[[Path, ReadOptions], AbstractContextManager[Contents]]
    takes: tuple[str, ...] = ()  # options that only some formats have


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
