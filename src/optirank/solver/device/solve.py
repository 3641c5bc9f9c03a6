"""Solve many binary problems side by side on a device; see ``solver/alternating.py`` for one.

Rounds alternate between (w, b) and (gamma, b) on the relaxed problems, from two starts each; gamma
is pushed to a set, genes are exchanged, and (w, b) fitted to convergence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.solver.device import constants as c
from optirank.solver.device.batch import Batch, States, coranks_of, exact_ranks_of, ranks_of
from optirank.solver.device.exchange import exchange_batches, exchange_pairs
from optirank.solver.device.steps import (
    accelerated_steps,
    best_intercept,
    capped_simplex,
    elastic_net,
    loss_of,
    project,
    start_length,
)
from optirank.solver.device.weights import fit_weights, steps_on_w
from optirank.solver.problem import RIDGE_FLOOR, Solution

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.device.orders import DeviceOrders

SIDES = ("rising", "falling")


@dataclass(frozen=True)
class Setting:
    """One problem of a batch: labels, weights, size, penalties and where to start."""

    y: NDArray  # (n,) of 0.0 and 1.0
    v: NDArray  # (n,) summing to 1; 0 for samples that are held out
    n_reference: int
    l1: float
    l2: float
    side: str = "best"  # or "rising", "falling"


@dataclass
class DeviceSolution:
    """A solution and the scores it gives to all samples, those of weight zero included."""

    solution: Solution
    scores: NDArray


@dataclass(frozen=True)
class Options:
    """How to solve; see :func:`optirank.solver.alternating.solve_alternating`.

    ``thorough`` carries both starts further and judges exchanges pair by pair after the batches; a
    grid of settings does without, as on the CPU, except where that costs next to nothing.
    """

    ties: str = "average"
    tol: float = 1e-5
    max_iter: int = 10_000
    path_step: float = 100.0
    integral: bool = True
    polish: bool = True
    refit: bool = True
    thorough: bool = True
    candidates: NDArray | None = None  # mask of the genes that may be in a reference set


def solve_batch(
    orders: DeviceOrders, settings: Sequence[Setting], options: Options | None = None
) -> list[DeviceSolution]:
    """Solutions of many problems over the same samples, as many at once as memory allows."""
    options = options or Options()
    n, d = orders.n_samples, orders.n_genes
    matrices = int(c.COPIES * 4 * n * d)
    free = orders.backend.free_bytes()
    found: list[DeviceSolution | None] = [None] * len(settings)
    full = [k for k, one in enumerate(settings) if one.n_reference == d]
    learned = [k for k, one in enumerate(settings) if one.n_reference < d]
    # Full ranks are one matrix for all problems, of which each has its Hessian only
    hessian = 12 * n * d + 32 * d * d if d <= c.EXACT_SIZE else 0
    plans = (
        (_fit_full_ranks, full, matrices, 200 * (n + d) + hessian),
        (_learn_sets, learned, 0, 2 * (matrices + 200 * (n + d))),  # for two starts
    )
    for solve, places, once, each in plans:
        if places:
            orders.backend.check_memory(once + each, f"a fit of {n} samples x {d} genes")
        at_once = max(1, (free - once) // each)
        for begin in range(0, len(places), at_once):
            some = places[begin : begin + at_once]
            solutions = solve(orders, [settings[k] for k in some], options)
            for k, one in zip(some, solutions, strict=True):
                found[k] = one
    return found


def _fit_full_ranks(
    orders: DeviceOrders, settings: Sequence[Setting], options: Options
) -> list[DeviceSolution]:
    """All genes are in the reference set: nothing to choose."""
    batch = replace(_batch(orders, settings, options), same_set=True)
    xp = batch.xp
    states = tilted_starts(batch, xp.ones(len(batch), bool))
    states = replace(states, gamma=xp.ones_like(states.gamma))  # a projection is near it only
    return _finished(batch, states, xp.arange(len(batch)), replace(options, refit=True))


def _learn_sets(
    orders: DeviceOrders, settings: Sequence[Setting], options: Options
) -> list[DeviceSolution]:
    backend, n_owners = orders.backend, len(settings)
    cheap = orders.n_samples * orders.n_genes**2 <= c.CHEAP
    alone = options.thorough or cheap or not options.integral
    leader = np.arange(n_owners) if alone else leaders(settings)
    starts = [
        (k, side)
        for k in np.unique(leader)
        for side in (SIDES if settings[k].side == "best" else (settings[k].side,))
    ]
    batch = _batch(orders, [settings[k] for k, _ in starts], options)
    owner = backend.array(np.array([k for k, _ in starts]))
    rising = backend.array(np.array([side == "rising" for _, side in starts]))
    states = tilted_starts(batch, rising)
    if not options.integral:
        states, converged = relax(batch, states, max(1, options.max_iter // 6), options.tol)
        kept = _near_best(batch, states, owner, n_owners, 0.0)
        return _packed(batch.take(kept), states.take(kept), owner[kept], converged[kept])

    close = c.CLOSE if options.thorough else c.CLOSE_IN_GRIDS
    for (rounds, stop), margin in ((c.SCREEN, c.FAR), (c.RELAXED, close)):
        states, _ = relax(batch.with_ridge(c.RELAXED_RIDGE), states, rounds, stop)
        kept = _near_best(batch, states, owner, n_owners, np.inf if cheap else margin)
        batch, states, owner = batch.take(kept), states.take(kept), owner[kept]
    if len(np.unique(leader)) < n_owners:
        places = backend.host(owner)
        pairs = [(k, p) for k, one in enumerate(leader) for p in np.flatnonzero(places == one)]
        batch = _batch(orders, [settings[k] for k, _ in pairs], options)
        owner = backend.array(np.array([k for k, _ in pairs]))
        states = states.take(backend.array(np.array([p for _, p in pairs])))
        states = replace(states, objective=backend.xp.full(len(pairs), np.inf))
        states, _ = relax(batch.with_ridge(c.RELAXED_RIDGE), states, *c.FOLLOW)
        kept = _near_best(batch, states, owner, n_owners, close)
        batch, states, owner = batch.take(kept), states.take(kept), owner[kept]
    on_the_way = batch.with_ridge(c.RELAXED_RIDGE)
    states = push_to_sets(batch, on_the_way, states, c.PUSH_STEP * options.path_step)
    large = orders.n_samples * orders.n_genes > c.LARGE
    if options.polish:
        states, size = exchange_batches(batch, states, 3 if large else 6)
        if cheap:
            states = exchange_pairs(batch, states, c.MODELS, 60, 24)
    kept = _near_best(batch, states, owner, n_owners, 0.0)
    batch, states, owner = batch.take(kept), states.take(kept), owner[kept]
    if options.polish and options.thorough and not cheap:
        states, _ = exchange_batches(batch, states, 6, size[kept])
        n_candidates, n_trials = (10, 4) if large else (30, 24)
        states = exchange_pairs(batch, states, c.MODELS, n_candidates, n_trials)
    return _finished(batch, states, owner, options)


def leaders(settings: Sequence[Setting]) -> NDArray:
    """The setting from whose relaxed solution each setting of a grid starts, by position.

    Settings that differ in l2 alone start from the middle one of them, which starts on its own.
    """
    groups: dict[tuple, list[int]] = {}
    for k, one in enumerate(settings):
        key = (one.y.tobytes(), one.v.tobytes(), one.n_reference, one.l1, one.side)
        groups.setdefault(key, []).append(k)
    found = np.arange(len(settings))
    for group in groups.values():
        by_ridge = sorted(group, key=lambda k: settings[k].l2)
        found[group] = by_ridge[len(group) // 2]
    return found


def _batch(orders: DeviceOrders, settings: Sequence[Setting], options: Options) -> Batch:
    array = orders.backend.array
    l1 = np.array([one.l1 for one in settings], dtype=float)
    l2 = np.array([one.l2 for one in settings], dtype=float)
    allowed = options.candidates
    return Batch(
        orders,
        options.ties,
        y=array(np.array([one.y for one in settings], dtype=float)),
        v=array(np.array([one.v for one in settings], dtype=float)),
        s=array(np.array([one.n_reference for one in settings], dtype=float)),
        l1=array(l1),
        l2=array(np.where((l1 == 0) & (l2 == 0), RIDGE_FLOOR, l2)),
        allowed=None if allowed is None else array(np.asarray(allowed, dtype=bool)),
    )


def _near_best(batch: Batch, states: States, owner: Any, n_owners: int, margin: float) -> Any:
    """Positions of the starts within a margin of their problem's best; of equal ones the first."""
    host = batch.backend.host
    objective, places = host(states.objective), host(owner)
    best = np.full(n_owners, np.inf)
    np.minimum.at(best, places, objective)
    kept = np.flatnonzero(objective <= best[places] * (1.0 + margin))
    if margin == 0.0:
        kept = kept[np.unique(places[kept], return_index=True)[1]]
    return batch.backend.array(kept)


def _finished(batch: Batch, states: States, owner: Any, options: Options) -> list[DeviceSolution]:
    """(w, b) to convergence at the final sets."""
    converged = batch.xp.ones(len(batch), bool)
    if options.refit:
        states, converged = fit_weights(batch, states, tol=options.tol, max_iter=options.max_iter)
    return _packed(batch, states, owner, converged)


def _packed(batch: Batch, states: States, owner: Any, converged: Any) -> list[DeviceSolution]:
    """Solutions on the host, in the order of their problems, with intercepts of plain ranks."""
    xp, backend = batch.xp, batch.backend
    z = backend.dot(exact_ranks_of(batch, states.gamma).values, states.w)
    b = best_intercept(batch, z, xp.zeros(len(batch)), 30)
    objective = loss_of(batch, z, b) + batch.penalty(states.w)
    columns = (states.w, b, states.gamma, objective, states.n_iter, converged, z)
    rows = list(zip(*map(backend.host, columns), strict=True))
    packed = []
    for place in np.argsort(backend.host(owner), kind="stable"):
        w, b_one, gamma, value, n_iter, done, scores = rows[place]
        solution = Solution(w, float(b_one), gamma, float(value), int(n_iter), bool(done))
        packed.append(DeviceSolution(solution, scores + b_one))
    return packed


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
    matrix = ranks_of(batch, states.gamma)
    L = start_length(batch, matrix, states.L_w) if first else states.L_w
    on_w = accelerated_steps(
        batch, matrix, states.w, states.b, elastic_net(batch), L, c.INNER_STEPS, z=states.z
    )
    matrix = coranks_of(batch, on_w.x)
    L = start_length(batch, matrix, states.L_gamma) if first else states.L_gamma
    linear = None if push is None else push[:, None] * (1.0 - 2.0 * states.gamma)
    on_gamma = accelerated_steps(
        batch,
        matrix,
        states.gamma,
        on_w.b,
        capped_simplex(batch, linear),
        L,
        c.INNER_STEPS,
        z=on_w.z,
    )
    b = best_intercept(batch, on_gamma.z, on_w.b, 5)
    objective = loss_of(batch, on_gamma.z, b) + batch.penalty(on_w.x)
    n_iter = states.n_iter + on_w.taken + on_gamma.taken
    return States(on_w.x, b, on_gamma.x, objective, on_w.L, on_gamma.L, n_iter, on_gamma.z)


def relax(batch: Batch, states: States, n_rounds: int, tol: float) -> tuple[States, Any]:
    """Rounds on the relaxed problems until one lowers an objective by less than ``tol`` of it.

    A round that takes no step, its steps being too long, says nothing about convergence.
    """
    xp = batch.xp
    active = xp.arange(len(batch))
    converged = xp.zeros(len(batch), bool)
    for k in range(n_rounds):
        here = states.take(active)
        new = one_round(batch.take(active), here, first=k == 0)
        little = here.objective - new.objective < tol * new.objective
        done = little & (new.n_iter > here.n_iter)
        kept = here.better(xp, new, ~done | (new.objective <= here.objective))
        states = states.put(active, kept)
        converged[active] = done
        active = active[~done]
        if not len(active):
            break
    return states, converged


def push_to_sets(batch: Batch, on_the_way: Batch, states: States, step: float) -> States:
    """Raise the push penalty a little each round until gamma is a set; round what is left."""
    xp = batch.xp
    rise = step * loss_of(batch, xp.zeros_like(batch.v), xp.zeros(len(batch)))
    lambda_p = xp.zeros(len(batch))
    active = xp.arange(len(batch))
    for _ in range(c.PUSH_ROUNDS):
        rho = (states.gamma * (1.0 - states.gamma)).sum(axis=1)
        active = active[rho[active] >= c.INTEGRAL]
        if not len(active):
            break
        lambda_p[active] += (rise / xp.maximum(rho, 1e-300))[active]
        new = one_round(on_the_way.take(active), states.take(active), lambda_p[active])
        states = states.put(active, new)
    rounded = replace(states, gamma=_largest(batch, states.gamma))
    return steps_on_w(batch, rounded, c.ROUNDED_STEPS)


def _largest(batch: Batch, gamma: Any) -> Any:
    """The s largest entries of each row as ones, the rest zeros."""
    xp = batch.xp
    if batch.allowed is not None:
        gamma = xp.where(batch.allowed[None, :], gamma, -1.0)
    places = xp.argsort(xp.argsort(-gamma, axis=1), axis=1)
    return (places < batch.s[:, None]).astype(xp.float64)
