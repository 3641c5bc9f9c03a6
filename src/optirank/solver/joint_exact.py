"""The last digits of (W, b) of small joint problems: Newton steps in float64 on the support."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.joint_problem import JointProblem

_LARGEST = 300  # weights and intercepts, whose Hessian is formed
_STEPS = 20
_DONE = 1e-14  # largest entry of the gradient
_FLOOR = 1e-12  # of the Hessian, whose direction of equal scores for all classes may be flat


def finish_joint_exactly(
    problem: JointProblem, W: NDArray, b: NDArray, gamma: NDArray
) -> tuple[NDArray, NDArray]:
    """(W, b) with a gradient down to roundoff, where there are few unknowns; else as given.

    ``b`` belongs to ranks as they are, not centred. Rows of W that are zero stay zero.
    """
    support = np.flatnonzero(W.any(axis=1))
    n_classes = problem.n_classes
    if not 0 < (len(support) + 1) * n_classes <= _LARGEST:
        return W, b
    ranks = problem.orders.ranks(gamma, problem.ties, np.float64).columns(support)
    columns = np.column_stack([ranks / problem.n_reference, np.ones(len(ranks))])
    x = np.vstack([W[support], b])
    value, gradient, hessian = _derivatives(problem, columns, x)
    for _ in range(_STEPS):
        if np.abs(gradient).max() < _DONE:
            break
        step = np.linalg.solve(hessian, gradient.ravel()).reshape(x.shape)
        found = None
        for scale in (1.0, 0.5, 0.25, 0.125):
            candidate = _derivatives(problem, columns, x - scale * step)
            if candidate[0] <= value + 1e-15:
                found = x - scale * step, candidate
                break
        if found is None:
            break
        x, (value, gradient, hessian) = found
    full = np.zeros_like(W)
    full[support] = x[:-1]
    return full, x[-1] - x[-1].mean()


def _derivatives(
    problem: JointProblem, columns: NDArray, x: NDArray
) -> tuple[float, NDArray, NDArray]:
    """Objective, gradient and Hessian at W and b (the last row of x); no row of W is zero."""
    z = columns @ x
    logs = z - logsumexp(z, axis=1, keepdims=True)
    p, v = np.exp(logs), problem.v
    n, n_classes = z.shape
    W = x[:-1]
    norms = np.linalg.norm(W, axis=1, keepdims=True)
    units = W / norms
    value = -float(v @ logs[np.arange(n), problem.codes]) + problem.penalty(W)
    slopes = p * v[:, None]
    slopes[np.arange(n), problem.codes] -= v
    gradient = columns.T @ slopes
    gradient[:-1] += problem.l1 * units + 2.0 * problem.l2 * W

    size = len(x)
    hessian = np.zeros((size, n_classes, size, n_classes))
    for k in range(n_classes):
        for m in range(k + 1):
            curvatures = v * p[:, k] * ((k == m) - p[:, m])
            block = columns.T @ (columns * curvatures[:, None])
            hessian[:, k, :, m] = block
            hessian[:, m, :, k] = block
    rows = np.arange(size - 1)
    outer = units[:, :, None] * units[:, None, :]
    bend = problem.l1 / norms[:, :, None] * (np.eye(n_classes) - outer)
    hessian[rows, :, rows, :] += bend + 2.0 * problem.l2 * np.eye(n_classes)
    hessian[-1, :, -1, :] += 1.0 / n_classes  # b's own flat direction
    hessian = hessian.reshape(x.size, x.size)
    hessian[np.diag_indices_from(hessian)] += _FLOOR
    return value, gradient, hessian
