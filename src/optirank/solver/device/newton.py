"""Newton steps and Hessian solves on many problems, on the support of w.

The Hessian is ``M^T D M + 2 l2 I`` with the intercept eliminated. Small ones are factored. Others
are used through their products alone, by conjugate gradients: products are what a GPU does best.
"""

from __future__ import annotations

from typing import Any

from optirank.solver.device.batch import Batch, CentredBatch
from optirank.solver.device.kernels import ConjugateGradients, weigh_scores
from optirank.solver.device.steps import best_intercept, logistic, loss_of

_CHECK_EVERY = 8
_LOST = 1e-6  # of the largest entry of the diagonal: what sums in float32 do not resolve
_NARROW = 1e-4  # of a column's mean square, the least variance that its diagonal is given
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
    backend, values = batch.backend, matrix.values
    weights = curvatures.astype(xp.float32)
    square = backend.transpose_dot(weights, values * values).astype(xp.float64)
    first = backend.transpose_dot(weights, values).astype(xp.float64)
    total = xp.maximum(curvatures.sum(axis=1), 1e-30)[:, None]
    spread = xp.maximum(square - first * first / total, _NARROW * square)
    ridge = 2.0 * batch.l2 + _LOST * square.max(axis=1) + 1e-30
    found = ConjugateGradients(
        xp, right.transpose(0, 2, 1), support, spread + ridge[:, None], ridge, tol
    )
    for step in range(max_iter):
        u = backend.rows_dot(values, found.direction)
        found.step(backend.rows_transpose_dot(values, weigh_scores(xp, u, weights)))
        if step % _CHECK_EVERY == _CHECK_EVERY - 1 and not bool(found.active.any()):
            break
    return found.x.transpose(0, 2, 1)


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


def newton_on_support(
    batch: Batch, matrix: CentredBatch, w: Any, b: Any, n_steps: int, *, max_iter: int
) -> tuple[Any, Any, Any, Any]:
    """The same; problems whose weights are few take their steps on those columns alone."""
    xp, host = batch.xp, batch.backend.host
    few = min(FACTORED, matrix.n_columns // 4)
    sizes = host(xp.where(batch.l1 > 0, (w != 0).sum(axis=1), matrix.n_columns))
    small = sizes <= few
    if not small.any():
        return newton_steps(batch, matrix, w, b, n_steps, max_iter=max_iter)
    w, b = w.copy(), b.copy()
    objective, decrease = xp.empty_like(b), xp.empty_like(b)
    for mask, on_columns in ((small, True), (~small, False)):
        if not mask.any():
            continue
        some = batch.backend.array(mask.nonzero()[0])
        part, own = batch.take(some), w[some]
        if on_columns:
            n_columns = max(1, int(sizes[mask].max()))
            columns = xp.argsort(own == 0, axis=1)[:, :n_columns]
            here = matrix.few_columns_of(some, columns, part.v)
            found, *rest = newton_steps(
                part, here, xp.take_along_axis(own, columns, axis=1), b[some], n_steps
            )
            own = xp.zeros_like(own)
            own[xp.arange(len(some))[:, None], columns] = found
        else:
            here = matrix.take(some, part.v)
            own, *rest = newton_steps(part, here, own, b[some], n_steps, max_iter=max_iter)
        w[some] = own
        b[some], objective[some], decrease[some] = rest
    return w, b, objective, decrease
