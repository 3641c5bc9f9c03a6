"""The linear maps of the joint model: from W to scores at fixed gamma, from gamma at fixed W.

Both are centred: the intercepts are free, so subtracting weighted means changes nothing but the
conditioning. Entries are float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from optirank._compiled import joint_loops
from optirank.ranks.definition import check_ties
from optirank.ranks.orders import SparseOrders

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.ranks.matrices import SparseRanks
    from optirank.ranks.orders import SampleOrders

_BLOCK = 4_000_000  # entries of n x d tables that are held at a time


@dataclass(frozen=True)
class DenseMap:
    """An n x d float32 matrix whose columns have weighted mean zero."""

    values: NDArray

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.values.shape[1]

    def dot(self, W: NDArray) -> NDArray:
        """``M W``, n x K."""
        used = np.flatnonzero(W.any(axis=1))
        if 3 * len(used) < self.n_columns:
            return self.values[:, used] @ W[used].astype(np.float32)
        return self.values @ W.astype(np.float32)

    def transpose_dot(self, G: NDArray) -> NDArray:
        """``M^T G``, d x K."""
        return (G.T @ self.values).T.astype(np.float64)

    def columns(self, genes: NDArray) -> DenseMap:
        """The matrix of some of the columns."""
        return DenseMap(np.ascontiguousarray(self.values[:, genes]))


@dataclass(frozen=True)
class SparseMap:
    """A constant per row plus the non-zeros, minus the weighted mean of each column."""

    ranks: SparseRanks
    excess: sparse.csr_array
    mean: NDArray

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.ranks.n_genes

    def dot(self, W: NDArray) -> NDArray:
        """``M W``, n x K."""
        z = self.excess @ W.astype(np.float32)
        z += np.outer(self.ranks.constants, W.sum(axis=0)) - self.mean @ W
        return z

    def transpose_dot(self, G: NDArray) -> NDArray:
        """``M^T G``, d x K."""
        out = (self.excess.T @ G).astype(np.float64)
        out += self.ranks.constants @ G - np.outer(self.mean, G.sum(axis=0, dtype=np.float64))
        return out

    def columns(self, genes: NDArray) -> DenseMap:
        """The matrix of some of the columns, held as it is."""
        values = self.excess[:, genes].toarray()
        values += self.ranks.constants.astype(np.float32)[:, None]
        values -= self.mean[genes].astype(np.float32)
        return DenseMap(values)


class JointMatrices:
    """Makes ``R(gamma) / s`` of one set of samples, in one buffer: valid until the next is made."""

    def __init__(self, orders: SampleOrders, v: NDArray, n_reference: int, ties: str) -> None:
        self.orders = orders
        self.v = v
        self.n_reference = n_reference
        self.ties = ties
        self._buffer = None
        self._gamma: NDArray | None = None
        self._map: DenseMap | SparseMap | None = None
        if isinstance(orders, SparseOrders):
            self._genes = orders.genes.astype(np.int32)

    def ranks(self, gamma: NDArray) -> DenseMap | SparseMap:
        """``R(gamma) / s``, centred."""
        if self._gamma is gamma:
            return self._map
        scaled = gamma / self.n_reference
        self._buffer = ranks = self.orders.ranks(scaled, self.ties, reuse=self._buffer)
        if isinstance(self.orders, SparseOrders):
            shape = ranks.shape
            excess = sparse.csr_array((ranks.excess, self._genes, ranks.indptr), shape=shape)
            self._map = SparseMap(ranks, excess, ranks.transpose_dot(self.v))
        else:
            values = ranks.values
            values -= self.v.astype(np.float32) @ values
            self._map = DenseMap(values)
        self._gamma = gamma
        return self._map

    def gradient_gamma(self, W: NDArray, G: NDArray) -> NDArray:
        """``sum_i C_i^T (W G_i) / s`` for slopes G, with the part along v taken off them."""
        G = G - (self.v[:, None] * G.sum(axis=0, dtype=np.float64)).astype(np.float32)
        return gradient_gamma(self.orders, W, G, self.ties) / self.n_reference

    def scores(self, W: NDArray, gamma: NDArray) -> NDArray:
        """``R(gamma) W / s``, n x K, not centred, in float64."""
        return rank_scores(self.orders, W, gamma, self.ties) / self.n_reference


def rank_scores(orders: SampleOrders, W: NDArray, gamma: NDArray, ties: str) -> NDArray:
    """``R(gamma) W`` (n x K) in float64, a block of samples at a time."""
    z = np.empty((orders.n_samples, W.shape[1]))
    size = max(1, _BLOCK // orders.n_genes)
    for begin in range(0, len(z), size):
        rows = np.arange(begin, min(begin + size, len(z)))
        z[rows] = orders.take(rows).ranks(gamma, ties, np.float64).dot(W)
    return z


class GammaMap:
    """From gamma to centred scores, at fixed W: ``(I - 1 v^T) R(gamma) W / s``."""

    def __init__(self, matrices: JointMatrices, W: NDArray) -> None:
        self._matrices = matrices
        self._W = W

    def dot(self, gamma: NDArray) -> NDArray:
        """Scores, n x K."""
        return self._matrices.ranks(gamma).dot(self._W)

    def transpose_dot(self, G: NDArray) -> NDArray:
        """``sum_i C_i^T (W G_i) / s`` for slopes G, with the part along v taken off them."""
        return self._matrices.gradient_gamma(self._W, G)


def gradient_gamma(orders: SampleOrders, W: NDArray, G: NDArray, ties: str) -> NDArray:
    """``sum_i C_i^T (W G_i)``: one co-rank pass with weights of each sample's own.

    The n x d table of these weights is made a block of samples at a time, on the genes that have
    weights.
    """
    tie, _ = check_ties(ties)
    out = np.zeros(orders.n_genes)
    used = W.any(axis=1)
    G = np.ascontiguousarray(G, dtype=np.float32)
    if isinstance(orders, SparseOrders):
        constant = joint_loops.sparse_gradient_gamma(
            orders.indptr,
            orders.genes,
            orders.groups,
            orders.n_groups,
            orders.zero_group,
            used,
            np.ascontiguousarray(W, dtype=np.float32),
            W.sum(axis=0, dtype=np.float64),
            G,
            1.0 - tie,
            out,
        )
        return out + constant
    columns = np.flatnonzero(used)
    weights = np.ascontiguousarray(W[columns].T, dtype=np.float32)
    size = max(1, _BLOCK // max(1, len(columns)))
    for begin in range(0, orders.n_samples, size):
        block = slice(begin, begin + size)
        joint_loops.dense_gradient_gamma(
            orders.groups[block],
            orders.n_groups[block],
            columns,
            G[block] @ weights,
            1.0 - tie,
            out,
        )
    return out
