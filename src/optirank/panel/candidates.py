"""Sums of each gene by class and part of the samples: genes are chosen in one pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


@dataclass
class ClassSums:
    """What correlations with the labels need, of all samples that were added.

    Samples belong to a class and to a part, such as the fold that holds them out. The
    correlations of the samples of some parts follow from the sums of these parts, so
    that one pass over the samples serves every fold.
    """

    n_genes: int
    n_classes: int
    n_parts: int = 1
    sizes: NDArray = field(init=False)  # (parts, classes)
    sums: NDArray = field(init=False)  # (parts, classes, d)
    squares: NDArray = field(init=False)  # (parts, d)

    def __post_init__(self) -> None:
        self.sizes = np.zeros((self.n_parts, self.n_classes))
        self.sums = np.zeros((self.n_parts, self.n_classes, self.n_genes))
        self.squares = np.zeros((self.n_parts, self.n_genes))

    def add(self, X: Any, codes: NDArray, parts: NDArray | None = None) -> None:
        """Add samples (places of their genes) with the numbers of their classes
        and parts.
        """
        parts = np.zeros(len(codes), np.intp) if parts is None else parts
        cells = parts * self.n_classes + codes
        counts = np.bincount(cells, minlength=self.sizes.size)
        self.sizes += counts.reshape(self.sizes.shape)
        if sp.issparse(X):
            self._add_sparse(X.tocsr(), cells, parts)
        else:
            self._add_dense(np.asarray(X, dtype=np.float64), cells)

    def plus(self, other: ClassSums) -> ClassSums:
        """The sums of the samples of both."""
        both = ClassSums(self.n_genes, self.n_classes, self.n_parts)
        both.sizes = self.sizes + other.sizes
        both.sums = self.sums + other.sums
        both.squares = self.squares + other.squares
        return both

    def _add_dense(self, X: NDArray, cells: NDArray) -> None:
        for cell in np.unique(cells):
            part, code = divmod(int(cell), self.n_classes)
            values = X[cells == cell]
            self.sums[part, code] += values.sum(axis=0)
            # Not einsum, which rounds the last few columns in another way
            self.squares[part] += (values * values).sum(axis=0)

    def _add_sparse(self, X: Any, cells: NDArray, parts: NDArray) -> None:
        entries = np.diff(X.indptr)
        values = X.data.astype(np.float64)
        where = np.repeat(cells * np.int64(self.n_genes), entries) + X.indices
        sums = np.bincount(where, values, self.sums.size)
        self.sums += sums.reshape(self.sums.shape)
        where = np.repeat(parts * np.int64(self.n_genes), entries) + X.indices
        squares = np.bincount(where, values * values, self.squares.size)
        self.squares += squares.reshape(self.squares.shape)

    def correlations(self, parts: NDArray | None = None) -> NDArray:
        """Correlations with the label of each class; 0 for genes that do not vary.

        With class sizes ``n_k`` and sums ``S_k`` of a gene, n and S over all classes
        and Q the sum of squares, the correlation with the label of class k is
        ``(S_k - n_k S / n) / sqrt(n_k (n - n_k) / n (Q - S^2 / n))``. Two classes make
        one row, that of the second. Classes without samples in these parts have none.
        """
        which = np.arange(self.n_parts) if parts is None else parts
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
            size[:, np.setdiff1d(np.arange(self.n_genes), among)] = 0.0
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
        places = np.empty(self.n_genes, np.intp)
        places[order] = np.arange(self.n_genes)
        return places
