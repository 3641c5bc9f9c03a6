"""The problem with its reference weights fixed: convex in (w, b)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optirank.ranks.matrices import DenseRanks
from optirank.solver.convex import fit_weights
from optirank.solver.hessian import newton_steps
from optirank.solver.matrices import ProblemMatrices
from optirank.solver.problem import Solution
from optirank.solver.steps import LogisticLoss

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.problem import Problem

_EXACT_SIZE = 300  # up to here the last steps are Newton's in float64


def solve_at(
    problem: Problem,
    gamma: NDArray,
    *,
    w: NDArray | None = None,
    b: float = 0.0,
    L: float | None = None,
    tol: float = 1e-5,
    max_iter: int = 10_000,
    matrices: ProblemMatrices | None = None,
) -> Solution:
    """Optimise (w, b) to convergence at ``gamma``, from w where one is given."""
    matrices = ProblemMatrices(problem) if matrices is None else matrices
    loss = LogisticLoss(problem.y, problem.v)
    found = fit_weights(
        matrices.ranks(gamma),
        loss,
        problem.l1,
        problem.l2,
        w=w,
        b=b,
        L=L,
        tol=tol,
        max_iter=max_iter,
    )
    w = found.w
    if min(len(problem.y), np.count_nonzero(w)) <= _EXACT_SIZE:
        w = _finish_exactly(problem, gamma, w, found.b)
    return solution_at(problem, w, gamma, n_iter=found.n_iter, converged=found.converged)


def _finish_exactly(problem: Problem, gamma: NDArray, w: NDArray, b: float) -> NDArray:
    """Newton steps in float64 on the support of w, down to roundoff."""
    support = np.flatnonzero(w)
    ranks = problem.orders.ranks(gamma / problem.n_reference, problem.ties, np.float64)
    if not isinstance(ranks, DenseRanks) or not len(support):
        return w
    values = np.ascontiguousarray(ranks.values[:, support])
    values -= problem.v @ values
    loss = LogisticLoss(problem.y, problem.v, np.float64)
    found, *_ = newton_steps(values, loss, w[support], b, problem.l1, problem.l2, 20, tol=1e-15)
    w = np.zeros_like(w)
    w[support] = found
    return w


def solution_at(
    problem: Problem, w: NDArray, gamma: NDArray, *, n_iter: int, converged: bool
) -> Solution:
    """The solution with these weights: best intercept and objective from float64 scores."""
    z = problem.scores(w, 0.0, gamma)
    b = LogisticLoss(problem.y, problem.v).best_intercept(z, 0.0)
    objective = problem.loss(z + b) + problem.penalty(w)
    return Solution(w, float(b), gamma, objective, n_iter, converged)
