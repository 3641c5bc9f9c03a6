"""The fast algorithm: alternate on the relaxed problem, push to a set, exchange genes, refit.

See docs/solver.md for what each stage is for and what it was measured to give.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from optirank.solver.alternation import Alternation, State, to_set
from optirank.solver.convex import fit_weights
from optirank.solver.exchange import exchange_batches, exchange_pairs
from optirank.solver.problem import Solution

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.problem import Problem

SIDES = ("rising", "falling")

_SCREEN_ROUNDS = 8  # rounds of each start before they are compared
_RELAXED_ROUNDS = 20  # more rounds on the relaxed problem before the push
_RELAXED_TOL = 2e-3  # a round that lowers the objective by less of it ends them
_PUSH_ROUNDS = 60  # at most: what is fractional then is rounded
_PUSH_STEP = 1e-4  # times path_step, of the objective at w = 0: the rise a push adds
_CLOSE = 0.02  # starts whose relaxed objectives differ by less are both carried to a set


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
    run = _Run(problem, callback)
    if problem.n_reference == problem.n_genes:
        run.note("full", State(np.zeros(problem.n_genes), 0.0, np.ones(problem.n_genes)))
        return run.finish(
            State(np.zeros(problem.n_genes), 0.0, np.ones(problem.n_genes)), tol, max_iter, True
        )
    starts = dict(zip(SIDES, run.alternation.tilted_starts(), strict=True))
    if side != "best":
        starts = {side: starts[side]}
    if not integral:
        return run.relaxed(starts, tol, max_iter)

    screened = {}
    for name, start in starts.items():
        state, _ = run.alternation.rounds(start, _SCREEN_ROUNDS, _RELAXED_TOL)
        screened[name] = run.note("screened", state, side=name)
    best = min(state.objective for state in screened.values())
    sets = []
    for name, state in screened.items():
        if state.objective > best * (1.0 + _CLOSE):
            continue
        state, _ = run.alternation.rounds(state, _RELAXED_ROUNDS, _RELAXED_TOL)
        run.note("relaxed", state, side=name)
        state = run.push(state, path_step, name)
        if polish:
            state = exchange_batches(run.alternation, state, 6)
        sets.append(run.note("set", state, side=name))
    state = min(sets, key=lambda s: s.objective)
    if polish:
        state = exchange_batches(run.alternation, state, 6)
        state = exchange_pairs(run.alternation, state, n_models=8, n_candidates=30, n_failures=10)
        run.note("exchanged", state)
    return run.finish(state, tol, max_iter, refit)


class _Run:
    """One solve: the alternation, and what happened so far."""

    def __init__(self, problem: Problem, callback: Callable[[dict], None] | None) -> None:
        self.problem = problem
        self.alternation = Alternation(problem)
        self._callback = callback
        self._path: list[dict] = []
        self._n_iter = 0

    def note(self, stage: str, state: State, **more) -> State:
        """Write down where a stage ended."""
        entry = {"stage": stage, "objective": float(state.objective), **more}
        self._path.append(entry)
        if self._callback is not None:
            self._callback(entry)
        return state

    def push(self, state: State, path_step: float, side: str) -> State:
        """Raise lambda_p a little each round until gamma is a set, or round what is left."""
        rise = _PUSH_STEP * path_step * self.problem.loss(np.zeros(len(self.problem.y)))
        lambda_p = 0.0
        for _ in range(_PUSH_ROUNDS):
            rho = float((state.gamma * (1.0 - state.gamma)).sum())
            if rho < 1e-3:
                break
            lambda_p += rise / rho
            state = self.alternation.round(state, lambda_p)
        gamma = to_set(state.gamma, self.problem.n_reference)
        state = self.alternation.steps_on_w(replace(state, gamma=gamma), 30)
        return self.note("rounded", state, side=side, lambda_p=lambda_p, rho=rho)

    def relaxed(self, starts: dict[str, State], tol: float, max_iter: int) -> Solution:
        """The relaxed problem to convergence from each start; the lower one."""
        results = []
        for name, start in starts.items():
            state, converged = self.alternation.rounds(start, max(1, max_iter // 6), tol)
            results.append((self.note("relaxed", state, side=name, lambda_p=0.0), converged))
        state, converged = min(results, key=lambda r: r[0].objective)
        return self._solution(state.w, state.gamma, state.b, state.n_iter, converged)

    def finish(self, state: State, tol: float, max_iter: int, refit: bool) -> Solution:
        """(w, b) to convergence at the final set, and the solution in the problem's own units."""
        if not refit:
            return self._solution(state.w, state.gamma, state.b, state.n_iter, True)
        problem, alternation = self.problem, self.alternation
        found = fit_weights(
            alternation.matrices.ranks(state.gamma),
            alternation.loss,
            problem.l1,
            problem.l2,
            w=state.w,
            b=state.b,
            L=state.L_w,
            tol=tol,
            max_iter=max_iter,
        )
        n_iter = state.n_iter + found.n_iter
        return self._solution(found.w, state.gamma, found.b, n_iter, found.converged)

    def _solution(
        self, w: NDArray, gamma: NDArray, b: float, n_iter: int, converged: bool
    ) -> Solution:
        """The intercept and the objective come from float64 scores of the uncentred ranks."""
        z = self.problem.scores(w, 0.0, gamma)
        b = self.alternation.loss.best_intercept(z, b)
        objective = self.problem.loss(z + b) + self.problem.penalty(w)
        self._path.append({"stage": "end", "objective": objective})
        return Solution(w, b, gamma, objective, n_iter, converged, self._path)
