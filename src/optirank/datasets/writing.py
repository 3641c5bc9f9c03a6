"""Write expression data: .h5ad in the layout of a catalogue, and CSV tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from optirank._util.files import replacing
from optirank.datasets.data import ExpressionData
from optirank.datasets.errors import need


def write_h5ad(data: ExpressionData, path: str | Path, source: dict | None = None) -> Path:
    """Write a gzipped .h5ad file, whole or not at all; ``source`` goes to ``uns['source']``."""
    anndata = need("anndata", "anndata", f"writing {path}")
    import pandas as pd

    path = Path(path)
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
    return path


def write_table(data: ExpressionData, path: str | Path, genes_in: str = "columns") -> Path:
    """Write a CSV table (.csv, .csv.gz): samples as lines with their annotations, or genes."""
    import pandas as pd

    values = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    if values.size and np.abs(values).max() < 2**53 and (values == np.rint(values)).all():
        values = values.astype(np.int64)  # 3, not 3.0
    if genes_in == "rows":
        frame = pd.DataFrame(values.T, index=data.gene_names, columns=data.sample_names)
        label = "gene"
    else:
        frame = pd.DataFrame(values, index=data.sample_names, columns=data.gene_names)
        about = data.obs.set_axis(data.sample_names)
        frame, label = pd.concat([about, frame], axis=1), "sample"
    path = Path(path)
    packed = "gzip" if path.suffix == ".gz" else None
    with replacing(path) as temporary:
        frame.to_csv(temporary, index_label=label, compression=packed)
    return path
