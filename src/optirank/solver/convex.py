"""(w, b) to convergence with the matrix fixed: elastic-net logistic regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optirank.solver.hessian import newton_steps, sharpened
from optirank.solver.losses import LogisticLoss
from optirank.solver.steps import ElasticNet, accelerated_steps, curvature_scale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.matrices import CentredMatrix

_FIRST_STEPS = 150  # accelerated steps before Newton's method is thought of
_MORE_STEPS = 40  # and between its rounds, to find the support
_NEWTON_SIZE = 1500  # largest system that is factored
_EXACT_SIZE = 300  # up to this many weights or samples the end can be exact
_SMALLEST_RESIDUAL = 2e-7  # what float32 matrices resolve


@dataclass
class Weights:
    """A solution in (w, b) for a fixed matrix."""

    w: NDArray
    b: float
    L: float
    n_iter: int
    converged: bool


def fit_weights(
    matrix: CentredMatrix,
    loss: LogisticLoss,
    l1: float,
    l2: float,
    *,
    w: NDArray | None = None,
    b: float = 0.0,
    L: float | None = None,
    tol: float = 1e-5,
    max_iter: int = 10_000,
) -> Weights:
    """Minimise ``loss(M w + b) + l1 |w|_1 + l2 |w|^2`` from a start near or far.

    Converged means that the proximal gradient is below ``tol`` times the gradient at w = 0, or that
    Newton's method no longer lowers the objective. Accelerated steps go first; where they are slow
    (small l2) and the support is small enough, Newton steps on the support take over.
    """
    w = np.zeros(matrix.n_columns) if w is None else w
    L = curvature_scale(matrix, loss.v) if L is None else L
    proximal = ElasticNet(l1, l2)
    loss.differentiate(np.zeros(len(loss.y)), loss.best_intercept(np.zeros(len(loss.y)), 0.0))
    scale = float(np.abs(matrix.transpose_dot(loss.slopes)).max())
    tol_residual = max(tol * scale, _SMALLEST_RESIDUAL)

    done = accelerated_steps(
        matrix, loss, w, b, proximal, L, min(_FIRST_STEPS, max_iter), tol=tol_residual
    )
    n_iter = done.n_steps
    converged = done.residual <= tol_residual
    while not converged and n_iter < max_iter:
        support = np.flatnonzero(done.x)
        small = min(len(loss.y), len(support)) <= _NEWTON_SIZE
        stalled = False
        if small and len(support):
            found, done.b, objective, decrease = newton_steps(
                matrix.columns(support), loss, done.x[support], done.b, l1, l2, 8
            )
            done.x = np.zeros(matrix.n_columns)
            done.x[support] = found
            n_iter += 8
            stalled = decrease <= 1e-9 * objective
        n_steps = min(_MORE_STEPS if stalled else _FIRST_STEPS, max(1, max_iter - n_iter))
        before = done.x
        done = accelerated_steps(
            matrix, loss, done.x, done.b, proximal, done.L, n_steps, tol=tol_residual
        )
        n_iter += done.n_steps
        same_support = np.array_equal(before != 0, done.x != 0)
        converged = done.residual <= tol_residual or (stalled and same_support)
    return Weights(done.x, loss.best_intercept(done.z, done.b), done.L, n_iter, converged)


def few_weights(w: NDArray, y: NDArray) -> bool:
    """Whether a solution is small enough to be finished exactly."""
    return 0 < min(len(y), np.count_nonzero(w)) <= _EXACT_SIZE


def finish_exactly(
    columns: NDArray, y: NDArray, v: NDArray, w: NDArray, b: float, l1: float, l2: float
) -> NDArray:
    """Newton steps in float64 on the support of w, down to roundoff.

    ``columns`` are those of the support, not centred.
    """
    support = np.flatnonzero(w)
    columns = np.array(columns, dtype=np.float64, order="C")
    columns -= v @ columns
    loss = LogisticLoss(y, v, np.float64)
    found, b, *_ = newton_steps(columns, loss, w[support], b, l1, l2, 20, tol=1e-15)
    found = sharpened(columns, loss, found, b, l1, l2)
    w = np.zeros_like(w)
    w[support] = found
    return w
