"""Statistics of genes over samples, dense or sparse, without densifying or squaring raw sums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

BLOCK_VALUES = 1 << 20  # dense input is worked on in blocks of about this many values


class CellMoments(NamedTuple):
    """What an analysis of variance needs of the samples of each cell (a group of samples)."""

    sizes: np.ndarray
    """Number of samples in each cell, shape (n_cells,)."""
    means: np.ndarray
    """Mean of each gene in each cell, shape (n_cells, d)."""
    within: np.ndarray
    """Sum over the cells of the squared deviations from the cell's mean, shape (d,)."""


def canonical(X: np.ndarray | sp.spmatrix) -> np.ndarray | sp.spmatrix:
    """`X`, in CSR form with one entry a place if it is sparse; the caller's matrix is kept."""
    if not sp.issparse(X):
        return X
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def column_blocks(X: np.ndarray) -> Iterator[slice]:
    """Slices of columns that cut a dense matrix into blocks of a few megabytes."""
    n, d = X.shape
    width = max(1, BLOCK_VALUES // max(n, 1))
    for start in range(0, d, width):
        yield slice(start, min(start + width, d))


def cell_moments(X: np.ndarray | sp.spmatrix, cell: np.ndarray, n_cells: int) -> CellMoments:
    """Sizes, means and the within-cell sum of squares of every gene.

    Means are corrected by the mean of their residuals, and squares are taken of residuals only, so
    that a gene with a large mean and a small variance keeps its digits. Every cell must have at
    least one sample.
    """
    sizes = np.bincount(cell, minlength=n_cells).astype(np.float64)
    if sp.issparse(X):
        means, within = _sparse_moments(X, cell, sizes)
    else:
        means, within = _dense_moments(X, cell, sizes)
    return CellMoments(sizes, means, within)


def _sparse_moments(
    X: sp.spmatrix, cell: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    n_cells, d = sizes.size, X.shape[1]
    X = canonical(X)
    row_cell = np.repeat(cell, np.diff(X.indptr))
    flat = row_cell * np.int64(d) + X.indices
    x = X.data.astype(np.float64)

    def total(values: np.ndarray | None) -> np.ndarray:
        return np.bincount(flat, weights=values, minlength=n_cells * d)

    size = np.repeat(sizes, d)
    n_zeros = size - total(None)
    means = total(x) / size
    means += (total(x - means[flat]) - n_zeros * means) / size
    residual = x - means[flat]
    within = total(residual * residual) + n_zeros * means * means
    return means.reshape(n_cells, d), within.reshape(n_cells, d).sum(axis=0)


def _dense_moments(
    X: np.ndarray, cell: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    n, d = X.shape
    indicator = sp.csr_array((np.ones(n), (cell, np.arange(n))), shape=(sizes.size, n))
    means, within = np.empty((sizes.size, d)), np.empty(d)
    for block in column_blocks(X):
        residual = X[:, block].astype(np.float64)
        for step in range(2):
            mean = (indicator @ residual) / sizes[:, None]
            means[:, block] = mean if step == 0 else means[:, block] + mean
            residual -= mean[cell]
        within[block] = np.einsum("ij,ij->j", residual, residual)
    return means, within


def constant_genes(X: np.ndarray | sp.spmatrix) -> np.ndarray:
    """Mask of the genes with one value in all samples, exactly."""
    if sp.issparse(X):
        low, high = (np.ravel(extreme(axis=0).toarray()) for extreme in (X.min, X.max))
        return low == high
    return X.min(axis=0) == X.max(axis=0)


def expressing_samples(X: np.ndarray | sp.spmatrix) -> tuple[np.ndarray, np.ndarray]:
    """For each gene, how many samples have a value above 0, and the mean of these values.

    The mean of a gene that no sample expresses is 0.
    """
    d = X.shape[1]
    if sp.issparse(X):
        X = canonical(X)
        positive = X.data > 0
        genes = X.indices[positive]
        count = np.bincount(genes, minlength=d)
        total = np.bincount(genes, weights=X.data[positive].astype(np.float64), minlength=d)
    else:
        count, total = np.empty(d, dtype=np.int64), np.empty(d)
        for block in column_blocks(X):
            values = np.maximum(X[:, block], 0)
            count[block] = np.count_nonzero(values, axis=0)
            total[block] = values.sum(axis=0, dtype=np.float64)
    return count, total / np.maximum(count, 1)


def is_counts(X: np.ndarray | sp.spmatrix) -> bool:
    """Whether all values are whole numbers of at least 0."""
    values = X.data if sp.issparse(X) else X
    if values.size == 0 or np.issubdtype(values.dtype, np.unsignedinteger):
        return True
    if values.min() < 0:
        return False
    return np.issubdtype(values.dtype, np.integer) or not np.any(values != np.floor(values))
