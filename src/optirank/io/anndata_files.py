"""AnnData files: .h5ad and .zarr, and the tables of MuData (.h5mu) and SpatialData
(.zarr).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.names import some
from optirank.io.data import DataError, make_profiles, need, readable
from optirank.io.features import raw_note
from optirank.io.formats import (
    Format,
    absent_notes,
    check_matrix,
    check_sizes,
    layer_of,
    open_hdf5,
    open_sparse,
)

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import pandas as pd
    from anndata import AnnData

    from optirank.io.options import ReadOptions

# Where other containers have AnnData tables: MuData, SpatialData
_TABLES_OF = {"mod": "modalities", "tables": "tables"}


@contextlib.contextmanager
def _open_zarr(path: Path) -> Iterator[Any]:
    zarr = need("zarr", "anndata", f"reading {path}")
    with readable(path):
        group = zarr.open_group(str(path), mode="r")
    yield group


@contextlib.contextmanager
def _opened(
    open_root: Callable[[Path], AbstractContextManager[Any]],
    find: Callable[[Any, Path, ReadOptions], Any],
    path: Path,
    options: ReadOptions,
) -> Iterator[Any]:
    """What is found in a file, which is open meanwhile."""
    with open_root(path) as root:
        with readable(path):
            found = find(_anndata_group(root, path, options), path, options)
        yield found


def stored_source(path: Path) -> dict[str, str]:
    """Where a .h5ad file says it comes from (``uns['source']``), if it says so."""
    with open_hdf5(path) as file, readable(path):
        element = file.get("uns/source")
        entries = _read_elem(element) if hasattr(element, "keys") else {}
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
    missing = [key for key in ("X", "obs", "var") if key not in group]
    if missing and (missing != ["X"] or not (options.layer or options.use_raw)):
        hint = ": it looks like 10x, use format='10x_h5'" if "matrix" in group else ""
        raise DataError(
            f"{path} is not an AnnData file: it has no {' and no '.join(missing)}{hint}"
        )
    note = _raw_note(group, path, options)
    use_raw = options.use_raw or note is not None
    element = _matrix_element(group, path, options, use_raw)
    absent = absent_notes(element)
    matrix = _matrix(element, path)
    obs = _frame(group, "obs", path)
    raw = _raw_group(group, path)
    var = _frame(raw if use_raw else group, "var", path)
    notes = absent if note is None else [note, *absent]
    beside = {}
    if raw is not None and not use_raw:
        beside["raw_genes"] = _index_of(raw["var"])
    return make_profiles(matrix, obs, var, str(path), notes=notes, **beside)


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


def _matrix_alone(group: Any, path: Path, options: ReadOptions) -> Any:
    """The matrix that `_anndata_of` finds."""
    use_raw = options.use_raw or _raw_note(group, path, options) is not None
    return _matrix(_matrix_element(group, path, options, use_raw), path)


def _matrix(element: Any, path: Path) -> Any:
    """A matrix of numbers, left where it is stored."""
    if not hasattr(element, "keys"):
        if element.attrs.get("encoding-type") == "null" or element.shape is None:
            raise DataError(f"{path} holds no X: name one of its layers (layer=)")
        check_matrix(element, path, "X")
        return element
    kind = str(element.attrs.get("encoding-type", ""))
    if not kind.startswith(("csr", "csc")):
        raise DataError(
            f"{path}: X is stored as {kind!r}; it should be dense, CSR or CSC"
        )
    n_rows, n_columns = (int(n) for n in element.attrs.get("shape", (0, 0)))
    return open_sparse(element, path, (n_rows, n_columns))


def _matrix_element(group: Any, path: Path, options: ReadOptions, use_raw: bool) -> Any:
    """Where X, a layer or raw is stored."""
    if use_raw:
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
    return layer_of(group, options.layer, path)


def _format(
    name: str,
    suffixes: tuple[str, ...],
    open_root: Callable[[Path], AbstractContextManager[Any]],
) -> Format:
    return Format(
        name,
        suffixes,
        functools.partial(_opened, open_root, _anndata_of),
        ("layer", "use_raw", "table"),
        functools.partial(_opened, open_root, _matrix_alone),
    )


H5AD = _format("h5ad", (".h5ad", ".h5mu"), open_hdf5)
ZARR = _format("zarr", (".zarr",), _open_zarr)
