"""AnnData files: .h5ad and .zarr, and the tables of MuData (.h5mu) and SpatialData
(.zarr).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optirank.io.choice import choose_matrix, choose_table
from optirank.io.data import DataError, make_profiles, readable
from optirank.io.formats import (
    Format,
    absent_notes,
    check_matrix,
    check_sizes,
    open_hdf5,
    open_sparse,
)
from optirank.io.options import ReadOptions

if TYPE_CHECKING:
    import pandas as pd
    from anndata import AnnData

# Where other containers have AnnData tables: MuData, SpatialData
_TABLES_OF = {"mod": "modalities", "tables": "tables"}


@contextlib.contextmanager
def _open_h5ad(path: Path, options: ReadOptions) -> Iterator[AnnData]:
    with open_hdf5(path) as root:
        yield _profiles_of(root, path, options)


@contextlib.contextmanager
def _open_zarr(path: Path, options: ReadOptions) -> Iterator[AnnData]:
    import zarr

    yield _profiles_of(zarr.open_group(str(path), mode="r"), path, options)


def _is_zarr(folder: Path) -> bool:
    marks = [folder / name for name in (".zgroup", "zarr.json")]
    return folder.suffix.lower() == ".zarr" or any(mark.exists() for mark in marks)


_TAKES = ("layer", "use_raw", "table")
H5AD = Format("h5ad", (".h5ad", ".h5mu"), _open_h5ad, _TAKES)
ZARR = Format("zarr", (".zarr",), _open_zarr, _TAKES, _is_zarr)


def stored_source(path: Path) -> dict[str, str]:
    """Where a .h5ad file says it comes from (``uns['source']``), if it says so."""
    from anndata.io import read_elem

    with readable(path), open_hdf5(path) as file:
        element: Any = file.get("uns/source")
        entries: Any = read_elem(element) if hasattr(element, "keys") else {}
    return {str(key): str(value) for key, value in entries.items()}


def _profiles_of(root: Any, path: Path, options: ReadOptions) -> AnnData:
    """Samples and genes of an AnnData file, and a matrix that is left in it."""
    group = _anndata_group(root, path, options)
    missing = [key for key in ("obs", "var") if key not in group]
    if missing:
        is_tenx = "matrix" in group
        hint = ": it looks like 10x, use format='10x_h5'" if is_tenx else ""
        raise DataError(
            f"{path} is not an AnnData file: it has no {' and no '.join(missing)}{hint}"
        )
    stored = StoredAnnData(group, path)
    element, part, notes = choose_matrix(
        stored,
        path,
        layer=options.layer,
        use_raw=options.use_raw,
        gene_column=options.gene_column,
        known_genes=options.known_genes,
    )
    notes += absent_notes(element)
    beside = {}
    if stored.raw is not None and part is stored:
        beside["raw_genes"] = stored.raw.var_names.to_numpy(dtype=object)
    X = _left_in_place(element, path)
    return make_profiles(X, stored.obs, part.var, str(path), notes=notes, **beside)


def _anndata_group(root: Any, path: Path, options: ReadOptions) -> Any:
    """The group with an AnnData: the root, or a table of MuData or SpatialData."""
    for key, what in _TABLES_OF.items():
        tables = root.get(key)
        is_container = hasattr(tables, "keys") and "var" not in tables
        if is_container and "X" not in root and len(list(tables)):
            return tables[choose_table(tables, options.table, path, what)]
    if options.table is not None:
        raise DataError(f"{path} holds a single table: leave table= out")
    return root


class StoredAnnData:
    """The parts of an AnnData in a file, or of its raw: frames are read, matrices are
    not.
    """

    def __init__(self, group: Any, path: Path) -> None:
        self._group = group
        self._path = path
        self.X: Any = group.get("X")
        if self.X is not None and self.X.attrs.get("encoding-type") == "null":
            self.X = None
        self.layers: Any = group.get("layers", {})

    @cached_property
    def raw(self) -> StoredAnnData | None:
        """The parts of raw, where there is one."""
        group: Any = self._group.get("raw")
        if not hasattr(group, "keys") or "X" not in group or "var" not in group:
            return None
        return StoredAnnData(group, self._path)

    @cached_property
    def obs(self) -> pd.DataFrame:
        """Annotations of the samples."""
        return self._frame("obs")

    @cached_property
    def var(self) -> pd.DataFrame:
        """What is known of the genes."""
        return self._frame("var")

    @property
    def var_names(self) -> pd.Index:
        """Names of the genes."""
        return self.var.index.str.strip()

    def _frame(self, key: str) -> pd.DataFrame:
        from anndata.io import read_elem

        element = self._group[key]
        if not hasattr(element, "keys"):
            raise DataError(
                f"{self._path}: its {key!r} was written by anndata before 0.7; open it "
                "with anndata.read_h5ad and write it again"
            )
        check_sizes(element, self._path)
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
