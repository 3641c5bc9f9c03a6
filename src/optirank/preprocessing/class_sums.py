"""Sums of each gene by class and part of the samples, from blocks: genes are chosen in one pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from optirank.preprocessing._statistics import canonical

_MIN_FRACTION = 0.05  # a gene that more samples express passes
_MIN_MEAN = 2.0  # else its mean, where it is expressed, must be above
_MIN_SAMPLES = 3  # that express it
_FLAT = 1e-12  # of the sum of squares: a variance below is a rounding error


@dataclass
class ClassSums:
    """What correlations with the labels need, of all samples that were added.

    Samples belong to a class and to a part, such as the fold that holds them out. The correlations
    of the samples of some parts follow from the sums of these parts, so that one pass over the
    samples serves every fold.
    """

    n_genes: int
    n_classes: int
    n_parts: int
    sizes: NDArray = field(init=False)  # (parts, classes)
    sums: NDArray = field(init=False)  # (parts, classes, d), of the values less an offset
    squares: NDArray = field(init=False)  # (parts, d), of the same
    n_expressing: NDArray = field(init=False)  # (parts, d): samples with a value above 0
    expressed: NDArray = field(init=False)  # (parts, d): sums of the values above 0
    has_negative: bool = field(default=False, init=False)
    _offset: NDArray | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        parts, classes, d = self.n_parts, self.n_classes, self.n_genes
        self.sizes = np.zeros((parts, classes))
        self.sums = np.zeros((parts, classes, d))
        self.squares, self.expressed = np.zeros((parts, d)), np.zeros((parts, d))
        self.n_expressing = np.zeros((parts, d), np.int64)

    def add(self, X: Any, codes: NDArray, parts: NDArray) -> None:
        """Add samples with the positions of their classes and parts."""
        cells = parts * self.n_classes + codes
        n_cells = self.n_parts * self.n_classes
        self.sizes += np.bincount(cells, minlength=n_cells).reshape(self.sizes.shape)
        if sp.issparse(X):
            self._add_sparse(canonical(X), cells, parts)
        else:
            self._add_dense(np.asarray(X, dtype=np.float64), cells, parts)

    def correlations(self, parts: NDArray | None = None) -> NDArray:
        """Correlations with the label of each class; NaN for genes that vary or show too little.

        With class sizes ``n_k`` and sums ``S_k`` of a gene, n and S over all classes and Q the sum
        of squares, the correlation with the label of class k is
        ``(S_k - n_k S / n) / sqrt(n_k (n - n_k) / n (Q - S^2 / n))``. Two classes make one row,
        that of the second. Classes without samples in these parts have none. A gene passes if more
        than 5 % of the samples express it, or three do with a mean above 2.
        """
        which = np.arange(self.n_parts) if parts is None else parts
        sizes, sums = self.sizes[which].sum(axis=0), self.sums[which].sum(axis=0)
        there = np.flatnonzero(sizes)
        sizes, sums = sizes[there], sums[there]
        n, total = sizes.sum(), sums.sum(axis=0)
        squares = self.squares[which].sum(axis=0)
        spread = squares - total**2 / n
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.sqrt(np.outer(sizes * (n - sizes) / n, spread))
            found = (sums - np.outer(sizes, total / n)) / scale
        level = squares if self._offset is None else squares + n * self._offset**2
        found[:, ~(spread > _FLAT * level) | ~self._passes(which, n)] = np.nan
        return found[1:] if len(there) == 2 else found

    def _passes(self, which: NDArray, n: float) -> NDArray:
        if self.has_negative:  # logarithms or ratios: all genes are measured
            return np.ones(self.n_genes, dtype=bool)
        count = self.n_expressing[which].sum(axis=0)
        mean = self.expressed[which].sum(axis=0) / np.maximum(count, 1)
        return (count > _MIN_FRACTION * n) | ((count >= _MIN_SAMPLES) & (mean > _MIN_MEAN))

    def _add_sparse(self, X: sp.spmatrix, cells: NDArray, parts: NDArray) -> None:
        d, entries = self.n_genes, np.diff(X.indptr)
        values = X.data.astype(np.float64)
        where = np.repeat(cells * np.int64(d), entries) + X.indices
        self.sums += np.bincount(where, values, self.sums.size).reshape(self.sums.shape)
        where = np.repeat(parts * np.int64(d), entries) + X.indices
        size, shape = self.squares.size, self.squares.shape
        self.squares += np.bincount(where, values * values, size).reshape(shape)
        if values.size and values.min() <= 0:
            values, where = values[values > 0], where[values > 0]
        self.expressed += np.bincount(where, values, size).reshape(shape)
        self.n_expressing += np.bincount(where, minlength=size).reshape(shape)

    def _add_dense(self, X: NDArray, cells: NDArray, parts: NDArray) -> None:
        self.has_negative |= bool((X < 0).any())
        positive = np.maximum(X, 0)
        if self._offset is None:  # keeps the digits of genes with large means
            self._offset = X.mean(axis=0)
        X = X - self._offset
        for cell in np.unique(cells):
            part, code = divmod(int(cell), self.n_classes)
            self.sums[part, code] += X[cells == cell].sum(axis=0)
        for part in np.unique(parts):
            here = parts == part
            self.squares[part] += np.einsum("ij,ij->j", X[here], X[here])
            self.expressed[part] += positive[here].sum(axis=0)
            self.n_expressing[part] += np.count_nonzero(positive[here], axis=0)
