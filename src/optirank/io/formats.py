"""What a file format is, the options of reading, and the files of AnnData: .h5ad and
.zarr, and the tables of MuData (.h5mu) and SpatialData (.zarr).

Sizes that are said to be larger than what is stored, parts that do not fit together and
chunks that are not there are found before anything is read.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pandas as pd
import zarr
from anndata import AnnData
from anndata.io import read_elem, sparse_dataset
from scipy import sparse

from optirank.io.data import DataError, make_profiles
from optirank.io.objects import TABLES_OF, choose_matrix, choose_table


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Options of reading, as :func:`optirank.datasets.read_expression` explains them.

    ``reading`` in `optirank.cli.options` spells them for the command line.
    """

    label: tuple[str, ...] = ()
    format: str | None = None
    layer: str | None = None
    use_raw: bool = False
    table: str | None = None
    gene_column: str | None = None
    genes_in: str | None = None
    annotations: tuple[str, ...] = ()
    samples: str | None = None
    drop_missing: bool = False
    any_scale: bool = False
    invert: bool = False
    known_genes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Format:
    """A file format: one entry of `optirank.io.reading.FORMATS`.

    ``open`` gives all features with the names that the file has for them, and the
    matrix left where it is: `make_profiles` makes such an AnnData. What it raises
    becomes an error that names the file (`readable`).
    """

    name: str
    suffixes: tuple[str, ...]  # in lower case
    open: Callable[[Path, ReadOptions], contextlib.AbstractContextManager[AnnData]]
    takes: tuple[str, ...] = ()  # options that only some formats have
    is_folder: Callable[[Path], bool] = lambda folder: False  # of one that is a folder


@contextlib.contextmanager
def open_hdf5(path: Path) -> Iterator[Any]:
    """Open an HDF5 file and give its root group."""
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

    That of half precision is read, in single precision. A matrix whose parts do not fit
    together is refused.
    """
    check_sizes(group, path)
    stored = sparse_dataset(group)
    data = group["data"]
    pointers = np.asarray(group["indptr"][:], dtype=np.int64)
    if np.dtype(data.dtype).kind not in "fiub":
        raise ValueError(f"its values are of type {data.dtype}, not numbers")
    if (
        len(pointers) != shape[stored.format == "csc"] + 1
        or pointers[0] != 0
        or (np.diff(pointers) < 0).any()
        or pointers[-1] != data.shape[0]
        or data.shape != group["indices"].shape
    ):
        raise ValueError("the parts of its sparse matrix do not fit together")
    if np.dtype(data.dtype) == np.float16:  # which no sparse matrix holds
        made = sparse.csc_matrix if stored.format == "csc" else sparse.csr_matrix
        parts = (data[...].astype(np.float32), group["indices"][...])
        return made((*parts, group["indptr"][...]), shape=shape)
    return stored


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
    declared = math.prod(element.shape) * max(1, element.dtype.itemsize)
    is_hdf5 = hasattr(element, "id")
    stored = element.id.get_storage_size() if is_hdf5 else element.nbytes_stored()
    # Any array may have 64 MiB, such as one that was never written. Compressors reach
    # more than the thousand of deflate; a bomb exceeds 16,384
    if declared > max(1 << 26, (1 << 14) * stored):
        raise DataError(
            f"{path} cannot be read, {element.name} says it has {tuple(element.shape)} "
            "values, more than are stored: it may be damaged (copy or fetch it again)"
        )


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
        _refuse_lost_positions(element["indices"], element["indptr"])
    n_absent = array.nchunks - array.nchunks_initialized
    if not 0 < n_absent < array.nchunks:
        return []
    return [
        f"{n_absent} of the {array.nchunks} chunks of {array.name} are not stored and "
        "are read as zeros: right if all their values are zero, else copy or fetch "
        "the folder again"
    ]


def _refuse_lost_positions(indices: Any, indptr: Any) -> None:
    """Refuse a sparse matrix whose positions have lost a chunk.

    A chunk of zeros cannot be right there, save where every row in it has a single
    entry, in the first column.
    """
    if indices.nchunks == indices.nchunks_initialized:
        return
    pointers = indptr[...]
    length = indices.chunks[0]
    n_lost = 0
    for first in range(0, indices.shape[0], length):
        positions = indices[first : first + length]
        entries = np.arange(first, first + len(positions))
        lines = np.searchsorted(pointers, entries, side="right")
        # Two entries of one line are never in the same column
        n_lost += not positions.any() and len(np.unique(lines)) < len(lines)
    if n_lost:
        raise DataError(
            f"{n_lost} of the {indices.nchunks} chunks of {indices.name} are not "
            "there: the folder is not complete, copy or fetch it again"
        )


@contextlib.contextmanager
def _open_anndata(path: Path, options: ReadOptions) -> Iterator[AnnData]:
    """Samples and genes of an AnnData file, and a matrix that is left in it."""
    root: Any = open_hdf5(path)
    if path.is_dir():
        root = contextlib.nullcontext(zarr.open_group(str(path), mode="r"))
    with root as opened:
        group = _anndata_group(opened, path, options)
        missing = [key for key in ("obs", "var") if key not in group]
        if missing:
            is_tenx = "matrix" in group
            hint = ": it looks like 10x, use format='10x_h5'" if is_tenx else ""
            raise DataError(
                f"{path} is not an AnnData file: it has no "
                f"{' and no '.join(missing)}{hint}"
            )
        obs = _frame(group["obs"], path)
        element, part, known = choose_matrix(
            _stored_anndata(group, path),
            path,
            layer=options.layer,
            use_raw=options.use_raw,
            gene_column=options.gene_column,
            known_genes=options.known_genes,
        )
        known["notes"] = [*known.get("notes", ()), *absent_notes(element)]
        X = _left_in_place(element, path)
        yield make_profiles(X, obs, part.var, str(path), **known)


def _is_zarr(folder: Path) -> bool:
    marks = [folder / name for name in (".zgroup", "zarr.json")]
    return folder.suffix.lower() == ".zarr" or any(mark.exists() for mark in marks)


_TAKES = ("layer", "use_raw", "table")
H5AD = Format("h5ad", (".h5ad", ".h5mu"), _open_anndata, _TAKES)
ZARR = Format("zarr", (".zarr",), _open_anndata, _TAKES, _is_zarr)


def _anndata_group(root: Any, path: Path, options: ReadOptions) -> Any:
    """The group with an AnnData: the root, or a table of MuData or SpatialData."""
    for key, what in TABLES_OF.items():
        tables = root.get(key)
        is_container = hasattr(tables, "keys") and "var" not in tables
        if is_container and "X" not in root:
            return choose_table(tables, options.table, path, what)
    if options.table is not None:
        raise DataError(f"{path} holds a single table: leave table= out")
    return root


def _stored_anndata(group: Any, path: Path) -> Any:
    """The parts of an AnnData in a file, or of its raw, that `choose_matrix` asks for:
    the table of genes is read, matrices are not.
    """
    X = group.get("X")
    is_null = X is not None and X.attrs.get("encoding-type") == "null"
    raw = group.get("raw")
    has_raw = hasattr(raw, "keys") and "X" in raw and "var" in raw
    var = _frame(group["var"], path)
    return SimpleNamespace(
        X=None if is_null else X,
        layers=group.get("layers", {}),
        var=var,
        var_names=var.index.str.strip(),
        raw=_stored_anndata(raw, path) if has_raw else None,
    )


def _frame(element: Any, path: Path) -> pd.DataFrame:
    """A table of samples or genes."""
    if not hasattr(element, "keys"):
        name = element.name.strip("/").split("/")[-1]
        raise DataError(
            f"{path}: its {name!r} was written by anndata before 0.7; open it with "
            "anndata.read_h5ad and write it again"
        )
    check_sizes(element, path)
    frame: Any = read_elem(element)
    frame.index = frame.index.astype(str)
    return frame


def _left_in_place(element: Any, path: Path) -> Any:
    """A matrix of numbers, left where it is stored."""
    if not hasattr(element, "keys"):
        check_matrix(element, path, "X")
        return element
    kind = str(element.attrs.get("encoding-type", ""))
    if not kind.startswith(("csr", "csc")):
        raise DataError(
            f"{path}: X is stored as {kind!r}; it should be dense, CSR or CSC"
        )
    n_rows, n_columns = (int(n) for n in element.attrs.get("shape", (0, 0)))
    return open_sparse(element, path, (n_rows, n_columns))
