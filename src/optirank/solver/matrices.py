"""Centred matrices on which the solver takes its steps; only this file knows how they are stored.

Algorithms see a matrix through ``n_columns``, ``dot``, ``transpose_dot`` and ``columns`` alone.
Another kind of storage is one class with these and one entry of ``_CENTRED``.

The intercept is free, so subtracting from each column its weighted mean changes nothing but the
conditioning, and that by an order of magnitude. Entries are float32; sums over genes of sparse data
and over everything that decides are float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optirank.ranks.matrices import DenseRanks, SparseRanks, all_in_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.problem import Problem


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
    def stored(self) -> tuple[NDArray, NDArray]:
        """Values and means, for compiled loops."""
        return self.values, self.mean

    def dot(self, x: NDArray) -> NDArray:
        """``M x``, float32."""
        x = x.astype(np.float32)
        return self.values @ x - self.mean @ x

    def transpose_dot(self, a: NDArray) -> NDArray:
        """``M^T a``, float64."""
        return (a @ self.values).astype(np.float64) - self.mean * a.sum(dtype=np.float64)

    def columns(self, which: NDArray) -> NDArray:
        """Some columns (positions), float32; if all, the means are subtracted in place."""
        if not all_in_order(which, self.n_columns):
            return np.take(self.values, which, axis=1) - self.mean[which]
        self.values -= self.mean
        self.mean = np.zeros_like(self.mean)
        return self.values


@dataclass(frozen=True)
class CentredSparse:
    """A matrix held as one constant per row plus the non-zeros, minus the mean of each column."""

    ranks: SparseRanks
    mean: NDArray

    stored = None  # no compiled loop of steps

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.ranks.n_genes

    def dot(self, x: NDArray) -> NDArray:
        """``M x``, float32."""
        return (self.ranks.dot(x) - self.mean @ x).astype(np.float32)

    def transpose_dot(self, a: NDArray) -> NDArray:
        """``M^T a``, float64."""
        a = a.astype(np.float64)
        return self.ranks.transpose_dot(a) - self.mean * a.sum()

    def columns(self, which: NDArray) -> NDArray:
        """Some columns (positions), dense float32."""
        return (self.ranks.columns(which) - self.mean[which]).astype(np.float32)


CentredMatrix = CentredDense | CentredSparse


def _centre_dense(matrix: DenseRanks, v: NDArray) -> CentredDense:
    return CentredDense(matrix.values, v.astype(np.float32) @ matrix.values)


def _centre_sparse(matrix: SparseRanks, v: NDArray) -> CentredSparse:
    return CentredSparse(matrix, matrix.transpose_dot(v))


_CENTRED = {DenseRanks: _centre_dense, SparseRanks: _centre_sparse}


def centre(matrix: DenseRanks | SparseRanks, v: NDArray) -> CentredMatrix:
    """Subtract from each column its mean under the weights v."""
    return _CENTRED[type(matrix)](matrix, v)


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
        scaled = gamma / problem.n_reference
        if genes is not None:
            out = _part(self._ranks, genes)
            problem.orders.write_ranks(scaled, problem.ties, genes, out)
            return centre(DenseRanks(out), problem.v)
        self._ranks = problem.orders.ranks(scaled, problem.ties, reuse=self._ranks)
        return centre(self._ranks, problem.v)

    def coranks(self, w: NDArray, genes: NDArray | None = None) -> CentredMatrix:
        """``V(w) / s``, centred: scores are linear in gamma."""
        problem = self._problem
        scaled = w / problem.n_reference
        if genes is not None:
            out = _part(self._coranks, genes)
            problem.orders.write_coranks(scaled, problem.ties, genes, out)
            return centre(DenseRanks(out), problem.v)
        self._coranks = problem.orders.coranks(scaled, problem.ties, reuse=self._coranks)
        return centre(self._coranks, problem.v)


def _part(whole: DenseRanks, genes: NDArray) -> NDArray:
    """The beginning of a matrix's memory, as a matrix with fewer columns."""
    n = len(whole.values)
    return whole.values.reshape(-1)[: n * len(genes)].reshape(n, len(genes))


def centred_values(X, v: NDArray) -> CentredDense:
    """The values themselves, dense and float32, with each column's weighted mean subtracted."""
    values = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    values = np.array(values, dtype=np.float64, order="C")
    values -= v @ values
    return CentredDense(values.astype(np.float32), np.zeros(values.shape[1], np.float32))
