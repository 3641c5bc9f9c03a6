"""AnnData in memory or backed: profiles, gene names, and blocks of samples."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.names import some
from optirank.datasets.anndata_files import gene_names
from optirank.datasets.data import ExpressionData
from optirank.datasets.errors import DataError

if TYPE_CHECKING:
    import pandas as pd
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


@dataclass(frozen=True)
class AnnDataProfiles:
    """The profiles of an AnnData: in memory, backed, or lazy (dask arrays); read by blocks."""

    adata: AnnData
    matrix: Any
    gene_names: np.ndarray
    source: str = "adata"

    @property
    def obs(self) -> pd.DataFrame:
        """Annotations of the samples."""
        return self.adata.obs

    @property
    def sample_names(self) -> np.ndarray:
        """Names of the samples."""
        return self.adata.obs_names.astype(str).to_numpy(dtype=object)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.adata.n_obs

    def blocks(
        self,
        genes: np.ndarray | None = None,
        block_size: int = 1024,
        rows: np.ndarray | None = None,
    ) -> Iterator[ExpressionData]:
        """Blocks of all samples, or of those at some sorted positions, with all or some genes."""
        genes = np.arange(len(self.gene_names)) if genes is None else np.asarray(genes)
        rows = np.arange(self.n_samples) if rows is None else np.asarray(rows)
        names, samples = self.gene_names[genes], self.sample_names
        matrix = self.matrix
        if getattr(matrix, "format", "") == "csc":  # stored by genes: cut to these first
            matrix, genes = _in_memory(matrix[:, genes]).tocsr(), slice(None)
        for first in range(0, len(rows), block_size):
            here = rows[first : first + block_size]
            X = _in_memory(matrix[here])[:, genes]
            yield ExpressionData(X, names, samples[here], self.obs.iloc[here], self.source)


def profiles_of(adata: AnnData, layer: str | None, gene_column: str | None) -> AnnDataProfiles:
    """The profiles of an AnnData, left where they are."""
    return AnnDataProfiles(adata, _layer(adata, layer), gene_names_of(adata, gene_column))


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
