"""The panel model: every pair of genes votes, and one fit gives the weights.

With k genes, the centred rank of gene j in a sample is
``c_j = (r_j - (k - 1) / 2) / k``, where ``r_j`` is its rank from 0 to k - 1 among the k
genes (ties share their mean rank). It counts the comparisons that the gene wins and
loses: ``c_j = sum over l of sign(x_j - x_l) / (2 k)``. So the scores ``z = W c`` are
sums over pairs of genes,

    z = sum over pairs (j, l) of (w_j - w_l) sign(x_j - x_l) / (2 k).

A gene that is missing takes its votes away: with q of the k genes present, ranks are
among these q and divided by q, and nothing stands in for the others. There is no
intercept, so no level that a platform could move: ranks that get noisier shrink all
scores by one factor.

The fit minimises ``sum_i v_i logloss(y_i, z_i) + l2 |W|^2``. The weights ``v`` of the
samples sum to 1, so the penalty acts against the *mean* loss. Two classes have one row
of weights and the logistic loss; more classes have one row each and the softmax. Blocks
of samples have a fixed size and their sums are added in order, so the number of threads
changes no bit of the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.numbers import as_dense, product
from optirank._util.work import one_blas_thread, threads, threads_in_use
from optirank.ranks.scoring import needed_values, weighted_ranks, worth_compiling

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK = 1 << 20  # values that are ranked together: 8 MB, small beside any data set
BLOCK_ROWS = 1024  # samples in one product: enough for BLAS, few enough for its cache
_MAX_ITER = 1000  # far above the 10 to 50 that are needed with a penalty this strong
_MEMORY = 10  # pairs of steps that L-BFGS keeps, as is usual


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
        ranks = centred_ranks(needed_values(X, rows, columns), compiled=compiled)
        scores[rows] = scores_of_ranks(ranks, coef)
    return scores


def centred_ranks(values: Any, *, compiled: bool = False) -> NDArray[np.float64]:
    """Centred ranks of all genes of some samples among themselves."""
    values = as_dense(values)
    if not compiled:
        every = np.ones(values.shape[1])
        return centred(np.rint(2 * weighted_ranks(values, every, scale=False)))
    from optirank.ranks.orders import doubled_ranks  # loads numba

    return centred(doubled_ranks(values))


def scores_of_ranks(ranks: NDArray, coef: NDArray) -> NDArray[np.float64]:
    """Scores (n, rows) of samples by their centred ranks."""
    # Not BLAS, which adds up in another order for one sample than for many
    return np.einsum("ng,kg->nk", ranks, np.ascontiguousarray(coef))


def sort_groups(values: Any) -> NDArray:
    """Number the distinct values of every sample, in rising order."""
    from optirank.ranks.orders import order_samples

    orders: Any = order_samples(as_dense(values), threads_in_use())
    return orders.groups


def doubled_ranks_among(groups: NDArray, rows: NDArray, columns: NDArray) -> NDArray:
    """Twice the ranks of some genes among themselves, for some samples."""
    from optirank._compiled.rank_loops import doubled_ranks

    small = 2 * len(columns) <= np.iinfo(np.uint16).max
    out = np.empty((len(rows), len(columns)), np.uint16 if small else np.uint32)
    parts = [slice(at, at + BLOCK_ROWS) for at in range(0, len(rows), BLOCK_ROWS)]
    with threads(min(threads_in_use(), len(parts))) as map_parts:
        ranked = map_parts(
            lambda part: doubled_ranks(groups, rows[part], columns, out[part]), parts
        )
        list(ranked)  # waits for all
    return out


def ranked_scores(
    groups: NDArray, rows: NDArray, columns: NDArray, coef: NDArray
) -> NDArray:
    """Scores of sorted samples by some genes; -inf for classes without weights."""
    scores = centred(doubled_ranks_among(groups, rows, columns)) @ coef.T
    return np.where(np.isnan(scores), -np.inf, scores)


def fit_votes(
    doubled: NDArray,
    codes: NDArray,
    n_classes: int,
    weights: NDArray,
    *,
    l2: float,
    tol: float,
    start: NDArray | None = None,
) -> NDArray:
    """Fit weights on centred ranks, one row for two classes, else one per class.

    Parameters
    ----------
    doubled : array of shape (n, k)
        Whole numbers: twice the ranks, from 0 to k - 1, of k genes among themselves.
    codes : array of shape (n,)
        The class of each sample, from 0 to ``n_classes - 1``.
    n_classes : int
    weights : array of shape (n,)
        Weights of the samples; their sum is 1.
    l2 : float
        The penalty against the mean loss.
    tol : float
        The largest entry of the gradient at which to stop.
    start : array of shape (rows, k), optional
        Weights to start from.
    """
    from scipy.optimize import minimize

    n, k = doubled.shape
    n_rows = 1 if n_classes == 2 else n_classes
    loss_of = _logistic if n_rows == 1 else _softmax
    blocks = [slice(at, min(n, at + BLOCK_ROWS)) for at in range(0, n, BLOCK_ROWS)]
    # Products are of whole numbers in 32-bit floats, which are exact; the scale comes
    # after
    shift = np.float32(k - 1)
    scale = 1.0 / (2.0 * k)

    with one_blas_thread(), threads(min(threads_in_use(), len(blocks))) as map_blocks:

        def objective(x: NDArray) -> tuple[float, NDArray]:
            W = x.reshape(k, n_rows)
            scaled = (scale * W).astype(np.float32)

            def of_block(rows: slice) -> tuple[float, NDArray]:
                votes = doubled[rows].astype(np.float32)
                votes -= shift
                z = product(votes, scaled)
                loss, slopes = loss_of(z, codes[rows], weights[rows])
                return loss, product(votes.T, slopes.astype(np.float32))

            losses, products = zip(*map_blocks(of_block, blocks), strict=True)
            # In their order, in 64 bits
            total = sum((part.astype(np.float64) for part in products), np.zeros(()))
            gradient = scale * total + 2.0 * l2 * W
            value = sum(losses, 0.0) + l2 * float((W * W).sum())
            return value, gradient.ravel()

        first = np.zeros((k, n_rows)) if start is None else start.T
        options = {"maxiter": _MAX_ITER, "gtol": tol, "ftol": 0.0, "maxcor": _MEMORY}
        result = minimize(
            objective, first.ravel(), jac=True, method="L-BFGS-B", options=options
        )
    return np.ascontiguousarray(result.x.reshape(k, n_rows).T)


def mean_weights(
    codes: NDArray, sample_weight: NDArray | None = None, *, balanced: bool = True
) -> NDArray:
    """Weights of the samples with sum 1.

    With sample weights ``q``, they are ``q_i / sum of q``. Balanced, all classes count
    the same: ``q_i / (K * sum of q over i's class)``.
    """
    q = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight)
    if not balanced:
        return q / q.sum()
    totals = np.bincount(codes, q)
    return q / (np.count_nonzero(totals) * totals[codes])


def _softmax(z: NDArray, codes: NDArray, weights: NDArray) -> tuple[float, NDArray]:
    """The weighted loss of some samples and its slopes by their scores."""
    at = np.arange(len(z)), codes
    z = z - z.max(axis=1, keepdims=True)
    shares = np.exp(z)
    total = shares.sum(axis=1)
    loss = float(weights @ (np.log(total) - z[at]))
    shares /= total[:, None]
    shares[at] -= 1.0
    return loss, shares * weights[:, None]


def _logistic(z: NDArray, codes: NDArray, weights: NDArray) -> tuple[float, NDArray]:
    """The same for the one score of two classes, high for the second."""
    z = z[:, 0].astype(np.float64)
    loss = float(weights @ np.logaddexp(0.0, np.where(codes == 1, -z, z)))
    with np.errstate(over="ignore"):
        slopes = weights * (1.0 / (1.0 + np.exp(-z)) - codes)
    return loss, slopes[:, None]
