"""Sums of each gene by class and part of the samples, from blocks: genes are chosen in one pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


@dataclass
class ClassSums:
    """What correlations with the labels need, of all samples that were added.

    Samples belong to a class and to a part, such as the fold that holds them out. The correlations
    of the samples of some parts follow from the sums of these parts, so that one pass over the
    samples serves every fold.
    """

    n_genes: int
    n_classes: int
    n_parts: int = 1
    sizes: NDArray = field(init=False)  # (parts, classes)
    sums: NDArray = field(init=False)  # (parts, classes, d)
    squares: NDArray = field(init=False)  # (parts, d)

    def __post_init__(self) -> None:
        shape = self.n_parts, self.n_classes, self.n_genes
        self.sizes, self.sums = np.zeros(shape[:2]), np.zeros(shape)
        self.squares = np.zeros((self.n_parts, self.n_genes))

    def add(self, X: Any, codes: NDArray, parts: NDArray | None = None) -> None:
        """Add samples (log values) with the numbers of their classes and parts."""
        parts = np.zeros(len(codes), np.intp) if parts is None else parts
        cells = parts * self.n_classes + codes
        self.sizes += np.bincount(cells, minlength=self.sizes.size).reshape(
            self.sizes.shape
        )
        if not sp.issparse(X):
            X = np.asarray(X, dtype=np.float64)
            for cell in np.unique(cells):
                part, code = divmod(int(cell), self.n_classes)
                here = X[cells == cell]
                self.sums[part, code] += here.sum(axis=0)
                self.squares[part] += np.einsum("ij,ij->j", here, here)
            return
        X = X.tocsr()
        entries, values = np.diff(X.indptr), X.data.astype(np.float64)
        where = np.repeat(cells * np.int64(self.n_genes), entries) + X.indices
        self.sums += np.bincount(where, values, self.sums.size).reshape(self.sums.shape)
        where = np.repeat(parts * np.int64(self.n_genes), entries) + X.indices
        self.squares += np.bincount(where, values * values, self.squares.size).reshape(
            self.squares.shape
        )

    def correlations(self, parts: NDArray | None = None) -> NDArray:
        """Correlations with the label of each class; 0 for genes that do not vary.

        With class sizes ``n_k`` and sums ``S_k`` of a gene, n and S over all classes and Q the sum
        of squares, the correlation with the label of class k is
        ``(S_k - n_k S / n) / sqrt(n_k (n - n_k) / n (Q - S^2 / n))``. Two classes make one row,
        that of the second. Classes without samples in these parts have none.
        """
        which = np.arange(self.n_parts) if parts is None else parts
        sizes, sums = self.sizes[which].sum(axis=0), self.sums[which].sum(axis=0)
        there = np.flatnonzero(sizes)
        sizes, sums = sizes[there], sums[there]
        n, total = sizes.sum(), sums.sum(axis=0)
        squares = self.squares[which].sum(axis=0)
        spread = squares - total**2 / n
        varies = spread > 1e-9 * squares  # a variance below is a rounding error
        scale = np.sqrt(
            np.outer(sizes * (n - sizes) / n, np.where(varies, spread, 1.0))
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(varies, (sums - np.outer(sizes, total / n)) / scale, 0.0)
        return found[1:] if len(there) == 2 else found

    def best_genes(self, n: int, parts: NDArray | None = None) -> NDArray:
        """Positions, in order, of the n genes that correlate most with any class.

        Every class ranks the genes by the size of its correlation, and a gene counts by its best
        place over the classes, so that each class has its share. Genes that do not vary are out.
        """
        size = np.abs(self.correlations(parts))
        order = np.argsort(-size, axis=1, kind="stable")
        place = np.empty_like(order)
        np.put_along_axis(place, order, np.arange(size.shape[1])[None, :], axis=1)
        best = np.where(size.max(axis=0) > 0, place.min(axis=0), size.shape[1])
        chosen = np.argsort(best, kind="stable")[:n]
        return np.sort(chosen[best[chosen] < size.shape[1]])
