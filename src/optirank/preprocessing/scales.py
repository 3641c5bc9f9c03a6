"""What expression values are: counts, other values on a linear scale, or logarithms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_ROWS = 200  # samples looked at: enough to see one whole sample's range many times over
_LINEAR_ABOVE = 50.0  # logarithms of expression values, to any usual base, do not reach this


def value_scale(X: Any) -> str:
    """What the values of X (samples x genes, dense or sparse) are: "counts", "linear" or "log".

    Whole numbers of at least 0 are counts; of other values, those beyond 50 either way are on a
    linear scale and the rest are logarithms. At most 200 samples, evenly spaced, are looked at.
    """
    values = _some_values(X)
    if not values.size or (values.min() >= 0 and not np.any(values != np.floor(values))):
        return "counts"
    return "linear" if np.abs(values).max() > _LINEAR_ABOVE else "log"


def _some_values(X: Any) -> NDArray:
    """The finite values of evenly spaced samples; of a sparse matrix those that are stored."""
    X = X.tocsr() if sparse.issparse(X) else X if hasattr(X, "dtype") else np.asarray(X)
    n_rows = X.shape[0]
    if n_rows > _ROWS:
        X = X[np.linspace(0, n_rows - 1, _ROWS).astype(np.intp)]
    values = X.data if sparse.issparse(X) else np.asarray(X).ravel()
    if values.dtype.kind == "f":
        return values[np.isfinite(values)]
    return values
