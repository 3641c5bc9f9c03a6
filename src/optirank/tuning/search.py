"""The search: units x classes x chains in parallel, any joblib backend.

A unit is a training part with the samples that its models score: a fold, or a split of a benchmark.
Its samples are sorted once for all classes and settings.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from joblib import Parallel, delayed
from joblib.parallel import SequentialBackend, get_active_backend

from optirank._util.threads import one_blas_thread
from optirank.tuning.result import Setting, UnitResult

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank._util.cluster import Cluster
    from optirank.tuning.family import Chain, Family, Key, Model, Samples
    from optirank.tuning.folds import Fold

HELD_OUT = "held out"

Progress = Callable[[int, int], None]  # parts done, of how many
Views = Callable[[int, "NDArray"], Mapping[str, "Samples"]]  # of a fold and its held-out positions


@dataclass(frozen=True, kw_only=True)
class Unit:
    """Labelled training samples, and the sets of samples that every model scores.

    ``codes`` are the positions of the labels among ``n_classes`` classes.
    """

    train: Samples
    codes: NDArray
    n_classes: int
    views: Mapping[str, Samples] = field(default_factory=dict)
    weights: NDArray | None = None  # of the samples, ones by default
    balanced: bool = True

    @property
    def positives(self) -> list[int]:
        """The positive class of each problem: one for two classes, one per class for more."""
        return [1] if self.n_classes == 2 else list(range(self.n_classes))

    @property
    def learnable(self) -> list[int]:
        """Problems with samples of positive weight on both sides."""
        there = self.codes if self.weights is None else self.codes[self.weights > 0]
        present = np.unique(there)
        if len(present) < 2:
            return []
        return [k for k, positive in enumerate(self.positives) if positive in present]


def fold_units(
    samples: Samples,
    codes: NDArray,
    folds: Sequence[Fold],
    *,
    n_classes: int,
    weights: NDArray | None = None,
    balanced: bool = True,
    views: Views | None = None,
) -> list[Unit]:
    """One unit per fold; the held-out samples are its view ``HELD_OUT``.

    ``views`` makes further sets of samples to score, such as the held-out samples as another
    platform would measure them, from the number of a fold and its held-out positions.
    """
    return [
        Unit(
            train=samples.take(train),
            codes=codes[train],
            n_classes=n_classes,
            views={HELD_OUT: samples.take(test), **(views(k, test) if views else {})},
            weights=None if weights is None else weights[train],
            balanced=balanced,
        )
        for k, (train, test) in enumerate(folds)
    ]


@dataclass(frozen=True)
class Task:
    """One chain of one unit; positions in the lists of families and units.

    ``problems`` is the one problem that it fits, or all of them where they are fitted together.
    """

    unit: int
    problems: tuple[int, ...]
    family: int
    chain: Chain


@dataclass(frozen=True, kw_only=True)
class Job:
    """A task with all it needs, as one object.

    dask puts large arrays among a call's arguments on one of its workers, where they are lost if it
    dies; inside of an object they travel with the call, which can then run again elsewhere.
    """

    task: Task
    family: Family
    unit: Unit
    until: float  # of time.time; a job that starts later fits nothing


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    """The models of a chain, by problem, and their scores on the views of the unit."""

    task: Task
    models: dict[int, dict[Key, Model]]
    scores: dict[int, dict[Key, dict[str, NDArray]]]
    score_seconds: float

    @classmethod
    def empty(cls, task: Task) -> TaskResult:
        """Of a task for which there was no time."""
        none = {problem: {} for problem in task.problems}
        return cls(task=task, models=none, scores=none, score_seconds=0.0)


def search(
    families: Family | Sequence[Family],
    units: Sequence[Unit],
    *,
    n_jobs: int | None = None,
    compact: bool = False,
    until: float = float("inf"),
    cluster: Cluster | None = None,
    progress: Progress | None = None,
) -> list[UnitResult]:
    """Fit all settings of one or several families in every unit; one result per unit.

    ``compact`` results keep single-precision scores and no models, to save memory. No task starts
    after ``until`` (of ``time.time``); :meth:`UnitResult.complete` tells which settings are whole.
    With a ``cluster`` tasks run on its workers, to which each unit is sent once. ``progress`` is
    told how many tasks are done, of how many.
    """
    families = families if isinstance(families, Sequence) else [families]
    tasks = _tasks(families, units)
    settings = [
        Setting(family, values, number)
        for number, family in enumerate(families)
        for values in family.settings()
    ]
    results = [
        UnitResult(
            settings=settings,
            n_genes=unit.train.n_genes,
            n_problems=len(unit.positives),
            known=np.isin(np.arange(unit.n_classes), unit.codes),
            n_scored={name: view.n_samples for name, view in unit.views.items()},
            compact=compact,
        )
        for unit in units
    ]
    # The limit is set here, around all threads, and again in each task for those that run in other
    # processes: threads that set and lift it on their own would lift each other's.
    with one_blas_thread():
        if any(hasattr(unit.train.orders, "whole") for unit in units):
            from optirank.tuning.on_device import run_on_device  # a GPU is asked for

            finished = run_on_device(tasks, families, units, until)
        elif cluster is not None:
            calls = [(units[task.unit], (task, families[task.family], until)) for task in tasks]
            finished = cluster.run(_run_there, calls)
        else:
            jobs = (delayed(_run)(job) for job in _jobs(tasks, families, units, until))
            finished = Parallel(n_jobs=n_jobs, prefer="threads", return_as=_return_as())(jobs)
        for done, result in enumerate(finished, start=1):
            task = result.task
            for problem, models in result.models.items():
                results[task.unit].add(task.family, problem, models, result.scores[problem])
            results[task.unit].n_fits.append(len(result.models[task.problems[0]]))
            results[task.unit].score_seconds += result.score_seconds
            if progress is not None:
                progress(done, len(tasks))
    return results


def _tasks(families: Sequence[Family], units: Sequence[Unit]) -> list[Task]:
    learnable = [unit.learnable for unit in units]
    if [] in learnable:
        raise ValueError(
            f"fold {learnable.index([])} has one class only to train on (samples of weight 0 do "
            "not count): use fewer folds or other weights"
        )
    sizes = {unit.train.n_genes for unit in units}
    return [
        Task(k, problems, f, chain)
        for f, family in enumerate(families)
        for size in sorted(sizes)
        for chain in family.chains(size)
        for k, unit in enumerate(units)
        if unit.train.n_genes == size
        for problems in (
            [tuple(learnable[k])]
            if family.fits_together(unit.n_classes)
            else [(problem,) for problem in learnable[k]]
        )
    ]


def _jobs(
    tasks: list[Task], families: Sequence[Family], units: Sequence[Unit], until: float
) -> Iterator[Job]:
    for task in tasks:
        yield Job(task=task, family=families[task.family], unit=units[task.unit], until=until)


def _run(job: Job) -> TaskResult:
    if time.time() > job.until:
        return TaskResult.empty(job.task)
    return run_task(job.task, job.family, job.unit)


def _run_there(unit: Unit, task: Task, family: Family, until: float) -> TaskResult:
    """A task on a worker of a cluster."""
    return _run(Job(task=task, family=family, unit=unit, until=until))


def run_task(task: Task, family: Family, unit: Unit) -> TaskResult:
    """Fit a chain, and score the views of its unit."""
    from optirank.solver.problem import sample_weights

    problems = task.problems
    with one_blas_thread():
        if family.fits_together(unit.n_classes):
            models = family.fit_together(
                unit.train, unit.codes, problems, unit.weights, unit.balanced, task.chain
            )
        else:
            positive = unit.codes == unit.positives[problems[0]]
            v = sample_weights(positive, unit.weights, unit.balanced)
            models = {
                problems[0]: family.fit_chain(unit.train, positive.astype(float), v, task.chain)
            }
        start = time.perf_counter()
        scores = {
            problem: {
                key: {name: family.scores(view, model) for name, view in unit.views.items()}
                for key, model in found.items()
            }
            for problem, found in models.items()
        }
        seconds = time.perf_counter() - start
    return TaskResult(task=task, models=models, scores=scores, score_seconds=seconds)


def _return_as() -> str:
    """Results as they come, where the active joblib backend can give them so."""
    backend, _ = get_active_backend(prefer="threads")
    as_they_come = isinstance(backend, SequentialBackend) or backend.supports_return_generator
    return "generator_unordered" if as_they_come else "list"
