"""AnnData on disk, .h5ad and .zarr: X or a layer, gene names, annotations; nothing else is read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.names import some
from optirank.datasets.errors import DataError, need
from optirank.datasets.hdf5_checks import check_array, check_group, check_heaps
from optirank.datasets.stored import CompressedColumns, CompressedRows, Dense, StoredMatrix
from optirank.datasets.zarr_checks import check_zarr_group

if TYPE_CHECKING:
    import pandas as pd

# The matrix, the names of the genes, the annotations, and other names that the genes have.
Parts = tuple[StoredMatrix, np.ndarray, "pd.DataFrame", dict[str, np.ndarray]]


@contextlib.contextmanager
def open_h5ad(path: Path, layer: str | None, gene_column: str | None) -> Iterator[Parts]:
    """Open a .h5ad file and give its matrix (on disk), gene names and annotations."""
    need("anndata", "anndata", f"reading {path}")
    h5py = need("h5py", "anndata", f"reading {path}")
    if not h5py.is_hdf5(path):
        raise DataError(
            f"{path} is not an HDF5 file, so not an .h5ad: give its format (such as 'table'), or "
            "fetch it again if it should be one"
        )
    check_heaps(path)
    with readable(path):
        file = h5py.File(path, "r")
    with file:
        with readable(path):
            parts = _parts(file, path, layer, gene_column)
        yield parts


@contextlib.contextmanager
def open_zarr(path: Path, layer: str | None, gene_column: str | None) -> Iterator[Parts]:
    """Open an AnnData .zarr folder and give its matrix (on disk), gene names and annotations."""
    need("anndata", "anndata", f"reading {path}")
    zarr = need("zarr", "anndata", f"reading {path}")
    with readable(path):
        group = zarr.open_group(str(path), mode="r")
        for key in ("obs", "var"):
            if key in group and hasattr(group[key], "keys"):
                check_zarr_group(group[key], path)
        parts = _parts(group, path, layer, gene_column)
    yield parts


def stored_source(path: Path) -> dict[str, str]:
    """Return where a .h5ad file says it comes from (``uns['source']``), if it says so."""
    h5py = need("h5py", "anndata", f"reading {path}")
    check_heaps(path)
    with readable(path), h5py.File(path, "r") as file:
        about = file.get("uns/source")
        told = _read_elem()(about) if about is not None and hasattr(about, "keys") else {}
    return {str(key): str(value) for key, value in told.items()}


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what libraries raise on a damaged file into one DataError with the remedy."""
    try:
        yield
    except (DataError, ImportError):
        raise
    except MemoryError as error:
        raise DataError(
            f"{path} asks for more memory than there is: it is too large for this machine, or "
            "damaged (copy or fetch it again)"
        ) from error
    except Exception as error:
        text = " ".join(str(error).split())[:300]
        raise DataError(
            f"{path} cannot be read, it may be truncated or damaged: {text} "
            "(copy or fetch it again)"
        ) from error


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
    matrix = stored_matrix(_layer(group, path, layer), path)
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
    check_group(group[key], path)
    frame = _read_elem()(group[key])
    frame.index = frame.index.astype(str)
    return frame


def _read_elem() -> Callable[[Any], Any]:
    try:
        from anndata.io import read_elem
    except ImportError:  # anndata 0.10
        from anndata.experimental import read_elem
    return read_elem


def _layer(group: Any, path: Path, layer: str | None) -> Any:
    if layer is None:
        return group["X"]
    layers = group.get("layers", {})
    if layer not in layers:
        raise DataError(f"{path} has no layer {layer!r}: there are {some(list(layers))}")
    return layers[layer]


def stored_matrix(element: Any, path: Path) -> StoredMatrix:
    """Wrap an element of an AnnData file that holds a matrix."""
    if not hasattr(element, "keys"):
        if element.attrs.get("encoding-type") == "null" or element.shape is None:
            raise DataError(f"{path} holds no X: name one of its layers (layer=, --layer)")
        if len(element.shape) != 2 or np.dtype(element.dtype).kind not in "fiub":
            raise DataError(
                f"{path}: X has shape {tuple(element.shape)} and type {element.dtype}; it should "
                "be a matrix of numbers"
            )
        check_array(element, path)
        return Dense(element, tuple(element.shape))
    kind = element.attrs.get("encoding-type", element.attrs.get("h5sparse_format", ""))
    shape = element.attrs.get("shape", element.attrs.get("h5sparse_shape", (0, 0)))
    check_group(element, path)
    if path.is_dir():
        check_zarr_group(element, path)
    parts = (element["data"], element["indices"], element["indptr"], tuple(int(n) for n in shape))
    if str(kind).startswith("csr"):
        return CompressedRows(*parts)
    if str(kind).startswith("csc"):
        return CompressedColumns(*parts, source=str(path))
    raise DataError(f"{path}: X is stored as {kind!r}; it should be dense, CSR or CSC")


def other_gene_names(var: pd.DataFrame, gene_column: str | None) -> dict[str, np.ndarray]:
    """The columns of ``var`` with text, which could be names of the genes too."""
    return {
        str(name): var[name].astype(str).to_numpy(dtype=object)
        for name in var.columns
        if name != gene_column and var[name].dtype.kind not in "biufcmM"
    }


def gene_names(var: pd.DataFrame, gene_column: str | None, path: Path) -> np.ndarray:
    """Return the names of the genes: the index of ``var`` or one of its columns."""
    if gene_column is None:
        return var.index.astype(str).to_numpy(dtype=object)
    if gene_column not in var.columns:
        raise DataError(
            f"{path} has no gene column {gene_column!r}: there are {some(var.columns, 20)}; "
            "without one the index of var is used"
        )
    names = var[gene_column]
    if names.isna().any():
        raise DataError(
            f"{path}: {int(names.isna().sum())} genes have no {gene_column!r}: fill them in, or "
            "choose another gene column"
        )
    return names.astype(str).to_numpy(dtype=object)
