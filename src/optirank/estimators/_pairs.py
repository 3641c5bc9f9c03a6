"""How often one gene is above another, for all pairs of genes at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK_VALUES = 1 << 22  # comparisons held at once while pairs are counted


def pair_counts(values: NDArray, positive: NDArray) -> NDArray:
    """Number of samples with ``x_a > x_b``, for all (a, b): of the positives and of the rest.

    ``values`` has shape (n, g), the result (2, g, g).
    """
    columns = np.ascontiguousarray(np.vstack([values[positive], values[~positive]]).T)
    n_genes, n = columns.shape
    n_positive = int(positive.sum())
    on = np.empty((2, n_genes, n_genes))
    rows = max(1, BLOCK_VALUES // (n * n_genes))
    for start in range(0, n_genes, rows):
        greater = columns[start : start + rows, None, :] > columns[None, :, :]
        on[0, start : start + rows] = np.count_nonzero(greater[..., :n_positive], axis=-1)
        on[1, start : start + rows] = np.count_nonzero(greater[..., n_positive:], axis=-1)
    return on


def dense_columns(X, genes: NDArray) -> NDArray:
    """Some columns as a dense array."""
    chosen = X[:, genes]
    return chosen.toarray() if sparse.issparse(chosen) else np.asarray(chosen)
