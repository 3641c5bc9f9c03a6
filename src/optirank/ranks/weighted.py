"""Ranks of new samples relative to fractional reference weights, with NumPy alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optirank.ranks.definition import check_ties

if TYPE_CHECKING:
    from numpy.typing import NDArray


def weighted_ranks(X, weights: NDArray, genes: NDArray, ties: str = "average") -> NDArray:
    """``C gamma - offset`` for the genes at some positions, gamma being any weights of the genes.

    X is an array or a scipy sparse matrix of samples x genes. The general case of
    :func:`optirank.ranks.relative.relative_ranks`, and slower.
    """
    tie, offset = check_ties(ties)
    among = np.flatnonzero(weights)
    if hasattr(X, "tocsr"):
        X = X.tocsr()
        values, reference = X[:, genes].toarray(), X[:, among].toarray()
    else:
        X = np.asarray(X)
        values, reference = X[:, genes], X[:, among]
    order = np.argsort(reference, axis=1)
    sums = np.zeros((len(reference), len(among) + 1))
    np.cumsum(np.asarray(weights)[among][order], axis=1, out=sums[:, 1:])
    reference = np.take_along_axis(reference, order, axis=1)
    ranks = np.empty(values.shape)
    for rank, value, known, total in zip(ranks, values, reference, sums, strict=True):
        below = total[known.searchsorted(value, "left")]
        up_to = total[known.searchsorted(value, "right")]
        rank[:] = below + tie * (up_to - below) - offset
    return ranks
