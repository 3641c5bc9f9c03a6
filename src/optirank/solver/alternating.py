"""The fast algorithm: alternate on the relaxed problem, push to a set, exchange genes, refit.

See docs/solver.md for what each stage is for and what it was measured to give.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from optirank.solver.alternation import Alternation, State
from optirank.solver.exchange import exchange_batches, exchange_pairs
from optirank.solver.fixed import solution_at, solve_at
from optirank.solver.stages import PUSH_STEP, RELAX, Stages

if TYPE_CHECKING:
    from optirank.solver.matrices import ProblemMatrices
    from optirank.solver.problem import Problem, Solution

SIDES = ("rising", "falling")

_SCREEN = (20, 5e-3)  # rounds at most, and the relative decrease that ends them, then compare
_FAR = 0.02  # a start this much above the other after screening is left
_CLOSE = 0.005  # starts that differ by less after relaxing are both carried to a set
_PUSH_ROUNDS = 60  # at most: what is fractional then is rounded
_RELAXED_RIDGE = 1e-5  # least l2 until gamma is a set: below, steps are too slow to be of use


def solve_alternating(
    problem: Problem,
    *,
    side: str = "best",
    tol: float = 1e-5,
    max_iter: int = 10_000,
    path_step: float = 100.0,
    integral: bool = True,
    polish: bool = True,
    refit: bool = True,
    callback: Callable[[dict], None] | None = None,
) -> Solution:
    """Solve a problem from the rising start, the falling one, or the better of both.

    Parameters
    ----------
    problem : Problem
        What to solve.
    side : {"best", "rising", "falling"}
        Which of the two minima to go to; "best" goes to the one of lower objective.
    tol : float
        Of the relaxed problem (``integral=False``) and of the last refit.
    max_iter : int
        Steps at most, in the relaxed problem and again in the refit.
    path_step : float
        How fast the push penalty grows; smaller is slower and follows the path more closely.
    integral : bool
        Whether to go on to a set; without, gamma is fractional.
    polish : bool
        Whether to exchange genes after rounding.
    refit : bool
        Whether to optimise (w, b) to convergence at the end.
    callback : callable
        Gets a dict for each stage.
    """
    run = Run(problem, callback)
    only = run.alternation.feasible.only_point(problem.n_genes)
    if only is not None:  # nothing to choose
        return solve_at(problem, only, tol=tol, max_iter=max_iter)
    starts = dict(zip(SIDES, run.alternation.tilted_starts(), strict=True))
    if side != "best":
        starts = {side: starts[side]}
    if not integral:
        return run.relaxed(starts, tol, max_iter)

    cheap = run.cheap
    states = {name: run.relax(start, *_SCREEN, name) for name, start in starts.items()}
    states = near_best(states, np.inf if cheap else _FAR)
    states = {name: run.relax(state, *RELAX, name) for name, state in states.items()}
    states = near_best(states, np.inf if cheap else _CLOSE)
    for name in states:
        states[name] = run.push(states[name], path_step, name)
        if polish:
            states[name] = run.exchange(states[name], n_models=8 if cheap else 0)
    state = min(states.values(), key=lambda s: s.objective)
    if polish and not cheap:
        state = run.exchange(state)
    return run.finish(state, tol, max_iter, refit)


def near_best(states: dict[str, State], margin: float) -> dict[str, State]:
    """The states whose objective is within a relative margin of the best."""
    best = min(state.objective for state in states.values())
    return {k: state for k, state in states.items() if state.objective <= best * (1.0 + margin)}


class Run(Stages):
    """One solve: the alternation, and what happened so far."""

    def __init__(
        self,
        problem: Problem,
        callback: Callable[[dict], None] | None = None,
        matrices: ProblemMatrices | None = None,
    ) -> None:
        super().__init__(len(problem.y), problem.n_genes, callback)
        self.problem = problem
        self.alternation = Alternation(problem, matrices)
        ridge = max(problem.l2, _RELAXED_RIDGE)
        self.on_the_way = Alternation(replace(problem, l2=ridge), self.alternation.matrices)

    def start(self, side: str) -> State:
        """Where the way to one of the two minima starts."""
        return self.alternation.tilted_starts()[SIDES.index(side)]

    def relax(self, state: State, n_rounds: int, tol: float, side: str) -> State:
        """Rounds on the relaxed problem."""
        state, _ = self.on_the_way.rounds(state, n_rounds, tol)
        return self.note("relaxed", state, side=side, lambda_p=0.0)

    def exchange(self, state: State, n_batches: int = 6, n_models: int = 8) -> State:
        """Exchange genes, in batches and then pair by pair."""
        state = exchange_batches(self.alternation, state, n_batches)
        n_candidates, n_failures = (60, 12) if self.cheap else (30, 6)
        state = exchange_pairs(
            self.alternation,
            state,
            n_models=n_models,
            n_candidates=n_candidates,
            n_failures=n_failures,
        )
        return self.note("exchanged", state)

    def push(self, state: State, path_step: float, side: str) -> State:
        """Raise lambda_p a little each round until gamma is a set, or round what is left."""
        rise = PUSH_STEP * path_step * self.problem.loss(np.zeros(len(self.problem.y)))
        lambda_p = 0.0
        state = replace(state, z=None, sets=None)
        for _ in range(_PUSH_ROUNDS):
            rho = float((state.gamma * (1.0 - state.gamma)).sum())
            if rho < 1e-3:
                break
            lambda_p += rise / rho
            state = self.on_the_way.round(state, lambda_p)
        gamma = self.alternation.feasible.vertex(state.gamma)
        state = self.alternation.steps_on_w(replace(state, gamma=gamma), 30)
        return self.note("rounded", state, side=side, lambda_p=lambda_p, rho=rho)

    def relaxed(self, starts: dict[str, State], tol: float, max_iter: int) -> Solution:
        """The relaxed problem to convergence from each start; the lower one."""
        results = []
        for name, start in starts.items():
            state, converged = self.alternation.rounds(start, max(1, max_iter // 6), tol)
            results.append((self.note("relaxed", state, side=name, lambda_p=0.0), converged))
        state, converged = min(results, key=lambda r: r[0].objective)
        return self._end(
            solution_at(
                self.problem, state.w, state.gamma, n_iter=state.n_iter, converged=converged
            )
        )

    def finish(
        self, state: State, tol: float, max_iter: int, refit: bool, exact: bool = True
    ) -> Solution:
        """(w, b) to convergence at the final set, in the problem's own units."""
        problem, gamma = self.problem, state.gamma
        if refit:
            solution = solve_at(
                problem,
                gamma,
                w=state.w,
                b=state.b,
                L=state.L_w,
                tol=tol,
                max_iter=max_iter,
                exact=exact,
                matrices=self.alternation.matrices,
            )
            solution.n_iter += state.n_iter
        else:
            solution = solution_at(problem, state.w, gamma, n_iter=state.n_iter, converged=True)
        return self._end(solution)

    def _end(self, solution: Solution) -> Solution:
        self._path.append({"stage": "end", "objective": solution.objective})
        solution.path = self._path
        return solution
