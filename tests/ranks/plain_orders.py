"""The compiled passes over orders in plain NumPy: a twin to compare with, in tests and
benchmarks.

The genes of each sample are sorted once; a pass then takes the weights in that order,
adds them up and puts the results back in their places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optirank.ranks.orders import DenseOrders, DenseRanks, SampleOrders, SparseOrders

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray


@dataclass(frozen=True)
class PlainOrders(SampleOrders):
    """Orders as the sorted genes of each sample, for NumPy; see
    :func:`plain_orders`.
    """

    order: NDArray  # (n, d): genes from the lowest value to the highest
    places: NDArray  # (n * d,): where in an n x d array each of these lies
    first: (
        NDArray | None
    )  # (n, d): where its tie group begins in the order; None without ties
    end: NDArray | None  # (n, d): where its tie group ends

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return self.order.shape[0]

    @property
    def n_genes(self) -> int:
        """Number of genes, d."""
        return self.order.shape[1]

    writes_columns = False

    def take(self, samples: NDArray) -> PlainOrders:
        """The orders of some of the samples (positions or a mask)."""
        first = None if self.first is None else self.first[samples]
        end = None if self.end is None else self.end[samples]
        order = self.order[samples]
        return PlainOrders(order, _places(order), first, end)

    def groups_of(self, genes: NDArray) -> NDArray:
        """Not needed of a twin."""
        raise NotImplementedError

    def _sorted_sums(self, a: NDArray, tie: float) -> NDArray:
        """``c_k + tie * h_k`` of each gene's group k, genes in sorted order."""
        taken = a.take(self.order)
        sums = taken.cumsum(axis=1)
        if self.first is None:
            taken *= 1.0 - tie
            sums -= taken
            return sums
        sums = np.pad(sums, ((0, 0), (1, 0)))
        below = np.take_along_axis(sums, self.first, axis=1)
        above = np.take_along_axis(sums, self.end, axis=1)
        return (1.0 - tie) * below + tie * above

    def _values(self, a, base, sign, tie, dtype: DTypeLike, reuse, genes) -> DenseRanks:
        sums = self._sorted_sums(a, tie)
        sums *= sign
        sums += base
        out = np.empty(sums.shape, dtype) if reuse is None else reuse.values
        out.reshape(-1)[self.places] = sums.reshape(-1)
        return DenseRanks(out)


def plain_orders(orders: DenseOrders | SparseOrders) -> PlainOrders:
    """The same orders, for plain NumPy (dense, whatever they were)."""
    if isinstance(orders, SparseOrders):
        orders = orders.to_dense()
    groups = orders.groups
    order = np.argsort(groups, axis=1, kind="stable")
    n, d = groups.shape
    if (orders.n_groups == d).all():
        return PlainOrders(order, _places(order), None, None)
    in_order = np.take_along_axis(groups, order, axis=1)
    begins = np.ones((n, d), bool)
    begins[:, 1:] = in_order[:, 1:] != in_order[:, :-1]
    ends = np.ones((n, d), bool)
    ends[:, :-1] = begins[:, 1:]
    positions = np.arange(d)
    first = np.maximum.accumulate(np.where(begins, positions, 0), axis=1)
    backwards = np.where(ends, positions + 1, d)[:, ::-1]
    end = np.minimum.accumulate(backwards, axis=1)[:, ::-1]
    return PlainOrders(order, _places(order), first, end)


def _places(order: NDArray) -> NDArray:
    n, d = order.shape
    return (order + d * np.arange(n)[:, None]).reshape(-1)
