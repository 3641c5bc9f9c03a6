"""AnnData, on disk (.h5ad, .zarr) or in memory: a matrix, gene names, annotations; nothing else."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.names import some
from optirank.datasets.errors import DataError, need, readable
from optirank.datasets.stored import CompressedColumns, CompressedRows, Sliceable, StoredMatrix

if TYPE_CHECKING:
    import pandas as pd
    from anndata import AnnData

    from optirank.datasets.reading import OpenExpression

# The matrix, the names of the genes, the annotations, and other names that the genes have.
Parts = tuple[StoredMatrix, np.ndarray, "pd.DataFrame", dict[str, np.ndarray]]

_SMALL = 1 << 26  # bytes that any array may have, such as one that was never written
_EXPANSION = 1 << 14  # compressors reach more than the thousand of deflate; a bomb exceeds this


@contextlib.contextmanager
def open_hdf5(path: Path, parts: Callable[..., Parts], *options: object) -> Iterator[Parts]:
    """Open an HDF5 file and give what ``parts(file, path, *options)`` finds in it."""
    h5py = need("h5py", "anndata", f"reading {path}")
    if not h5py.is_hdf5(path):
        raise DataError(
            f"{path} is not an HDF5 file: give its format (such as 'table'), or fetch it again if "
            "it should be one"
        )
    with readable(path):
        file = h5py.File(path, "r")
    with file:
        with readable(path):
            found = parts(file, path, *options)
        yield found


def open_h5ad(
    path: Path, layer: str | None, gene_column: str | None
) -> contextlib.AbstractContextManager[Parts]:
    """Open a .h5ad file and give its matrix (on disk), gene names and annotations."""
    need("anndata", "anndata", f"reading {path}")
    return open_hdf5(path, _parts, layer, gene_column)


@contextlib.contextmanager
def open_zarr(path: Path, layer: str | None, gene_column: str | None) -> Iterator[Parts]:
    """Open an AnnData .zarr folder and give its matrix (on disk), gene names and annotations."""
    need("anndata", "anndata", f"reading {path}")
    zarr = need("zarr", "anndata", f"reading {path}")
    with readable(path):
        parts = _parts(zarr.open_group(str(path), mode="r"), path, layer, gene_column)
    yield parts


def stored_source(path: Path) -> dict[str, str]:
    """Return where a .h5ad file says it comes from (``uns['source']``), if it says so."""
    h5py = need("h5py", "anndata", f"reading {path}")
    with readable(path), h5py.File(path, "r") as file:
        about = file.get("uns/source")
        told = _read_elem()(about) if about is not None and hasattr(about, "keys") else {}
    return {str(key): str(value) for key, value in told.items()}


def check_sizes(element: Any, path: Path) -> None:
    """Refuse an array, or a group of arrays, that says it is far larger than what is stored."""
    if hasattr(element, "keys"):
        for key in element:
            check_sizes(element[key], path)
        return
    if element.shape is None:
        return
    low = getattr(element, "id", None)
    stored = low.get_storage_size() if hasattr(low, "get_storage_size") else element.nbytes_stored
    stored = stored() if callable(stored) else stored
    declared = int(np.prod(element.shape, dtype=object)) * max(1, element.dtype.itemsize)
    if declared > max(_SMALL, _EXPANSION * stored):
        raise DataError(
            f"{path} cannot be read, {element.name} says it has {tuple(element.shape)} values, "
            "more than are stored: it may be damaged (copy or fetch it again)"
        )


def _parts(group: Any, path: Path, layer: str | None, gene_column: str | None) -> Parts:
    missing = [key for key in ("X", "obs", "var") if key not in group]
    if missing == ["X"] and layer is not None:
        missing = []
    if missing:
        hint = ": it looks like 10x, use format='10x_h5'" if "matrix" in group else ""
        raise DataError(
            f"{path} is not an AnnData file: it has no {' and no '.join(missing)}{hint}"
        )
    obs, var = _frame(group, "obs", path), _frame(group, "var", path)
    matrix = _matrix(_stored_layer(group, path, layer), path)
    if matrix.shape != (len(obs), len(var)):
        raise DataError(
            f"{path}: X is {matrix.shape[0]} x {matrix.shape[1]}, but obs has {len(obs)} rows and "
            f"var {len(var)}"
        )
    return matrix, gene_names(var, gene_column, path), obs, other_gene_names(var, gene_column)


def _frame(group: Any, key: str, path: Path) -> pd.DataFrame:
    if not hasattr(group[key], "keys"):
        raise DataError(
            f"{path}: its {key!r} was written by anndata before 0.7; open it with "
            "anndata.read_h5ad and write it again"
        )
    check_sizes(group[key], path)
    frame = _read_elem()(group[key])
    frame.index = frame.index.astype(str)
    return frame


def _read_elem() -> Callable[[Any], Any]:
    try:
        from anndata.io import read_elem
    except ImportError:  # anndata 0.10
        from anndata.experimental import read_elem
    return read_elem


def _stored_layer(group: Any, path: Path, layer: str | None) -> Any:
    if layer is None:
        return group["X"]
    layers = group.get("layers", {})
    if layer not in layers:
        raise DataError(f"{path} has no layer {layer!r}: there are {some(list(layers))}")
    return layers[layer]


def _matrix(element: Any, path: Path) -> StoredMatrix:
    """Wrap an element of an AnnData file that holds a matrix."""
    if not hasattr(element, "keys"):
        if element.attrs.get("encoding-type") == "null" or element.shape is None:
            raise DataError(f"{path} holds no X: name one of its layers (layer=, --layer)")
        if len(element.shape) != 2 or np.dtype(element.dtype).kind not in "fiub":
            raise DataError(
                f"{path}: X has shape {tuple(element.shape)} and type {element.dtype}; it should "
                "be a matrix of numbers"
            )
        return Sliceable(element)
    check_sizes(element, path)
    kind = str(element.attrs.get("encoding-type", ""))
    shape = tuple(int(n) for n in element.attrs.get("shape", (0, 0)))
    parts = (element["data"], element["indices"], element["indptr"], shape)
    if kind.startswith("csr"):
        return CompressedRows(*parts)
    if kind.startswith("csc"):
        return CompressedColumns(*parts, source=str(path))
    raise DataError(f"{path}: X is stored as {kind!r}; it should be dense, CSR or CSC")


def other_gene_names(var: pd.DataFrame, gene_column: str | None) -> dict[str, np.ndarray]:
    """The columns of ``var`` with text, which could be names of the genes too."""
    return {
        str(name): var[name].astype(str).to_numpy(dtype=object)
        for name in var.columns
        if name != gene_column and var[name].dtype.kind not in "biufcmM"
    }


def gene_names(var: pd.DataFrame, gene_column: str | None, source: object) -> np.ndarray:
    """Return the names of the genes: the index of ``var`` or one of its columns."""
    if gene_column is None:
        return var.index.astype(str).to_numpy(dtype=object)
    if gene_column not in var.columns:
        raise DataError(
            f"{source} has no gene column {gene_column!r}: there are {some(var.columns, 20)}; "
            "without one the index of var is used"
        )
    names = var[gene_column]
    if names.isna().any():
        raise DataError(
            f"{source}: {int(names.isna().sum())} genes have no {gene_column!r}: fill them in, or "
            "choose another gene column"
        )
    return names.astype(str).to_numpy(dtype=object)


def check_anndata(adata: object, function: str) -> None:
    """Refuse what is not an AnnData, and say how to make one."""
    if all(hasattr(adata, name) for name in ("obs", "var", "obsm", "uns")):
        return
    kind, remedy = type(adata).__name__, "give an AnnData"
    if isinstance(adata, str | os.PathLike):
        remedy = f"read it first, anndata.read_h5ad({str(adata)!r})"
    elif hasattr(adata, "columns"):
        remedy = "make one of a data frame of samples x genes, anndata.AnnData(frame)"
        if function == "annotate":
            remedy += ", or use model.predict(frame)"
    raise TypeError(f"tl.{function} takes an AnnData, not a {kind}: {remedy}")


def profiles_of(
    adata: AnnData, layer: str | None, gene_column: str | None, *, use_raw: bool = False
) -> OpenExpression:
    """The profiles of an AnnData (X, a layer, or ``raw``), left where they are."""
    from optirank.datasets.reading import OpenExpression

    matrix, var, source = adata.X, adata.var, "adata"
    if use_raw and layer is not None:
        raise ValueError(f"use_raw=True and layer={layer!r}: give one of them")
    if use_raw:
        if adata.raw is None:
            raise ValueError("use_raw=True: adata.raw is empty; use X (use_raw=False) or a layer")
        matrix, var, source = adata.raw.X, adata.raw.var, "adata.raw"
    elif layer is not None:
        if layer not in adata.layers:
            raise DataError(f"adata has no layer {layer!r}: there are {some(adata.layers)}")
        matrix = adata.layers[layer]
    if matrix is None:
        raise DataError(f"adata has no X: name one of its layers, {some(adata.layers)}")
    names = gene_names(var, gene_column, source)
    return OpenExpression(Sliceable(matrix), names, adata.obs, source)
