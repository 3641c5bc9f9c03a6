"""Matrices of any kind as plain arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike


def as_dense(X: Any, dtype: DTypeLike | None = None) -> np.ndarray:
    """A matrix, sparse or dense, as an array in C order; an array that is one
    stays itself.
    """
    values = X.toarray() if hasattr(X, "toarray") else X
    return np.ascontiguousarray(values, dtype=dtype)
