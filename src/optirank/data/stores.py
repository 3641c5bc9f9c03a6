"""Files of AnnData (.h5ad, .zarr), tables of MuData (.h5mu) and SpatialData (.zarr),
and files (.h5) and folders of 10x; matrices are left where they are stored, save those
of folders.

Sizes that are said to be larger than what is stored, parts that do not fit together and
chunks that are not there are found before anything is read.
"""

from __future__ import annotations

import contextlib
import math
from collections import UserDict
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pandas as pd
import zarr
from anndata.io import read_elem, sparse_dataset
from scipy.io import mminfo
from scipy.sparse import csr_matrix

from optirank._util.words import note, some
from optirank.data.genes import GENE_EXPRESSION, gene_profiles
from optirank.data.objects import TABLES_OF, choose_table
from optirank.data.profiles import DataError, Profiles, readable
from optirank.data.tables import open_text


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
    for key in TABLES_OF:
        tables = root.get(key)
        if hasattr(tables, "keys") and "var" not in tables and "X" not in root:
            return _anndata_parts(choose_table(tables, table, str(path), key))
    if table is not None:
        raise DataError(f"{path} holds a single table: leave table= out")
    if "obs" in root and "var" in root:
        return _anndata_parts(root)
    groups = [key for key in root if hasattr(root[key], "keys")]
    genomes = [key for key in groups if "indptr" in root[key]]
    if len(genomes) == 1:
        return _tenx_parts(root[genomes[0]])
    if genomes:
        raise DataError(f"{path} holds several genomes, {some(genomes)}: split it")
    raise DataError(
        f"{path} is neither of AnnData nor of 10x: it has {some(root)}, no obs and "
        "var, and no matrix"
    )


def _anndata_parts(group: Any) -> Any:
    """The parts of an AnnData, or of its raw, which has no obs; tables are read."""
    frames = {}
    for key in ("obs", "var"):
        if key in group:
            _check_sizes(group[key])
            frames[key] = read_elem(group[key])
    X = group.get("X")
    is_null = X is not None and X.attrs.get("encoding-type") == "null"
    raw = group.get("raw")
    has_raw = hasattr(raw, "keys") and "X" in raw and "var" in raw
    return SimpleNamespace(
        X=None if is_null else X,
        layers=group.get("layers", {}),
        obs=frames.get("obs"),
        var=frames["var"],
        raw=_anndata_parts(raw) if has_raw else None,
    )


def _tenx_parts(group: Any) -> Any:
    """The parts of a matrix of 10x: of version 2, or of version 3 with features."""
    _check_sizes(group)

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
        var=_tenx_features(ids, names, types),
        raw=None,
    )


def _tenx_features(ids: list[str], names: list[str], types: list[str]) -> pd.DataFrame:
    """The table of features of 10x, by their names."""
    columns = {"id": ids, "name": names, "feature_types": types}
    return pd.DataFrame(columns, index=pd.Index(names, dtype=str))


def stored_matrix(element: Any) -> Any:
    """A matrix of numbers, left where it is stored."""
    _check_sizes(element)
    is_sparse = hasattr(element, "keys")
    kind = str(element.attrs.get("encoding-type", ""))
    if is_sparse and not kind.startswith(("csr", "csc")):
        raise DataError(f"X is stored as {kind!r}; it should be dense, CSR or CSC")
    data = element["data"] if is_sparse else element
    if np.dtype(data.dtype).kind not in "fiub" or data.ndim != 2 - is_sparse:
        raise DataError(
            f"X has shape {tuple(data.shape)} and type {data.dtype}; it should be a "
            "matrix of numbers"
        )
    _check_chunks(data)
    if not is_sparse:
        return element
    indices = element["indices"]
    _check_chunks(indices, are_positions=True)
    shape = tuple(int(n) for n in element.attrs.get("shape", (0, 0)))
    pointers = np.asarray(element["indptr"][:], dtype=np.int64)
    if (
        len(pointers) != shape[kind.startswith("csc")] + 1
        or pointers[0] != 0
        or (np.diff(pointers) < 0).any()
        or pointers[-1] != data.shape[0]
        or data.shape != indices.shape
    ):
        raise ValueError("the parts of its sparse matrix do not fit together")
    return sparse_dataset(element)


def _check_sizes(element: Any) -> None:
    """Refuse an array, or a group of arrays, that says it is far larger than
    is stored.
    """
    if hasattr(element, "keys"):
        for key in element:
            _check_sizes(element[key])
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
            f"{element.name} says it has {tuple(element.shape)} values, more than are "
            "stored: it may be damaged (copy or fetch it again)"
        )


def _check_chunks(array: Any, *, are_positions: bool = False) -> None:
    """Say which chunks of a zarr array are not there: they read as zeros, which may be
    right for values, and not for positions. An array without any chunk is all zeros.
    """
    n_there = getattr(array, "nchunks_initialized", 0)
    if n_there == 0 or n_there == array.nchunks:
        return
    if are_positions:
        raise DataError(
            f"a chunk of {array.name} is not there: the folder is not complete, copy "
            "or fetch it again"
        )
    note(
        f"{array.nchunks - n_there} of the {array.nchunks} chunks of {array.name} are "
        "not stored and are read as zeros: right if all their values are zero, else "
        "copy or fetch the folder again"
    )


def profiles_of_folder(
    folder: Path, gene_column: str | None, known_genes: Sequence[str]
) -> Profiles:
    """The profiles of a folder of 10x (matrix.mtx, features.tsv or genes.tsv, and
    barcodes.tsv, plain or gzipped); its matrix is read.
    """
    parts = {
        "matrix.mtx": find_part(folder, "matrix.mtx"),
        "features.tsv": find_part(folder, "features.tsv", "genes.tsv"),
        "barcodes.tsv": find_part(folder, "barcodes.tsv"),
    }
    missing = [name for name, path in parts.items() if path is None]
    if missing:
        raise DataError(
            f"{folder} is not a 10x folder: it has no {some(missing)} (plain or .gz)"
        )
    matrix_file, features_file, barcodes_file = filter(None, parts.values())
    features = _fields(features_file)
    barcodes = [fields[0] for fields in _fields(barcodes_file)]
    with readable(matrix_file):
        X = _read_matrix(matrix_file, (len(features), len(barcodes)))
    var = _tenx_features(
        [fields[0] for fields in features],
        [fields[min(1, len(fields) - 1)] for fields in features],
        [fields[2] if len(fields) > 2 else GENE_EXPRESSION for fields in features],
    )
    obs = pd.DataFrame(index=pd.Index(barcodes))
    return gene_profiles(X, obs, var, str(folder), gene_column, known_genes)


def find_part(folder: Path, *stems: str) -> Path | None:
    """The first file of the folder named as one of ``stems``, plain or gzipped."""
    names = [f"{stem}{end}" for stem in stems for end in ("", ".gz")]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _fields(path: Path) -> list[list[str]]:
    with readable(path), open_text(path) as file:
        return [line.rstrip("\r\n").split("\t") for line in file if line.strip()]


def _read_matrix(path: Path, shape: tuple[int, int]) -> csr_matrix:
    """Read a sparse matrix of genes by cells, transposed; sizes are checked first.

    scipy's ``mmread`` ends the process on some damaged files, so pandas reads the
    entries.
    """
    n_rows, n_columns, n_entries, form, field, symmetry = mminfo(str(path))
    if (n_rows, n_columns) != shape:
        raise DataError(
            f"{path} holds {n_rows} genes x {n_columns} cells, but the other files "
            f"name {shape[0]} genes and {shape[1]} cells"
        )
    if form != "coordinate" or symmetry != "general" or n_entries > n_rows * n_columns:
        raise DataError(
            f"{path} is no general sparse matrix, or says it has {n_entries} entries, "
            "more than its places"
        )
    kinds: dict[int, Any] = {0: np.int64, 1: np.int64}
    if field != "pattern":
        kinds[2] = np.int64 if field == "integer" else np.float64
    with open_text(path) as file:
        while file.readline().startswith("%"):  # up to the line with the sizes
            pass
        options: dict[str, Any] = {"names": list(kinds), "dtype": kinds}
        entries = pd.read_csv(file, sep=r"\s+", header=None, **options)
    rows = entries[0].to_numpy() - 1
    columns = entries[1].to_numpy() - 1
    if len(entries) != n_entries:
        raise ValueError(f"it says it has {n_entries} entries and has {len(entries)}")
    if n_entries and (min(rows.min(), columns.min()) < 0 or not (rows < n_rows).all()):
        raise ValueError(f"it has entries outside of its {n_rows} x {n_columns} places")
    values = entries[2].to_numpy() if 2 in entries else np.ones(n_entries)
    return csr_matrix((values, (columns, rows)), shape=(n_columns, n_rows))
