"""Sums of each gene by class and part of the samples: genes are chosen in one pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

PLACE_STEPS = 1 << 24  # of a place from 0 to 1: single precision holds them exactly


@dataclass
class ClassSums:
    """What correlations with the labels need, of all samples that were added.

    Samples belong to a class and to a part, such as the fold that holds them out. The
    correlations of the samples of some parts follow from the sums of these parts, so
    that one pass over the samples serves every fold.

    Values are multiples of 2^-24, as places are, and their squares are summed in two
    parts of as many digits: so all sums are exact (up to 2^29 samples), and the order
    of the samples changes none of them.
    """

    n_genes: int
    n_classes: int
    n_parts: int = 1
    sizes: NDArray = field(init=False)  # (parts, classes)
    sums: NDArray = field(init=False)  # (parts, classes, d)
    leading: NDArray = field(init=False)  # (parts, d): of squares, their first digits
    trailing: NDArray = field(init=False)  # and the others

    def __post_init__(self) -> None:
        self.sizes = np.zeros((self.n_parts, self.n_classes))
        self.sums = np.zeros((self.n_parts, self.n_classes, self.n_genes))
        self.leading = np.zeros((self.n_parts, self.n_genes))
        self.trailing = np.zeros((self.n_parts, self.n_genes))

    @property
    def squares(self) -> NDArray:
        """Sums of squares (parts, d)."""
        return self.leading + self.trailing

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
        """The sums of the samples of both; parts of equal number are the same part."""
        n_parts = max(self.n_parts, other.n_parts)
        both = ClassSums(self.n_genes, self.n_classes, n_parts)
        for one in (self, other):
            both.sizes[: one.n_parts] += one.sizes
            both.sums[: one.n_parts] += one.sums
            both.leading[: one.n_parts] += one.leading
            both.trailing[: one.n_parts] += one.trailing
        return both

    def _add_dense(self, X: NDArray, cells: NDArray) -> None:
        for cell in np.unique(cells):
            part, code = divmod(int(cell), self.n_classes)
            values = X[cells == cell]
            self.sums[part, code] += values.sum(axis=0)
            leading, trailing = _squares(values)
            self.leading[part] += leading.sum(axis=0)
            self.trailing[part] += trailing.sum(axis=0)

    def _add_sparse(self, X: Any, cells: NDArray, parts: NDArray) -> None:
        entries = np.diff(X.indptr)
        values = X.data.astype(np.float64)
        where = np.repeat(cells * np.int64(self.n_genes), entries) + X.indices
        sums = np.bincount(where, values, self.sums.size)
        self.sums += sums.reshape(self.sums.shape)
        where = np.repeat(parts * np.int64(self.n_genes), entries) + X.indices
        leading, trailing = _squares(values)
        shape = self.leading.shape
        self.leading += np.bincount(where, leading, self.leading.size).reshape(shape)
        self.trailing += np.bincount(where, trailing, self.leading.size).reshape(shape)

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


def _squares(values: NDArray) -> tuple[NDArray, NDArray]:
    """Squares in two parts, of which the first is a multiple of 2^-24."""
    squares = values * values
    leading = np.floor(squares * PLACE_STEPS) / PLACE_STEPS
    return leading, squares - leading
