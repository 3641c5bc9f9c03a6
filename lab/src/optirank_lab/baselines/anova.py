"""Genes that are stable between datasets: a two-way analysis of variance of all genes
at once.
"""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components
from sklearn.utils import check_array, column_or_1d

Matrix = Any  # an array or a sparse matrix of SciPy's, which share no type


class CellMoments(NamedTuple):
    """What an analysis of variance needs of the samples of each cell (a group of
    samples).
    """

    sizes: np.ndarray  # number of samples in each cell, shape (n_cells,)
    means: np.ndarray  # of each gene in each cell, shape (n_cells, d)
    within: np.ndarray  # sum over the cells of squared deviations, shape (d,)


def dataset_f_values(X: Matrix, label: ArrayLike, dataset: ArrayLike) -> np.ndarray:
    r"""F value of the factor dataset, for every gene.

    The model of each gene is ``label + dataset + label:dataset``. With :math:`RSS` the
    residual sum of squares, :math:`D` datasets and :math:`C` occupied cells (pairs of a
    label and a dataset with at least one sample),

    .. math::
        F = \frac{(RSS_{label} - RSS_{label + dataset}) / (D - 1)}{RSS_{full} / (n -
        C)},

    the type-II sum of squares of dataset over the residual mean square of the full
    model. The design may be unbalanced, and there may be more than two labels.

    A gene that does not vary at all, or not within the cells and not between the
    datasets either, has no F: NaN. One that varies between the datasets but not within
    the cells has F = inf. One dataset only, cells of one sample each, and label and
    dataset that are confounded (no two datasets share a label) raise a ValueError.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        Expression values; sparse input stays sparse.
    label, dataset : array-like of shape (n,)
        The two factors. Only the values that occur count as levels.

    Notes
    -----
    Missing cells follow the ranks of the models compared: ``D - 1`` becomes ``D - c``
    where the datasets fall into `c` groups that have no label in common. (With an empty
    cell statsmodels' ``anova_lm(typ=2)`` depends on how the levels are coded; without
    one it equals this.)
    """
    X, label, dataset = _check_input(X, label, dataset)
    labels, i = np.unique(label, return_inverse=True)
    datasets, j = np.unique(dataset, return_inverse=True)
    occupied, cell = np.unique(i * datasets.size + j, return_inverse=True)
    cell_label, cell_dataset = np.divmod(occupied, datasets.size)

    shape = (labels.size, datasets.size)
    design = sp.csr_array(
        (np.ones(occupied.size), (cell_label, cell_dataset)), shape=shape
    )
    # Groups of datasets that are connected by common labels
    n_groups = connected_components(sp.block_array([[None, design], [design.T, None]]))[
        0
    ]
    df_dataset, df_residual = datasets.size - n_groups, X.shape[0] - occupied.size
    _check_degrees_of_freedom(datasets, df_dataset, df_residual)

    moments = cell_moments(X, cell, occupied.size)
    between = _dataset_sum_of_squares(moments, cell_label, cell_dataset, shape)
    # Rounding leaves a residue of this order in a sum that is 0 in exact arithmetic.
    scale = np.abs(moments.means).max(axis=0) * np.finfo(np.float64).eps
    zero = 16 * X.shape[0] * scale**2
    within = np.where(moments.within <= zero, 0.0, moments.within)
    between = np.where((within == 0) & (between <= zero), 0.0, between)
    with np.errstate(divide="ignore", invalid="ignore"):
        f_values = (between / df_dataset) / (within / df_residual)
    f_values[constant_genes(X)] = np.nan
    return f_values


def select_stable_genes(
    X: Matrix, label: ArrayLike, dataset: ArrayLike, n_genes: int
) -> np.ndarray:
    """Positions of the `n_genes` genes that differ least between datasets, the most
    stable first.

    They are the genes of smallest F (:func:`dataset_f_values`). Genes without an F
    (constant ones) come last, lest dead genes be chosen; ties keep the order of the
    columns.
    """
    n_columns = X.shape[1] if hasattr(X, "shape") else np.shape(X)[1]
    if not isinstance(n_genes, numbers.Integral) or not 1 <= n_genes <= n_columns:
        raise ValueError(
            f"n_genes={n_genes!r} genes cannot be chosen out of {n_columns}: "
            f"use a whole number from 1 to {n_columns}"
        )
    return np.argsort(dataset_f_values(X, label, dataset), kind="stable")[:n_genes]


def _check_input(
    X: Matrix, label: ArrayLike, dataset: ArrayLike
) -> tuple[Matrix, np.ndarray, np.ndarray]:
    formats: Any = ("csr", "csc")  # scikit-learn's stubs know a bool alone
    X = check_array(X, accept_sparse=formats, input_name="X")
    factors = []
    for name, factor in (("label", label), ("dataset", dataset)):
        factor = column_or_1d(factor)
        if factor.shape[0] != X.shape[0]:
            raise ValueError(
                f"{name} has {factor.shape[0]} values for {X.shape[0]} samples: "
                "give one value per sample"
            )
        n_missing = pd.isna(factor).sum()
        if n_missing:
            raise ValueError(
                f"{name} is missing for {n_missing} samples: "
                "drop these samples or give them a level of their own"
            )
        factors.append(factor)
    return X, *factors


def _check_degrees_of_freedom(
    datasets: np.ndarray, df_dataset: int, df_residual: int
) -> None:
    if datasets.size == 1:
        raise ValueError(
            f"all samples come from one dataset ({datasets[0]!s}): "
            "the F of dataset needs samples of at least two"
        )
    if df_dataset == 0:
        raise ValueError(
            f"label and dataset are confounded: no two of the {datasets.size} datasets "
            "share a label, so their difference cannot be told from that of the "
            "labels; add samples of a common label"
        )
    if df_residual == 0:
        raise ValueError(
            "every pair of label and dataset has one sample only, which leaves no "
            "residual: at least one pair needs two samples"
        )


def _dataset_sum_of_squares(
    moments: CellMoments,
    cell_label: np.ndarray,
    cell_dataset: np.ndarray,
    shape: tuple[int, int],
) -> np.ndarray:
    """Type-II sum of squares of dataset: what it explains beyond label, by least
    squares.

    With `N` the table of cell sizes, the datasets' totals after removing the label
    means are ``r = sum_label N (m - m_label)`` and the sum is ``r' Q^+ r``, where ``Q =
    diag(N' 1) - N' diag(N 1)^-1 N``. The differences are taken between means, never
    between sums of squares.
    """
    n_labels, n_datasets = shape
    cells = np.arange(cell_label.size)
    N = np.zeros(shape)
    N[cell_label, cell_dataset] = moments.sizes
    label_size = N.sum(axis=1)
    to_label = sp.csr_array(
        (moments.sizes, (cell_label, cells)), shape=(n_labels, cells.size)
    )
    to_dataset = sp.csr_array(
        (moments.sizes, (cell_dataset, cells)), shape=(n_datasets, cells.size)
    )
    label_means = (to_label @ moments.means) / label_size[:, None]
    r = to_dataset @ (moments.means - label_means[cell_label])
    Q = np.diag(N.sum(axis=0)) - N.T @ (N / label_size[:, None])
    return np.maximum(
        np.einsum("kj,kj->j", r, np.linalg.pinv(Q, hermitian=True) @ r), 0.0
    )


def canonical(X: Matrix) -> Matrix:
    """`X` in CSR form with one entry per place; the caller's matrix is kept."""
    X = X.tocsr() if sp.issparse(X) else sp.csr_array(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def cell_moments(X: Matrix, cell: np.ndarray, n_cells: int) -> CellMoments:
    """Sizes, means and the within-cell sum of squares of every gene.

    Means are corrected by the mean of their residuals, and squares are taken of
    residuals only, so that a gene with a large mean and a small variance keeps its
    digits. Every cell must have at least one sample.
    """
    sizes = np.bincount(cell, minlength=n_cells).astype(np.float64)
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
    return CellMoments(
        sizes, means.reshape(n_cells, d), within.reshape(n_cells, d).sum(axis=0)
    )


def constant_genes(X: Matrix) -> np.ndarray:
    """Mask of the genes with one value in all samples, exactly."""
    low, high = X.min(axis=0), X.max(axis=0)
    return np.ravel(
        low.toarray() == high.toarray() if sp.issparse(low) else low == high
    )
