"""Matrices of ranks or co-ranks, dense or as one constant per row plus the non-zeros."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optirank._compiled import rank_loops

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class DenseRanks:
    """An n x d matrix, held as it is."""

    values: NDArray

    @property
    def shape(self) -> tuple[int, int]:
        """Samples, genes."""
        return self.values.shape

    def toarray(self) -> NDArray:
        """The matrix as a dense array."""
        return self.values

    def columns(self, genes: NDArray) -> NDArray:
        """The columns of some genes (positions), dense: the matrix itself if all."""
        if all_in_order(genes, self.values.shape[1]):
            return self.values
        return np.take(self.values, genes, axis=1)

    def dot(self, a: NDArray) -> NDArray:
        """``M a``, in the matrix's own precision."""
        return self.values @ a.astype(self.values.dtype, copy=False)

    def transpose_dot(self, a: NDArray) -> NDArray:
        """``M^T a``, in the matrix's own precision."""
        return a.astype(self.values.dtype, copy=False) @ self.values


@dataclass(frozen=True)
class SparseRanks:
    """An n x d matrix ``constants 1^T + E`` with E as sparse as the data."""

    constants: NDArray
    excess: NDArray
    genes: NDArray
    indptr: NDArray
    n_genes: int

    @property
    def shape(self) -> tuple[int, int]:
        """Samples, genes."""
        return len(self.constants), self.n_genes

    def toarray(self) -> NDArray:
        """The matrix as a dense array (n x d: for small ones)."""
        out = np.repeat(self.constants[:, None], self.n_genes, axis=1)
        samples = np.repeat(np.arange(len(self.constants)), np.diff(self.indptr))
        out[samples, self.genes] += self.excess
        return out.astype(self.excess.dtype, copy=False)

    def columns(self, genes: NDArray) -> NDArray:
        """The columns of some genes (positions), dense."""
        out = np.repeat(self.constants[:, None], len(genes), axis=1)
        samples, places, entries = find_entries(self.indptr, self.genes, self.n_genes, genes)
        out[samples, places] += self.excess[entries]
        return out.astype(self.excess.dtype, copy=False)

    def dot(self, a: NDArray) -> NDArray:
        """``M a`` for a vector or a matrix, summed in float64."""
        if a.ndim == 2:
            return np.column_stack([self.dot(column) for column in a.T])
        a = np.ascontiguousarray(a, dtype=np.float64)
        out = np.empty(len(self.constants))
        rank_loops.sparse_dot(
            self.indptr, self.genes, self.excess, self.constants, a, float(a.sum()), out
        )
        return out

    def transpose_dot(self, a: NDArray) -> NDArray:
        """``M^T a``, summed in float64."""
        a = np.ascontiguousarray(a, dtype=np.float64)
        out = np.full(self.n_genes, self.constants @ a)
        rank_loops.sparse_transpose_dot(self.indptr, self.genes, self.excess, a, out)
        return out


def all_in_order(genes: NDArray, n_genes: int) -> bool:
    """Whether positions name every gene in its order, so that nothing needs to be copied."""
    return len(genes) == n_genes and bool((genes == np.arange(n_genes)).all())


def find_entries(
    indptr: NDArray, genes: NDArray, n_genes: int, wanted: NDArray
) -> tuple[NDArray, NDArray, NDArray]:
    """Where the non-zeros of some genes are: their samples, places among the wanted, positions."""
    place = np.full(n_genes, -1)
    place[wanted] = np.arange(len(wanted))
    places = place[genes]
    entries = np.flatnonzero(places >= 0)
    samples = np.searchsorted(indptr, entries, side="right") - 1
    return samples, places[entries], entries
