"""Use all of a panel: the genes that a model needs all join its reference set and get weights.

A solution needs the genes of its reference set and those that have weights, its panel P. Once P is
known, more comparisons among its genes cost nothing: the reference set becomes P (those of P that
are candidates), and the weights of all of P are fitted under l2 alone. With l1 = 0 and the
reference set fixed the problem is convex.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from optirank.solver.fixed import solve_at
from optirank.solver.joint import solve_joint

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.joint_problem import JointProblem, JointSolution
    from optirank.solver.problem import Problem, Solution

P = TypeVar("P", "Problem", "JointProblem")
S = TypeVar("S", "Solution", "JointSolution")

_STAGE = "whole panel"


def on_whole_panel(
    problem: Problem, solution: Solution, *, tol: float = 1e-5, max_iter: int = 10_000
) -> Solution:
    """The solution on its whole panel; ``objective`` is that of the last fit, without l1."""
    genes = np.flatnonzero((solution.w != 0) | (solution.gamma > 0))
    part, gamma = _over(problem, genes)
    found = solve_at(part, gamma, tol=tol, max_iter=max_iter)
    w = _spread(found.w, genes, problem.n_genes)
    return replace(found, w=w, **_after(solution, found, gamma, genes))


def joint_on_whole_panel(
    problem: JointProblem, solution: JointSolution, *, tol: float = 1e-5, max_iter: int = 10_000
) -> JointSolution:
    """The same for all classes together."""
    genes = np.flatnonzero(solution.W.any(axis=1) | (solution.gamma > 0))
    part, gamma = _over(problem, genes)
    found = solve_joint(part, tol=tol, max_iter=max_iter)
    W = _spread(found.W, genes, problem.n_genes)
    return replace(found, W=W, **_after(solution, found, gamma, genes))


def _over(problem: P, genes: NDArray) -> tuple[P, NDArray]:
    """The problem over some genes alone, under l2, and the one reference set that it can have."""
    allowed = np.ones(len(genes), bool)
    if problem.candidates is not None:
        allowed = problem.candidates[genes]
    part = replace(
        problem,
        orders=problem.orders.over(genes),
        n_reference=int(allowed.sum()),
        l1=0.0,
        candidates=allowed,
    )
    return part, allowed.astype(float)


def _after(solution: S, found: S, gamma: NDArray, genes: NDArray) -> dict[str, Any]:
    """What a solution on its whole panel takes over from the one before."""
    return {
        "gamma": _spread(gamma, genes, len(solution.gamma)),
        "n_iter": solution.n_iter + found.n_iter,
        "converged": solution.converged and found.converged,
        "path": [*solution.path, {"stage": _STAGE, "objective": found.objective}],
    }


def _spread(values: NDArray, genes: NDArray, n_genes: int) -> NDArray:
    """Values of some genes as those of all, zero elsewhere."""
    full = np.zeros((n_genes, *values.shape[1:]))
    full[genes] = values
    return full
