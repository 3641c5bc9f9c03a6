"""Rounds that alternate between (w, b) and (gamma, b), relaxed or pushed to a set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from optirank.solver.feasible import CappedSimplex
from optirank.solver.losses import LogisticLoss
from optirank.solver.matrices import ProblemMatrices
from optirank.solver.steps import BlockResult, ElasticNet, accelerated_steps, curvature_scale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.matrices import CentredMatrix
    from optirank.solver.problem import Problem

ROUNDS_PER_SET = 3  # rounds that keep to the genes which a round over all genes has found
_NEAR_ACTIVE = 0.8  # of l1: genes that may get a weight in the next rounds
_FEW = 0.7  # of the genes: more are as good as all
INNER_STEPS = 3  # of each block per round: a matrix costs as much as 5 to 10 of its products


@dataclass(frozen=True)
class WorkingSets:
    """The genes that a few rounds keep to, the others' weights being zero; None: all genes."""

    w: NDArray | None
    gamma: NDArray | None
    rounds: int  # that they are still good for


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
    z: NDArray | None = None  # the scores, after a round
    sets: WorkingSets | None = None  # of the rounds to come; None: the next one is over all genes
    batch: int | None = None  # genes that an exchange swaps next; None: not begun, 0: ended


class Alternation:
    """Takes rounds on one problem, with its matrices and buffers."""

    def __init__(self, problem: Problem, matrices: ProblemMatrices | None = None) -> None:
        self.problem = problem
        self.matrices = ProblemMatrices(problem) if matrices is None else matrices
        self.loss = LogisticLoss(problem.y, problem.v)
        self._prox_w = ElasticNet(problem.l1, problem.l2)
        self.feasible = problem.feasible
        self._among_candidates = CappedSimplex(problem.n_reference)

    def round(self, state: State, lambda_p: float = 0.0) -> State:
        """A few steps on (w, b), then on (gamma, b) with the push penalty's tangent.

        One round in four is over all genes and says which ones the next three keep to.
        """
        problem, sets = self.problem, state.sets
        whole = sets is None or sets.rounds == 0
        genes = None if whole else sets.w
        matrix = self.matrices.ranks(state.gamma, genes)
        L = state.L_w or curvature_scale(matrix, self.loss.v)
        on_w = accelerated_steps(
            matrix,
            self.loss,
            _taken(state.w, genes),
            state.b,
            self._prox_w,
            L,
            INNER_STEPS,
            z=state.z,
        )
        w = spread(on_w.x, genes, problem.n_genes)
        active = self._active(matrix, on_w) if whole else None

        genes = None if whole else sets.gamma
        matrix = self.matrices.coranks(w, genes)
        L = state.L_gamma or curvature_scale(matrix, self.loss.v)
        before = _taken(state.gamma, genes)
        push = lambda_p * (1.0 - 2.0 * before) if lambda_p else None
        feasible = self.feasible if genes is None else self._among_candidates
        b = self.loss.best_intercept(on_w.z, on_w.b)
        # both matrices are centred, so these scores are those of gamma as well
        on_gamma = accelerated_steps(
            matrix, self.loss, before, b, feasible, L, INNER_STEPS, linear=push, z=on_w.z
        )
        gamma = spread(on_gamma.x, genes, problem.n_genes)
        b = self.loss.best_intercept(on_gamma.z, on_gamma.b)
        objective = self.loss.evaluate(on_gamma.z, b) + problem.penalty(w)
        if not whole:
            sets = replace(sets, rounds=sets.rounds - 1)
        elif self.matrices.restricts:
            entering = self._entering(matrix, gamma, lambda_p)
            sets = WorkingSets(active, entering, ROUNDS_PER_SET)
        n_iter = state.n_iter + on_w.n_steps + on_gamma.n_steps
        return State(w, b, gamma, objective, on_w.L, on_gamma.L, n_iter, on_gamma.z, sets)

    def _active(self, matrix: CentredMatrix, on_w: BlockResult) -> NDArray | None:
        """The genes with a weight, and those that l1 may let have one soon."""
        if not (self.problem.l1 and self.matrices.restricts):
            return None
        self.loss.differentiate(on_w.z, on_w.b)
        near = np.abs(matrix.transpose_dot(self.loss.slopes)) > _NEAR_ACTIVE * self.problem.l1
        return _if_few(np.flatnonzero((on_w.x != 0) | near), self.problem.n_genes)

    def _entering(self, matrix: CentredMatrix, gamma: NDArray, lambda_p: float) -> NDArray | None:
        """The genes of the reference, and a few more that the gradient would let in next."""
        gradient = matrix.transpose_dot(self.loss.slopes)
        gradient[gamma > 0] = -np.inf
        if self.feasible.candidates is not None:
            gradient[~self.feasible.candidates] = np.inf
        size = int(1.2 * np.count_nonzero(gamma)) + 8
        if size >= len(gamma):
            return None
        genes = np.argpartition(gradient, size)[:size]
        return _if_few(
            np.sort(genes[np.isfinite(gradient[genes]) | (gamma[genes] > 0)]), len(gamma)
        )

    def rounds(self, state: State, n_rounds: int, tol: float) -> tuple[State, bool]:
        """Rounds until one lowers the objective by less than ``tol`` of it; whether one did."""
        state = replace(state, z=None, sets=None)
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


def _taken(x: NDArray, genes: NDArray | None) -> NDArray:
    """The entries of some genes, or all."""
    return x if genes is None else x[genes]


def spread(part: NDArray, genes: NDArray | None, n_genes: int) -> NDArray:
    """A vector of all genes: ``part`` at some genes, zero elsewhere."""
    if genes is None:
        return part
    full = np.zeros(n_genes)
    full[genes] = part
    return full


def _if_few(genes: NDArray, n_genes: int) -> NDArray | None:
    """The genes, or None for all where there are too many for it to pay."""
    return genes if 0 < len(genes) <= _FEW * n_genes else None
