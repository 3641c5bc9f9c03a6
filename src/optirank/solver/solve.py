"""One entry to all algorithms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from optirank._compiled import solver_loops
from optirank.solver.alternating import solve_alternating
from optirank.solver.bpcd import solve_bpcd
from optirank.solver.convex import solve_at

if TYPE_CHECKING:
    from optirank.solver.problem import Problem, Solution


@dataclass(frozen=True)
class Algorithm:
    """An algorithm as ``OptirankClassifier(algorithm=...)`` finds it.

    ``solve(problem, *, side, tol, max_iter, path_step, integral, polish, refit, callback)`` returns
    a Solution; options that mean nothing to it end in its ``**_``.
    """

    solve: Callable[..., Solution]
    has_sides: bool = False  # whether ``side`` can send it to one of the two minima


def _solve_bpcd_and_refit(
    problem: Problem,
    *,
    tol: float,
    max_iter: int,
    path_step: float,
    integral: bool,
    refit: bool,
    callback: Callable[[dict], None] | None,
    **_,
) -> Solution:
    """The paper's algorithm, then (w, b) to convergence at its set."""
    found = solve_bpcd(
        problem,
        tol=tol,
        max_iter=max_iter,
        path_step=path_step,
        integral=integral,
        callback=callback,
    )
    if not (refit and integral):
        return found
    solution = solve_at(problem, found.gamma, w=found.w, tol=tol, max_iter=max_iter)
    solution.path = found.path
    solution.n_iter += found.n_iter
    solution.converged &= found.converged
    return solution


ALGORITHMS: dict[str, Algorithm] = {
    "alternating": Algorithm(solve_alternating, has_sides=True),
    "bpcd": Algorithm(_solve_bpcd_and_refit),
}


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
    """Solve a problem by an algorithm of the registry; a list of its one solution."""
    _compile_rare_loops()
    found = ALGORITHMS[algorithm].solve(
        problem,
        side=side,
        tol=tol,
        max_iter=max_iter,
        path_step=path_step,
        integral=integral,
        polish=polish,
        refit=refit,
        callback=callback,
    )
    return [found]


@cache
def _compile_rare_loops() -> None:
    """Compile what not every fit comes to, so that a later fit does not pay for it."""
    groups = np.zeros((2, 2), np.uint16)
    ranks = np.zeros((2, 2), np.float32)
    solver_loops.exchange_in_ranks(groups, groups[:, 0], groups[:, 1], 0.5, 0.5, ranks, ranks)
    solver_loops.slopes_of_comparisons(groups, ranks[0].copy(), groups.copy(), 0.5, ranks)
