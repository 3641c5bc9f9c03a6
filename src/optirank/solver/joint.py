"""The joint model's algorithm: alternate on the relaxed problem, push to a set, exchange, refit.

The stages are those of the binary algorithm. With several classes there are many ways to count "up
above down", so two starts do not settle which minimum is reached. On problems of hundreds of genes
starts tilted in various ways ended within 1 % of each other's objective, and the uniform one is
taken; on small ones, where minima lie further apart and fits are cheap, several are carried on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from optirank.ranks.orders import SampleOrders
from optirank.solver.joint_alternation import JointAlternation, JointState
from optirank.solver.joint_exact import finish_joint_exactly
from optirank.solver.joint_exchange import exchange_joint_batches, exchange_joint_pairs
from optirank.solver.joint_fit import fit_joint_weights
from optirank.solver.joint_problem import JointSolution
from optirank.solver.stages import PUSH_STEP, RELAX, Stages

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.joint_matrices import JointMatrices
    from optirank.solver.joint_problem import JointProblem

_PUSH_ROUNDS = 12  # at most: what is fractional then is rounded
_PUSH_GROWTH = 1.5  # of the rise, from round to round
_ROUNDED = 1e-2  # of the push penalty: the little that is left is rounded
_FIRST_PUSHES = 3  # rounds that may pass before the push is felt
_STALLED = 0.98  # of the push penalty a round before: what is fractional would stay so
_AFTER_ROUNDING = 20  # steps on W
_BATCHES = 8
_POLISHED = 2  # starts at most whose genes are exchanged


def solve_joint(
    problem: JointProblem,
    *,
    tol: float = 1e-5,
    max_iter: int = 10_000,
    path_step: float = 100.0,
    integral: bool = True,
    polish: bool = True,
    refit: bool = True,
    until: float = float("inf"),
    callback: Callable[[dict], None] | None = None,
) -> JointSolution:
    """Solve a joint problem.

    The options are those of :func:`optirank.solver.alternating.solve_alternating`, without a side.
    Once ``until`` (of ``time.perf_counter``) has passed, what is left of the stages is cut short:
    a set is found all the same, and its weights are those of the last steps.
    """
    run = JointRun(problem, callback, until=until)
    only = problem.feasible.only_point(problem.n_genes)
    if only is not None:  # nothing to choose
        return run.finish(run.start(only), tol, max_iter)
    if not integral:
        return run.relaxed(tol, max_iter)
    states = [run.push(run.relax(start), path_step) for start in run.starts()]
    states.sort(key=lambda one: one.objective)
    if polish:
        states = [run.exchange(state) for state in states[:_POLISHED]]
    state = min(states, key=lambda one: one.objective)
    return run.finish(state, tol, max_iter, refit=refit)


class JointRun(Stages):
    """One solve: the alternation, and what happened so far."""

    def __init__(
        self,
        problem: JointProblem,
        callback: Callable[[dict], None] | None = None,
        matrices: JointMatrices | None = None,
        until: float = float("inf"),
    ) -> None:
        super().__init__(len(problem.codes), problem.n_genes, callback, until)
        self.problem = problem
        self.alternation = JointAlternation(problem, matrices)

    def start(self, gamma: NDArray | None = None) -> JointState:
        """Weights zero, the reference weights given, or equal ones."""
        d, n_classes = self.problem.n_genes, self.problem.n_classes
        gamma = self.problem.feasible.centre(d) if gamma is None else gamma
        return JointState(np.zeros((d, n_classes)), np.zeros(n_classes), gamma)

    def starts(self) -> list[JointState]:
        """Equal reference weights; on cheap problems also weights tilted by how the classes differ.

        With m_jk the mean centred rank of gene j in class k: by ``sum_k m_jk^2`` both ways (genes
        that differ or do not), and by ``sum_k m_jk^3`` (up in few classes, or down in few).
        """
        uniform = self.start()
        if not self.cheap:
            return [uniform]
        problem = self.problem
        totals = np.zeros((len(problem.codes), problem.n_classes), np.float32)
        totals[np.arange(len(problem.codes)), problem.codes] = problem.v
        means = self.alternation.matrices.ranks(uniform.gamma).transpose_dot(totals)
        tilted = [
            gamma
            for power in (2, 3)
            for gamma in problem.feasible.tilted((means**power).sum(axis=1))
        ]
        return [uniform, *map(self.start, tilted)]

    def relax(self, state: JointState) -> JointState:
        """Rounds on the relaxed problem."""
        state, _ = self.alternation.rounds(state, *RELAX, stop=self.late)
        return self.note("relaxed", state, lambda_p=0.0)

    def push(self, state: JointState, path_step: float) -> JointState:
        """Raise lambda_p a little each round until gamma is a set, or round what is left."""
        rise = PUSH_STEP * path_step * float(np.log(self.problem.n_classes))
        lambda_p, before = 0.0, np.inf
        for k in range(_PUSH_ROUNDS):
            rho = float((state.gamma * (1.0 - state.gamma)).sum())
            if rho < _ROUNDED or (k >= _FIRST_PUSHES and rho > _STALLED * before):
                break
            if self.late():
                break
            before = rho
            lambda_p += rise / rho
            rise *= _PUSH_GROWTH
            state = self.alternation.round(state, lambda_p)
        state = self.settle(replace(state, gamma=self.problem.feasible.vertex(state.gamma)))
        return self.note("rounded", state, lambda_p=lambda_p, rho=rho)

    def settle(self, state: JointState) -> JointState:
        """Steps on W after a change of the reference set or of the penalties."""
        return self.alternation.w_steps(replace(state, z=None), _AFTER_ROUNDING)

    def exchange(self, state: JointState) -> JointState:
        """Exchange genes, in batches and then pair by pair."""
        state = exchange_joint_batches(self.alternation, state, _BATCHES, stop=self.late)
        state = exchange_joint_pairs(self.alternation, state, thorough=self.cheap, stop=self.late)
        return self.note("exchanged", state)

    def relaxed(self, tol: float, max_iter: int) -> JointSolution:
        """The relaxed problem to convergence from each start; the lowest."""
        results = []
        for start in self.starts():
            state, converged = self.alternation.rounds(start, max(1, max_iter // 6), tol)
            results.append((self.note("relaxed", state, lambda_p=0.0), converged))
        state, converged = min(results, key=lambda result: result[0].objective)
        return self._solution(state.W, state, state.n_iter, converged)

    def finish(
        self,
        state: JointState,
        tol: float,
        max_iter: int,
        *,
        refit: bool = True,
        exact: bool = True,
    ) -> JointSolution:
        """(W, b) to convergence at the final set; ``exact`` ends small problems at roundoff."""
        if not refit or self.late():
            return self._solution(state.W, state, state.n_iter, not refit)
        alternation = self.alternation
        done = fit_joint_weights(
            alternation.matrices.ranks(state.gamma),
            alternation.loss,
            alternation.penalty,
            state.W,
            state.b,
            L=state.L_W,
            tol=tol,
            max_iter=max_iter,
        )
        found = self._solution(
            done.W, replace(state, b=done.b), state.n_iter + done.n_iter, done.converged
        )
        if not exact or not isinstance(self.problem.orders, SampleOrders):  # a device has float32
            return found
        W, b = finish_joint_exactly(self.problem, found.W, found.b, found.gamma)
        if W is found.W:  # too many unknowns
            return found
        objective = self.problem.objective(W, b, found.gamma)
        return replace(found, W=W, b=b, objective=objective)

    def _solution(
        self, W: NDArray, state: JointState, n_iter: int, converged: bool
    ) -> JointSolution:
        """Intercepts and objective from float64 scores, in the problem's own units."""
        problem = self.problem
        loss = self.alternation.loss
        z = self.alternation.matrices.scores(W, state.gamma)
        b = loss.best_intercept(z, state.b - loss.mean_scores(z))
        objective = loss.value(z, b) + problem.penalty(W)
        self._path.append({"stage": "end", "objective": objective})
        return JointSolution(W, b, state.gamma, objective, n_iter, converged, self._path)
