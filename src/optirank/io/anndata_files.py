"""AnnData files: .h5ad and .zarr, and the tables of MuData (.h5mu) and SpatialData
(.zarr).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.names import some
from optirank.io.absent_chunks import absent_notes
from optirank.io.data import DataError, about, make_profiles, need, readable
from optirank.io.formats import Format, check_sizes, open_hdf5, open_sparse
from optirank.io.gene_choice import raw_note
from optirank.io.options import ReadOptions

if TYPE_CHECKING:
    import pandas as pd
    from anndata import AnnData

# Where other containers have AnnData tables: MuData, SpatialData
_TABLES_OF = {"mod": "modalities", "tables": "tables"}


@contextlib.contextmanager
def _open_h5ad(path: Path, options: ReadOptions) -> Iterator[AnnData]:
    with open_hdf5(path) as file:
        with readable(path):
            adata = _anndata_of(file, path, options)
        yield adata


@contextlib.contextmanager
def _open_h5ad_matrix(path: Path, options: ReadOptions) -> Iterator[Any]:
    with open_hdf5(path) as file:
        with readable(path):
            group = _anndata_group(file, path, options)
            matrix = _chosen_matrix(group, path, options)
        yield matrix


@contextlib.contextmanager
def _open_zarr(path: Path, options: ReadOptions) -> Iterator[AnnData]:
    with readable(path):
        adata = _anndata_of(_zarr_group(path), path, options)
    yield adata


@contextlib.contextmanager
def _open_zarr_matrix(path: Path, options: ReadOptions) -> Iterator[Any]:
    with readable(path):
        group = _anndata_group(_zarr_group(path), path, options)
        matrix = _chosen_matrix(group, path, options)
    yield matrix


def _zarr_group(path: Path) -> Any:
    zarr = need("zarr", "anndata", f"reading {path}")
    return zarr.open_group(str(path), mode="r")


_OPTIONS = ("layer", "use_raw", "table")
H5AD = Format("h5ad", (".h5ad", ".h5mu"), _open_h5ad, _OPTIONS, _open_h5ad_matrix)
ZARR = Format("zarr", (".zarr",), _open_zarr, _OPTIONS, _open_zarr_matrix)


def stored_source(path: Path) -> dict[str, str]:
    """Where a .h5ad file says it comes from (``uns['source']``), if it says so."""
    with open_hdf5(path) as file, readable(path):
        about = file.get("uns/source")
        entries = _read_elem(about) if hasattr(about, "keys") else {}
    return {str(key): str(value) for key, value in entries.items()}


def choose_table(tables: Any, name: str | None, source: object, what: str) -> str:
    """The name of the table to read: the one asked for, or the only one."""
    names = [str(key) for key in tables]
    if name is None and len(names) == 1:
        return names[0]
    if name is None:
        raise DataError(
            f"{source} has {len(names)} {what}, {some(names)}: name one of them "
            "(table=)"
        )
    if name not in names:
        raise DataError(f"{source} has no table {name!r}: there are {some(names)}")
    return name


def _anndata_of(group: Any, path: Path, options: ReadOptions) -> AnnData:
    """Find matrix (left on disk), genes and samples in an AnnData file."""
    group = _anndata_group(group, path, options)
    missing = [key for key in ("X", "obs", "var") if key not in group]
    if missing and (missing != ["X"] or not (options.layer or options.use_raw)):
        hint = ": it looks like 10x, use format='10x_h5'" if "matrix" in group else ""
        raise DataError(
            f"{path} is not an AnnData file: it has no {' and no '.join(missing)}{hint}"
        )
    notes = []
    note = _raw_note(group, path, options)
    if note is not None:
        options = replace(options, use_raw=True)
        notes.append(note)
    notes += _absent_notes(_matrix_element(group, path, options))
    matrix = _matrix(group, path, options)
    obs = _frame(group, "obs", path)
    raw = _raw_group(group, path)
    var = _frame(raw if options.use_raw else group, "var", path)
    adata = make_profiles(matrix, obs, var, str(path), notes=notes)
    if options.use_raw:
        return adata
    if raw is not None:
        about(adata)["raw_genes"] = _index_of(raw["var"])
    return adata


def _anndata_group(group: Any, path: Path, options: ReadOptions) -> Any:
    """The group with an AnnData: the root, or a table of MuData or SpatialData."""
    for key, what in _TABLES_OF.items():
        if key in group and hasattr(group[key], "keys") and "var" not in group[key]:
            tables = group[key]
            if "X" in group or not len(list(tables)):
                continue
            return tables[choose_table(tables, options.table, path, what)]
    if options.table is not None:
        raise DataError(f"{path} holds a single table: leave table= out")
    return group


def _raw_group(group: Any, path: Path) -> Any:
    """The group of ``raw``, or None where there is none."""
    if "raw" not in group or not hasattr(group["raw"], "keys"):
        return None
    raw = group["raw"]
    if "X" not in raw or "var" not in raw or not hasattr(raw["var"], "keys"):
        return None
    check_sizes(raw["var"], path)
    return raw


def _index_of(element: Any) -> np.ndarray:
    key = element.attrs.get("_index", "_index")
    names = _read_elem(element[key])
    return np.array([str(name).strip() for name in names], dtype=object)


def _frame(group: Any, key: str, path: Path) -> pd.DataFrame:
    if not hasattr(group[key], "keys"):
        raise DataError(
            f"{path}: its {key!r} was written by anndata before 0.7; open it with "
            "anndata.read_h5ad and write it again"
        )
    check_sizes(group[key], path)
    frame = _read_elem(group[key])
    frame.index = frame.index.astype(str)
    return frame


def _read_elem(element: Any) -> Any:
    """The value of an element of an AnnData file."""
    from anndata.io import read_elem

    return read_elem(element)


def _raw_note(group: Any, path: Path, options: ReadOptions) -> str | None:
    """Why raw is read although nobody asked for it, or None where it is not."""
    raw = _raw_group(group, path)
    named = options.layer is not None or options.gene_column is not None
    if raw is None or options.use_raw or named or "var" not in group:
        return None
    if not hasattr(group["var"], "keys"):
        return None
    genes = _index_of(group["var"])
    return raw_note(options.known_genes, genes, _index_of(raw["var"]))


def _chosen_matrix(group: Any, path: Path, options: ReadOptions) -> Any:
    """The matrix that `_anndata_of` reads."""
    chosen = _raw_note(group, path, options) is not None
    return _matrix(group, path, replace(options, use_raw=chosen or options.use_raw))


def _absent_notes(element: Any) -> list[str]:
    """Notes on chunks that are not there, of a matrix that is stored in zarr."""
    array = element.get("data") if hasattr(element, "keys") else element
    return absent_notes(element) if hasattr(array, "nchunks_initialized") else []


def _matrix(group: Any, path: Path, options: ReadOptions) -> Any:
    """The matrix that is asked for, left where it is stored."""
    element = _matrix_element(group, path, options)
    if not hasattr(element, "keys"):
        if element.attrs.get("encoding-type") == "null" or element.shape is None:
            raise DataError(f"{path} holds no X: name one of its layers (layer=)")
        if len(element.shape) != 2 or np.dtype(element.dtype).kind not in "fiub":
            raise DataError(
                f"{path}: X has shape {tuple(element.shape)} and type {element.dtype}; "
                "it should be a matrix of numbers"
            )
        return element
    kind = str(element.attrs.get("encoding-type", ""))
    if not kind.startswith(("csr", "csc")):
        raise DataError(
            f"{path}: X is stored as {kind!r}; it should be dense, CSR or CSC"
        )
    n_rows, n_columns = (int(n) for n in element.attrs.get("shape", (0, 0)))
    return open_sparse(element, path, (n_rows, n_columns))


def _matrix_element(group: Any, path: Path, options: ReadOptions) -> Any:
    """Where X, a layer or raw is stored."""
    if options.use_raw:
        if options.layer is not None:
            raise DataError(
                f"{path}: raw and the layer {options.layer!r} are asked for: give one"
            )
        raw = _raw_group(group, path)
        if raw is None:
            raise DataError(f"{path} has no raw (use_raw=True): use X or a layer")
        return raw["X"]
    if options.layer is None:
        return group["X"]
    layers = group.get("layers", {})
    if options.layer not in layers:
        raise DataError(
            f"{path} has no layer {options.layer!r}: there are {some(list(layers))}"
        )
    return layers[options.layer]
