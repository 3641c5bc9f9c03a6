"""Problems of the solver on a device: those that share their samples are solved side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from optirank.ranks.fitting import order_for_fitting
from optirank.solver.averaging import with_unit_spread
from optirank.solver.device.backend import backend_of
from optirank.solver.device.orders import DeviceOrders, SomeOrders, order_on_device
from optirank.solver.device.solve import SIDES, DeviceSolution, Options, Setting, solve_batch

if TYPE_CHECKING:
    from optirank.ranks.orders import SampleOrders
    from optirank.solver.problem import Problem, Solution


def orders_for(X, device: str = "cpu", n_jobs: int | None = None) -> SampleOrders | DeviceOrders:
    """Sorted samples where they are to be fitted; a DeviceError where the device cannot be used."""
    if device == "cpu":
        return order_for_fitting(X, n_jobs)
    return order_on_device(backend_of(device), X)


def is_on_device(orders: object) -> bool:
    """Whether these orders lie on a device."""
    return isinstance(orders, DeviceOrders | SomeOrders)


def setting_of(problem: Problem, side: str = "best") -> Setting:
    """A problem over some of the samples as one over all of them, the others weighing nothing."""
    orders = problem.orders
    y, v = np.zeros(orders.whole.n_samples), np.zeros(orders.whole.n_samples)
    y[orders.rows], v[orders.rows] = problem.y, problem.v
    return Setting(y, v, problem.n_reference, problem.l1, problem.l2, side)


def solve_together(
    problems: Sequence[Problem], sides: Sequence[str], options: Options
) -> list[DeviceSolution]:
    """Solutions of problems whose samples lie in the same orders on a device."""
    whole = problems[0].orders.whole
    if any(problem.orders.whole is not whole for problem in problems):
        raise ValueError("problems over different samples cannot be solved side by side")
    settings = [setting_of(problem, side) for problem, side in zip(problems, sides, strict=True)]
    return solve_batch(whole, settings, options)


def solve_problems(
    groups: Sequence[Sequence[tuple[Problem, str]]], options: Options
) -> list[list[Solution]]:
    """Solutions of groups of problems with their sides, two for the side "both".

    The solutions of a group of several problems, which are to be averaged, have unit spread.
    """
    starts = [
        (k, problem, side)
        for k, group in enumerate(groups)
        for problem, sides in group
        for side in (SIDES if sides == "both" else (sides,))
    ]
    found = solve_together([one[1] for one in starts], [one[2] for one in starts], options)
    solutions: list[list[Solution]] = [[] for _ in groups]
    for (k, problem, _), one in zip(starts, found, strict=True):
        one.solution.path = [{"stage": "end", "objective": one.solution.objective}]
        averaged = len(groups[k]) > 1
        scores = one.scores[problem.orders.rows]
        solutions[k].append(with_unit_spread(one.solution, scores) if averaged else one.solution)
    return solutions
