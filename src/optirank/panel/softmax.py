"""Softmax regression on ranks with an l2 penalty: the one fit of the panel model.

Minimises ``sum_i v_i logloss(y_i, z_i) + l2 |W|^2`` with ``z = R W + b``, where the weights ``v``
sum to 1, so that the penalty acts against the *mean* loss. Two classes have one column of weights
and the logistic loss; more have one column per class and the softmax.

The ranks come as whole numbers (twice the rank of each gene, see
``optirank._compiled.rank_loops``) and are turned into 32-bit floats block by block. Blocks have a
fixed size and their sums are added in order, so the number of threads changes no bit of the result.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optirank._util.workers import one_blas_thread

BLOCK_ROWS = (
    1024  # samples in one product: large enough for BLAS, small enough for its cache
)
_MAX_ITER = 1000  # far above the 5 to 30 that are needed with a penalty this strong
_MEMORY = 10  # pairs of steps that L-BFGS keeps, as is usual


@dataclass(frozen=True)
class RidgeFit:
    """Weights on scaled ranks in [0, 1), intercepts, and the mean rank of each gene."""

    coef: NDArray  # (columns, genes); one column for two classes
    intercept: NDArray  # (columns,)
    mean_ranks: NDArray  # (genes,)
    objective: float
    n_iter: int


def fit_ridge(
    doubled: NDArray,
    codes: NDArray,
    n_classes: int,
    weights: NDArray,
    *,
    l2: float,
    tol: float,
    start: RidgeFit | None = None,
    n_threads: int = 1,
) -> RidgeFit:
    """Fit weights and intercepts.

    Parameters
    ----------
    doubled : (n, k) whole numbers, twice the ranks (from 0 to k - 1) of k genes among themselves.
    codes : the class of each sample, from 0 to ``n_classes - 1``.
    weights : of the samples, with sum 1.
    l2 : the penalty against the mean loss.
    tol : the largest entry of the gradient at which to stop.
    start : weights to start from, of the same genes.
    n_threads : threads; they change the time alone.
    """
    from scipy.optimize import minimize

    n, k = doubled.shape
    columns = 1 if n_classes == 2 else n_classes
    scale = 1.0 / (2.0 * k)
    blocks = [slice(at, min(n, at + BLOCK_ROWS)) for at in range(0, n, BLOCK_ROWS)]
    loss_of = _logistic if columns == 1 else _softmax
    n_threads = max(1, min(n_threads, len(blocks)))
    with one_blas_thread(), ThreadPoolExecutor(n_threads) as pool:

        def block_mean(rows: slice) -> NDArray:
            return weights[rows].astype(np.float32) @ doubled[rows].astype(np.float32)

        # The intercept is free: the gradient is that of centred ranks, for the conditioning alone
        means = scale * _added(pool.map(block_mean, blocks))

        def objective(x: NDArray) -> tuple[float, NDArray]:
            W, b = x[:-columns].reshape(k, columns), x[-columns:]
            scaled = (scale * W).astype(np.float32)
            offset = b - means @ W

            def of_block(rows: slice) -> tuple[NDArray, NDArray, NDArray]:
                R = doubled[rows].astype(np.float32)
                loss, slopes = loss_of(R @ scaled + offset, codes[rows], weights[rows])
                return loss, R.T @ slopes.astype(np.float32), slopes.sum(axis=0)

            loss, product, total = (
                _added(part) for part in zip(*pool.map(of_block, blocks), strict=True)
            )
            gradient = scale * product - np.outer(means, total) + 2.0 * l2 * W
            value = float(loss) + l2 * float((W * W).sum())
            return value, np.concatenate([gradient.ravel(), total])

        x = np.zeros((k + 1) * columns)
        if start is not None:
            x[:-columns] = start.coef.T.ravel()
            x[-columns:] = start.intercept + start.coef @ means
        options = {"maxiter": _MAX_ITER, "gtol": tol, "ftol": 0.0, "maxcor": _MEMORY}
        found = minimize(objective, x, jac=True, method="L-BFGS-B", options=options)
    W, b = found.x[:-columns].reshape(k, columns), found.x[-columns:]
    coef = np.ascontiguousarray(W.T)
    return RidgeFit(coef, b - coef @ means, means, float(found.fun), int(found.nit))


def balanced_weights(codes: NDArray, sample_weight: NDArray | None = None) -> NDArray:
    """Weights ``q_i / (K * sum of q over i's class)``: classes count equally, the sum is 1."""
    q = (
        np.ones(len(codes))
        if sample_weight is None
        else np.asarray(sample_weight, dtype=float)
    )
    totals = np.bincount(codes, q)
    return q / (np.count_nonzero(totals) * totals[codes])


def _softmax(z: NDArray, codes: NDArray, weights: NDArray) -> tuple[NDArray, NDArray]:
    """The weighted loss of some samples and its slopes by their scores."""
    at = np.arange(len(z)), codes
    z = z - z.max(axis=1, keepdims=True)
    e = np.exp(z)
    total = e.sum(axis=1)
    loss = weights @ (np.log(total) - z[at])
    e /= total[:, None]
    e[at] -= 1.0
    e *= weights[:, None]
    return loss, e


def _logistic(z: NDArray, codes: NDArray, weights: NDArray) -> tuple[NDArray, NDArray]:
    """The same for the one score of two classes, high for the second."""
    z = z[:, 0]
    loss = weights @ np.logaddexp(0.0, np.where(codes == 1, -z, z))
    with np.errstate(over="ignore"):
        slopes = weights * (1.0 / (1.0 + np.exp(-z)) - codes)
    return loss, slopes[:, None]


def _added(parts: Iterable[NDArray]) -> NDArray:
    """The sum in the order given, in 64 bits."""
    return sum(np.asarray(part, dtype=np.float64) for part in parts)
