"""Scores of all rows of a model in one pass over each sample's sorted values, with NumPy alone.

A sample's zeros are one value, so only its non-zeros are sorted; the reference weights and the
weights of the zero genes are what is left of the sums. Going up through the distinct values, each
row of the model keeps the sum c of reference weights below, and every value adds
``W (c + t h)`` to its score, with h and W the sums of reference weights and weights at this value.
The compiled twin is ``optirank._compiled.predict_loops``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optirank.ranks.definition import check_ties

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from optirank.model.missing import BoundModel

_DENSE_FROM = 0.25  # share of non-zeros from which the zeros are sorted like other values


def plain_scores(X, bound: BoundModel) -> NDArray:
    """Scores (n, rows) of a block of samples; X holds the bound columns alone."""
    tie, _ = check_ties(bound.parts.ties)
    n_genes = len(bound.columns)
    gamma_sum, coef_sum = bound.gamma.sum(axis=0), bound.coef.sum(axis=0)
    scores = np.empty((X.shape[0], len(bound.base)))
    for score, (genes, values) in zip(scores, _non_zeros(X), strict=True):
        gamma, coef = bound.gamma[genes], bound.coef[genes]
        if len(genes) < n_genes:
            gamma = np.vstack([gamma, gamma_sum - gamma.sum(axis=0)])
            coef = np.vstack([coef, coef_sum - coef.sum(axis=0)])
            values = np.append(values, values.dtype.type(0))
        order = values.argsort()
        values = values[order]
        sums = np.zeros((len(values) + 1, gamma.shape[1]))
        np.cumsum(gamma[order], axis=0, out=sums[1:])
        first, end = _groups(values)
        ranks = (1.0 - tie) * sums[first] + tie * sums[end]
        score[:] = np.einsum("ij,ij->j", coef[order], ranks)
    return scores / bound.sizes + bound.base


def compiled_scores(X, bound: BoundModel) -> NDArray:
    """The same with compiled loops; numba loads here."""
    from scipy import sparse

    from optirank._compiled import predict_loops
    from optirank.ranks.orders import SparseOrders, order_samples

    tie, _ = check_ties(bound.parts.ties)
    if not sparse.issparse(X) and np.count_nonzero(X) < _DENSE_FROM * X.size:
        X = sparse.csr_array(X)
    orders = order_samples(X)
    if isinstance(orders, SparseOrders):
        samples = orders.indptr, orders.genes, False, orders.groups
        zero_group = orders.zero_group
    else:
        n, d = orders.groups.shape
        genes = np.arange(d, dtype=orders.groups.dtype)
        samples = np.arange(0, n * d + 1, d), genes, True, orders.groups.reshape(-1)
        zero_group = np.full(n, -1, dtype=np.int32)
    sums = bound.gamma.sum(axis=0), bound.coef.sum(axis=0)
    scores = np.zeros((X.shape[0], len(bound.base)))
    predict_loops.scores_of_rows(
        *samples, orders.n_groups, zero_group, *bound.entries, tie, *sums, scores
    )
    return scores / bound.sizes + bound.base


def _groups(values: NDArray) -> tuple[NDArray, NDArray]:
    """Where the run of equal values around each begins and ends, values being sorted."""
    starts = np.concatenate([[True], values[1:] != values[:-1]])
    begin = np.flatnonzero(starts)
    group = np.cumsum(starts) - 1
    return begin[group], np.append(begin[1:], len(values))[group]


def _non_zeros(X) -> Iterator[tuple[NDArray, NDArray]]:
    """Genes and values of each sample's non-zeros."""
    if hasattr(X, "tocsr"):
        for begin, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
            yield X.indices[begin:end], X.data[begin:end]
        return
    for row in X:
        genes = np.flatnonzero(row)
        yield genes, row[genes]
