"""One entry to both algorithms."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from optirank._compiled import solver_loops
from optirank.solver.alternating import SIDES, solve_alternating
from optirank.solver.bpcd import solve_bpcd
from optirank.solver.fixed import solve_at

if TYPE_CHECKING:
    from optirank.solver.problem import Problem, Solution

ALGORITHMS = ("alternating", "bpcd")


def solve(
    problem: Problem,
    *,
    algorithm: str = "alternating",
    side: str = "best",
    tol: float = 1e-5,
    max_iter: int = 10_000,
    path_step: float = 100.0,
    integral: bool = True,
    polish: bool = True,
    refit: bool = True,
    callback: Callable[[dict], None] | None = None,
) -> list[Solution]:
    """Solve a problem; two solutions, rising and falling, for ``side="both"``, else one."""
    _compile_rare_loops()
    if algorithm == "bpcd":
        solution = solve_bpcd(
            problem,
            tol=tol,
            max_iter=max_iter,
            path_step=path_step,
            integral=integral,
            callback=callback,
        )
        if refit and integral:
            path, n_iter, converged = solution.path, solution.n_iter, solution.converged
            solution = solve_at(problem, solution.gamma, w=solution.w, tol=tol, max_iter=max_iter)
            solution.path = path
            solution.n_iter += n_iter
            solution.converged &= converged
        return [solution]
    return [
        solve_alternating(
            problem,
            side=one,
            tol=tol,
            max_iter=max_iter,
            path_step=path_step,
            integral=integral,
            polish=polish,
            refit=refit,
            callback=callback,
        )
        for one in (SIDES if side == "both" else (side,))
    ]


@cache
def _compile_rare_loops() -> None:
    """Compile what not every fit comes to, so that a later fit does not pay for it."""
    groups = np.zeros((2, 2), np.uint16)
    ranks = np.zeros((2, 2), np.float32)
    solver_loops.exchange_in_ranks(groups, groups[:, 0], groups[:, 1], 0.5, 0.5, ranks, ranks)
    solver_loops.slopes_of_comparisons(groups, ranks[0].copy(), groups.copy(), 0.5, ranks)
