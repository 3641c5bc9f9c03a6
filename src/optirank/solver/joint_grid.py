"""The joint model at many penalties, neighbours starting from each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from optirank.solver.grid import Penalties, walk
from optirank.solver.joint import JointRun
from optirank.solver.problem import RIDGE_FLOOR
from optirank.solver.stages import FASTER

if TYPE_CHECKING:
    from optirank.solver.joint_alternation import JointState
    from optirank.solver.joint_problem import JointProblem, JointSolution


def solve_joint_grid(
    problem: JointProblem,
    penalties: Iterable[Penalties],
    *,
    tol: float = 1e-5,
    max_iter: int = 10_000,
    path_step: float = 100.0,
) -> dict[Penalties, JointSolution]:
    """Solutions of a joint problem at many penalties (l1, l2); the problem's own are not used.

    Settings are walked as :func:`optirank.solver.grid.walk` says: each l2 starts from the relaxed
    solution of the l2 before, each l1 from the reference set of the l1 before.
    """
    found: dict[Penalties, JointSolution] = {}
    states: dict[Penalties, JointState] = {}
    relaxed: JointState | None = None
    run: JointRun | None = None
    only = problem.feasible.only_point(problem.n_genes)
    for setting, before in walk(penalties):
        here = replace(problem, l1=setting[0], l2=max(setting[1], RIDGE_FLOOR))
        run = JointRun(here, matrices=None if run is None else run.alternation.matrices)
        if only is not None:
            states[setting] = run.start(only) if before is None else states[before]
        elif before is None or before[1] != setting[1]:
            relaxed = run.relax(run.start() if relaxed is None else relaxed)
            step = path_step if before is None else FASTER * path_step
            states[setting] = run.exchange(run.push(relaxed, step))
        else:
            states[setting] = run.exchange(run.settle(states[before]))
        if setting[0] > 0 and setting[1] == 0:  # the floor was for the exchanges alone
            run = JointRun(replace(here, l2=0.0), matrices=run.alternation.matrices)
        found[setting] = run.finish(states[setting], tol, max_iter, exact=False)
        states[setting] = replace(states[setting], W=found[setting].W, z=None)
    return found
