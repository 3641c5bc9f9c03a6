"""AnnData as readers leave it, changed while a set is built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix, issparse, vstack

from optirank._util.names import some
from optirank.io.data import (
    DataError,
    annotations_of,
    features_of,
    gene_names,
    make_profiles,
    source_of,
    text_column,
)

if TYPE_CHECKING:
    from anndata import AnnData
    from numpy.typing import NDArray


def made(X: Any, genes: Any, obs: pd.DataFrame, source: str) -> AnnData:
    """An AnnData of some values."""
    var = pd.DataFrame(index=pd.Index(genes, dtype=object))
    return make_profiles(X, obs, var, source)


def changed(
    data: AnnData,
    *,
    X: Any = None,
    genes: Any = None,
    obs: pd.DataFrame | None = None,
    source: str | None = None,
) -> AnnData:
    """The same with other values, names of genes, annotations or source."""
    return made(
        data.X if X is None else X,
        data.var_names if genes is None else genes,
        annotations_of(data) if obs is None else obs,
        source_of(data) if source is None else source,
    )


def labels_of(data: AnnData, column: str) -> pd.Series:
    """A column of the annotations as text, missing values as NaN."""
    return text_column(annotations_of(data), column, source_of(data))


def take_samples(data: AnnData, rows: Any) -> AnnData:
    """Some samples: a mask or positions."""
    X: Any = data.X
    positions = np.arange(data.n_obs)[rows]
    obs = annotations_of(data).iloc[positions]
    return made(X[positions], data.var_names, obs, source_of(data))


def take_genes(data: AnnData, positions: NDArray) -> AnnData:
    """Some genes, in this order."""
    X: Any = data.X
    genes = features_of(data).index[positions]
    return made(X[:, positions], genes, annotations_of(data), source_of(data))


def merged_genes(data: AnnData, how: str) -> AnnData:
    """Data in which every name occurs once: the ``first`` of each, or their ``sum``."""
    names = np.array(data.var_names, dtype=str)
    _, first, group = np.unique(names, return_index=True, return_inverse=True)
    if how == "first":
        return take_genes(data, np.sort(first))
    X: Any = data.X
    entries = (np.ones(len(names), X.dtype), (np.arange(len(names)), group))
    order = np.argsort(first)
    sums = (X @ csr_matrix(entries, shape=(len(names), len(first))))[:, order]
    return changed(data, X=sums, genes=names[first[order]])


def concatenated(parts: Sequence[AnnData]) -> AnnData:
    """Parts of one set below each other, over the genes that all of them have."""
    common = gene_names(parts) if len(parts) > 1 else None
    if common is not None and not len(common):
        raise DataError(f"{some(map(source_of, parts))} have no gene in common")
    if common is not None:
        parts = [take_genes(p, p.var_names.get_indexer(common)) for p in parts]
    matrices: list[Any] = [part.X for part in parts]
    is_sparse = any(map(issparse, matrices))
    return made(
        vstack(matrices, format="csr") if is_sparse else np.concatenate(matrices),
        parts[0].var_names,
        pd.concat([annotations_of(part) for part in parts]),
        some([source_of(part) for part in parts]),
    )
