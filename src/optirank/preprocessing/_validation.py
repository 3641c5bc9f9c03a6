"""Checks of expression matrices shared by the transformers."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def refuse_negative(X: np.ndarray | sp.spmatrix, who: str) -> None:
    """Raise if a value is negative, with the sample, the gene and the remedy."""
    values = X.data if sp.issparse(X) else X
    if values.size == 0 or values.min() >= 0:
        return
    if sp.issparse(X):
        entries = X.tocoo()
        position = int(np.argmin(entries.data))
        sample, gene = int(entries.row[position]), int(entries.col[position])
    else:
        sample, gene = (int(k) for k in np.unravel_index(np.argmin(X), X.shape))
    raise ValueError(
        f"Negative values in data passed to {who}: X has {values.min():g} (sample {sample}, gene "
        f"{gene}), but counts are at least 0; leave this step out for data that are logged, "
        "centred or log-ratios already"
    )
