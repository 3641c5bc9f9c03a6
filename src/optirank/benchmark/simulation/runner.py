"""Run the units of the experiment over processes; what is finished is stored at once.

A unit is cut into its folds, so that even one unit keeps several processes busy; when the folds are
in, choosing and testing follow as one more task, ahead of the folds of later units.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from pathlib import Path

from optirank.benchmark.processes import submit, worker_processes
from optirank.benchmark.simulation.experiment import finish, fit_fold
from optirank.benchmark.simulation.settings import FOLDS, Settings, Unit
from optirank.benchmark.simulation.storage import Storage

Progress = Callable[[float], None]


def total_work(settings: Settings) -> float:
    """Return the sum of what the progress callback of `run` will be told."""
    return sum(unit.weight for unit in settings.units())


def run(
    settings: Settings,
    folder: str | Path,
    *,
    jobs: int = 1,
    progress: Progress = lambda work: None,
) -> dict[Unit, dict]:
    """Compute the units that the folder does not hold yet, and return the results of all.

    `progress` is told the work done since its last call; stored units count at the start. An
    interrupt ends the processes and leaves the finished units in the folder.
    """
    storage = Storage(folder, settings).open()
    results: dict[Unit, dict] = {}
    missing = []
    for unit in settings.units():
        stored = storage.load(unit)
        if stored is None:
            missing.append(unit)
        else:
            results[unit] = stored
            progress(unit.weight)
    if missing:
        with worker_processes(jobs) as executor:
            for unit, result in _compute(missing, settings, executor, jobs, progress):
                storage.save(unit, result)
                results[unit] = result
    return {unit: results[unit] for unit in settings.units()}


def _compute(
    units: list[Unit], settings: Settings, executor: Executor, jobs: int, progress: Progress
) -> Iterator[tuple[Unit, dict]]:
    """Yield each unit with its result as soon as it is there."""
    folds = deque((unit, fold) for unit in units for fold in range(FOLDS))
    fits: dict[Unit, list] = {unit: [] for unit in units}
    ready: deque[Unit] = deque()
    running: dict[Future, tuple[Unit, bool]] = {}
    while folds or ready or running:
        while (folds or ready) and len(running) < jobs:
            if ready:
                unit = ready.popleft()
                gathered = [fit for fold in fits.pop(unit) for fit in fold]
                task = (finish, unit, settings.seed, settings.grids(), gathered)
                running[submit(executor, *task)] = (unit, True)
            else:
                unit, fold = folds.popleft()
                task = (fit_fold, unit, settings.seed, settings.grid, fold)
                running[submit(executor, *task)] = (unit, False)
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            unit, finished = running.pop(future)
            progress(unit.weight / (FOLDS + 1))
            if finished:
                yield unit, future.result()
                continue
            fits[unit].append(future.result())
            if len(fits[unit]) == FOLDS:
                fits[unit].sort(key=lambda fold: fold[0]["fold"])
                ready.append(unit)
