"""AnnData in memory or backed: profiles, gene names, and blocks of samples."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.names import some
from optirank.datasets.anndata_files import gene_names
from optirank.datasets.data import ExpressionData
from optirank.datasets.errors import DataError

if TYPE_CHECKING:
    from anndata import AnnData
    from numpy.typing import ArrayLike


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


def expression_of(adata: AnnData, layer: str | None, gene_column: str | None) -> ExpressionData:
    """The profiles of an AnnData, read into memory."""
    X = _in_memory(_layer(adata, layer))
    if getattr(X, "format", "csr") != "csr":
        X = X.tocsr()
    samples = adata.obs_names.astype(str).to_numpy(dtype=object)
    return ExpressionData(X, gene_names_of(adata, gene_column), samples, adata.obs, "adata")


def gene_names_of(adata: AnnData, gene_column: str | None) -> np.ndarray:
    """The names of the genes: the index of ``var`` or one of its columns."""
    return gene_names(adata.var, gene_column, "adata")


def blocks_of(
    adata: AnnData, layer: str | None, columns: ArrayLike, size: int
) -> Iterator[tuple[slice, Any]]:
    """Blocks of at most ``size`` samples in memory, with these genes alone.

    A matrix stored by genes is cut to them first: reading its samples would read all of it.
    """
    X = _layer(adata, layer)
    if getattr(X, "format", "") == "csc":
        X, columns = _in_memory(X[:, columns]).tocsr(), slice(None)
    for start in range(0, X.shape[0], size):
        rows = slice(start, min(start + size, X.shape[0]))
        yield rows, _in_memory(X[rows])[:, columns]


def _layer(adata: AnnData, layer: str | None) -> Any:
    if layer is None:
        if adata.X is None:
            raise DataError(f"adata has no X: name one of its layers, {some(adata.layers)}")
        return adata.X
    if layer not in adata.layers:
        raise DataError(f"adata has no layer {layer!r}: there are {some(adata.layers)}")
    return adata.layers[layer]


def _in_memory(X: Any) -> Any:
    """A matrix, or part of one, that may be on disk or lazy, in memory."""
    for way in ("to_memory", "compute"):
        if hasattr(X, way):
            return getattr(X, way)()
    return X if hasattr(X, "tocsr") else np.asarray(X)
