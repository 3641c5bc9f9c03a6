"""The scores of the panel model: every pair of genes votes.

With k genes, the centred rank of gene j in a sample is
``c_j = (r_j - (k - 1) / 2) / k``, where ``r_j`` is its rank from 0 to k - 1 among the k
genes (ties share their mean rank). It counts the comparisons that the gene wins and
loses: ``c_j = sum over l of sign(x_j - x_l) / (2 k)``. So the scores ``z = W c`` are
sums over pairs of genes,

    z = sum over pairs (j, l) of (w_j - w_l) sign(x_j - x_l) / (2 k).

A gene that is missing takes its votes away: with q of the k genes present, ranks are
among these q and divided by q, and nothing stands in for the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from optirank._util.matrices import as_dense
from optirank._util.work import threads
from optirank.ranks.relative import weighted_ranks
from optirank.ranks.scoring import needed_values, worth_compiling

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK_ROWS = 1024  # samples that one thread ranks at a time
_BLOCK = 1 << 20  # values that are ranked together: 8 MB, small beside any data set


def centred(doubled: NDArray) -> NDArray:
    """Centred ranks of k genes from twice their ranks."""
    k = doubled.shape[1]
    return (doubled.astype(np.float64) - (k - 1)) / (2 * k)


def vote_scores(
    X: Any, columns: NDArray, coef: NDArray, *, compiled: bool | None = None
) -> NDArray:
    """Scores (n, rows) of the samples of X.

    Parameters
    ----------
    X : array, CSR or CSC matrix of shape (n, genes)
    columns : array of shape (q,)
        The columns of X that hold the genes of the panel that are there.
    coef : array of shape (rows, q)
        The weights of these genes.
    compiled : bool, optional
        Whether to use compiled loops; None where there are samples enough. Both give
        the same.
    """
    columns = np.asarray(columns)
    coef = np.ascontiguousarray(coef)
    if getattr(X, "format", None) == "csc":
        X = X[:, columns].tocsr()
        columns = np.arange(len(columns))
    scores = np.zeros((X.shape[0], len(coef)))
    if compiled is None:
        compiled = worth_compiling(X.shape[0], len(coef))
    step = max(1, _BLOCK // max(1, len(columns)))
    for start in range(0, X.shape[0], step):
        rows = slice(start, start + step)
        block = needed_values(X, rows, columns)
        values = block.toarray() if sparse.issparse(block) else np.asarray(block)
        votes = centred(_doubled_ranks(values, compiled))
        # Not BLAS, which adds up in another order for one sample than for many
        scores[rows] = np.einsum("ng,kg->nk", votes, coef)
    return scores


def sort_groups(values: Any, n_threads: int = 1) -> NDArray:
    """Number the distinct values of every sample, in rising order."""
    from optirank.ranks.orders import order_samples

    orders = order_samples(as_dense(values), n_threads)
    return orders.groups_of(np.arange(values.shape[1]))


def doubled_ranks_among(
    groups: NDArray, rows: NDArray, columns: NDArray, n_threads: int = 1
) -> NDArray:
    """Twice the ranks of some genes among themselves, for some samples."""
    from optirank._compiled.rank_loops import doubled_ranks

    columns = np.asarray(columns, dtype=np.int64)
    small = 2 * len(columns) <= np.iinfo(np.uint16).max
    out = np.empty((len(rows), len(columns)), np.uint16 if small else np.uint32)
    parts = [slice(at, at + _BLOCK_ROWS) for at in range(0, len(rows), _BLOCK_ROWS)]

    def rank(part: slice) -> None:
        doubled_ranks(groups, rows[part], columns, out[part])

    with threads(min(n_threads, len(parts))) as map_parts:
        list(map_parts(rank, parts))
    return out


def _doubled_ranks(values: NDArray, compiled: bool) -> NDArray:
    """Twice the ranks of all genes of some samples; with NumPy alone, or numba."""
    if not compiled:
        every = np.ones(values.shape[1])
        return np.rint(2 * weighted_ranks(values, every, ties="average", scale=False))
    from optirank.ranks.orders import doubled_ranks

    return doubled_ranks(values)
