"""Solve many binary problems side by side on a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.solver.device.alternation import push_to_sets, relax, tilted_starts
from optirank.solver.device.backend import out_of_memory
from optirank.solver.device.batch import Batch, States, exact_ranks_of, ranks_of
from optirank.solver.device.exchange import exchange_batches, exchange_pairs
from optirank.solver.device.kernels import best_intercept
from optirank.solver.device.newton import FACTORED
from optirank.solver.device.steps import loss_of
from optirank.solver.device.weights import fit_weights
from optirank.solver.problem import RIDGE_FLOOR, Solution

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.device.orders import DeviceOrders

SIDES = ("rising", "falling")
_SCREEN = (20, 5e-3)  # rounds at most, and the relative decrease that ends them, then compare
_RELAX = (20, 2e-3)  # the same, before the push
_FOLLOW = (6, 2e-3)  # the same, from the relaxed solution of a neighbour in a grid
_FAR = 0.02  # a start this much above the other after screening is left
_CLOSE = 0.02  # the same after relaxing
_CLOSE_IN_GRIDS = 0.005
_PUSH_ROUNDS = 60
_PUSH_STEP = 1e-4  # times path_step, of the objective at w = 0
_RELAXED_RIDGE = 1e-5  # least l2 until gamma is a set
_CHEAP = 1e7  # n d^2 below which both starts are carried to the end, and more pairs are tried
_MODELS = 30  # of exchanges, at most: a problem that one of them does not improve is done
_TRIALS = 24  # pairs of one model that are judged side by side
_LARGE = 2e7  # entries of a matrix above which fewer pairs are modelled and judged
_EXACT_SIZE = 2000  # genes up to which final scores are in float64
_COPIES = 6.0  # matrices of a problem that are held at once, buffers counted in


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
    matrices = int(_COPIES * 4 * n * d)
    free = orders.backend.free_bytes()
    found: list[DeviceSolution | None] = [None] * len(settings)
    full = [k for k, one in enumerate(settings) if one.n_reference == d]
    learned = [k for k, one in enumerate(settings) if one.n_reference < d]
    # Full ranks are one matrix for all problems, of which each has its Hessian only
    hessian = 12 * n * d + 32 * d * d if d <= FACTORED else 0
    plans = (
        (_fit_full_ranks, full, matrices, 200 * (n + d) + hessian),
        (_learn_sets, learned, 0, 2 * (matrices + 200 * (n + d))),  # for two starts
    )
    for solve, places, once, each in plans:
        if places and orders.backend.on_gpu and once + each > free:
            raise out_of_memory(once + each, free, f"a fit of {n} samples x {d} genes")
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
    cheap = orders.n_samples * orders.n_genes**2 <= _CHEAP
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

    close = _CLOSE if options.thorough else _CLOSE_IN_GRIDS
    for (rounds, stop), margin in ((_SCREEN, _FAR), (_RELAX, close)):
        states, _ = relax(batch.with_ridge(_RELAXED_RIDGE), states, rounds, stop)
        kept = _near_best(batch, states, owner, n_owners, np.inf if cheap else margin)
        batch, states, owner = batch.take(kept), states.take(kept), owner[kept]
    if len(np.unique(leader)) < n_owners:
        places = backend.host(owner)
        pairs = [(k, p) for k, one in enumerate(leader) for p in np.flatnonzero(places == one)]
        batch = _batch(orders, [settings[k] for k, _ in pairs], options)
        owner = backend.array(np.array([k for k, _ in pairs]))
        states = states.take(backend.array(np.array([p for _, p in pairs])))
        states = replace(states, objective=backend.xp.full(len(pairs), np.inf))
        states, _ = relax(batch.with_ridge(_RELAXED_RIDGE), states, *_FOLLOW)
        kept = _near_best(batch, states, owner, n_owners, close)
        batch, states, owner = batch.take(kept), states.take(kept), owner[kept]
    on_the_way = batch.with_ridge(_RELAXED_RIDGE)
    step = _PUSH_STEP * options.path_step
    states = push_to_sets(batch, on_the_way, states, step, _PUSH_ROUNDS)
    large = orders.n_samples * orders.n_genes > _LARGE
    if options.polish:
        states, size = exchange_batches(batch, states, 3 if large else 6)
        if cheap:
            states = exchange_pairs(batch, states, _MODELS, 60, _TRIALS)
    kept = _near_best(batch, states, owner, n_owners, 0.0)
    batch, states, owner = batch.take(kept), states.take(kept), owner[kept]
    if options.polish and options.thorough and not cheap:
        states, _ = exchange_batches(batch, states, 6, size[kept])
        n_candidates, n_trials = (10, 4) if large else (30, _TRIALS)
        states = exchange_pairs(batch, states, _MODELS, n_candidates, n_trials)
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
    make = exact_ranks_of if batch.orders.n_genes <= _EXACT_SIZE else ranks_of
    values = make(batch, states.gamma).values
    z = backend.dot(values, states.w.astype(values.dtype)).astype(xp.float64)
    b = best_intercept(xp, z, batch.y, batch.v, xp.zeros(len(batch)), 30)
    objective = loss_of(xp, z, b, batch.y, batch.v) + batch.penalty(states.w)
    columns = (states.w, b, states.gamma, objective, states.n_iter, converged, z)
    rows = list(zip(*map(backend.host, columns), strict=True))
    packed = []
    for place in np.argsort(backend.host(owner), kind="stable"):
        w, b_one, gamma, value, n_iter, done, scores = rows[place]
        solution = Solution(w, float(b_one), gamma, float(value), int(n_iter), bool(done))
        packed.append(DeviceSolution(solution, scores + b_one))
    return packed
