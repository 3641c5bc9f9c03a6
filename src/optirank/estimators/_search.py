"""A search over a family's grid: folds x classes x chains in parallel, then scores of settings."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from joblib import Parallel, delayed
from joblib.parallel import SequentialBackend, get_active_backend
from sklearn.base import BaseEstimator, ClassifierMixin

from optirank._util.progress import progress_bar
from optirank.estimators._base import one_blas_thread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.estimators._families import Family, Key, Model, Samples, Setting
    from optirank.estimators._folds import Fold


@dataclass(frozen=True)
class Task:
    """One chain of one class in one fold."""

    fold: int
    positive: int
    chain: object


@dataclass(frozen=True)
class Job:
    """A task with all it needs, as one object.

    dask puts large arrays among a call's arguments on one of its workers, where they are lost if it
    dies; inside of an object they travel with the call, which can then run again elsewhere.
    """

    task: Task
    family: Family
    train: Samples
    others: list[Samples]  # to be scored
    positive: NDArray  # whether each training sample is of the class
    weights: NDArray
    balanced: bool


@dataclass
class TaskResult:
    """The models of a chain and their scores on samples they were not fitted on."""

    task: Task
    models: dict[Key, Model]
    scores: dict[Key, list[NDArray]]  # validation part first, then the extra samples
    score_seconds: float


@dataclass
class Search:
    """All fitted models of a grid, and what they say of the validation parts."""

    family: Family
    classes: NDArray
    positives: list[int]
    n_genes: int
    folds: list[Fold]
    models: dict[tuple[int, int], dict[Key, Model]] = field(default_factory=dict)
    scores: dict[tuple[int, int], dict[Key, list[NDArray]]] = field(default_factory=dict)
    score_seconds: NDArray | None = None

    def models_of(self, setting: Setting, fold: int, positive: int) -> list[Model] | None:
        """The models of a setting, None where a fold's training part lacks the class."""
        models = self.models.get((fold, positive))
        return None if models is None else self.family.models_of(setting, models, self.n_genes)

    def decision(self, setting: Setting, fold: int, positive: int, part: int = 0) -> NDArray:
        """Scores of a setting on the validation part (0) or extra samples (1, ...).

        A class that the training part lacks scores minus infinity.
        """
        models = self.models_of(setting, fold, positive)
        scores = self.scores.get((fold, positive))
        if models is None:
            n = self._n_scored(fold, part)
            return np.full(n, -np.inf)
        keys = [key for key, model in self.models[fold, positive].items() if _among(model, models)]
        return np.mean([scores[key][part] for key in keys], axis=0)

    def genes(self, setting: Setting, fold: int, positives: list[int] | None = None) -> NDArray:
        """Mask of the genes a setting needs in a fold, over some or all classes."""
        mask = np.zeros(self.n_genes, dtype=bool)
        for positive in self.positives if positives is None else positives:
            for model in self.models_of(setting, fold, positive) or ():
                mask |= model.genes
        return mask

    def fit_seconds(self, setting: Setting, fold: int) -> float:
        """Time of a setting's fits in a fold, its share of its chains."""
        return sum(
            model.seconds
            for positive in self.positives
            for model in self.models_of(setting, fold, positive) or ()
        )

    def _n_scored(self, fold: int, part: int) -> int:
        for (one, _), scores in self.scores.items():
            if one == fold:
                return len(next(iter(scores.values()))[part])
        raise KeyError(fold)


def search(
    family: Family,
    samples: Samples,
    codes: NDArray,
    classes: NDArray,
    weights: NDArray,
    folds: list[Fold],
    *,
    balanced: bool = True,
    extra: list[Samples] | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Search:
    """Fit a family's whole grid in every fold, for every class.

    ``codes`` are the positions of the labels in ``classes``. Samples in ``extra`` are scored by
    every model too.
    """
    n_genes = samples.orders.n_genes if samples.orders is not None else samples.X.shape[1]
    positives = [1] if len(classes) == 2 else list(range(len(classes)))
    found = Search(family, classes, positives, n_genes, folds)
    parts = [(samples.take(train), samples.take(test)) for train, test in folds]
    tasks = [
        Task(fold, positive, chain)
        for chain in family.chains(n_genes)
        for fold, (train, _) in enumerate(folds)
        for positive in positives
        if len(np.unique(codes[train][weights[train] > 0] == positive)) == 2
    ]
    if empty := {*range(len(folds))} - {task.fold for task in tasks}:
        raise ValueError(
            f"fold {min(empty)} has one class only to train on (samples of weight 0 do not count): "
            "use fewer folds or other weights"
        )
    jobs = (
        delayed(_run)(
            Job(
                task,
                family,
                parts[task.fold][0],
                [parts[task.fold][1], *(extra or [])],
                codes[folds[task.fold][0]] == task.positive,
                weights[folds[task.fold][0]],
                balanced,
            )
        )
        for task in tasks
    )
    found.score_seconds = np.zeros(len(folds))
    # The limit is set here, around all threads, and again in each task for those that run in other
    # processes: threads that set and lift it on their own would lift each other's.
    with one_blas_thread(), progress_bar("grid", len(tasks), shown=progress) as bar:
        parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as=_return_as())
        for result in parallel(jobs):
            key = (result.task.fold, result.task.positive)
            found.models.setdefault(key, {}).update(result.models)
            found.scores.setdefault(key, {}).update(result.scores)
            found.score_seconds[result.task.fold] += result.score_seconds
            bar.advance()
    return found


def _return_as() -> str:
    """Results as they come, where the active joblib backend can give them so."""
    backend, _ = get_active_backend(prefer="threads")
    as_they_come = isinstance(backend, SequentialBackend) or backend.supports_return_generator
    return "generator_unordered" if as_they_come else "list"


def _run(job: Job) -> TaskResult:
    from optirank.solver.problem import sample_weights

    family = job.family
    with one_blas_thread():
        v = sample_weights(job.positive, job.weights, job.balanced)
        models = family.fit_chain(job.train, job.positive.astype(float), v, job.task.chain)
        start = time.perf_counter()
        scores = {
            key: [family.scores(part, model) for part in job.others]
            for key, model in models.items()
        }
    return TaskResult(job.task, models, scores, time.perf_counter() - start)


class FixedScores(ClassifierMixin, BaseEstimator):
    """A classifier whose decision scores are known already, to be given to any scorer."""

    def __init__(self, classes: NDArray, scores: NDArray) -> None:
        self.classes = classes
        self.scores = scores

    @property
    def classes_(self) -> NDArray:
        """The classes."""
        return self.classes

    def decision_function(self, X: object) -> NDArray:
        """The known scores."""
        return self.scores

    def predict(self, X: object) -> NDArray:
        """The class of the highest score."""
        if self.scores.ndim == 1:
            return self.classes_[(self.scores > 0).astype(int)]
        return self.classes_[self.scores.argmax(axis=1)]

    def predict_proba(self, X: object) -> NDArray:
        """Probabilities from the scores."""
        from optirank.estimators._base import probabilities

        return probabilities(self.scores)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def score_table(found: Search, y: NDArray, scorer, positive: int | None = None) -> NDArray:
    """Scores of all settings in all folds (settings x folds).

    Of the whole classifier, or of one class against the rest (``positive``). Where a scorer cannot
    say, such as an area under a curve without one of the classes, the score is nan.
    """
    settings = found.family.settings()
    failure = None
    table = np.empty((len(settings), len(found.folds)))
    for k, (_, test) in enumerate(found.folds):
        for i, setting in enumerate(settings):
            if positive is not None:
                model = FixedScores(np.array([False, True]), found.decision(setting, k, positive))
                truth = y[test] == found.classes[positive]
            else:
                scores = [found.decision(setting, k, one) for one in found.positives]
                joined = scores[0] if len(scores) == 1 else np.column_stack(scores)
                model, truth = FixedScores(found.classes, joined), y[test]
            with warnings.catch_warnings():  # a validation part may lack a class
                warnings.simplefilter("ignore", UserWarning)
                try:
                    table[i, k] = scorer(model, test[:, None], truth)
                except ValueError as error:
                    table[i, k], failure = np.nan, error
    if failure is not None and not np.isfinite(table).any():
        raise failure
    return table


def _among(model: Model, models: list[Model]) -> bool:
    return any(model is one for one in models)
