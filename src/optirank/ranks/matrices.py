"""Matrices of ranks or co-ranks, dense or as a constant a row plus the non-zeros."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

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

    def excess_matrix(self) -> sparse.csr_array:
        """E as a scipy matrix."""
        return sparse.csr_array(
            (self.excess, self.genes.astype(np.int32), self.indptr), shape=self.shape
        )

    def toarray(self) -> NDArray:
        """The matrix as a dense array (n x d: for small ones)."""
        out = np.repeat(self.constants[:, None], self.n_genes, axis=1).astype(self.excess.dtype)
        out += self.excess_matrix().toarray()
        return out

    def dot(self, a: NDArray) -> NDArray:
        """``M a``."""
        return self.excess_matrix() @ a + self.constants * a.sum(dtype=np.float64)

    def transpose_dot(self, a: NDArray) -> NDArray:
        """``M^T a``."""
        return self.excess_matrix().T @ a + self.constants @ a
