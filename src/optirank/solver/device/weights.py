"""(w, b) of many problems at fixed reference weights: steps, Newton's method,
convergence.

The Hessian is ``M^T D M + 2 l2 I`` with the intercept eliminated. Small ones are
factored. Others are used through their products alone, by conjugate gradients: products
are what a GPU does best.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from optirank.solver import constants as c
from optirank.solver.device.backend import threads_for
from optirank.solver.device.blocks import (
    Batch,
    BatchResult,
    CentredBatch,
    States,
    accelerated_steps,
    best_intercept,
    elastic_net,
    logistic,
    loss_of,
    ranks_of,
    start_length,
)


def steps_on_w(batch: Batch, states: States, n_steps: int) -> States:
    """Steps on (w, b) alone at the states' reference weights."""
    matrix = ranks_of(batch, states.gamma)
    L = start_length(batch, matrix, states.L_w)
    done = accelerated_steps(
        batch, matrix, states.w, states.b, elastic_net(batch), L, n_steps
    )
    return with_weights(batch, states, done)


def with_weights(batch: Batch, states: States, done: BatchResult) -> States:
    """The states after steps on (w, b), with best intercepts and objectives."""
    b = best_intercept(batch, done.z, done.b)
    objective = loss_of(batch, done.z, b) + batch.penalty(done.x)
    n_iter = states.n_iter + done.taken
    return replace(
        states, w=done.x, b=b, objective=objective, L_w=done.L, n_iter=n_iter, z=done.z
    )


def fit_weights(
    batch: Batch, states: States, *, tol: float, max_iter: int, exact: bool = True
) -> tuple[States, Any]:
    """Minimise in (w, b) at the states' gamma; the states and whether each converged.

    Converged means that the proximal gradient is below ``tol`` times the gradient at w
    = 0. Steps also end, at ``max_iter`` at most, where they no longer lower an
    objective: whether such a problem has converged is then measured. ``exact`` ends
    problems of few weights in float64, as on the CPU.
    """
    xp = batch.xp
    matrix = ranks_of(batch, states.gamma)
    states = replace(states, L_w=start_length(batch, matrix, states.L_w))
    tols = xp.maximum(tol * _gradient_at_zero(batch, matrix), c.SMALLEST_RESIDUAL)
    reached, ended = xp.zeros(len(batch), bool), xp.zeros(len(batch), bool)
    spent = 0
    while spent < max_iter and not bool(ended.all()):
        open_ = xp.flatnonzero(~ended)
        part, current = batch.take(open_), states.take(open_)
        some = matrix if len(open_) == len(batch) else matrix.take(open_, part.v)
        w, b, stalled = current.w, current.b, xp.zeros(len(open_), bool)
        newton = spent >= c.FIRST_STEPS
        if newton:
            w, b, objective, decrease = newton_on_support(
                part, some, w, b, c.NEWTON_STEPS
            )
            stalled = decrease <= c.STALLED * objective
        n_steps = min(c.MORE_STEPS, max_iter - spent)
        done = accelerated_steps(
            part, some, w, b, elastic_net(part), current.L_w, n_steps, tol=tols[open_]
        )
        spent += n_steps + c.NEWTON_STEPS * newton
        new = with_weights(part, current, done)
        improved = (new.objective <= current.objective) | (not newton)
        same_support = ((w != 0) == (new.w != 0)).all(axis=1)
        states = states.put(open_, current.better(xp, new, improved))
        reached[open_] = improved & (done.residual <= tols[open_])
        ended[open_] = reached[open_] | (stalled & same_support) | ~improved
    del matrix
    few = xp.flatnonzero(_n_weights(batch, states.w) <= c.SMALL)
    if exact and len(few):
        part, current = batch.take(few), states.take(few)
        matrix = ranks_of(part, current.gamma, exact=True)
        w, b, objective, _ = newton_on_support(
            part, matrix, current.w, current.b, 20, tol=1e-15
        )
        states = states.put(few, replace(current, w=w, b=b, objective=objective))
        del matrix
    open_ = xp.flatnonzero(~reached)
    if len(open_):
        reached[open_] = _residual(batch.take(open_), states.take(open_)) <= tols[open_]
    return states, reached


def _gradient_at_zero(batch: Batch, matrix: CentredBatch) -> Any:
    """Largest entry of the gradient in w at w = 0."""
    zero = batch.xp.zeros_like(batch.v)
    b = best_intercept(batch, zero, batch.xp.zeros(len(batch)))
    return batch.xp.abs(matrix.transpose_dot(logistic(batch, zero, b)[0])).max(axis=1)


def _residual(batch: Batch, states: States) -> Any:
    """Largest entry of the proximal gradient in w, in float64."""
    xp, w = batch.xp, states.w
    matrix = ranks_of(batch, states.gamma, exact=True)
    z = matrix.dot(w)
    slopes, _ = logistic(batch, z, best_intercept(batch, z, states.b, 30))
    L, l1, l2 = (values[:, None] for values in (states.L_w, batch.l1, batch.l2))
    u = L * w - matrix.transpose_dot(slopes)
    to = xp.sign(u) * xp.maximum(xp.abs(u) - l1, 0.0) / (L + 2.0 * l2)
    return (L * xp.abs(to - w)).max(axis=1)


def _n_weights(batch: Batch, w: Any) -> Any:
    """How many weights of each problem Newton steps change."""
    return batch.xp.where(batch.l1 > 0, (w != 0).sum(axis=1), w.shape[1])


def newton_on_support(
    batch: Batch,
    matrix: CentredBatch,
    w: Any,
    b: Any,
    n_steps: int,
    *,
    tol: float = c.STALLED,
) -> tuple[Any, Any, Any, Any]:
    """As :func:`newton_steps`, on the columns of the weights alone where these
    are few.
    """
    xp = batch.xp
    n_columns = max(1, int(_n_weights(batch, w).max()))
    if n_columns > min(c.SMALL, matrix.n_columns - 1):
        return newton_steps(batch, matrix, w, b, n_steps, tol=tol)
    columns = xp.argsort(w == 0, axis=1)[:, :n_columns]
    values = xp.take_along_axis(matrix.values, columns[:, None, :], axis=2)
    part = CentredBatch(batch.backend, values, batch.v)
    taken = xp.take_along_axis(w, columns, axis=1)
    weights, *rest = newton_steps(batch, part, taken, b, n_steps, tol=tol)
    w = xp.zeros_like(w)
    w[xp.arange(len(w))[:, None], columns] = weights
    return (w, *rest)


def newton_steps(
    batch: Batch,
    matrix: CentredBatch,
    w: Any,
    b: Any,
    n_steps: int,
    *,
    tol: float = c.STALLED,
) -> tuple[Any, Any, Any, Any]:
    """Damped Newton steps on (w, b), each weight kept on its side of zero where l1 > 0.

    Returns w, b, the objectives and the last decreases of them. A problem whose step
    does not lower its objective stays where it is.
    """
    xp = batch.xp
    sign = xp.sign(w)
    support = xp.where((batch.l1 > 0)[:, None], w != 0, True)
    l1, l2 = batch.l1[:, None], batch.l2[:, None]
    z = matrix.dot(w)
    b = best_intercept(batch, z, b)
    objective = loss_of(batch, z, b) + batch.penalty(w)
    decrease = xp.full_like(b, xp.inf)
    for _ in range(n_steps):
        slopes, curvatures = logistic(batch, z, b)
        gradient = matrix.transpose_dot(slopes) + 2.0 * l2 * w + l1 * sign
        right = gradient[:, :, None]
        direction = solve_hessian(batch, matrix, curvatures, support, right)[:, :, 0]
        length = xp.ones_like(b)
        improved = xp.zeros(len(b), bool)
        best = (w, b, z, objective)
        for _ in range(5):
            new = w - length[:, None] * direction
            new = xp.where(l1 > 0, xp.where(new * sign < 0, 0.0, new), new)
            z_new = matrix.dot(new)
            b_new = best_intercept(batch, z_new, b, 5)
            value = loss_of(batch, z_new, b_new) + batch.penalty(new)
            good = (value < objective) & ~improved
            column = good[:, None]
            best = (
                xp.where(column, new, best[0]),
                xp.where(good, b_new, best[1]),
                xp.where(column, z_new, best[2]),
                xp.where(good, value, best[3]),
            )
            improved |= good
            if bool(improved.all()):
                break
            length = xp.where(improved, length, 0.4 * length)
        decrease = objective - best[3]
        w, b, z, objective = best
        if bool((decrease <= tol * objective).all()):
            break
    return w, b, objective, decrease


def solve_hessian(
    batch: Batch, matrix: CentredBatch, curvatures: Any, support: Any, right: Any
) -> Any:
    """``H^-1 right`` on the support, for m right-hand sides per problem: (B, d, m)."""
    solve = _solve_factored if matrix.n_columns <= c.SMALL else _conjugate_gradients
    return solve(batch, matrix, curvatures, support, right)


def _conjugate_gradients(
    batch: Batch, matrix: CentredBatch, curvatures: Any, support: Any, right: Any
) -> Any:
    """As :func:`solve_hessian`, with the diagonal of H as the preconditioner.

    A right-hand side ends when its residual is below ``CG_TOL`` times its norm.
    """
    xp, backend, values = batch.xp, batch.backend, matrix.values
    (size, n), (d, m) = curvatures.shape, right.shape[1:]
    n_, d_, m_ = map(xp.int32, (n, d, m))
    weights = xp.ascontiguousarray(curvatures, dtype=xp.float32)
    square = backend.transpose_dot(weights, values * values).astype(xp.float64)
    first = backend.transpose_dot(weights, values).astype(xp.float64)
    total = xp.maximum(curvatures.sum(axis=1), 1e-30)[:, None]
    # A column of little spread keeps a part of its mean square that float32 sums
    # resolve
    spread = xp.maximum(square - first * first / total, 1e-4 * square)
    ridge = 2.0 * batch.l2 + 1e-6 * square.max(axis=1) + 1e-30
    diagonal = spread + ridge[:, None]
    support = xp.ascontiguousarray(support)
    r = xp.ascontiguousarray(
        xp.where(support[:, None, :], right.transpose(0, 2, 1), 0.0)
    )
    x, p = xp.zeros_like(r), r / diagonal[:, None, :]
    single, weighted = p.astype(xp.float32), xp.empty((size, m, n), xp.float32)
    rz, limit = (
        (r * p).sum(axis=2),
        c.CG_TOL**2 * xp.maximum((r * r).sum(axis=2), 1e-300),
    )
    active = xp.ones((size, m), bool)
    for step in range(c.CG_STEPS):
        u = xp.ascontiguousarray(backend.dot(values, single))
        arguments = (u, weights, n_, m_, weighted)
        backend.launch("weigh_scores", (size * m,), threads_for(n), arguments)
        product = xp.ascontiguousarray(backend.transpose_dot(weighted, values))
        arguments = (
            product,
            diagonal,
            support,
            ridge,
            limit,
            d_,
            m_,
            x,
            r,
            p,
            single,
            rz,
            active,
        )
        backend.launch("gradient_step", (size * m,), threads_for(d), arguments)
        if step % c.CHECK_EVERY == c.CHECK_EVERY - 1 and not bool(active.any()):
            break
    return x.transpose(0, 2, 1)


def _solve_factored(
    batch: Batch, matrix: CentredBatch, curvatures: Any, support: Any, right: Any
) -> Any:
    xp, values = batch.xp, matrix.values
    dtype = values.dtype
    total = xp.maximum(curvatures.sum(axis=1), 1e-30)
    mean = (
        batch.backend.transpose_dot(curvatures.astype(dtype), values) / total[:, None]
    )
    roots = xp.sqrt(curvatures)[:, :, None].astype(dtype)
    scaled = (values - mean[:, None, :].astype(dtype)) * roots
    system = xp.matmul(scaled.transpose(0, 2, 1), scaled).astype(xp.float64)
    system = xp.where(support[:, :, None] & support[:, None, :], system, 0.0)
    lost = 1e-9 if dtype == xp.float32 else 1e-14  # by sums in this precision
    largest = xp.diagonal(system, axis1=1, axis2=2).max(axis=1)
    ridge = 2.0 * batch.l2 + lost * largest + 1e-30
    diagonal = xp.where(support, ridge[:, None], 1.0)
    system = system + diagonal[:, :, None] * xp.eye(matrix.n_columns)
    return xp.linalg.solve(system, xp.where(support[:, :, None], right, 0.0))
