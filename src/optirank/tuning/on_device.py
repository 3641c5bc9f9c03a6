"""The tasks of a search on a device: settings, folds, classes and sides side by side."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from optirank.solver.device.problems import solve_together
from optirank.solver.device.solve import Options
from optirank.solver.problem import Problem, sample_weights
from optirank.tuning.family import Model, Samples
from optirank.tuning.search import TaskResult, run_task

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.device.solve import DeviceSolution
    from optirank.tuning.family import Family, Key
    from optirank.tuning.search import Task, Unit


def run_on_device(
    tasks: Sequence[Task],
    families: Sequence[Family],
    units: Sequence[Unit],
    until: float = float("inf"),
) -> Iterator[TaskResult]:
    """The results of all tasks; those of one family over the same samples are one batch.

    A model of all classes together fills the device by itself: its tasks follow each other. No
    batch starts after ``until`` (of ``time.time``).
    """
    groups: dict[tuple, list[Task]] = {}
    for task in tasks:
        unit, family = units[task.unit], families[task.family]
        if family.fits_together(unit.n_classes):
            late = time.time() > until
            yield TaskResult.empty(task) if late else run_task(task, family, unit)
        else:
            groups.setdefault((task.family, id(unit.train.orders.whole)), []).append(task)
    for (number, _), group in groups.items():
        if time.time() > until:
            yield from map(TaskResult.empty, group)
        else:
            yield from _run_batch(group, families[number], units)


def _run_batch(
    tasks: Sequence[Task], family: Family, units: Sequence[Unit]
) -> Iterator[TaskResult]:
    start = time.perf_counter()
    candidates = getattr(family, "candidates", None)
    problems, sides, keys = [], [], []
    for task in tasks:
        unit = units[task.unit]
        positive = unit.codes == unit.positives[task.problems[0]]
        v = sample_weights(positive, unit.weights, unit.balanced)
        y = positive.astype(float)
        for l1, l2 in task.chain.penalties:
            size, side = family.start_of(task.chain, unit.train.n_genes)
            problems.append(Problem(unit.train.orders, y, v, size, l1, l2, family.ties, candidates))
            sides.append(side)
        keys.append(task.chain.keys())
    options = Options(
        ties=family.ties,
        tol=family.tol,
        max_iter=family.max_iter,
        path_step=getattr(family, "path_step", 100.0),
        thorough=not family.warm_start,
        candidates=candidates,
    )
    found = iter(solve_together(problems, sides, options))
    each = (time.perf_counter() - start) / len(problems)
    fitted: list[dict[Key, Fit]] = []
    for task, own in zip(tasks, keys, strict=True):
        rows = units[task.unit].train.orders.rows
        fitted.append({key: _fit(family, next(found), rows, each) for key in own})
    of_unit: dict[int, list[int]] = {}
    for k, task in enumerate(tasks):
        of_unit.setdefault(task.unit, []).append(k)
    for number, places in of_unit.items():
        clock = time.perf_counter()
        fits = [one for k in places for one in fitted[k].values()]
        scores = iter(_scores_of_views(family, units[number], fits))
        seconds = (time.perf_counter() - clock) / len(places)
        for k in places:
            problem = tasks[k].problems[0]
            yield TaskResult(
                task=tasks[k],
                models={problem: {key: one.model for key, one in fitted[k].items()}},
                scores={problem: {key: next(scores) for key in fitted[k]}},
                score_seconds=seconds,
            )


@dataclass(frozen=True)
class Fit:
    """A model with the scores that came with its fit, those of all samples in its orders."""

    model: Model
    scores: NDArray


def _fit(family: Family, found: DeviceSolution, rows: NDArray, seconds: float) -> Fit:
    spread = family.spread(found.scores[rows])
    model = Model.of(found.solution, seconds)
    model = replace(model, w=model.w / spread, b=model.b / spread)
    return Fit(model, found.scores / spread)


def _scores_of_views(family: Family, unit: Unit, fits: Sequence[Fit]) -> list[dict[str, NDArray]]:
    """Scores of each model by view; those of all samples in an order are found at once."""
    found: list[dict[str, NDArray]] = [{} for _ in fits]
    of_all: dict[int, Sequence[NDArray]] = {
        id(unit.train.orders.whole): [fit.scores for fit in fits]
    }
    for name, view in unit.views.items():
        whole = view.orders.whole
        if id(whole) not in of_all:
            models = [one.model for one in fits]
            of_all[id(whole)] = family.scores_of_many(Samples(orders=whole), models)
        for own, values in zip(found, of_all[id(whole)], strict=True):
            own[name] = values[view.orders.rows]
    return found
