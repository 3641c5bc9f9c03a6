"""Files read into an AnnData, and an AnnData written as .h5ad."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pandas as pd
from anndata import AnnData

from optirank._util.files import replacing
from optirank.data.opening import open_profiles
from optirank.data.passes import read_values


def read_expression(path: str | Path, **reading: Any) -> AnnData:
    """Read expression profiles from a file into an AnnData.

    Parameters
    ----------
    path : a .h5ad, .h5mu or .h5 (10x) file, a .zarr or 10x folder, a .parquet file, or
        a .csv, .tsv, .txt or .tab table (also .gz)
    reading : options: ``layer`` ("raw" for raw), ``table`` (of a SpatialData or .h5mu),
        ``gene_column``, ``genes_in`` ("rows" or "columns" of a table), ``samples`` (a
        table about the samples), ``label`` (columns that must be there), ``exclude``
        (columns of a table that are no genes), ``invert`` (less is more, as in Ct)

    Returns
    -------
    AnnData
        ``X`` is an array or a CSR matrix; each gene is there once.
    """
    with open_profiles(path, **reading) as profiles:
        var = pd.DataFrame(index=profiles.genes)
        return AnnData(read_values(profiles), profiles.obs, var)


def write_h5ad(
    adata: AnnData, path: str | Path, source: dict[str, str] | None = None
) -> Path:
    """Write values, names and annotations as a gzipped .h5ad file, whole or not at all.

    ``source`` goes to ``uns``.
    """
    uns = {"source": source} if source else None
    obs: Any = adata.obs
    with warnings.catch_warnings(), replacing(path) as temporary:
        warnings.filterwarnings("ignore", message=".*names are not unique")
        whole = AnnData(adata.X, obs, pd.DataFrame(index=adata.var_names), uns)
        whole.write_h5ad(temporary, compression="gzip")
    return Path(path)
