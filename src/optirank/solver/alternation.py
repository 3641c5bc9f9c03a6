"""Rounds that alternate between (w, b) and (gamma, b), relaxed or pushed to a set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from optirank.solver.feasible import CappedSimplex
from optirank.solver.losses import LogisticLoss
from optirank.solver.matrices import ProblemMatrices
from optirank.solver.steps import ElasticNet, accelerated_steps, curvature_scale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.problem import Problem

INNER_STEPS = 3  # of each block per round: a matrix costs as much as 5 to 10 of its products


@dataclass(frozen=True)
class State:
    """A point on the way: b belongs to centred matrices, L to the blocks' step sizes."""

    w: NDArray
    b: float
    gamma: NDArray
    objective: float = np.inf  # loss plus elastic net
    L_w: float | None = None
    L_gamma: float | None = None
    n_iter: int = 0
    batch: int | None = None  # genes that an exchange swaps next; None: not begun, 0: ended


class Alternation:
    """Takes rounds on one problem, with its matrices and buffers."""

    def __init__(self, problem: Problem, matrices: ProblemMatrices | None = None) -> None:
        self.problem = problem
        self.matrices = ProblemMatrices(problem) if matrices is None else matrices
        self.loss = LogisticLoss(problem.y, problem.v)
        self._prox_w = ElasticNet(problem.l1, problem.l2)
        self.feasible = CappedSimplex(problem.n_reference, problem.candidates)

    def round(self, state: State, lambda_p: float = 0.0) -> State:
        """A few steps on (w, b), then on (gamma, b) with the push penalty's tangent."""
        matrix = self.matrices.ranks(state.gamma)
        L = state.L_w or curvature_scale(matrix, self.loss.v)
        on_w = accelerated_steps(matrix, self.loss, state.w, state.b, self._prox_w, L, INNER_STEPS)
        matrix = self.matrices.coranks(on_w.x)
        L = state.L_gamma or curvature_scale(matrix, self.loss.v)
        push = lambda_p * (1.0 - 2.0 * state.gamma) if lambda_p else None
        on_gamma = accelerated_steps(
            matrix, self.loss, state.gamma, on_w.b, self.feasible, L, INNER_STEPS, linear=push
        )
        b = self.loss.best_intercept(on_gamma.z, on_w.b)
        objective = self.loss.evaluate(on_gamma.z, b) + self.problem.penalty(on_w.x)
        n_iter = state.n_iter + on_w.n_steps + on_gamma.n_steps
        return State(on_w.x, b, on_gamma.x, objective, on_w.L, on_gamma.L, n_iter)

    def rounds(self, state: State, n_rounds: int, tol: float) -> tuple[State, bool]:
        """Rounds until one lowers the objective by less than ``tol`` of it; whether one did."""
        for _ in range(n_rounds):
            new = self.round(state)
            if state.objective - new.objective < tol * new.objective:
                return min(state, new, key=lambda one: one.objective), True
            state = new
        return state, False

    def steps_on_w(self, state: State, n_steps: int) -> State:
        """Steps on (w, b) alone; ``loss`` is left evaluated at the result."""
        matrix = self.matrices.ranks(state.gamma)
        L = state.L_w or curvature_scale(matrix, self.loss.v)
        done = accelerated_steps(matrix, self.loss, state.w, state.b, self._prox_w, L, n_steps)
        b = self.loss.best_intercept(done.z, done.b)
        objective = self.loss.evaluate(done.z, b) + self.problem.penalty(done.x)
        n_iter = state.n_iter + done.n_steps
        return replace(state, w=done.x, b=b, objective=objective, L_w=done.L, n_iter=n_iter)

    def tilted_starts(self) -> tuple[State, State]:
        """Two starts: gamma tilted to the genes whose ranks rise with the label, and that fall.

        "Up gene above down gene" can be counted with the weights on the up genes and the reference
        among the down genes, or the other way round: two minima, one on each side.
        """
        problem = self.problem
        matrix = self.matrices.ranks(self.feasible.centre(problem.n_genes))
        covariance = matrix.transpose_dot((problem.v * (problem.y - 0.5)).astype(np.float32))
        rising, falling = self.feasible.tilted(covariance)
        w = np.zeros(problem.n_genes)
        return State(w, 0.0, rising), State(w, 0.0, falling)
