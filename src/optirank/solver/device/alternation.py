"""Rounds that alternate between (w, b) and (gamma, b) on many problems in lock step."""

from __future__ import annotations

from typing import Any

from optirank.solver.device.batch import Batch, States, coranks_of, ranks_of
from optirank.solver.device.steps import (
    accelerated_steps,
    best_intercept,
    capped_simplex,
    elastic_net,
    loss_of,
    project,
)
from optirank.solver.device.weights import start_length, steps_on_w

INNER_STEPS = 4  # of each block per round; a refused step counts, so one more than on the CPU


def tilted_starts(batch: Batch, rising: Any) -> States:
    """Gamma tilted to the genes whose ranks rise with the label, or that fall; one start per row.

    See ``solver/alternation.py``: these lead to the two minima of the problem.
    """
    xp = batch.xp
    d, size = batch.orders.n_genes, len(batch)
    allowed = xp.ones(d, bool) if batch.allowed is None else batch.allowed
    share = batch.s / float(allowed.sum())
    matrix = ranks_of(batch, xp.where(allowed[None, :], share[:, None], 0.0))
    covariance = matrix.transpose_dot(batch.v * (batch.y - 0.5))
    places = xp.argsort(xp.argsort(covariance, axis=1), axis=1) / max(1, d - 1)
    tilt = xp.where(rising[:, None], places, 1.0 - places)
    gamma = project(batch, 2.0 * share[:, None] * tilt)
    zeros = xp.zeros(size)
    return States(
        xp.zeros((size, d)), zeros, gamma, xp.full(size, xp.inf), zeros, zeros,
        xp.zeros(size, xp.int64), xp.zeros_like(batch.v),
    )  # fmt: skip


def one_round(batch: Batch, states: States, push: Any = None, *, first: bool = False) -> States:
    """A few steps on (w, b), then on (gamma, b) with the tangent of the push penalty.

    The scores ``R(gamma) w = V(w) gamma`` are those of both blocks, so that each starts from what
    the other left. In a ``first`` round the step sizes may not be known yet; to look whether they
    are waits for the device.
    """
    xp = batch.xp
    matrix = ranks_of(batch, states.gamma)
    L = start_length(batch, matrix, states.L_w) if first else states.L_w
    on_w = accelerated_steps(
        batch, matrix, states.w, states.b, elastic_net(batch), L, INNER_STEPS, z=states.z
    )
    matrix = coranks_of(batch, on_w.x)
    L = start_length(batch, matrix, states.L_gamma) if first else states.L_gamma
    linear = None if push is None else push[:, None] * (1.0 - 2.0 * states.gamma)
    on_gamma = accelerated_steps(
        batch, matrix, states.gamma, on_w.b, capped_simplex(batch, linear), L, INNER_STEPS, z=on_w.z
    )
    b = best_intercept(xp, on_gamma.z, batch.y, batch.v, on_w.b, 5)
    objective = loss_of(xp, on_gamma.z, b, batch.y, batch.v) + batch.penalty(on_w.x)
    n_iter = states.n_iter + on_w.n_steps + on_gamma.n_steps
    return States(on_w.x, b, on_gamma.x, objective, on_w.L, on_gamma.L, n_iter, on_gamma.z)


def relax(batch: Batch, states: States, n_rounds: int, tol: float) -> tuple[States, Any]:
    """Rounds on the relaxed problems until one lowers an objective by less than ``tol`` of it."""
    xp = batch.xp
    active = xp.arange(len(batch))
    converged = xp.zeros(len(batch), bool)
    for k in range(n_rounds):
        here = states.take(active)
        new = one_round(batch.take(active), here, first=k == 0)
        done = here.objective - new.objective < tol * new.objective
        kept = here.better(xp, new, ~done | (new.objective <= here.objective))
        states = states.put(active, kept)
        converged[active] = done
        active = active[~done]
        if not len(active):
            break
    return states, converged


def push_to_sets(batch: Batch, on_the_way: Batch, states: States, step: float, n_rounds: int):
    """Raise the push penalty a little each round until gamma is a set; round what is left."""
    xp = batch.xp
    rise = step * loss_of(xp, xp.zeros_like(batch.v), xp.zeros(len(batch)), batch.y, batch.v)
    lambda_p = xp.zeros(len(batch))
    active = xp.arange(len(batch))
    for _ in range(n_rounds):
        rho = (states.gamma * (1.0 - states.gamma)).sum(axis=1)
        active = active[rho[active] >= 1e-3]
        if not len(active):
            break
        lambda_p[active] += (rise / xp.maximum(rho, 1e-300))[active]
        new = one_round(on_the_way.take(active), states.take(active), lambda_p[active])
        states = states.put(active, new)
    gamma = largest(batch, states.gamma)
    arrays = {**vars(states), "gamma": gamma}
    return steps_on_w(batch, States(**arrays), 35)


def largest(batch: Batch, gamma: Any) -> Any:
    """The s largest entries of each row as ones, the rest zeros."""
    xp = batch.xp
    if batch.allowed is not None:
        gamma = xp.where(batch.allowed[None, :], gamma, -1.0)
    places = xp.argsort(xp.argsort(-gamma, axis=1), axis=1)
    return (places < batch.s[:, None]).astype(xp.float64)
