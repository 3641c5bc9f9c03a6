"""Newton steps and Hessian solves on many problems, on the support of w.

The Hessian is ``M^T D M + 2 l2 I`` with the intercept eliminated. Small ones are factored. Others
are used through their products alone, by conjugate gradients: products are what a GPU does best.
"""

from __future__ import annotations

from typing import Any

from optirank.solver.device.batch import Batch, CentredBatch
from optirank.solver.device.steps import best_intercept, logistic, loss_of

_CHECK_EVERY = 8
_LOST = 1e-6  # of the largest entry of the diagonal: what sums in float32 do not resolve
FACTORED = 300  # genes up to which the Hessian is factored


def solve_hessian(
    batch: Batch,
    matrix: CentredBatch,
    curvatures: Any,
    support: Any,
    right: Any,
    *,
    tol: float = 1e-5,
    max_iter: int = 60,
) -> Any:
    """``H^-1 right`` on the support, for m right-hand sides per problem: (B, d, m).

    The diagonal preconditions; each right-hand side has its own steps.
    """
    xp = batch.xp
    if matrix.n_columns <= FACTORED:
        return _solve_factored(batch, matrix, curvatures, support, right)
    mask = support[:, :, None].astype(xp.float64)
    square = batch.backend.transpose_dot(curvatures.astype(xp.float32), matrix.values**2)
    square = square.astype(xp.float64)[:, :, None]
    ridge = (2.0 * batch.l2)[:, None, None] + _LOST * square.max(axis=1, keepdims=True) + 1e-30
    diagonal = square + ridge
    weights = curvatures[:, :, None].astype(xp.float32)
    total = xp.maximum(curvatures.sum(axis=1), 1e-30)[:, None, None]

    def product(p: Any) -> Any:
        u = matrix.dot_many(p)
        u = u - (weights * u).sum(axis=1, keepdims=True) / total.astype(xp.float32)
        return mask * (matrix.transpose_dot_many(weights * u) + ridge * p)

    right = right * mask
    x = xp.zeros_like(right)
    r = right
    z = r / diagonal
    p = z
    rz = (r * z).sum(axis=1, keepdims=True)
    limit = tol * tol * xp.maximum((right * right).sum(axis=1, keepdims=True), 1e-300)
    active = xp.ones(rz.shape, bool)
    for step in range(max_iter):
        q = product(p)
        bent = (p * q).sum(axis=1, keepdims=True)
        active = active & ((r * r).sum(axis=1, keepdims=True) > limit) & (bent > 0)
        alpha = xp.where(active, rz / xp.where(active, bent, 1.0), 0.0)
        x = x + alpha * p
        r = r - alpha * q
        z = r / diagonal
        new = (r * z).sum(axis=1, keepdims=True)
        p = xp.where(active, z + new / xp.where(active, rz, 1.0) * p, 0.0)
        rz = new
        if step % _CHECK_EVERY == _CHECK_EVERY - 1 and not bool(active.any()):
            break
    return x


def _solve_factored(
    batch: Batch, matrix: CentredBatch, curvatures: Any, support: Any, right: Any
) -> Any:
    xp = batch.xp
    values = matrix.values
    total = xp.maximum(curvatures.sum(axis=1), 1e-30)
    mean = batch.backend.transpose_dot(curvatures.astype(values.dtype), values) / total[:, None]
    scaled = (values - mean[:, None, :].astype(values.dtype)) * xp.sqrt(curvatures)[
        :, :, None
    ].astype(values.dtype)
    system = xp.matmul(scaled.transpose(0, 2, 1), scaled).astype(xp.float64)
    both = support[:, :, None] & support[:, None, :]
    system = xp.where(both, system, 0.0)
    lost = 1e-9 if values.dtype == xp.float32 else 1e-14
    largest = xp.diagonal(system, axis1=1, axis2=2).max(axis=1)
    ridge = 2.0 * batch.l2 + lost * largest + 1e-30
    diagonal = xp.where(support, ridge[:, None], 1.0)
    system = system + diagonal[:, :, None] * xp.eye(matrix.n_columns)
    return xp.linalg.solve(system, xp.where(support[:, :, None], right, 0.0))


def newton_steps(
    batch: Batch,
    matrix: CentredBatch,
    w: Any,
    b: Any,
    n_steps: int,
    *,
    max_iter: int = 60,
    tol: float = 1e-9,
) -> tuple[Any, Any, Any, Any]:
    """Damped Newton steps on (w, b), each weight kept on its side of zero where l1 > 0.

    Returns w, b, the objectives and the last decreases of them. A problem whose step does not
    lower its objective stays where it is.
    """
    xp, y, v = batch.xp, batch.y, batch.v
    sign = xp.sign(w)
    support = xp.where((batch.l1 > 0)[:, None], w != 0, True)
    l1, l2 = batch.l1[:, None], batch.l2[:, None]
    z = matrix.dot(w)
    b = best_intercept(xp, z, y, v, b)
    objective = loss_of(xp, z, b, y, v) + batch.penalty(w)
    decrease = xp.full_like(b, xp.inf)
    for _ in range(n_steps):
        slopes, curvatures = logistic(xp, z, b, y, v)
        gradient = matrix.transpose_dot(slopes) + 2.0 * l2 * w + l1 * sign
        direction = solve_hessian(
            batch, matrix, curvatures, support, gradient[:, :, None], tol=1e-3, max_iter=max_iter
        )[:, :, 0]
        length = xp.ones_like(b)
        improved = xp.zeros(len(b), bool)
        best = (w, b, z, objective)
        for _ in range(5):
            new = w - length[:, None] * direction
            new = xp.where(l1 > 0, xp.where(new * sign < 0, 0.0, new), new)
            z_new = matrix.dot(new)
            b_new = best_intercept(xp, z_new, y, v, b, 5)
            value = loss_of(xp, z_new, b_new, y, v) + batch.penalty(new)
            good = (value < objective) & ~improved
            column = good[:, None]
            best = (
                xp.where(column, new, best[0]), xp.where(good, b_new, best[1]),
                xp.where(column, z_new, best[2]), xp.where(good, value, best[3]),
            )  # fmt: skip
            improved |= good
            if bool(improved.all()):
                break
            length = xp.where(improved, length, 0.4 * length)
        decrease = objective - best[3]
        w, b, z, objective = best
        if bool((decrease <= tol * objective).all()):
            break
    return w, b, objective, decrease
