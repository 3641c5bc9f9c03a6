"""AnnData as readers leave it, made and changed by hand."""

from __future__ import annotations

import anndata
import numpy as np
import pandas as pd

from optirank.io.data import (
    annotations_of,
    features_of,
    make_profiles,
    matrix_of,
    notes_of,
    source_of,
)
from optirank.io.passes import blocks, read_features


def made(X, genes, obs, source="these data") -> anndata.AnnData:
    """An AnnData of some values."""
    return make_profiles(X, obs, pd.DataFrame(index=pd.Index(genes, dtype=str)), source)


def changed(data, *, X=None, genes=None, obs=None, source=None) -> anndata.AnnData:
    """The same with something else in places."""
    var = features_of(data)
    return make_profiles(
        matrix_of(data) if X is None else X,
        annotations_of(data) if obs is None else obs,
        var if genes is None else var.set_axis(np.array(genes, dtype=object)),
        source_of(data) if source is None else source,
        notes=notes_of(data),
    )


def take_genes(data, genes) -> anndata.AnnData:
    """Some genes, by name or position."""
    genes = np.asarray(genes)
    if genes.dtype.kind not in "iu":
        genes = pd.Index(data.var_names).get_indexer(genes)
    return make_profiles(
        data.X[:, genes],
        annotations_of(data),
        features_of(data).iloc[genes],
        source_of(data),
    )


def take_samples(data, rows) -> anndata.AnnData:
    """Some samples: a mask or positions."""
    rows = np.arange(data.n_obs)[rows]
    return make_profiles(
        data.X[rows],
        annotations_of(data).iloc[rows],
        features_of(data),
        source_of(data),
    )


def values(data, genes=None, size=1024, rows=None) -> np.ndarray:
    """The values that blocks give, as one array."""
    parts = [
        block.toarray() if hasattr(block, "toarray") else block
        for block in blocks(data, genes, size, rows)
    ]
    return np.concatenate(parts)


__all__ = [
    "blocks",
    "changed",
    "made",
    "read_features",
    "take_genes",
    "take_samples",
    "values",
]
