"""The search over a grid on a GPU: what ``optirank.estimators.search`` does on the CPU.

The orders of the units are `DeviceOrders`. Fits over the same samples, of all folds,
classes and settings, are one batch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from optirank.estimators.search import Family, Unit, UnitResult
from optirank.estimators.search import search as search_on_cpu
from optirank_lab.device.solve import solve_together

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.problem import Problem, Solution


def search(
    family: Family,
    units: Sequence[Unit],
    *,
    device: str = "cpu",
    n_jobs: int | None = None,
) -> list[UnitResult]:
    """Fit all settings of a family in every unit; one result per unit.

    On a GPU the family is optirank's or rank-lr's, whose head is the size of the set,
    or empty: all genes. Seconds are then wall time, and ``n_jobs`` says nothing.
    """
    if device == "cpu":
        return search_on_cpu(family, units, n_jobs=n_jobs)
    results = [UnitResult(family, unit) for unit in units]
    batches: dict[int, list[int]] = {}  # units over the same samples
    for number, unit in enumerate(units):
        batches.setdefault(id(unit.train.perm), []).append(number)
    for batch in batches.values():
        start = time.perf_counter()
        places = []
        problems: list[Problem] = []
        for number in batch:
            for place, problem in _problems(family, units[number]):
                places.append((number, *place))
                problems.append(problem)
        solutions = solve_together(
            problems,
            tol=family.tol,
            max_iter=family.max_iter,
            thorough=not family.warm_start,
        )
        seconds = (time.perf_counter() - start) / len(problems)
        models: dict[int, list[Solution]] = {number: [] for number in batch}
        for (number, k, head, pair), solution in zip(places, solutions, strict=True):
            solution.seconds = seconds
            results[number].add(k, head, {pair: solution})
            models[number].append(solution)
        for number in batch:
            _score(family, units[number], models[number])
    return results


def _problems(family: Family, unit: Unit) -> list[tuple[tuple, Problem]]:
    """The problems of all settings and classes of a unit, and where their solutions
    belong: number of the class, head, penalties.
    """
    problems = []
    for head, penalties in family.chains(unit.train.n_genes).items():
        (size,) = head or (unit.train.n_genes,)
        for k in unit.learnable:
            problem = family.problem(unit.train, *unit.problem(k), size)
            for l1, l2 in penalties:
                one = replace(problem, l1=l1, l2=l2)
                problems.append(((k, head, (l1, l2)), one))
    return problems


def _score(family: Family, unit: Unit, models: Sequence[Solution]) -> None:
    """Score the views of a unit by each model; views of one order at once."""
    w = np.array([model.w for model in models])
    gamma = np.array([model.gamma for model in models])
    b = np.array([model.b for model in models])
    of_all: dict[int, NDArray] = {}
    for name, view in unit.views.items():
        order = id(view.perm)
        if order not in of_all:
            scores = view.whole.scores_of_many(w, gamma, family.ties)
            of_all[order] = scores / gamma.sum(axis=1)[:, None] + b[:, None]
        for model, values in zip(models, of_all[order], strict=True):
            model.scores[name] = values[view.rows]
