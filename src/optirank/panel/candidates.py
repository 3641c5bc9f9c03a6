"""Sums of each gene by class and part of the samples: genes are chosen in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

PLACE_STEPS = 1 << 24  # of a place from 0 to 1: single precision holds them exactly


@dataclass(frozen=True)
class ClassSums:
    """What correlations with the labels need, of some samples; see `class_sums`.

    Samples belong to a class and to a part, such as the fold that holds them out. The
    correlations of the samples of some parts follow from the sums of these parts, so
    that one pass over the samples serves every fold.
    """

    sizes: NDArray  # (parts, classes)
    sums: NDArray  # (parts, classes, d)
    leading: NDArray  # (parts, d): of squares, their first digits
    trailing: NDArray  # and the others

    @property
    def squares(self) -> NDArray:
        """Sums of squares (parts, d)."""
        return self.leading + self.trailing

    def plus(self, other: ClassSums) -> ClassSums:
        """The sums of the samples of both; parts of equal number are the same part."""
        totals = []
        for pair in zip(vars(self).values(), vars(other).values(), strict=True):
            shorter, longer = sorted(pair, key=len)
            total = longer.copy()
            total[: len(shorter)] += shorter
            totals.append(total)
        return ClassSums(*totals)

    def correlations(self, parts: NDArray | None = None) -> NDArray:
        """Correlations with the label of each class; 0 for genes that do not vary.

        With class sizes ``n_k`` and sums ``S_k`` of a gene, n and S over all classes
        and Q the sum of squares, the correlation with the label of class k is
        ``(S_k - n_k S / n) / sqrt(n_k (n - n_k) / n (Q - S^2 / n))``. Two classes make
        one row, that of the second. Classes without samples in these parts have none.
        """
        which = np.arange(len(self.sizes)) if parts is None else parts
        sizes = self.sizes[which].sum(axis=0)
        present = np.flatnonzero(sizes)
        sizes = sizes[present]
        sums = self.sums[which].sum(axis=0)[present]
        n = sizes.sum()
        total = sums.sum(axis=0)
        squares = self.squares[which].sum(axis=0)
        spread = squares - total**2 / n
        varies = spread > 1e-9 * squares  # a variance below is a rounding error
        of_labels = sizes * (n - sizes) / n
        scale = np.sqrt(np.outer(of_labels, np.where(varies, spread, 1.0)))
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(varies, (sums - np.outer(sizes, total / n)) / scale, 0.0)
        return each[1:] if len(present) == 2 else each

    def best_genes(
        self, n: int, parts: NDArray | None = None, among: NDArray | None = None
    ) -> NDArray:
        """Rising positions of the n genes that correlate most with any class.

        Every class ranks the genes by the size of its correlation, and a gene counts by
        its best place over the classes, so that each class has its share. Genes that do
        not vary are out, and so are genes that are not ``among`` some positions, where
        these are given.
        """
        order = np.argsort(self.places())
        size = np.abs(self.correlations(parts))
        if among is not None:
            size[:, np.setdiff1d(np.arange(size.shape[1]), among)] = 0.0
        size = size[:, order]
        ranking = np.argsort(-size, axis=1, kind="stable")
        place = np.empty_like(ranking)
        np.put_along_axis(place, ranking, np.arange(size.shape[1])[None, :], axis=1)
        best = np.where(size.max(axis=0) > 0, place.min(axis=0), size.shape[1])
        chosen = np.argsort(best, kind="stable")[:n]
        return np.sort(order[chosen[best[chosen] < size.shape[1]]])

    def places(self) -> NDArray:
        """The place of each gene in an order that follows from the values alone.

        Genes are sorted by their sums over the classes; only genes that are equal in
        all of them are in the order of their columns.
        """
        sums = self.sums.sum(axis=0)
        order = np.lexsort([self.squares.sum(axis=0), *sums])
        return np.argsort(order)


def class_sums(
    X: Any,
    codes: NDArray,
    n_classes: int,
    parts: NDArray | None = None,
    n_parts: int = 1,
) -> ClassSums:
    """The sums of samples (places of their genes) by class and part.

    Values are multiples of 2^-24, as places are, and their squares are summed in two
    parts of as many digits: so all sums are exact (up to 2^29 samples), and the order
    of the samples changes none of them.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    codes, parts : arrays of shape (n,)
        The class and the part of each sample, as numbers; all in one part by default.
    """
    X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
    parts = np.zeros(len(codes), np.intp) if parts is None else parts
    cells = parts * n_classes + codes
    n_cells = n_parts * n_classes
    values = np.asarray(X.data if sparse.issparse(X) else X, np.float64)
    squares = values * values
    leading = np.floor(squares * PLACE_STEPS) / PLACE_STEPS
    return ClassSums(
        np.bincount(cells, minlength=n_cells).reshape(n_parts, n_classes),
        _sums_of_groups(X, values, cells, n_cells).reshape(n_parts, n_classes, -1),
        _sums_of_groups(X, leading, parts, n_parts),
        _sums_of_groups(X, squares - leading, parts, n_parts),
    )


def _sums_of_groups(X: Any, values: NDArray, groups: NDArray, n_groups: int) -> NDArray:
    """Sums (groups, d) of values in the places of those that X holds."""
    d = X.shape[1]
    if sparse.issparse(X):
        places = np.repeat(groups * np.int64(d), np.diff(X.indptr)) + X.indices
        sums = np.bincount(places, values, n_groups * d)
        # Of no values at all, bincount gives whole numbers
        return sums.astype(np.float64, copy=False).reshape(n_groups, d)
    sums = np.zeros((n_groups, d))
    for group in np.unique(groups):
        sums[group] = values[groups == group].sum(axis=0)
    return sums
