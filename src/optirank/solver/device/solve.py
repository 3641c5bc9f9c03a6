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
from optirank.solver.device.batch import Batch, States, coranks_of, ranks_of
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
    hessian = 12 * n * d + 32 * d * d if d <= c.SMALL else 0
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
    places = [(k, "rising") for k in range(len(settings))]
    batch = replace(_batch(orders, settings, places, options), same_set=True)
    states = tilted_starts(batch, batch.xp.ones(len(batch), bool))
    states = replace(states, gamma=batch.xp.ones_like(states.gamma))  # a projection is near it only
    return _finished(batch, states, replace(options, refit=True))


def _learn_sets(
    orders: DeviceOrders, settings: Sequence[Setting], options: Options
) -> list[DeviceSolution]:
    n, d = orders.n_samples, orders.n_genes
    cheap, large = n * d**2 <= c.CHEAP, n * d > c.MODEL_ENTRIES
    alone = options.thorough or cheap or not options.integral
    leader = np.arange(len(settings)) if alone else _leaders(settings)
    starts = [
        (k, side)
        for k in np.unique(leader)
        for side in (SIDES if settings[k].side == "best" else (settings[k].side,))
    ]
    batch = _batch(orders, settings, starts, options)
    rising = orders.backend.array(np.array([side == "rising" for _, side in starts]))
    states = tilted_starts(batch, rising)
    if not options.integral:
        states, converged = relax(batch, states, max(1, options.max_iter // 6), options.tol)
        kept = _near_best(batch, states, 0.0)
        return _packed(batch.take(kept), states.take(kept), converged[kept])

    close = c.CLOSE_ALONE if options.thorough else c.CLOSE
    stages = [(c.SCREEN, c.FAR), (c.RELAXED, close)]
    for stage, margin in stages:
        batch, states = _relaxed(batch, states, stage, np.inf if cheap else margin)
    if len(np.unique(leader)) < len(settings):
        places = orders.backend.host(batch.owner)
        pairs = [(k, p) for k, one in enumerate(leader) for p in np.flatnonzero(places == one)]
        batch = _batch(orders, settings, pairs, options)
        states = states.take(orders.backend.array(np.array([p for _, p in pairs])))
        states = replace(states, objective=batch.xp.full(len(pairs), np.inf))
        batch, states = _relaxed(batch, states, c.FOLLOW, close)
    states = push_to_sets(batch, states, c.PUSH_STEP * options.path_step)
    if options.polish:
        states = exchange_batches(batch, states, 3 if large else 6)
        if cheap:
            states = exchange_pairs(batch, states, *c.PAIRS_IF_CHEAP)
    kept = _near_best(batch, states, 0.0)
    batch, states = batch.take(kept), states.take(kept)
    if options.polish and options.thorough and not cheap:
        states = exchange_batches(batch, states, 6)
        states = exchange_pairs(batch, states, *(c.PAIRS_IF_LARGE if large else c.PAIRS))
    return _finished(batch, states, options)


def _relaxed(
    batch: Batch, states: States, stage: tuple[int, float], margin: float
) -> tuple[Batch, States]:
    """A stage of rounds on the relaxed problems; the starts that are then near the best."""
    states, _ = relax(batch.with_ridge(c.RELAXED_RIDGE), states, *stage)
    kept = _near_best(batch, states, margin)
    return batch.take(kept), states.take(kept)


def _leaders(settings: Sequence[Setting]) -> NDArray:
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


def _batch(
    orders: DeviceOrders,
    settings: Sequence[Setting],
    starts: Sequence[tuple[int, object]],
    options: Options,
) -> Batch:
    """The problems of some starts, each told by its setting's position and something else."""
    array = orders.backend.array
    owner = np.array([k for k, _ in starts])
    y, v, s, l1, l2 = (
        array(np.array([getattr(settings[k], name) for k in owner], dtype=float))
        for name in ("y", "v", "n_reference", "l1", "l2")
    )
    l2 = orders.backend.xp.where((l1 == 0) & (l2 == 0), RIDGE_FLOOR, l2)
    allowed = None if options.candidates is None else array(np.asarray(options.candidates, bool))
    return Batch(orders, options.ties, y, v, s, l1, l2, array(owner), allowed=allowed)


def _near_best(batch: Batch, states: States, margin: float) -> Any:
    """Positions of the starts within a margin of their problem's best; of equal ones the first."""
    objective, owner = map(batch.backend.host, (states.objective, batch.owner))
    best = np.full(owner.max() + 1, np.inf)
    np.minimum.at(best, owner, objective)
    kept = np.flatnonzero(objective <= best[owner] * (1.0 + margin))
    if margin == 0.0:
        kept = kept[np.unique(owner[kept], return_index=True)[1]]
    return batch.backend.array(kept)


def _finished(batch: Batch, states: States, options: Options) -> list[DeviceSolution]:
    """(w, b) to convergence at the final sets."""
    converged = batch.xp.ones(len(batch), bool)
    if options.refit:
        states, converged = fit_weights(batch, states, tol=options.tol, max_iter=options.max_iter)
    return _packed(batch, states, converged)


def _packed(batch: Batch, states: States, converged: Any) -> list[DeviceSolution]:
    """Solutions on the host, in the order of their problems, with intercepts of plain ranks."""
    backend = batch.backend
    z = backend.dot(ranks_of(batch, states.gamma, exact=True).values, states.w)
    b = best_intercept(batch, z, batch.xp.zeros(len(batch)), 30)
    objective = loss_of(batch, z, b) + batch.penalty(states.w)
    columns = (states.w, b, states.gamma, objective, states.n_iter, converged, z)
    rows = list(zip(*map(backend.host, columns), strict=True))
    packed = []
    for place in np.argsort(backend.host(batch.owner), kind="stable"):
        w, b_one, gamma, value, n_iter, done, scores = rows[place]
        path = [{"stage": "end", "objective": float(value)}]
        found = Solution(w, float(b_one), gamma, float(value), int(n_iter), bool(done), path)
        packed.append(DeviceSolution(found, scores + b_one))
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
        xp.zeros(size, xp.int64), xp.zeros_like(batch.v), xp.full(size, -1),
    )  # fmt: skip


def one_round(batch: Batch, states: States, push: Any = None, *, first: bool = False) -> States:
    """A few steps on (w, b), then on (gamma, b) with the tangent of the push penalty.

    The scores ``R(gamma) w = V(w) gamma`` are those of both blocks, so that each starts from what
    the other left. In a ``first`` round the step sizes may not be known yet; to look whether they
    are waits for the device.
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
    on_gamma = accelerated_steps(batch, matrix, states.gamma, on_w.b, in_set, L, steps, z=on_w.z)
    b = best_intercept(batch, on_gamma.z, on_w.b, 5)
    objective = loss_of(batch, on_gamma.z, b) + batch.penalty(on_w.x)
    n_iter = states.n_iter + on_w.taken + on_gamma.taken
    return States(
        on_w.x, b, on_gamma.x, objective, on_w.L, on_gamma.L, n_iter, on_gamma.z, states.swap
    )  # fmt: skip


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


def push_to_sets(batch: Batch, states: States, step: float) -> States:
    """Raise the push penalty a little each round until gamma is a set; round what is left."""
    xp = batch.xp
    rise = step * loss_of(batch, xp.zeros_like(batch.v), xp.zeros(len(batch)))
    on_the_way, lambda_p = batch.with_ridge(c.RELAXED_RIDGE), xp.zeros(len(batch))
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
