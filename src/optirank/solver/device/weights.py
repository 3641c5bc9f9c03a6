"""(w, b) of many problems to convergence at fixed reference weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from optirank.solver.device.batch import Batch, CentredBatch, States, exact_ranks_of, ranks_of
from optirank.solver.device.newton import newton_on_support, newton_steps
from optirank.solver.device.steps import (
    accelerated_steps,
    best_intercept,
    curvature_scale,
    elastic_net,
    logistic,
    loss_of,
)

_FIRST_STEPS = 150  # accelerated steps before Newton's method
_BURST = 30  # of them, then those that have converged are left out
_MORE_STEPS = 50  # and between its rounds, to find the support
_SMALLEST_RESIDUAL = 2e-7  # what float32 matrices resolve
_EXACT_SIZE = 300  # genes up to which the end is in float64
_ROUNDS = 8  # of Newton's method and accelerated steps, at most


def start_length(batch: Batch, matrix: CentredBatch, L: Any) -> Any:
    """The step sizes to start from: those known, else from the curvature."""
    xp = batch.xp
    unknown = L <= 0
    if not bool(unknown.any()):
        return L
    return xp.where(unknown, curvature_scale(batch, matrix), L)


def steps_on_w(batch: Batch, states: States, n_steps: int) -> States:
    """Steps on (w, b) alone at the states' reference weights."""
    xp = batch.xp
    matrix = ranks_of(batch, states.gamma)
    L = start_length(batch, matrix, states.L_w)
    done = accelerated_steps(batch, matrix, states.w, states.b, elastic_net(batch), L, n_steps)
    return with_weights(xp, batch, states, done)


def with_weights(xp: Any, batch: Batch, states: States, done: Any) -> States:
    """The states after steps on (w, b), with best intercepts and objectives."""
    b = best_intercept(xp, done.z, batch.y, batch.v, done.b)
    objective = loss_of(xp, done.z, b, batch.y, batch.v) + batch.penalty(done.x)
    n_iter = states.n_iter + done.n_steps
    return replace(states, w=done.x, b=b, objective=objective, L_w=done.L, n_iter=n_iter, z=done.z)


def fit_weights(batch: Batch, states: States, *, tol: float, max_iter: int) -> tuple[States, Any]:
    """Minimise in (w, b) at the states' gamma; the states and whether each converged.

    Converged means that the proximal gradient is below ``tol`` times the gradient at w = 0, or that
    Newton's method no longer lowers the objective.
    """
    xp = batch.xp
    matrix = ranks_of(batch, states.gamma)
    L = start_length(batch, matrix, states.L_w).copy()
    zero = xp.zeros_like(batch.v)
    b0 = best_intercept(xp, zero, batch.y, batch.v, xp.zeros(len(batch)))
    slopes, _ = logistic(xp, zero, b0, batch.y, batch.v)
    scale = xp.abs(matrix.transpose_dot(slopes)).max(axis=1)
    tols = xp.maximum(tol * scale, _SMALLEST_RESIDUAL)
    converged = xp.zeros(len(batch), bool)
    for _ in range(max(1, min(_FIRST_STEPS, max_iter) // _BURST)):
        open_, part, some = _unfinished(batch, matrix, converged)
        here = states.take(open_)
        done = accelerated_steps(
            part, some, here.w, here.b, elastic_net(part), L[open_], _BURST, tol=tols[open_]
        )
        states = states.put(open_, with_weights(xp, part, here, done))
        L[open_] = done.L
        converged[open_] = done.residual <= tols[open_]
        if bool(converged.all()):
            break
    for _ in range(_ROUNDS):
        if bool(converged.all()) or bool((states.n_iter >= max_iter).all()):
            break
        open_, part, some = _unfinished(batch, matrix, converged)
        here = states.take(open_)
        w, b, objective, decrease = newton_on_support(part, some, here.w, here.b, 5, max_iter=40)
        stalled = decrease <= 1e-9 * objective
        before = w != 0
        done = accelerated_steps(
            part, some, w, b, elastic_net(part), here.L_w, _MORE_STEPS, tol=tols[open_]
        )
        new = with_weights(xp, part, here, done)
        same = (before == (new.w != 0)).all(axis=1)
        improved = new.objective <= here.objective
        states = states.put(open_, here.better(xp, new, improved))
        ended = (done.residual <= tols[open_]) | (stalled & same) | ~improved
        converged[open_] = ended
    if batch.orders.n_genes <= _EXACT_SIZE:
        matrix = exact_ranks_of(batch, states.gamma)
        w, b, objective, _ = newton_steps(batch, matrix, states.w, states.b, 20, tol=1e-15)
        states = replace(states, w=w, b=b, objective=objective)
    return states, converged


def _unfinished(batch: Batch, matrix: CentredBatch, converged: Any) -> tuple[Any, Batch, Any]:
    """Positions, data and matrices of the problems that have not converged."""
    open_ = batch.xp.flatnonzero(~converged)
    part = batch.take(open_)
    if len(open_) == len(batch):
        return open_, part, matrix
    return open_, part, matrix.take(open_, part.v)
