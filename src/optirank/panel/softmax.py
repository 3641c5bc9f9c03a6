"""Softmax regression on centred ranks, without intercept: the one fit of the panel
model.

The scores are ``z = W c`` with centred ranks c (see ``optirank.panel.votes``). There is
no level that a platform could move: ranks that get noisier shrink all scores by one
factor.

The fit minimises ``sum_i v_i logloss(y_i, z_i) + l2 |W|^2``. The weights ``v`` of the
samples sum to 1, so the penalty acts against the *mean* loss. Two classes have one row
of weights and the logistic loss; more classes have one row each and the softmax.

Ranks come as whole numbers (twice the rank, see ``optirank._compiled.rank_loops``) and
are centred in 32-bit floats block by block. Blocks have a fixed size and their sums are
added in order, so the number of threads changes no bit of the result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optirank._util.matrices import product
from optirank._util.work import one_blas_thread, threads

BLOCK_ROWS = 1024  # samples in one product: enough for BLAS, few enough for its cache
_MAX_ITER = 1000  # far above the 10 to 50 that are needed with a penalty this strong
_MEMORY = 10  # pairs of steps that L-BFGS keeps, as is usual


@dataclass(frozen=True)
class VotesFit:
    """Weights on centred ranks."""

    coef: NDArray  # (rows, k): one row for two classes, else one per class
    objective: float
    n_iter: int


def fit_votes(
    doubled: NDArray,
    codes: NDArray,
    n_classes: int,
    weights: NDArray,
    *,
    l2: float,
    tol: float,
    start: NDArray | None = None,
    n_threads: int = 1,
) -> VotesFit:
    """Fit the weights.

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
    n_threads : int
        Threads; they change the time alone.
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

    with one_blas_thread(), threads(min(n_threads, len(blocks))) as map_blocks:

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
    coef = np.ascontiguousarray(result.x.reshape(k, n_rows).T)
    return VotesFit(coef, float(result.fun), int(result.nit))


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
