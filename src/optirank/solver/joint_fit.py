"""(W, b) of the joint problem at a fixed matrix, on working sets of genes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from optirank.solver.joint_steps import GroupLasso, joint_steps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.joint_matrices import DenseMap, SparseMap
    from optirank.solver.softmax import SoftmaxLoss

_FEW = 0.4  # of the genes: a working set up to here gets a matrix of its own
_NEAR = 0.9  # of l1: rows of W = 0 whose gradient is above may get weights in the next steps
_SMALLEST_RESIDUAL = 2e-7  # what float32 matrices resolve
_STEPS = 150  # on one working set before all genes are looked at again


@dataclass
class JointWeights:
    """Weights for a fixed matrix, with their scores less the intercepts."""

    W: NDArray
    b: NDArray
    z: NDArray
    L: float
    n_iter: int
    converged: bool


def steps_on_weights(
    matrix: DenseMap | SparseMap,
    loss: SoftmaxLoss,
    penalty: GroupLasso,
    W: NDArray,
    b: NDArray,
    L: float | None,
    n_steps: int,
    *,
    z: NDArray | None = None,
    tol: float = 0.0,
) -> JointWeights:
    """Accelerated steps on the rows of W that are not zero or are about to leave zero."""
    genes = None
    if penalty.l1 > 0:
        z = matrix.dot(W) if z is None else z
        loss.differentiate(z, b)
        norms = np.linalg.norm(matrix.transpose_dot(loss.slopes), axis=1)
        working = W.any(axis=1) | (norms > _NEAR * penalty.l1)
        if 0 < working.sum() <= _FEW * len(W):
            genes = np.flatnonzero(working)
    if genes is None:
        done = joint_steps(matrix, loss, W, b, penalty, L, n_steps, z=z, tol=tol)
        x = done.x
    else:
        part = matrix.columns(genes)
        done = joint_steps(part, loss, W[genes], b, penalty, L, n_steps, z=z, tol=tol)
        x = np.zeros_like(W)
        x[genes] = done.x
    return JointWeights(x, done.b, done.z, done.L, done.n_steps, done.residual <= tol)


def fit_joint_weights(
    matrix: DenseMap | SparseMap,
    loss: SoftmaxLoss,
    penalty: GroupLasso,
    W: NDArray,
    b: NDArray,
    *,
    L: float | None = None,
    tol: float = 1e-5,
    max_iter: int = 10_000,
) -> JointWeights:
    """Minimise ``loss(M W + b) + l1 sum_j |W_j| + l2 |W|^2`` from a start near or far.

    Converged means that the proximal gradient of all genes is below ``tol`` times the largest
    gradient at W = 0. Accelerated steps go first; where they are slow and l1 = 0, L-BFGS takes
    over.
    """
    zero = np.zeros((len(loss.codes), loss.n_classes), np.float32)
    loss.differentiate(zero, loss.best_intercept(zero, np.zeros(loss.n_classes)))
    scale = float(np.abs(matrix.transpose_dot(loss.slopes)).max())
    tol_residual = max(tol * scale, _SMALLEST_RESIDUAL)
    n_iter, z, converged = 0, None, False
    while n_iter < max_iter and not converged:
        if penalty.l1 == 0 and n_iter:  # smooth, and ill-conditioned, else it were done
            done = _quasi_newton(matrix, loss, penalty, W, b, tol_residual, max_iter - n_iter)
            W, b, z, n_iter = done.W, done.b, done.z, n_iter + done.n_iter
            converged = done.converged
            break
        n_steps = min(_STEPS, max_iter - n_iter)
        done = steps_on_weights(matrix, loss, penalty, W, b, L, n_steps, z=z, tol=tol_residual)
        W, b, z, L = done.W, done.b, done.z, done.L
        n_iter += done.n_iter
        converged = done.converged and (
            penalty.l1 == 0 or _at_rest(matrix, loss, penalty, done, tol_residual)
        )
    return JointWeights(W, loss.best_intercept(z, b), z, L, n_iter, converged)


def _quasi_newton(
    matrix: DenseMap | SparseMap,
    loss: SoftmaxLoss,
    penalty: GroupLasso,
    W: NDArray,
    b: NDArray,
    tol: float,
    max_iter: int,
) -> JointWeights:
    """L-BFGS on (W, b) under ``l2 |W|^2`` alone.

    Converged also where float32 matrices let the objective fall no further.
    """
    shape, size = W.shape, W.size

    def value(x: NDArray) -> tuple[float, NDArray]:
        W, b = x[:size].reshape(shape), x[size:]
        z = matrix.dot(W)
        loss.differentiate(z, b)
        gradient = matrix.transpose_dot(loss.slopes) + 2.0 * penalty.l2 * W
        slope_b = loss.intercept_slopes()
        objective = loss.value(z, b) + penalty.l2 * float(np.vdot(W, W))
        return objective, np.concatenate([gradient.ravel(), slope_b])

    options = {
        "maxiter": max_iter,
        "maxfun": 2 * max_iter,
        "gtol": tol,
        "ftol": 1e-11,
        "maxcor": 20,
    }
    start = np.concatenate([W.ravel(), b])
    found = minimize(value, start, jac=True, method="L-BFGS-B", options=options)
    W, b = found.x[:size].reshape(shape), found.x[size:]
    return JointWeights(W, b, matrix.dot(W), 1.0, found.nit, found.nit < max_iter)


def _at_rest(matrix, loss, penalty, done: JointWeights, tol: float) -> bool:
    """Whether no gene outside the working set wants weights."""
    loss.differentiate(done.z, done.b)
    norms = np.linalg.norm(matrix.transpose_dot(loss.slopes), axis=1)
    return bool((norms[~done.W.any(axis=1)] <= penalty.l1 + tol).all())
