"""Solve many binary problems side by side on a device; see ``solver/solve.py``
for one.

Rounds alternate between (w, b) and (gamma, b) on the relaxed problems, from two starts
each; gamma is pushed to a set, genes are exchanged, and (w, b) fitted to convergence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.solver import constants as c
from optirank.solver.problem import Solution
from optirank_lab.device import constants as here
from optirank_lab.device.blocks import (
    Batch,
    States,
    accelerated_steps,
    best_intercept,
    capped_simplex,
    coranks_of,
    elastic_net,
    loss_of,
    project,
    ranks_of,
    start_length,
    steps_on_w,
)
from optirank_lab.device.sets import (
    exchange_batches,
    exchange_pairs,
    fit_weights,
)

if TYPE_CHECKING:
    from optirank.solver.problem import Problem


def solve_together(
    problems: Sequence[Problem],
    *,
    tol: float = 1e-5,
    max_iter: int = 10_000,
    thorough: bool = True,
) -> list[Solution]:
    """Solutions of problems over the same sorted samples, as many at once as memory
    allows.

    The problems also share the candidates of the reference and the way to rank ties.
    ``thorough`` says whether exchanges are judged pair by pair after the batches. A
    grid of settings does without, as on the CPU, except where that costs next to
    nothing.
    """
    first = problems[0]
    orders = first.orders.whole
    n, d = orders.n_samples, orders.n_genes
    hessian = 32 * min(d, c.SMALL) ** 2
    matrices = int(here.COPIES * 4 * n * d)
    each = 2 * (matrices + 200 * (n + d) + hessian)  # for two starts
    orders.backend.check_memory(each, f"a fit of {n} samples x {d} genes")
    at_once = max(1, orders.backend.free_bytes() // each)
    n_allowed = d if first.candidates is None else int(first.candidates.sum())
    learned = np.array([problem.n_reference < n_allowed for problem in problems])
    solutions: dict[int, Solution] = {}
    for solve, places in (
        (_learn_sets, np.flatnonzero(learned)),
        (_fit, np.flatnonzero(~learned)),
    ):
        for begin in range(0, len(places), at_once):
            some = places[begin : begin + at_once].tolist()
            solved = solve([problems[k] for k in some], tol, max_iter, thorough)
            solutions |= dict(zip(some, solved, strict=True))
    return [solutions[k] for k in range(len(problems))]


def _fit(
    problems: Sequence[Problem], tol: float, max_iter: int, thorough: bool
) -> list[Solution]:
    """Solve problems whose reference set is all genes that may be in it: nothing
    to choose.
    """
    batch = _batch(problems, np.arange(len(problems)))
    states = tilted_starts(batch, batch.xp.ones(len(batch), bool))
    # A projection is near ones
    states = replace(states, gamma=(states.gamma > 0).astype(float))
    return _finished(batch, states, tol, max_iter, exact=thorough)


def _learn_sets(
    problems: Sequence[Problem], tol: float, max_iter: int, thorough: bool
) -> list[Solution]:
    """Solve problems whose reference set is learned."""
    orders = problems[0].orders.whole
    n, d = orders.n_samples, orders.n_genes
    cheap = n * d**2 <= c.CHEAP
    in_grid = not (thorough or cheap)
    leader = leaders(problems) if in_grid else np.arange(len(problems))
    started = np.unique(leader)
    batch = _batch(problems, np.repeat(started, len(c.STARTS)))
    rising = np.tile(np.array(c.STARTS) == "rising", len(started))
    states = tilted_starts(batch, batch.backend.array(rising))
    close = c.CLOSE if in_grid else c.FAR
    for (n_rounds, limit), margin in ((c.SCREEN, c.FAR), (c.RELAXED, close)):
        states, _ = relax(batch.with_ridge(c.RELAXED_RIDGE), states, n_rounds, limit)
        kept = _near_best(batch, states, np.inf if cheap else margin)
        batch = batch.take(kept)
        states = states.take(kept)
    if in_grid:
        batch, states = _follow(problems, leader, batch, states)
    states = push_to_sets(batch, states)
    states = exchange_batches(batch, states, c.BATCHES)
    if cheap:
        states = exchange_pairs(batch, states)
    # (w, b) of the sets are not converged yet: those that are close are compared at the
    # end
    kept = _near_best(batch, states, 0.0 if in_grid else c.CLOSE_SETS)
    batch = batch.take(kept)
    states = states.take(kept)
    if thorough and not cheap:
        states = exchange_batches(batch, states, c.BATCHES)
        if n * d <= c.MODEL_ENTRIES:
            states = exchange_pairs(batch, states)
    return _finished(batch, states, tol, max_iter, exact=thorough)


def leaders(problems: Sequence[Problem]) -> np.ndarray:
    """The problem from whose relaxed solution each problem of a grid starts, by
    position.

    Problems that differ in l2 alone start from the middle one of them, which starts on
    its own.
    """
    groups: dict[tuple, list[int]] = {}
    for k, problem in enumerate(problems):
        samples = (problem.y.tobytes(), problem.v.tobytes())
        rows = problem.orders.rows.tobytes()
        key = (*samples, rows, problem.n_reference, problem.l1)
        groups.setdefault(key, []).append(k)
    leader = np.arange(len(problems))
    for group in groups.values():
        by_ridge = sorted(group, key=lambda k: problems[k].l2)
        leader[group] = by_ridge[len(group) // 2]
    return leader


def _follow(
    problems: Sequence[Problem], leader: np.ndarray, batch: Batch, states: States
) -> tuple[Batch, States]:
    """All problems of a grid, a few rounds after the relaxed solutions of their
    leaders.
    """
    backend = batch.backend
    started = backend.host(batch.owner)
    owners = []
    places = []
    for k, own_leader in enumerate(leader):
        for place in np.flatnonzero(started == own_leader):
            owners.append(k)
            places.append(place)
    batch = _batch(problems, np.array(owners))
    states = states.take(backend.array(np.array(places)))
    states = replace(states, objective=backend.xp.full(len(places), backend.xp.inf))
    states, _ = relax(batch.with_ridge(c.RELAXED_RIDGE), states, *here.FOLLOW)
    kept = _near_best(batch, states, c.CLOSE)
    return batch.take(kept), states.take(kept)


def _batch(problems: Sequence[Problem], owner: np.ndarray) -> Batch:
    """The problems at the positions ``owner``, over all samples: those of no problem
    weigh 0.
    """
    first = problems[0]
    orders = first.orders.whole
    array = orders.backend.array
    y, v = np.zeros((2, len(problems), orders.n_samples))
    for k, problem in enumerate(problems):
        y[k, problem.orders.rows] = problem.y
        v[k, problem.orders.rows] = problem.v
    s, l1, l2 = (
        array(np.array([getattr(problems[k], name) for k in owner], dtype=float))
        for name in ("n_reference", "l1", "l2")
    )
    allowed = None if first.candidates is None else array(first.candidates)
    return Batch(
        orders,
        first.ties,
        array(y[owner]),
        array(v[owner]),
        s,
        l1,
        l2,
        array(owner),
        allowed,
    )


def _near_best(batch: Batch, states: States, margin: float) -> Any:
    """Positions of the starts within a margin of their problem's best; of equal ones
    the first.
    """
    objective, owner = map(batch.backend.host, (states.objective, batch.owner))
    best = np.full(owner.max() + 1, np.inf)
    np.minimum.at(best, owner, objective)
    kept = np.flatnonzero(objective <= best[owner] * (1.0 + margin))
    if margin == 0.0:
        kept = kept[np.unique(owner[kept], return_index=True)[1]]
    return batch.backend.array(kept)


def _finished(
    batch: Batch, states: States, tol: float, max_iter: int, *, exact: bool
) -> list[Solution]:
    """(w, b) to convergence at the final sets."""
    within = states.n_iter < max_iter
    states, converged = fit_weights(
        batch, states, tol=tol, max_iter=max_iter, exact=exact
    )
    return _packed(batch, states, converged & within)


def _packed(batch: Batch, states: States, converged: Any) -> list[Solution]:
    """The best solution of each problem, on the host, with intercepts of plain
    ranks.
    """
    kept = _near_best(batch, states, 0.0)
    batch = batch.take(kept)
    states = states.take(kept)
    converged = converged[kept]
    backend = batch.backend
    z = backend.dot(ranks_of(batch, states.gamma, exact=True).values, states.w)
    b = best_intercept(batch, z, batch.xp.zeros(len(batch)), 30)
    objective = loss_of(batch, z, b) + batch.penalty(states.w)
    columns = (states.w, b, states.gamma, objective, states.n_iter, converged)
    packed = []
    for w, b_one, gamma, value, n_iter, done in zip(
        *map(backend.host, columns), strict=True
    ):
        path = [{"stage": "end", "objective": float(value)}]
        packed.append(
            Solution(
                w, float(b_one), gamma, float(value), int(n_iter), bool(done), path
            )
        )
    return packed


def tilted_starts(batch: Batch, rising: Any) -> States:
    """Gamma tilted to the genes whose ranks rise with the label, or that fall; one
    start per row.

    See ``solver/solve.py``: these lead to the two minima of the problem.
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
        xp.zeros((size, d)),
        zeros,
        gamma,
        xp.full(size, xp.inf),
        zeros,
        zeros,
        xp.zeros(size, xp.int64),
        xp.zeros_like(batch.v),
        xp.full(size, -1),
    )


def one_round(
    batch: Batch, states: States, push: Any = None, *, first: bool = False
) -> States:
    """A few steps on (w, b), then on (gamma, b) with the tangent of the push penalty.

    The scores ``R(gamma) w = V(w) gamma`` are those of both blocks, so that each starts
    from what the other left. In a ``first`` round the step sizes may not be known yet;
    to look whether they are waits for the device.
    """
    matrix = ranks_of(batch, states.gamma)
    L = start_length(batch, matrix, states.L_w) if first else states.L_w
    steps = c.INNER_STEPS
    on_w = accelerated_steps(
        batch, matrix, states.w, states.b, elastic_net(batch), L, steps, z=states.z
    )
    matrix = coranks_of(batch, on_w.x)
    L = start_length(batch, matrix, states.L_gamma) if first else states.L_gamma
    linear = None if push is None else push[:, None] * (1.0 - 2.0 * states.gamma)
    in_set = capped_simplex(batch, linear)
    on_gamma = accelerated_steps(
        batch, matrix, states.gamma, on_w.b, in_set, L, steps, z=on_w.z
    )
    b = best_intercept(batch, on_gamma.z, on_w.b, 5)
    objective = loss_of(batch, on_gamma.z, b) + batch.penalty(on_w.x)
    n_iter = states.n_iter + on_w.n_steps + on_gamma.n_steps
    return States(
        on_w.x,
        b,
        on_gamma.x,
        objective,
        on_w.L,
        on_gamma.L,
        n_iter,
        on_gamma.z,
        states.swap,
    )


def relax(
    batch: Batch, states: States, n_rounds: int, tol: float
) -> tuple[States, Any]:
    """Rounds on the relaxed problems until one lowers an objective by less than ``tol``
    of it.

    A round that takes no step, its steps being too long, says nothing about
    convergence.
    """
    xp = batch.xp
    active = xp.arange(len(batch))
    converged = xp.zeros(len(batch), bool)
    for k in range(n_rounds):
        current = states.take(active)
        new = one_round(batch.take(active), current, first=k == 0)
        little = current.objective - new.objective < tol * new.objective
        done = little & (new.n_iter > current.n_iter)
        kept = current.better(xp, new, ~done | (new.objective <= current.objective))
        states = states.put(active, kept)
        converged[active] = done
        active = active[~done]
        if not len(active):
            break
    return states, converged


def push_to_sets(batch: Batch, states: States) -> States:
    """Raise the push penalty a little each round until gamma is a set; round what
    is left.
    """
    xp = batch.xp
    rise = (
        100 * c.PUSH_STEP * loss_of(batch, xp.zeros_like(batch.v), xp.zeros(len(batch)))
    )
    on_the_way, lambda_p = batch.with_ridge(c.RELAXED_RIDGE), xp.zeros(len(batch))
    for _ in range(c.PUSH_ROUNDS):
        rho = (states.gamma * (1.0 - states.gamma)).sum(axis=1)
        active = xp.flatnonzero(rho >= c.INTEGRAL)
        if not len(active):
            break
        lambda_p[active] += (rise / xp.maximum(rho, 1e-300))[active]
        new = one_round(on_the_way.take(active), states.take(active), lambda_p[active])
        states = states.put(active, new)
    gamma = states.gamma
    if batch.allowed is not None:
        gamma = xp.where(batch.allowed[None, :], gamma, -1.0)
    places = xp.argsort(xp.argsort(-gamma, axis=1), axis=1)
    rounded = (places < batch.s[:, None]).astype(xp.float64)
    return steps_on_w(batch, replace(states, gamma=rounded), c.REFIT_STEPS)
