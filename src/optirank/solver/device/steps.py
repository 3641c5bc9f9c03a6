"""Accelerated proximal steps on many problems in lock step; see ``solver/steps.py`` for one.

Where a problem's step is refused it waits, with a shorter step, while the others go on: one product
with each matrix per step, whatever the problems do. Problems that converged stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from optirank.solver.device.batch import Batch, CentredBatch
from optirank.solver.device.fused import formulas
from optirank.solver.device.kernels import best_intercept, project_rows

_FORBIDDEN = -1e30
_CHECK_EVERY = 10  # steps between two looks at how many have converged: a look waits for the device


def logistic(xp: Any, z: Any, b: Any, y: Any, v: Any) -> tuple[Any, Any]:
    """Slopes and curvatures of ``v logloss(y, z + b)`` in the scores."""
    return formulas(xp).logistic(z, b[:, None], y, v)


def loss_of(xp: Any, z: Any, b: Any, y: Any, v: Any) -> Any:
    """``sum_i v_i logloss(y_i, z_i + b)`` of each problem."""
    return formulas(xp).loss(z, b[:, None], y, v).sum(axis=1)


Proximal = Callable[[Any, Any, Any], Any]  # point, gradient, L to the new point


def elastic_net(batch: Batch) -> Proximal:
    """The step of w under ``l1 |w|_1 + l2 |w|^2``."""
    l1, l2, formula = batch.l1[:, None], batch.l2[:, None], formulas(batch.xp).elastic_net

    def step(x: Any, gradient: Any, L: Any) -> Any:
        return formula(x, gradient, L[:, None], l1, l2)

    return step


def capped_simplex(batch: Batch) -> Proximal:
    """The step of gamma within {0 <= gamma <= 1, sum gamma = s}, on the genes allowed."""

    def step(x: Any, gradient: Any, L: Any) -> Any:
        return project(batch, x - gradient / L[:, None])

    return step


def project(batch: Batch, x: Any) -> Any:
    """The feasible point nearest to each row."""
    if batch.allowed is not None:
        x = batch.xp.where(batch.allowed[None, :], x, _FORBIDDEN)
    return project_rows(batch.xp, x, batch.s)


@dataclass
class BlockResult:
    """Where the steps of a block ended."""

    x: Any  # (B, d)
    b: Any  # (B,)
    z: Any  # (B, n): M x
    L: Any  # (B,)
    residual: Any  # (B,) largest entry of the last proximal gradient
    n_steps: Any  # (B,)


def accelerated_steps(
    batch: Batch,
    matrix: CentredBatch,
    x: Any,
    b: Any,
    proximal: Proximal,
    L: Any,
    n_steps: int,
    *,
    linear: Any = None,
    tol: Any = None,
) -> BlockResult:
    """Take ``n_steps`` steps on each problem; one whose residual is below its ``tol`` stops."""
    xp, y, v = batch.xp, batch.y, batch.v
    formula = formulas(xp)
    z = matrix.dot(x)
    b = best_intercept(xp, z, y, v, b)
    ahead, b_ahead, z_ahead = x, b, z
    t = xp.ones_like(b)
    residual = xp.full_like(b, xp.inf)
    done = xp.zeros(len(b), bool)
    taken = xp.zeros(len(b), xp.int64)
    tols = xp.full_like(b, -1.0) if tol is None else tol
    for step in range(n_steps):
        slopes, curvatures = formula.logistic(z_ahead, b_ahead[:, None], y, v)
        gradient = matrix.transpose_dot(slopes)
        if linear is not None:
            gradient = gradient + linear
        L_b = xp.maximum(curvatures.sum(axis=1), 1e-3)
        new = proximal(ahead, gradient, L)
        b_new = b_ahead - slopes.sum(axis=1) / L_b
        z_new = matrix.dot(new)
        rise = formula.rise(z_new, b_new[:, None], z_ahead, b_ahead[:, None], curvatures, v)
        squared, turn, size = formula.changes(new, ahead, x)
        accepted, momentum, residual, L, t, b_ahead, b, done = formula.judge(
            rise.sum(axis=1), squared.sum(axis=1), turn.sum(axis=1), size.max(axis=1),
            L, L_b, b_new, b_ahead, b, t, residual, done, tols,
        )  # fmt: skip
        column, row = accepted[:, None], momentum[:, None]
        ahead, x = formula.advance(column, row, new, x, ahead)
        z_ahead, z = formula.advance(column, row, z_new, z, z_ahead)
        taken += accepted
        ends = tol is not None and step % _CHECK_EVERY == _CHECK_EVERY - 1
        if ends and bool(done.all()):
            break
    return BlockResult(x, b, z, L, residual, taken)


def curvature_scale(batch: Batch, matrix: CentredBatch) -> Any:
    """About the largest eigenvalue of ``M^T diag(v/4) M`` of each problem, by power steps."""
    xp = batch.xp
    start = 1.0 + xp.arange(matrix.n_columns) % 3
    x = xp.broadcast_to(start.astype(xp.float64), (len(batch), matrix.n_columns))
    for _ in range(3):
        x = matrix.transpose_dot(batch.v * matrix.dot(x))
        norm = xp.sqrt((x * x).sum(axis=1))
        x = x / xp.maximum(norm, 1e-300)[:, None]
    return xp.maximum(0.25 * norm, 1e-8)
