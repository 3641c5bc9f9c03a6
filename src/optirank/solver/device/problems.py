"""Problems of the solver on a device: those that share their samples are solved side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from optirank.ranks.fitting import order_for_fitting
from optirank.solver.device.backend import backend_of
from optirank.solver.device.orders import DeviceOrders, order_on_device
from optirank.solver.device.solve import DeviceSolution, Options, Setting, solve_batch

if TYPE_CHECKING:
    from optirank.ranks.orders import SampleOrders
    from optirank.solver.problem import Problem


def orders_for(X, device: str = "cpu", n_jobs: int | None = None) -> SampleOrders | DeviceOrders:
    """Sorted samples where they are to be fitted; a DeviceError where the device cannot be used."""
    if device == "cpu":
        return order_for_fitting(X, n_jobs)
    return order_on_device(backend_of(device), X)


def solve_together(
    problems: Sequence[Problem], sides: Sequence[str], options: Options
) -> list[DeviceSolution]:
    """Solutions of problems whose samples lie in the same orders on a device.

    ``sides`` are where they start: "best", "rising" or "falling".
    """
    whole = problems[0].orders.whole
    if any(problem.orders.whole is not whole for problem in problems):
        raise ValueError("problems over different samples cannot be solved side by side")
    settings = [_setting(problem, side) for problem, side in zip(problems, sides, strict=True)]
    return solve_batch(whole, settings, options)


def _setting(problem: Problem, side: str) -> Setting:
    """A problem over some of the samples as one over all of them, the others weighing nothing."""
    orders = problem.orders
    y, v = np.zeros(orders.whole.n_samples), np.zeros(orders.whole.n_samples)
    y[orders.rows], v[orders.rows] = problem.y, problem.v
    return Setting(y, v, problem.n_reference, problem.l1, problem.l2, side)
