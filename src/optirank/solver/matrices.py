"""The maps R(gamma) and V(w) as centred matrices; only this file knows how they are stored.

Algorithms see a matrix through ``n_columns``, ``dot``, ``transpose_dot`` and ``columns``; the
compiled steps take its arrays, ``stored``.

The intercept is free, so subtracting from each column its weighted mean changes nothing but the
conditioning, and that by an order of magnitude. Entries are float32; sums over genes of sparse data
and over everything that decides are float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optirank.ranks.orders import DenseRanks, SparseRanks, take_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.problem import Problem

_NO_VALUES = np.empty((0, 0), np.float32)
_NO_ENTRIES = np.empty(0, np.int64), np.empty(0, np.uint16), np.empty(0, np.float32), np.empty(0)


@dataclass
class CentredDense:
    """``values - 1 mean^T`` with dense float32 values: columns of weighted mean zero.

    Subtracting the mean in the products is cheaper than in the matrix.
    """

    values: NDArray
    mean: NDArray  # float32

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.values.shape[1]

    @property
    def stored(self) -> tuple:
        """The arrays of the matrix, dense and sparse ones, and its means, for compiled loops."""
        return (self.values, *_NO_ENTRIES), self.mean

    def dot(self, x: NDArray) -> NDArray:
        """``M x``, float32."""
        x = x.astype(np.float32)
        return self.values @ x - self.mean @ x

    def transpose_dot(self, a: NDArray) -> NDArray:
        """``M^T a``, float64."""
        return (a @ self.values).astype(np.float64) - self.mean * a.sum(dtype=np.float64)

    def columns(self, which: NDArray) -> NDArray:
        """Some columns (positions), float32; if all, the means are subtracted in place."""
        taken = take_columns(self.values, which)
        if taken is not self.values:
            return taken - self.mean[which]
        self.values -= self.mean
        self.mean = np.zeros_like(self.mean)
        return self.values


@dataclass(frozen=True)
class CentredSparse:
    """A matrix held as one constant per row plus the non-zeros, minus the mean of each column."""

    ranks: SparseRanks
    mean: NDArray  # float32

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.ranks.n_genes

    @property
    def stored(self) -> tuple:
        """See :class:`CentredDense`."""
        ranks = self.ranks
        entries = ranks.indptr, ranks.genes, ranks.excess, ranks.constants
        return (_NO_VALUES, *entries), self.mean

    def dot(self, x: NDArray) -> NDArray:
        """``M x``, float32."""
        return (self.ranks.dot(x) - self.mean @ x).astype(np.float32)

    def transpose_dot(self, a: NDArray) -> NDArray:
        """``M^T a``, float64."""
        return self.ranks.transpose_dot(a) - self.mean * a.sum(dtype=np.float64)

    def columns(self, which: NDArray) -> NDArray:
        """Some columns (positions), dense float32."""
        return (self.ranks.columns(which) - self.mean[which]).astype(np.float32)


CentredMatrix = CentredDense | CentredSparse


def centre(matrix: DenseRanks | SparseRanks, v: NDArray) -> CentredMatrix:
    """Subtract from each column its mean under the weights v."""
    mean = matrix.transpose_dot(v).astype(np.float32)
    if isinstance(matrix, DenseRanks):
        return CentredDense(matrix.values, mean)
    return CentredSparse(matrix, mean)


def centred_values(X, v: NDArray) -> CentredDense:
    """The values themselves, dense and float32, with each column's weighted mean subtracted."""
    values = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    values = np.array(values, dtype=np.float64, order="C")
    values -= v @ values
    return CentredDense(values.astype(np.float32), np.zeros(values.shape[1], np.float32))


class ProblemMatrices:
    """Makes R(gamma)/s and V(w)/s of a problem, centred, each in a buffer of its own.

    A matrix is valid until the next one of its kind is made. It has a column for each gene, or for
    some genes only, where the others' weights are zero and stay so.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._ranks: DenseRanks | SparseRanks | None = None
        self._coranks: DenseRanks | SparseRanks | None = None

    @property
    def restricts(self) -> bool:
        """Whether matrices of some genes are cheaper than whole ones."""
        return self._problem.orders.writes_columns

    def ranks(self, gamma: NDArray, genes: NDArray | None = None) -> CentredMatrix:
        """``R(gamma) / s``, centred: scores are linear in w."""
        problem = self._problem
        found = problem.orders.ranks(
            gamma / problem.n_reference, problem.ties, reuse=self._ranks, genes=genes
        )
        self._ranks = found if genes is None else self._ranks
        return centre(found, problem.v)

    def coranks(self, w: NDArray, genes: NDArray | None = None) -> CentredMatrix:
        """``V(w) / s``, centred: scores are linear in gamma."""
        problem = self._problem
        found = problem.orders.coranks(
            w / problem.n_reference, problem.ties, reuse=self._coranks, genes=genes
        )
        self._coranks = found if genes is None else self._coranks
        return centre(found, problem.v)


def taken(x: NDArray, genes: NDArray | None) -> NDArray:
    """The entries of some genes; all if None."""
    return x if genes is None else x[genes]


def spread(part: NDArray, genes: NDArray | None, n_genes: int) -> NDArray:
    """A vector of all genes: ``part`` at some genes (all if None), zero for the others."""
    if genes is None:
        return part
    full = np.zeros(n_genes)
    full[genes] = part
    return full
