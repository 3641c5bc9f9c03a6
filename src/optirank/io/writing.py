"""Write expression data as .h5ad and .csv."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from optirank._util.arrays import as_dense
from optirank._util.files import replacing
from optirank.io.data import ExpressionData, need

_EXACT = 2**53  # whole numbers up to here are exact in double precision


def write_h5ad(
    data: ExpressionData, path: str | Path, source: dict[str, str] | None = None
) -> Path:
    """Write a gzipped .h5ad file, whole or not at all; ``source`` goes to ``uns``."""
    anndata = need("anndata", "anndata", f"writing {path}")
    import pandas as pd

    obs = data.obs.copy()
    for column in obs.columns:
        if obs[column].dtype == object:
            obs[column] = obs[column].astype("category")
    obs.index = pd.Index(data.sample_names, dtype=str)
    adata = anndata.AnnData(
        X=data.X,
        obs=obs,
        var=pd.DataFrame(index=pd.Index(data.gene_names, dtype=str)),
        uns={"source": source} if source else None,
    )
    with replacing(path) as temporary:
        adata.write_h5ad(temporary, compression="gzip")
    return Path(path)


def write_table(data: ExpressionData, path: str | Path) -> Path:
    """Write a CSV table (.csv, .csv.gz): samples as lines with their annotations."""
    import pandas as pd

    values = as_dense(data.X)
    if _are_whole(values):
        values = values.astype(np.int64)  # 3, not 3.0
    frame = pd.DataFrame(values, index=data.sample_names, columns=data.gene_names)
    frame = pd.concat([data.obs.set_axis(data.sample_names), frame], axis=1)
    packed = "gzip" if Path(path).suffix.lower() == ".gz" else None
    with replacing(path) as temporary:
        frame.to_csv(temporary, index_label="sample", compression=packed)
    return Path(path)


def _are_whole(values: np.ndarray) -> bool:
    if not values.size or np.abs(values).max() >= _EXACT:
        return False
    return bool((values == np.rint(values)).all())
