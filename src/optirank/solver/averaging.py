"""Scores of several models made comparable, so that their mean is a fair average."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.problem import Problem, Solution


def at_unit_spread(problem: Problem, solution: Solution) -> Solution:
    """The solution with scores of standard deviation 1 over the training samples.

    Strong penalties make small scores, which would count for little in a plain mean.
    """
    scores = problem.orders.scores(solution.w, solution.gamma, problem.ties)
    return with_unit_spread(solution, scores / solution.gamma.sum())


def with_unit_spread(solution: Solution, scores: NDArray) -> Solution:
    """The solution with scores of standard deviation 1, from those that it gives."""
    spread = spread_of(scores)
    return replace(solution, w=solution.w / spread, b=solution.b / spread)


def spread_of(scores: NDArray) -> float:
    """The standard deviation of scores, 1 where they are all the same."""
    spread = float(scores.std())
    return spread if spread > 0 else 1.0
