"""Statistics of genes over samples, dense or sparse, without densifying or squaring raw sums."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp


class CellMoments(NamedTuple):
    """What an analysis of variance needs of the samples of each cell (a group of samples)."""

    sizes: np.ndarray
    """Number of samples in each cell, shape (n_cells,)."""
    means: np.ndarray
    """Mean of each gene in each cell, shape (n_cells, d)."""
    within: np.ndarray
    """Sum over the cells of the squared deviations from the cell's mean, shape (d,)."""


def canonical(X: np.ndarray | sp.spmatrix) -> np.ndarray | sp.spmatrix:
    """`X`, in CSR form with one entry per place if it is sparse; the caller's matrix is kept."""
    if not sp.issparse(X):
        return X
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def cell_moments(X: np.ndarray | sp.spmatrix, cell: np.ndarray, n_cells: int) -> CellMoments:
    """Sizes, means and the within-cell sum of squares of every gene.

    Means are corrected by the mean of their residuals, and squares are taken of residuals only, so
    that a gene with a large mean and a small variance keeps its digits. Every cell must have at
    least one sample.
    """
    sizes = np.bincount(cell, minlength=n_cells).astype(np.float64)
    if not sp.issparse(X):
        n = X.shape[0]
        indicator = sp.csr_array((np.ones(n), (cell, np.arange(n))), shape=(n_cells, n))
        residual = X.astype(np.float64)
        means = np.zeros((n_cells, X.shape[1]))
        for _ in range(2):
            mean = (indicator @ residual) / sizes[:, None]
            means += mean
            residual -= mean[cell]
        return CellMoments(sizes, means, np.einsum("ij,ij->j", residual, residual))
    d, X = X.shape[1], canonical(X)
    flat = np.repeat(cell, np.diff(X.indptr)) * np.int64(d) + X.indices
    x = X.data.astype(np.float64)

    def total(values: np.ndarray | None) -> np.ndarray:
        return np.bincount(flat, weights=values, minlength=n_cells * d)

    size = np.repeat(sizes, d)
    n_zeros = size - total(None)
    means = total(x) / size
    means += (total(x - means[flat]) - n_zeros * means) / size
    residual = x - means[flat]
    within = total(residual * residual) + n_zeros * means * means
    return CellMoments(sizes, means.reshape(n_cells, d), within.reshape(n_cells, d).sum(axis=0))


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
    positive = sp.csr_array(np.maximum(X, 0)) if not sp.issparse(X) else canonical(X).maximum(0)
    count = np.bincount(positive.indices[positive.data > 0], minlength=X.shape[1])
    total = np.ravel(positive.sum(axis=0, dtype=np.float64))
    return count, total / np.maximum(count, 1)
