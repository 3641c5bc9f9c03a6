"""Matrices of any kind as plain arrays, and products of small ones."""

from __future__ import annotations

from typing import Any

import numpy as np


def as_dense(X: Any) -> np.ndarray:
    """A matrix, sparse or dense, as an array in C order; an array that is one
    stays itself.
    """
    values = X.toarray() if hasattr(X, "toarray") else X
    return np.ascontiguousarray(values)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a @ b`` of finite numbers, without a warning of an invalid value.

    BLAS fills its vector registers beyond the end of a small float32 matrix. What lies
    there can raise the flag, now and then, though no number of the result comes from
    it.
    """
    with np.errstate(invalid="ignore"):
        return a @ b
