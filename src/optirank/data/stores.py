"""Files of AnnData (.h5ad, .zarr), the tables of MuData (.h5mu) and SpatialData (.zarr)
and files of 10x (.h5): their parts, with the matrix left where it is stored.

Sizes that are said to be larger than what is stored, parts that do not fit together and
chunks that are not there are found before anything is read.
"""

from __future__ import annotations

import contextlib
import math
from collections import UserDict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pandas as pd
import zarr
from anndata.io import read_elem, sparse_dataset

from optirank._util.names import some
from optirank._util.notes import note
from optirank.data.errors import DataError
from optirank.data.features import GENE_EXPRESSION
from optirank.data.objects import TABLES_OF, choose_table


def open_store(path: Path, table: str | None, stack: contextlib.ExitStack) -> Any:
    """The parts of what a file or folder holds as an AnnData has them: X, layers, obs,
    var and raw. The stack closes it.
    """
    if path.is_dir():
        root: Any = zarr.open_group(str(path), mode="r")
    elif h5py.is_hdf5(path):
        root = stack.enter_context(h5py.File(path, "r"))
    else:
        raise DataError(f"{path} is not an HDF5 file: fetch it again")
    for key, what in TABLES_OF.items():
        tables = root.get(key)
        if hasattr(tables, "keys") and "var" not in tables and "X" not in root:
            return _anndata_parts(choose_table(tables, table, path, what), path)
    if table is not None:
        raise DataError(f"{path} holds a single table: leave table= out")
    if "obs" in root and "var" in root:
        return _anndata_parts(root, path)
    groups = [key for key in root if hasattr(root[key], "keys")]
    genomes = [key for key in groups if "indptr" in root[key]]
    if len(genomes) == 1:
        return _tenx_parts(root[genomes[0]], path)
    if genomes:
        raise DataError(f"{path} holds several genomes, {some(genomes)}: split it")
    raise DataError(
        f"{path} is neither of AnnData nor of 10x: it has {some(root)}, no obs and "
        "var, and no matrix"
    )


def _anndata_parts(group: Any, path: Path) -> Any:
    """The parts of an AnnData, or of its raw, which has no obs; tables are read."""
    X = group.get("X")
    is_null = X is not None and X.attrs.get("encoding-type") == "null"
    raw = group.get("raw")
    has_raw = hasattr(raw, "keys") and "X" in raw and "var" in raw
    return SimpleNamespace(
        X=None if is_null else X,
        layers=group.get("layers", {}),
        obs=_frame(group["obs"], path) if "obs" in group else None,
        var=_frame(group["var"], path),
        raw=_anndata_parts(raw, path) if has_raw else None,
    )


def _frame(element: Any, path: Path) -> pd.DataFrame:
    """A table of samples or genes."""
    _check_sizes(element, path)
    frame: Any = read_elem(element)
    return frame.set_axis(frame.index.astype(str))


def _tenx_parts(group: Any, path: Path) -> Any:
    """The parts of a matrix of 10x: of version 2, or of version 3 with features."""
    _check_sizes(group, path)

    def texts(key: str) -> list[str]:
        return list(group[key].asstr("utf-8")[:])

    is_new = "features" in group
    ids = texts("features/id" if is_new else "genes")
    names = texts("features/name" if is_new else "gene_names")
    has_types = "features/feature_type" in group
    types = (
        texts("features/feature_type") if has_types else [GENE_EXPRESSION] * len(ids)
    )
    obs = pd.DataFrame(index=pd.Index(texts("barcodes")))
    shape = len(obs), len(ids)

    class WithAttributes(h5py.Group):
        """The group with the attributes that anndata asks for: 10x stores the arrays of
        a CSR matrix of cells by genes without them.
        """

        attrs: Any = UserDict(
            {
                "encoding-type": "csr_matrix",
                "encoding-version": "0.1.0",
                "shape": shape,
            }
        )

    return SimpleNamespace(
        X=WithAttributes(group.id),
        layers={},
        obs=obs,
        var=tenx_features(ids, names, types),
        raw=None,
    )


def tenx_features(ids: list[str], names: list[str], types: list[str]) -> pd.DataFrame:
    """The table of features of 10x, by their names."""
    columns = {"id": ids, "name": names, "feature_types": types}
    return pd.DataFrame(columns, index=pd.Index(names, dtype=str))


def stored_matrix(element: Any, path: Path) -> Any:
    """A matrix of numbers, left where it is stored."""
    _check_sizes(element, path)
    if not hasattr(element, "keys"):
        if len(element.shape) != 2 or np.dtype(element.dtype).kind not in "fiub":
            raise DataError(
                f"{path}: X has shape {tuple(element.shape)} and type {element.dtype}; "
                "it should be a matrix of numbers"
            )
        _note_absent_chunks(element)
        return element
    kind = str(element.attrs.get("encoding-type", ""))
    if not kind.startswith(("csr", "csc")):
        raise DataError(
            f"{path}: X is stored as {kind!r}; it should be dense, CSR or CSC"
        )
    if _n_absent_chunks(element["indices"]):  # of positions that are not all zero
        raise DataError(
            f"a chunk of {element['indices'].name} is not there: the folder is not "
            "complete, copy or fetch it again"
        )
    _note_absent_chunks(element["data"])
    return _stored_sparse(element)


def _stored_sparse(group: Any) -> Any:
    """anndata's matrix of a group whose parts fit together."""
    shape = tuple(int(n) for n in group.attrs.get("shape", (0, 0)))
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
    return stored


def _check_sizes(element: Any, path: Path) -> None:
    """Refuse an array, or a group of arrays, that says it is far larger than
    is stored.
    """
    if hasattr(element, "keys"):
        for key in element:
            _check_sizes(element[key], path)
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


def _n_absent_chunks(array: Any) -> int:
    """How many chunks of a zarr array are not there, where some are.

    zarr leaves out chunks of zeros; an array without any chunk is all zeros.
    """
    n_there = getattr(array, "nchunks_initialized", 0)
    return array.nchunks - n_there if n_there else 0


def _note_absent_chunks(array: Any) -> None:
    """Say which chunks are not there: they read as zeros, which may be right."""
    n_absent = _n_absent_chunks(array)
    if n_absent:
        note(
            f"{n_absent} of the {array.nchunks} chunks of {array.name} are not stored "
            "and are read as zeros: right if all their values are zero, else copy or "
            "fetch the folder again"
        )
