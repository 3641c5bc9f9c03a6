"""The tasks of a search on a device: settings, folds, classes and sides side by side."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from optirank.solver.device.problems import solve_together
from optirank.solver.device.solve import Options
from optirank.solver.problem import Problem, sample_weights
from optirank.tuning.family import Model, Samples
from optirank.tuning.search import TaskResult, run_task

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.device.solve import DeviceSolution
    from optirank.tuning.family import Family
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
    for task, own in zip(tasks, keys, strict=True):
        unit = units[task.unit]
        models, scores = {}, {}
        begin = time.perf_counter()
        for key, one in zip(own, found, strict=False):
            spread = family.spread(one.scores[unit.train.orders.rows])
            model = Model.of(one.solution, each)
            models[key] = replace(model, w=model.w / spread, b=model.b / spread)
            scores[key] = {
                name: _scores(family, view, models[key], one, unit, spread)
                for name, view in unit.views.items()
            }
        yield TaskResult(
            task=task,
            models={task.problems[0]: models},
            scores={task.problems[0]: scores},
            score_seconds=time.perf_counter() - begin,
        )


def _scores(
    family: Family, view: Samples, model: Model, found: DeviceSolution, unit: Unit, spread: float
) -> NDArray:
    """Scores of a view: known already where it lies in the same orders."""
    if getattr(view.orders, "whole", None) is unit.train.orders.whole:
        return found.scores[view.orders.rows] / spread
    return family.scores(view, model)
