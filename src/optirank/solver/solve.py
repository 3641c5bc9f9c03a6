"""The entries of the solver, and the fast algorithm: alternate on the relaxed problem,
push to a set, exchange genes, refit.

See docs/method.md for what each stage is for.

Settings of a grid are walked from strong to weak l2 at the smallest l1, and from there,
at each l2, to stronger l1: the reference set changes little from one to the next, so
exchanges from the neighbour's set take the place of a whole solve.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from optirank.solver import constants as c
from optirank.solver.blocks import (
    ElasticNet,
    LogisticLoss,
    ProblemMatrices,
    accelerated_steps,
)
from optirank.solver.convex import solution_at, solve_at, solve_grid_at, walk
from optirank.solver.exchange import exchange_batches, exchange_pairs
from optirank.solver.problem import PenaltyPair, Problem, Solution


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
) -> Solution:
    """Solve a problem from the rising start, the falling one, or the better of both.

    Parameters
    ----------
    problem : what to solve.
    side : "best", "rising" or "falling", which of the two minima to go to; "best" is
        the lower one.
    tol : of the relaxed problem (``integral=False``) and of the last refit.
    max_iter : steps at most from each start; a stage under way is ended, and (w, b) get
        a few more.
    path_step : how fast the push penalty grows; smaller is slower and follows the path
        closer.
    integral : whether to go on to a set; without, gamma is fractional.
    polish : whether to exchange genes after rounding.
    refit : whether to optimise (w, b) to convergence at the end.
    """
    only = problem.feasible.only_point(problem.n_genes)
    if only is not None:  # nothing to choose
        return solve_at(problem, only, tol=tol, max_iter=max_iter)
    run = Run(problem, max_iter=max_iter)
    states = run.starts(side)
    if not integral:
        return run.relaxed(states, tol)

    cheap = run.cheap
    for (n_rounds, limit), margin in ((c.SCREEN, c.FAR), (c.RELAXED, c.CLOSE)):
        states = {
            name: run.relax(state, n_rounds, limit, name)
            for name, state in states.items()
        }
        states = near_best(states, np.inf if cheap else margin)
    for name in states:
        states[name] = run.push(states[name], name, path_step)
        if polish:
            states[name] = run.exchange(states[name], n_models=c.MODELS if cheap else 0)
    # (w, b) of the sets are not converged yet: those that are close are compared at the
    # end
    ends = []
    for state in near_best(states, c.CLOSE_SETS).values():
        polished = run.exchange(state) if polish and not cheap else state
        ends.append(run.finish(polished, tol, refit))
    return run.end(min(ends, key=lambda solution: solution.objective))


def near_best(states: dict[str, State], margin: float) -> dict[str, State]:
    """The states whose objective is within a relative margin of the best."""
    best = min(state.objective for state in states.values())
    limit = best * (1.0 + margin)
    return {name: state for name, state in states.items() if state.objective <= limit}


@dataclass(frozen=True)
class State:
    """A point on the way: b belongs to centred matrices, L to the blocks'
    step sizes.
    """

    w: NDArray
    b: float
    gamma: NDArray
    objective: float = np.inf  # loss plus elastic net
    L_w: float | None = None
    L_gamma: float | None = None
    n_iter: int = 0
    z: NDArray | None = None  # the scores, after a round
    batch: int | None = None  # genes swapped next; None: not begun, 0: ended


class Run:
    """The stages of one solve, with its matrices and buffers."""

    def __init__(
        self,
        problem: Problem,
        matrices: ProblemMatrices | None = None,
        max_iter: int = 10_000,
    ) -> None:
        self.problem = problem
        self.max_iter = max_iter
        self.cheap = len(problem.y) * problem.n_genes**2 <= c.CHEAP
        self.matrices = ProblemMatrices(problem) if matrices is None else matrices
        self.loss = LogisticLoss(problem.y, problem.v)
        self.penalty = problem.penalty
        self.feasible = problem.feasible
        ridge = max(problem.l2, c.RELAXED_RIDGE)
        self._on_the_way = replace(problem, l2=ridge).penalty  # until gamma is a set
        self._path: list[dict] = []

    def _note(self, stage: str, state: State, **more: object) -> State:
        """Write down where a stage ended."""
        entry = {"stage": stage, "objective": float(state.objective), **more}
        self._path.append(entry)
        return state

    def round(self, state: State, penalty: ElasticNet, lambda_p: float = 0.0) -> State:
        """A few steps on (w, b), then on (gamma, b) with the push penalty's tangent."""
        loss = self.loss
        before = state.gamma
        steps = c.INNER_STEPS
        on_w = accelerated_steps(
            self.matrices.ranks(before),
            loss,
            state.w,
            state.b,
            penalty,
            state.L_w,
            steps,
            z=state.z,
        )
        push = lambda_p * (1.0 - 2.0 * before) if lambda_p else None
        # both matrices are centred, so these scores are those of gamma as well
        on_gamma = accelerated_steps(
            self.matrices.coranks(on_w.x),
            loss,
            before,
            loss.best_intercept(on_w.z, on_w.b),
            self.feasible,
            state.L_gamma,
            steps,
            linear=push,
            z=on_w.z,
        )
        b = loss.best_intercept(on_gamma.z, on_gamma.b)
        objective = loss.evaluate(on_gamma.z, b) + penalty.value(on_w.x)
        n_iter = state.n_iter + on_w.n_steps + on_gamma.n_steps
        return State(
            on_w.x, b, on_gamma.x, objective, on_w.L, on_gamma.L, n_iter, on_gamma.z
        )

    def rounds(
        self, state: State, penalty: ElasticNet, n_rounds: int, tol: float
    ) -> tuple[State, bool]:
        """Rounds until one lowers the objective by less than ``tol`` of it; whether
        one did.
        """
        state = replace(state, z=None)
        for _ in range(n_rounds):
            if state.n_iter >= self.max_iter:
                break
            new = self.round(state, penalty)
            if state.objective - new.objective < tol * new.objective:
                return min(state, new, key=lambda point: point.objective), True
            state = new
        return state, False

    def steps_on_w(self, state: State, n_steps: int) -> State:
        """Steps on (w, b) alone; ``loss`` is left evaluated at the result."""
        matrix = self.matrices.ranks(state.gamma)
        done = accelerated_steps(
            matrix, self.loss, state.w, state.b, self.penalty, state.L_w, n_steps
        )
        b = self.loss.best_intercept(done.z, done.b)
        objective = self.loss.evaluate(done.z, b) + self.penalty.value(done.x)
        n_iter = state.n_iter + done.n_steps
        return replace(
            state, w=done.x, b=b, objective=objective, L_w=done.L, n_iter=n_iter
        )

    def starts(self, side: str) -> dict[str, State]:
        """Where the way to each of the minima asked for starts: gamma tilted to the
        genes whose ranks rise with the label, and to those that fall.

        "Up gene above down gene" can be counted with the weights on the up genes and
        the reference among the down genes, or the other way round: two minima, and a
        start for each.
        """
        problem = self.problem
        matrix = self.matrices.ranks(self.feasible.centre(problem.n_genes))
        slopes = (problem.v * (problem.y - 0.5)).astype(np.float32)
        gammas = self.feasible.tilted(matrix.transpose_dot(slopes))
        return {
            name: State(np.zeros(problem.n_genes), 0.0, gamma)
            for name, gamma in zip(c.STARTS, gammas, strict=True)
            if side in (name, "best")
        }

    def relax(self, state: State, n_rounds: int, tol: float, side: str) -> State:
        """Rounds on the relaxed problem."""
        if state.n_iter < self.max_iter:
            state, _ = self.rounds(state, self._on_the_way, n_rounds, tol)
        return self._note("relaxed", state, side=side, lambda_p=0.0)

    def push(self, state: State, side: str, path_step: float = 100.0) -> State:
        """Raise lambda_p a little each round until gamma is a set, or round what
        is left.
        """
        rise = (
            c.PUSH_STEP * path_step * self.problem.loss(np.zeros(len(self.problem.y)))
        )
        lambda_p = 0.0
        rho = 0.0
        state = replace(state, z=None)
        for _ in range(c.PUSH_ROUNDS):
            rho = float((state.gamma * (1.0 - state.gamma)).sum())
            if rho < c.INTEGRAL or state.n_iter >= self.max_iter:
                break
            lambda_p += rise / rho
            state = self.round(state, self._on_the_way, lambda_p)
        gamma = self.feasible.vertex(state.gamma)
        state = self.steps_on_w(replace(state, gamma=gamma), c.REFIT_STEPS)
        return self._note("rounded", state, side=side, lambda_p=lambda_p, rho=rho)

    def exchange(self, state: State, n_models: int = c.MODELS) -> State:
        """Exchange genes, in batches and then pair by pair."""
        if state.n_iter < self.max_iter:
            state = exchange_batches(self, state, c.BATCHES)
            state = exchange_pairs(self, state, n_models)
        return self._note("exchanged", state)

    def relaxed(self, starts: dict[str, State], tol: float) -> Solution:
        """The relaxed problem to convergence from each start; the lower one."""
        ends = []
        for name, start in starts.items():
            state, converged = self.rounds(start, self.penalty, self.max_iter, tol)
            self._note("relaxed", state, side=name, lambda_p=0.0)
            ends.append((state, converged))
        state, converged = min(ends, key=lambda end: end[0].objective)
        return self.end(
            solution_at(self.problem, state.w, state.gamma, state.n_iter, converged)
        )

    def finish(
        self,
        state: State,
        tol: float,
        refit: bool = True,
        exact: bool = True,
    ) -> Solution:
        """(w, b) to convergence at the final set, in the problem's own units."""
        problem = self.problem
        if not refit:
            return solution_at(problem, state.w, state.gamma, state.n_iter, True)
        solution = solve_at(
            problem,
            state.gamma,
            w=state.w,
            b=state.b,
            L=state.L_w,
            tol=tol,
            max_iter=max(1, self.max_iter - state.n_iter),
            exact=exact,
            matrices=self.matrices,
        )
        solution.converged &= state.n_iter < self.max_iter
        solution.n_iter += state.n_iter
        return solution

    def end(self, solution: Solution) -> Solution:
        """The solution, with what led to it."""
        solution.path = [*self._path, {"stage": "end", "objective": solution.objective}]
        return solution


def solve_grid(
    problem: Problem,
    penalties: Iterable[PenaltyPair],
    *,
    tol: float = 1e-5,
    max_iter: int = 10_000,
) -> dict[PenaltyPair, Solution]:
    """Solutions of a problem at many penalties.

    Both starts are followed through the relaxed problems of all l2, and those that are
    close to the better one there are taken to sets. ``problem``'s own penalties are not
    used.
    """
    only = problem.feasible.only_point(problem.n_genes)
    if only is not None:  # nothing to choose
        return solve_grid_at(problem, only, penalties, tol=tol, max_iter=max_iter)
    solutions: dict[PenaltyPair, Solution] = {}
    states: dict[PenaltyPair, dict[str, State]] = {}  # at each setting, by start
    relaxed: dict[str, State] = {}
    matrices = ProblemMatrices(problem)
    for setting, before in walk(penalties):
        l1, l2 = setting
        floored = replace(problem, l1=l1, l2=max(l2, c.RIDGE_FLOOR))
        run = Run(floored, matrices=matrices, max_iter=max_iter)
        if before is None or before[1] != l2:
            starts = run.starts("best") if before is None else relaxed
            relaxed = {
                name: run.relax(replace(state, n_iter=0), *c.RELAXED, name)
                for name, state in starts.items()
            }
            near = near_best(relaxed, np.inf if run.cheap else c.FAR)
            n_models = c.MODELS if run.cheap else 1
            states[setting] = {
                name: run.exchange(run.push(state, name), n_models)
                for name, state in near.items()
            }
        else:
            states[setting] = _sets_of_neighbour(run, states[before])
        if l1 > 0 and l2 == 0:  # the floor was for the exchanges alone
            run = Run(
                replace(problem, l1=l1, l2=0.0), matrices=matrices, max_iter=max_iter
            )
        ends = [
            run.finish(state, tol, exact=False) for state in states[setting].values()
        ]
        best = min(ends, key=lambda solution: solution.objective)
        solutions[setting] = run.end(best)
    return solutions


def _sets_of_neighbour(run: Run, states: dict[str, State]) -> dict[str, State]:
    """Exchanges from the sets of a neighbouring setting.

    With few genes, the neighbours of a set are judged pair by pair at every setting.
    """
    few = run.cheap or run.problem.n_reference <= c.FEW_GENES
    sets = {}
    for name, state in states.items():
        started = run.steps_on_w(replace(state, batch=None, n_iter=0), c.REFIT_STEPS)
        sets[name] = run.exchange(started, n_models=1 if few else 0)
    return sets
