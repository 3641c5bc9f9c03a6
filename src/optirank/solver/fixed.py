"""The problem with its reference weights fixed: convex in (w, b)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optirank.solver.convex import few_weights, finish_exactly, fit_weights
from optirank.solver.losses import LogisticLoss
from optirank.solver.matrices import ProblemMatrices
from optirank.solver.problem import Solution

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.problem import Problem


def solve_at(
    problem: Problem,
    gamma: NDArray,
    *,
    w: NDArray | None = None,
    b: float = 0.0,
    L: float | None = None,
    tol: float = 1e-5,
    max_iter: int = 10_000,
    exact: bool = True,
    matrices: ProblemMatrices | None = None,
) -> Solution:
    """Optimise (w, b) to convergence at ``gamma``, from w where one is given.

    ``exact`` ends small problems with Newton steps in float64, down to roundoff.
    """
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
    if exact and few_weights(w, problem.y):
        ranks = problem.orders.ranks(gamma / problem.n_reference, problem.ties, np.float64)
        columns = ranks.columns(np.flatnonzero(w))
        w = finish_exactly(columns, problem.y, problem.v, w, found.b, problem.l1, problem.l2)
    return solution_at(problem, w, gamma, n_iter=found.n_iter, converged=found.converged)


def solution_at(
    problem: Problem, w: NDArray, gamma: NDArray, *, n_iter: int, converged: bool
) -> Solution:
    """The solution with these weights: best intercept and objective from float64 scores."""
    z = problem.scores(w, 0.0, gamma)
    b = LogisticLoss(problem.y, problem.v).best_intercept(z, 0.0)
    objective = problem.loss(z + b) + problem.penalty(w)
    return Solution(w, float(b), gamma, objective, n_iter, converged)
