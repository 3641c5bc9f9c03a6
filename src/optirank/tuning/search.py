"""The search: units x classes x chains in parallel, and what it found in each unit.

A unit is a training part with the samples that its models score: a fold, or a split of
a benchmark. Its samples are sorted once for all classes and settings. Any joblib
backend can run the tasks; on a GPU, those over the same samples are one batch.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from joblib.parallel import SequentialBackend, get_active_backend
from numpy.typing import NDArray

from optirank._util.matrices import Progress
from optirank._util.work import one_blas_thread
from optirank.solver.problem import Problem, sample_weights
from optirank.tuning.families import BinaryModel, Chain, Family, Key, Samples
from optirank.tuning.folds import Fold

HELD_OUT = "held out"


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
        """The positive class of each problem: one for two classes, one per class
        for more.
        """
        return [1] if self.n_classes == 2 else list(range(self.n_classes))

    @property
    def learnable(self) -> list[int]:
        """Problems with samples of positive weight both in the class and in
        the rest.
        """
        weighing = slice(None) if self.weights is None else self.weights > 0
        present = np.unique(self.codes[weighing])
        if len(present) < 2:
            return []
        return [k for k, positive in enumerate(self.positives) if positive in present]

    def problem(self, number: int) -> tuple[NDArray, NDArray]:
        """Labels (1.0 for the positive class) and weights of the samples in one
        problem.
        """
        positive = self.codes == self.positives[number]
        return positive.astype(float), sample_weights(
            positive, self.weights, self.balanced
        )


@dataclass
class UnitResult:
    """Scores, genes and times of all settings of a family; a setting is named by its
    position.

    A problem whose class the training part lacked has no models, scores minus infinity
    and needs no genes.
    """

    family: Family
    unit: Unit
    # By problem
    _models: dict[int, dict[Key, BinaryModel]] = field(default_factory=dict)

    @cached_property
    def params(self) -> list[dict[str, object]]:
        """The parameters of each setting by name."""
        return [self.family.params(values) for values in self.family.settings()]

    @cached_property
    def _keys(self) -> list[Key]:
        n_genes = self.unit.train.n_genes
        return [self.family.key(values, n_genes) for values in self.family.settings()]

    def models(self, setting: int) -> list[BinaryModel]:
        """The models of a setting for all problems that have one."""
        return [known[self._keys[setting]] for _, known in sorted(self._models.items())]

    def decision(self, setting: int, view: str) -> NDArray:
        """Decision scores on a view, samples x problems."""
        shape = self.unit.views[view].n_samples, len(self.unit.positives)
        scores = np.full(shape, -np.inf)
        for problem, known in self._models.items():
            scores[:, problem] = known[self._keys[setting]].scores[view]
        return scores

    def genes(self, setting: int) -> NDArray:
        """Mask of the genes a setting needs, over all problems."""
        return np.any([model.genes for model in self.models(setting)], axis=0)

    def fit_seconds(self, setting: int) -> float:
        """CPU time of a setting's fits, their shares of their chains."""
        return sum(model.seconds for model in self.models(setting))


def gene_counts(results: Iterable[UnitResult]) -> NDArray:
    """Numbers of genes, settings x units."""
    counts = [
        [result.genes(setting).sum() for setting in range(len(result.params))]
        for result in results
    ]
    return np.array(counts).T


Task = tuple[int, int, Chain]  # unit, problem, and what is fitted of it
TaskResult = tuple[int, int, dict[Key, BinaryModel]]  # unit, problem, models


def search(
    family: Family,
    units: Sequence[Unit],
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> list[UnitResult]:
    """Fit all settings of a family in every unit; one result per unit.

    ``progress`` gets the number of tasks done, and how many there are.
    """
    tasks = _tasks(family, units)
    results = [UnitResult(family, unit) for unit in units]
    # The limit is set here, around all threads, and again in each task for those that
    # run in other processes: threads that set and lift it on their own would lift each
    # other's.
    with one_blas_thread():
        if any(unit.train.on_device for unit in units):
            finished = _run_on_device(family, units, tasks)
        else:
            finished = _run_in_parallel(family, units, tasks, n_jobs)
        for done, (number, problem, models) in enumerate(finished, start=1):
            results[number]._models.setdefault(problem, {}).update(models)
            if progress is not None:
                progress(done, len(tasks))
    return results


def _tasks(family: Family, units: Sequence[Unit]) -> list[Task]:
    learnable = [unit.learnable for unit in units]
    if [] in learnable:
        raise ValueError(
            f"fold {learnable.index([])} has one class only to train on (samples of "
            "weight 0 do not count): use fewer folds or other weights"
        )
    return [
        (k, problem, chain)
        for k, unit in enumerate(units)
        for chain in family.chains(unit.train.n_genes)
        for problem in learnable[k]
    ]


def _run_in_parallel(
    family: Family, units: Sequence[Unit], tasks: Sequence[Task], n_jobs: int | None
) -> Iterable[TaskResult]:
    """The results of all tasks, as they come where the joblib backend can give
    them so.

    dask puts large arrays among a call's arguments on one of its workers, where they
    are lost if it dies. Inside of a unit or a family they travel with the call, which
    can then run again.
    """
    backend: Any = get_active_backend(prefer="threads")[0]
    sequential = isinstance(backend, SequentialBackend)
    early = sequential or backend.supports_return_generator
    return_as = "generator_unordered" if early else "list"
    parallel: Any = Parallel(n_jobs=n_jobs, prefer="threads", return_as=return_as)
    return parallel(delayed(_run)(family, units[task[0]], task) for task in tasks)


def _run(family: Family, unit: Unit, task: Task) -> TaskResult:
    """Fit a chain, and score the views of its unit."""
    number, problem, chain = task
    with one_blas_thread():
        models = family.fit_chain(unit.train, *unit.problem(problem), chain)
        for model in models.values():
            for name, view in unit.views.items():
                model.scores[name] = family.scores(view, model)
    return number, problem, models


def _run_on_device(
    family: Family, units: Sequence[Unit], tasks: Sequence[Task]
) -> Iterator[TaskResult]:
    """The results of all tasks; those over the same samples are one batch, scored unit
    by unit.
    """
    batches: dict[int, list[Task]] = {}
    for task in tasks:
        whole = units[task[0]].train.orders.whole
        batches.setdefault(id(whole), []).append(task)
    for batch in batches.values():
        fitted = zip(batch, _fit_on_device(family, units, batch), strict=True)
        for number, group in groupby(fitted, key=lambda pair: pair[0][0]):
            own = list(group)
            models = [model for _, fits in own for model in fits.values()]
            _score_on_device(family, units[number], models)
            for (_, problem, _), fits in own:
                yield number, problem, fits


def _fit_on_device(
    family: Family, units: Sequence[Unit], tasks: Sequence[Task]
) -> list[dict[Key, BinaryModel]]:
    """The models of tasks over the same samples."""
    from optirank.solver.device.solve import Options, solve_together  # needs a GPU

    start = time.perf_counter()
    if not family.on_device:
        raise ValueError(
            f"{family.name} cannot be fitted on a GPU: use device='cpu' for it"
        )
    candidates = getattr(family, "candidates", None)
    problems = []
    for number, problem, chain in tasks:
        unit = units[number]
        (size,) = chain.head or (unit.train.n_genes,)
        same = (unit.train.orders, *unit.problem(problem), size)
        problems += [
            Problem(*same, *pair, family.ties, candidates) for pair in chain.penalties
        ]
    options = Options(
        tol=family.tol, max_iter=family.max_iter, thorough=not family.warm_start
    )
    solutions = solve_together(problems, options)
    seconds = (time.perf_counter() - start) / len(problems)
    models = (BinaryModel.of(solution, seconds) for solution in solutions)
    return [
        {(*chain.head, *pair): next(models) for pair in chain.penalties}
        for _, _, chain in tasks
    ]


def _score_on_device(family: Family, unit: Unit, models: Sequence[BinaryModel]) -> None:
    """Score the views of a unit by each model; views of one order at once."""
    w = np.array([model.w for model in models])
    gamma = np.array([model.gamma for model in models])
    b = np.array([model.b for model in models])
    of_all: dict[int, NDArray] = {}
    for name, view in unit.views.items():
        whole = view.orders.whole
        if id(whole) not in of_all:
            scores = whole.scores_of_many(w, gamma, family.ties)
            of_all[id(whole)] = scores / gamma.sum(axis=1)[:, None] + b[:, None]
        for model, values in zip(models, of_all[id(whole)], strict=True):
            model.scores[name] = values[view.orders.rows]


def units_of_folds(
    samples: Samples,
    codes: NDArray,
    folds: Sequence[Fold],
    *,
    n_classes: int,
    weights: NDArray | None = None,
    balanced: bool = True,
    platforms: Sequence[str] = (),
) -> list[Unit]:
    """One unit per fold, which scores its held-out samples (the view ``HELD_OUT``).

    It scores them too on ``platforms``, whose copies of all samples follow below in
    ``samples``.
    """
    views = [HELD_OUT, *platforms]
    return [
        Unit(
            train=samples.take(train),
            codes=codes[train],
            n_classes=n_classes,
            views={
                name: samples.take(test + k * len(codes))
                for k, name in enumerate(views)
            },
            weights=None if weights is None else weights[train],
            balanced=balanced,
        )
        for train, test in folds
    ]
