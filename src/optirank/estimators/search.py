"""The search over a grid of settings: units x classes x chains in parallel.

A family lists the settings of its grid, groups them into chains of neighbouring fits
(what can run apart), and fits a chain on one training part for one class against the
rest. A unit is a training part with
the samples that its models score: a fold, or a split of a benchmark. Its samples are
sorted once for all classes and settings. Any joblib backend can run the tasks.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from joblib.parallel import SequentialBackend, get_active_backend
from numpy.typing import NDArray

from optirank._util.numbers import Progress
from optirank._util.work import one_blas_thread
from optirank.solver.problem import (
    PenaltyPair,
    Problem,
    Solution,
    resolve_n_reference,
    sample_weights,
)

if TYPE_CHECKING:
    from optirank.estimators.selection import Fold

HELD_OUT = "held out"

Head = tuple  # what the fits of a chain have in common: the size of the set, if any
Fits = dict[PenaltyPair, Solution]  # of a chain


@dataclass(frozen=True)
class Family:
    """optirank with its grid: the reference set and the weights are learned together.

    ``names`` are the parameters of a setting. Without ``warm_start`` each setting is
    fitted on its own, as the estimator does. The laboratory's classifiers override
    ``names``, ``fit_chain`` and, where they score something else, ``scores``.
    """

    l1s: tuple[float, ...]
    l2s: tuple[float, ...]
    _: KW_ONLY
    n_references: tuple[float, ...] = (0.2,)
    tol: float = 1e-5
    max_iter: int = 10_000
    ties: str = "average"
    warm_start: bool = True
    candidates: NDArray | None = field(default=None, compare=False)  # mask of genes

    names: ClassVar[tuple[str, ...]] = ("n_reference", "l1", "l2")

    def settings(self) -> list[dict[str, Any]]:
        """The settings to try: the whole grid."""
        grid = product(*(getattr(self, f"{name}s") for name in self.names))
        return [dict(zip(self.names, values, strict=True)) for values in grid]

    def head(self, setting: dict, n_genes: int) -> Head:
        """The chain in which a setting is fitted: the size of its reference set,
        if any.
        """
        size = setting.get("n_reference")
        if size is None:
            return ()
        return (resolve_n_reference(size, n_genes, self.candidates),)

    def chains(self, n_genes: int) -> dict[Head, tuple[PenaltyPair, ...]]:
        """What can be fitted apart, in the order in which it is fitted."""
        penalties: dict[Head, dict[PenaltyPair, None]] = {}
        for setting in self.settings():
            pairs = penalties.setdefault(self.head(setting, n_genes), {})
            pairs[setting["l1"], setting["l2"]] = None
        return {head: tuple(penalties[head]) for head in sorted(penalties)}

    def fit_chain(
        self,
        samples: Any,
        y: NDArray,
        v: NDArray,
        head: Head,
        penalties: Sequence[PenaltyPair],
    ) -> Fits:
        """Fit the settings of a chain to orders of samples; ``y`` is 1 for the positive
        class, ``v`` are weights.
        """
        from optirank.solver.solve import solve_alternating, solve_grid

        problem = self.problem(samples, y, v, *head)
        if self.warm_start:
            return solve_grid(problem, penalties, **self.accuracy)
        return {
            (l1, l2): solve_alternating(replace(problem, l1=l1, l2=l2), **self.accuracy)
            for l1, l2 in penalties
        }

    def scores(self, samples: Any, model: Solution) -> NDArray:
        """Decision scores of a model."""
        s = model.gamma.sum()
        return samples.scores(model.w, model.gamma, self.ties) / s + model.b

    @property
    def accuracy(self) -> dict[str, Any]:
        """What a solver is told of accuracy."""
        return {"tol": self.tol, "max_iter": self.max_iter}

    def problem(self, orders: Any, y: NDArray, v: NDArray, n_reference: int) -> Problem:
        """The problem of a chain, without its penalties."""
        options = {"ties": self.ties, "candidates": self.candidates}
        return Problem(orders, y, v, n_reference, **options)


@dataclass(frozen=True, kw_only=True)
class Unit:
    """Labelled training samples, and the sets of samples that every model scores.

    ``codes`` are the positions of the labels among ``n_classes`` classes.
    """

    train: Any  # orders, or what its family takes in their place
    codes: NDArray
    n_classes: int
    views: Mapping[str, Any] = field(default_factory=dict)
    weights: NDArray | None = None  # of the samples, ones by default
    balanced: bool = True

    @property
    def positives(self) -> list[int]:
        """The positive class of each problem: one for two classes, one per class
        for more.
        """
        return [1] if self.n_classes == 2 else list(range(self.n_classes))

    @cached_property
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


class UnitResult:
    """Models, scores, genes and times of all settings of a family in a unit; a setting
    is named by its position.

    A problem whose class the training part lacked has no models, scores minus infinity
    and needs no genes.
    """

    def __init__(self, family: Family, unit: Unit) -> None:
        self.params = family.settings()
        self._unit = unit
        n_genes = unit.train.n_genes
        self._keys = [
            (*family.head(setting, n_genes), setting["l1"], setting["l2"])
            for setting in self.params
        ]
        self._models: dict[tuple, Solution] = {}

    def add(self, problem: int, head: Head, fits: Fits) -> None:
        """Keep the models of a chain."""
        for pair, model in fits.items():
            self._models[problem, *head, *pair] = model

    def models(self, setting: int) -> dict[int, Solution]:
        """The models of a setting, by problem."""
        key = self._keys[setting]
        return {k: self._models[k, *key] for k in self._unit.learnable}

    def decision(self, setting: int, view: str) -> NDArray:
        """Decision scores on a view, samples x problems."""
        shape = self._unit.views[view].n_samples, len(self._unit.positives)
        scores = np.full(shape, -np.inf)
        for problem, model in self.models(setting).items():
            scores[:, problem] = model.scores[view]
        return scores

    def genes(self, setting: int) -> NDArray:
        """Mask of the genes a setting needs, over all problems."""
        return np.any([model.genes for model in self.models(setting).values()], axis=0)

    def fit_seconds(self, setting: int) -> float:
        """CPU time of a setting's fits, their shares of their chains."""
        return sum(model.seconds for model in self.models(setting).values())


def search(
    family: Family,
    units: Sequence[Unit],
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> list[UnitResult]:
    """Fit all settings of a family in every unit; one result per unit.

    ``progress`` gets the number of tasks done, and how many there are. dask puts large
    arrays among a call's arguments on one of its workers, where they are lost if it
    dies. Inside of a unit or a family they travel with the call, which can then run
    again.
    """
    for k, unit in enumerate(units):
        if not unit.learnable:
            raise ValueError(
                f"fold {k} has one class only to train on (samples of weight 0 do not "
                "count): use fewer folds or other weights"
            )
    tasks = [
        (k, problem, *chain)
        for k, unit in enumerate(units)
        for chain in family.chains(unit.train.n_genes).items()
        for problem in unit.learnable
    ]
    results = [UnitResult(family, unit) for unit in units]
    backend: Any = get_active_backend(prefer="threads")[0]
    sequential = isinstance(backend, SequentialBackend)
    early = sequential or backend.supports_return_generator
    return_as = "generator_unordered" if early else "list"
    parallel: Any = Parallel(n_jobs=n_jobs, prefer="threads", return_as=return_as)
    # The limit is set here, around all threads, and again in each task for those that
    # run in other processes: threads that set and lift it on their own would lift each
    # other's.
    with one_blas_thread():
        finished = parallel(
            delayed(_run)(family, units[k], k, *rest) for k, *rest in tasks
        )
        for done, (k, problem, head, fits) in enumerate(finished, start=1):
            results[k].add(problem, head, fits)
            if progress is not None:
                progress(done, len(tasks))
    return results


def _run(
    family: Family,
    unit: Unit,
    number: int,
    problem: int,
    head: Head,
    penalties: tuple[PenaltyPair, ...],
) -> tuple[int, int, Head, Fits]:
    """Fit a chain for one problem of a unit, and score the unit's views."""
    with one_blas_thread():
        start = time.thread_time()
        fits = family.fit_chain(unit.train, *unit.problem(problem), head, penalties)
        seconds = (time.thread_time() - start) / len(fits)
        for model in fits.values():
            model.seconds = seconds
            for name, view in unit.views.items():
                model.scores[name] = family.scores(view, model)
    return number, problem, head, fits


def units_of_folds(
    samples: Any,
    codes: NDArray,
    folds: Sequence[Fold],
    *,
    n_classes: int,
    weights: NDArray | None = None,
    balanced: bool = True,
) -> list[Unit]:
    """One unit per fold, which scores its held-out samples (the view ``HELD_OUT``)."""
    return [
        Unit(
            train=samples.take(train),
            codes=codes[train],
            n_classes=n_classes,
            views={HELD_OUT: samples.take(test)},
            weights=None if weights is None else weights[train],
            balanced=balanced,
        )
        for train, test in folds
    ]
