"""The search over families of classifiers: units x classes x chains in parallel.

A family lists the settings of its grid, groups them into chains of neighbouring fits
(what can run apart), and fits a chain on one training part for one class against the
rest. Everything else of a search is the same for all. A unit is a training part with
the samples that its models score: a fold, or a split of a benchmark. Its samples are
sorted once for all classes and settings. Any joblib backend can run the tasks; on a
GPU, those over the same samples are one batch.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from itertools import groupby, product
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from joblib.parallel import SequentialBackend, get_active_backend
from numpy.typing import NDArray

from optirank._util.matrices import Progress
from optirank._util.work import one_blas_thread
from optirank.solver.problem import (
    PenaltyPair,
    Problem,
    Solution,
    resolve_n_reference,
    sample_weights,
)

if TYPE_CHECKING:
    from optirank.tuning.selection import Fold

Values = tuple  # of a setting's parameters, in the order of the family's names
Key = tuple  # what tells fitted models apart; several settings may share one


@dataclass(frozen=True)
class Samples:
    """Samples to train on or to score, in the forms that the families need."""

    X: Any = None  # values, for families that see them
    orders: Any = None  # of ranks.orders, or those of solver.device.orders
    dataset: NDArray | None = None

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.orders.n_samples if self.orders is not None else self.X.shape[0]

    @property
    def n_genes(self) -> int:
        """Number of genes."""
        return self.orders.n_genes if self.orders is not None else self.X.shape[1]

    @property
    def on_device(self) -> bool:
        """Whether the orders lie on a GPU."""
        return self.orders is not None and self.orders.on_device

    def take(self, rows: NDArray) -> Samples:
        """Some of the samples."""
        return Samples(
            None if self.X is None else self.X[rows],
            None if self.orders is None else self.orders.take(rows),
            None if self.dataset is None else self.dataset[rows],
        )


@dataclass
class BinaryModel(Solution):
    """One fitted binary model; ``gamma`` is None where values are used instead
    of ranks.
    """

    seconds: float = 0.0  # CPU time, its share of its chain
    scores: dict[str, NDArray] = field(default_factory=dict)  # by view of a search

    @classmethod
    def of(cls, solution: Solution, seconds: float) -> BinaryModel:
        """A solver's solution without its path, with the time it took."""
        return cls(**vars(solution) | {"path": [], "seconds": seconds})

    @property
    def genes(self) -> NDArray:
        """Mask of the genes the model needs."""
        return self.w != 0 if self.gamma is None else (self.w != 0) | (self.gamma > 0)


class Chain(NamedTuple):
    """Fits that follow each other, neighbours starting from each other.

    The key of a model is the head followed by its penalties.
    """

    head: tuple  # what the fits have in common, such as the size of the reference set
    penalties: tuple[PenaltyPair, ...]


@dataclass(frozen=True)
class Family(ABC):
    """A classifier with its grid.

    ``names`` are the parameters of a setting. Without ``warm_start`` each setting is
    fitted on its own, as the estimator does.
    """

    l1s: tuple[float, ...]
    l2s: tuple[float, ...]
    _: KW_ONLY
    tol: float = 1e-5
    max_iter: int = 10_000
    ties: str = "average"
    warm_start: bool = True

    name: ClassVar[str]
    names: ClassVar[tuple[str, ...]] = ("l1", "l2")
    needs_values: ClassVar[bool] = False
    needs_ranks: ClassVar[bool] = True
    on_device: ClassVar[bool] = False
    """Whether a GPU can fit it; the head is then the size of the set, or empty:
    all genes.
    """

    def settings(self) -> list[Values]:
        """The settings to try: the whole grid."""
        return list(product(*(getattr(self, f"{name}s") for name in self.names)))

    def params(self, setting: Values) -> dict[str, object]:
        """A setting's parameters by name."""
        return dict(zip(self.names, setting, strict=True))

    def chains(self, n_genes: int) -> list[Chain]:
        """What can be fitted apart, in the order in which it is fitted."""
        penalties: dict[tuple, dict[PenaltyPair, None]] = {}
        for setting in self.settings():
            *head, l1, l2 = self.key(setting, n_genes)
            penalties.setdefault(tuple(head), {})[l1, l2] = None
        return [Chain(head, tuple(penalties[head])) for head in sorted(penalties)]

    def key(self, setting: Values, n_genes: int) -> Key:
        """The key of a setting's model: the head of its chain, then l1 and l2."""
        params = self.params(setting)
        return (*self._head(params, n_genes), params["l1"], params["l2"])

    @abstractmethod
    def fit_chain(
        self, samples: Samples, y: NDArray, v: NDArray, chain: Chain
    ) -> dict[Key, BinaryModel]:
        """Fit the settings of a chain; ``y`` is 1 for the positive class, ``v`` are
        weights.
        """

    def scores(self, samples: Samples, model: BinaryModel) -> NDArray:
        """Decision scores of a model."""
        s = model.gamma.sum()
        return samples.orders.scores(model.w, model.gamma, self.ties) / s + model.b

    def _head(self, params: dict, n_genes: int) -> tuple:
        """Head of the chain in which a setting is fitted: the size of its reference
        set, if any.
        """
        size, candidates = params.get("n_reference"), getattr(self, "candidates", None)
        return () if size is None else (resolve_n_reference(size, n_genes, candidates),)

    @property
    def _accuracy(self) -> dict[str, Any]:
        return {"tol": self.tol, "max_iter": self.max_iter}

    def _problem(
        self, samples: Samples, y: NDArray, v: NDArray, n_reference: int
    ) -> Problem:
        return Problem(samples.orders, y, v, n_reference, ties=self.ties)

    def _fit(
        self,
        chain: Chain,
        fit_all: Callable[..., Mapping[PenaltyPair, Any]],
        fit_one: Callable[[float, float], Solution] | None = None,
    ) -> dict[Key, BinaryModel]:
        """The models of a chain: of all penalties by ``fit_all``, each starting from a
        neighbour; without a warm start one by one, by ``fit_one`` where it is given.
        """
        start = time.thread_time()
        fits: dict[PenaltyPair, Any] = {}
        if self.warm_start:
            fits |= fit_all(chain.penalties)
        elif fit_one is None:
            for pair in chain.penalties:
                fits |= fit_all((pair,))
        else:
            fits |= {pair: fit_one(*pair) for pair in chain.penalties}
        seconds = (time.thread_time() - start) / len(fits)
        return {
            (*chain.head, *pair): BinaryModel.of(solution, seconds)
            for pair, solution in fits.items()
        }


@dataclass(frozen=True)
class OptirankFamily(Family):
    """optirank: the reference set and the weights learned together."""

    n_references: tuple[float, ...] = (0.2,)
    candidates: NDArray | None = field(default=None, compare=False)  # mask of genes
    name = "optirank"
    on_device = True
    names = ("n_reference", "l1", "l2")

    def fit_chain(self, samples, y, v, chain: Chain) -> dict[Key, BinaryModel]:
        """See :class:`Family`."""
        from optirank.solver.solve import solve_alternating, solve_grid

        (size,) = chain.head
        problem = replace(
            self._problem(samples, y, v, size), candidates=self.candidates
        )
        return self._fit(
            chain,
            lambda pairs: solve_grid(problem, pairs, side="best", **self._accuracy),
            lambda l1, l2: solve_alternating(
                replace(problem, l1=l1, l2=l2), **self._accuracy
            ),
        )


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
