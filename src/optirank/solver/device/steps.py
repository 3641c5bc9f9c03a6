"""Accelerated proximal steps on many problems in lock step; see ``solver/steps.py`` for one.

Where a problem's step is refused it waits, with a shorter step, while the others go on: one product
with each matrix per step, whatever the problems do. Problems that converged stay where they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optirank.solver.device.batch import Batch, CentredBatch
from optirank.solver.device.fused import formulas
from optirank.solver.device.kernels import best_intercept, project_rows
from optirank.solver.device.moves import (
    FORBIDDEN,
    CappedSimplexStep,
    ElasticNetStep,
    Path,
    Proximal,
    judge,
    slopes_ahead,
)

_CHECK_EVERY = 10  # steps between two looks at how many have converged: a look waits for the device


def logistic(xp: Any, z: Any, b: Any, y: Any, v: Any) -> tuple[Any, Any]:
    """Slopes and curvatures of ``v logloss(y, z + b)`` in the scores."""
    return formulas(xp).logistic(z, b[:, None], y, v)


def loss_of(xp: Any, z: Any, b: Any, y: Any, v: Any) -> Any:
    """``sum_i v_i logloss(y_i, z_i + b)`` of each problem."""
    return formulas(xp).loss(z, b[:, None], y, v).sum(axis=1)


def elastic_net(batch: Batch) -> ElasticNetStep:
    """The step of w under the penalties of each problem."""
    return ElasticNetStep(batch.l1, batch.l2)


def capped_simplex(batch: Batch, linear: Any = None) -> CappedSimplexStep:
    """The step of gamma among the sets of each problem; ``linear`` is added to the gradient."""
    return CappedSimplexStep(batch.s, batch.allowed, linear)


def project(batch: Batch, x: Any) -> Any:
    """The feasible point nearest to each row."""
    if batch.allowed is not None:
        x = batch.xp.where(batch.allowed[None, :], x, FORBIDDEN)
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
    tol: Any = None,
    z: Any = None,
) -> BlockResult:
    """Take ``n_steps`` steps on each problem; one whose residual is below its ``tol`` stops.

    ``z`` are the centred scores M x, where they are known.
    """
    xp, y, v, values = batch.xp, batch.y, batch.v, matrix.values
    z = matrix.dot(x) if z is None else z.copy()
    path = Path.start(xp, x, z, best_intercept(xp, z, y, v, b), L, tol)
    for step in range(n_steps):
        slopes = slopes_ahead(xp, path, y, v)
        product = matrix.backend.transpose_dot(slopes.single, values)
        move = proximal(xp, path, product, matrix.mean, slopes)
        judge(xp, path, move, matrix.backend.dot(values, move.single), slopes, v)
        ends = tol is not None and step % _CHECK_EVERY == _CHECK_EVERY - 1
        if ends and bool(path.done.all()):
            break
    return BlockResult(path.x, path.b, path.z, path.L, path.residual, path.taken)


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
