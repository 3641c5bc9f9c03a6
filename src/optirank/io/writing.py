"""Write expression data as .h5ad and .csv."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optirank._util.arrays import as_dense
from optirank._util.files import replacing
from optirank.io.data import annotations_of, features_of

if TYPE_CHECKING:
    from anndata import AnnData

_EXACT = 2**53  # whole numbers up to here are exact in double precision


def write_h5ad(
    data: AnnData, path: str | Path, source: dict[str, str] | None = None
) -> Path:
    """Write values, names and annotations as a gzipped .h5ad file, whole or not at all.

    ``source`` goes to ``uns``.
    """
    import anndata

    obs = annotations_of(data).copy()
    for column in obs.columns:
        if obs[column].dtype == object:
            obs[column] = obs[column].astype("category")
    uns = {"source": source} if source else None
    with warnings.catch_warnings(), replacing(path) as temporary:
        warnings.filterwarnings("ignore", message=".*names are not unique")
        whole = anndata.AnnData(
            data.X, obs=obs, var=features_of(data).iloc[:, :0], uns=uns
        )
        whole.write_h5ad(temporary, compression="gzip")
    return Path(path)


def write_table(data: AnnData, path: str | Path) -> Path:
    """Write a CSV table (.csv, .csv.gz): samples as lines with their annotations."""
    import pandas as pd

    values = as_dense(data.X)
    if _are_whole(values):
        values = values.astype(np.int64)  # 3, not 3.0
    frame = pd.DataFrame(values, index=data.obs_names, columns=data.var_names)
    frame = pd.concat([annotations_of(data), frame], axis=1)
    packed = "gzip" if Path(path).suffix.lower() == ".gz" else None
    with replacing(path) as temporary:
        frame.to_csv(temporary, index_label="sample", compression=packed)
    return Path(path)


def _are_whole(values: np.ndarray) -> bool:
    if not values.size or np.abs(values).max() >= _EXACT:
        return False
    return bool((values == np.rint(values)).all())
