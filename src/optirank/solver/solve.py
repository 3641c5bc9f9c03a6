"""The entries of the solver: one problem by any algorithm, and many penalties on one
problem.

Settings of a grid are walked from strong to weak l2 at the smallest l1, and from there,
at each l2, to stronger l1: the reference set changes little from one to the next, so
exchanges from the neighbour's set take the place of a whole solve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optirank.solver import constants as c
from optirank.solver.alternating import Run, State, near_best, solve_alternating
from optirank.solver.blocks import CentredMatrix, ProblemMatrices
from optirank.solver.bpcd import solve_bpcd
from optirank.solver.convex import Weights, fit_weights, solution_at
from optirank.solver.problem import PenaltyPair, Problem, Solution
from optirank.solver.terms import ElasticNet, LogisticLoss, Penalty

ALGORITHMS: dict[str, Callable[..., Solution]] = {
    "alternating": solve_alternating,
    "bpcd": solve_bpcd,
}
"""The algorithms as ``OptirankClassifier(algorithm=...)`` finds them. Each is called
with a problem and the options of ``solve_alternating``; those that mean nothing to it
end in its ``**_``."""


def solve(
    problem: Problem, *, algorithm: str = "alternating", **options: Any
) -> Solution:
    """Solve a problem by an algorithm of the registry."""
    return ALGORITHMS[algorithm](problem, **options)


def walk(
    penalties: Iterable[PenaltyPair],
) -> list[tuple[PenaltyPair, PenaltyPair | None]]:
    """Each setting with the one it starts from (None: from nothing), in an order
    that works.
    """
    rows: dict[float, list[float]] = {}
    for l1, l2 in penalties:
        rows.setdefault(l2, []).append(l1)
    order: list[tuple[PenaltyPair, PenaltyPair | None]] = []
    before: PenaltyPair | None = None
    for l2 in sorted(rows, reverse=True):
        l1s = sorted(set(rows[l2]))
        order.append(((l1s[0], l2), before))
        before = (l1s[0], l2)
        order += [((after, l2), (l1, l2)) for l1, after in pairwise(l1s)]
    return order


def solve_grid(
    problem: Problem,
    penalties: Iterable[PenaltyPair],
    *,
    side: str,
    tol: float = 1e-5,
    max_iter: int = 10_000,
) -> dict[PenaltyPair, Solution]:
    """Solutions of a problem at many penalties, from one of the two starts or the
    better of both.

    "best" follows both starts through the relaxed problems of all l2, and takes to sets
    those that are close to the better one there. ``problem``'s own penalties are not
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
            starts = run.starts(side) if before is None else relaxed
            relaxed = {
                name: run.relax(replace(state, n_iter=0), *c.RELAXED, name)
                for name, state in starts.items()
            }
            states[setting] = _sets_of_relaxed(run, relaxed)
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


def _sets_of_relaxed(run: Run, relaxed: dict[str, State]) -> dict[str, State]:
    """From the relaxed solutions near the best one to sets, and exchanges."""
    n_models = c.MODELS if run.cheap else 1
    kept = near_best(relaxed, np.inf if run.cheap else c.FAR)
    return {
        name: run.exchange(run.push(state, name), n_models)
        for name, state in kept.items()
    }


def _sets_of_neighbour(run: Run, states: dict[str, State]) -> dict[str, State]:
    """Exchanges from the sets of a neighbouring setting.

    With few genes, the neighbours of a set are judged pair by pair at every setting.
    """
    few = run.cheap or run.problem.n_reference <= c.FEW_GENES
    sets = {}
    for name, state in states.items():
        started = run.alternation.steps_on_w(
            replace(state, batch=None, n_iter=0), c.REFIT_STEPS
        )
        sets[name] = run.exchange(started, n_models=1 if few else 0)
    return sets


def solve_grid_at(
    problem: Problem, gamma: NDArray, penalties: Iterable[PenaltyPair], **accuracy: Any
) -> dict[PenaltyPair, Solution]:
    """Solutions at many penalties for fixed reference weights (convex)."""
    matrix = ProblemMatrices(problem).ranks(gamma)
    loss = LogisticLoss(problem.y, problem.v)
    problems = {(l1, l2): replace(problem, l1=l1, l2=l2) for l1, l2 in penalties}
    weights = fit_weights_grid(
        matrix,
        loss,
        penalties,
        penalty_of=lambda l1, l2: problems[l1, l2].penalty,
        **accuracy,
    )
    return {
        setting: solution_at(
            problems[setting], fitted.w, gamma, fitted.n_iter, fitted.converged
        )
        for setting, fitted in weights.items()
    }


def fit_weights_grid(
    matrix: CentredMatrix,
    loss: LogisticLoss,
    penalties: Iterable[PenaltyPair],
    *,
    penalty_of: Callable[[float, float], Penalty] = ElasticNet,
    **accuracy: Any,
) -> dict[PenaltyPair, Weights]:
    """Logistic regression at many penalties on one matrix, each from its neighbour's
    solution.

    ``accuracy`` is ``tol`` and ``max_iter`` of ``fit_weights``.
    """
    fits: dict[PenaltyPair, Weights] = {}
    for setting, before in walk(penalties):
        l1, l2 = setting
        if l1 == l2 == 0 and penalty_of is ElasticNet:
            l2 = c.RIDGE_FLOOR
        penalty = penalty_of(l1, l2)
        if before is None:
            fits[setting] = fit_weights(matrix, loss, penalty, **accuracy)
        else:
            near = fits[before]
            fits[setting] = fit_weights(
                matrix, loss, penalty, w=near.w, b=near.b, L=near.L, **accuracy
            )
    return fits
