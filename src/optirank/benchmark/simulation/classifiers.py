"""The classifiers compared: each fits one training set over its grid of settings."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optirank.benchmark.simulation.settings import L2_FLOOR, Grid


@dataclass(frozen=True)
class Setting:
    """One choice of hyper-parameters; `n_reference` is None where the classifier has none."""

    l2: float
    n_reference: float | None = None


@dataclass(frozen=True)
class Fit:
    """One fitted model: its scores on the samples it was not fitted to, and what it cost."""

    setting: Setting
    scores: np.ndarray
    reference: np.ndarray | None
    seconds: float
    converged: bool


@dataclass(frozen=True)
class Problem:
    """The data of one unit; ranks are made once, being those of a sample on its own."""

    X: np.ndarray
    y: np.ndarray
    stable: np.ndarray

    @cached_property
    def full_ranks(self) -> np.ndarray:
        """Ranks among all genes."""
        return _ranks(self.X, np.ones_like(self.stable))

    @cached_property
    def stable_ranks(self) -> np.ndarray:
        """Ranks relative to the true reference set, which only the oracle is told."""
        return _ranks(self.X, self.stable)


Fitter = Callable[[Problem, np.ndarray, np.ndarray, list[Setting]], Iterator[Fit]]


@dataclass(frozen=True)
class Classifier:
    """A classifier of the comparison.

    `fit(problem, train, rest, settings)` yields one `Fit` a setting, with scores on `rest`.
    """

    name: str
    fit: Fitter
    has_reference: bool = False

    def settings(self, grid: Grid) -> list[Setting]:
        """Return the settings to try, those with the largest `l2` first for warm starts."""
        sizes: Iterable[float | None] = grid.n_reference if self.has_reference else (None,)
        return [Setting(l2, size) for size in sizes for l2 in sorted(grid.l2, reverse=True)]


def _fit_lr(problem: Problem, *args) -> Iterator[Fit]:
    return _logistic_path(problem.X, problem.y, None, *args)


def _fit_rank_lr(problem: Problem, *args) -> Iterator[Fit]:
    every = np.ones_like(problem.stable)
    return _logistic_path(problem.full_ranks, problem.y, every, *args)


def _fit_oracle(problem: Problem, *args) -> Iterator[Fit]:
    return _logistic_path(problem.stable_ranks, problem.y, problem.stable, *args)


def _fit_optirank(
    problem: Problem, train: np.ndarray, rest: np.ndarray, settings: list[Setting]
) -> Iterator[Fit]:
    """Fit one setting on its own, several in chains of neighbours."""
    from optirank.ranks.orders import order_samples
    from optirank.tuning.families import OptirankFamily
    from optirank.tuning.family import Samples
    from optirank.tuning.search import HELD_OUT, Unit, search

    wanted = [(one.n_reference, 0.0, max(one.l2, L2_FLOOR), "best") for one in settings]
    sizes, _, penalties, _ = (tuple(dict.fromkeys(part)) for part in zip(*wanted, strict=True))
    family = OptirankFamily(
        (0.0,), penalties, warm_start=len(settings) > 1, n_references=sizes
    ).keeping(wanted)
    orders = order_samples(problem.X)
    unit = Unit(
        train=Samples(orders=orders.take(train)),
        codes=problem.y[train].astype(int),
        n_classes=2,
        views={HELD_OUT: Samples(orders=orders.take(rest))},
    )
    (found,) = search(family, [unit])
    for k, setting in enumerate(settings):
        (model,) = found.models(k, 0)
        scores = found.decision(k, HELD_OUT)[:, 0]
        yield Fit(setting, scores, model.gamma > 0, model.seconds, model.converged)


CLASSIFIERS = {
    classifier.name: classifier
    for classifier in (
        Classifier("lr", _fit_lr),
        Classifier("rank-lr", _fit_rank_lr),
        Classifier("optirank", _fit_optirank, has_reference=True),
        Classifier("oracle", _fit_oracle),
    )
}


def _logistic_path(
    features: np.ndarray,
    y: np.ndarray,
    reference: np.ndarray | None,
    train: np.ndarray,
    rest: np.ndarray,
    settings: list[Setting],
) -> Iterator[Fit]:
    """Fit balanced logistic regressions along `l2`, each from the last one's solution.

    The intercept is free, so centring the columns changes nothing but the conditioning.
    """
    from sklearn.linear_model import LogisticRegression

    centre = features[train].mean(axis=0)
    fitted, held_out = features[train] - centre, features[rest] - centre
    model = LogisticRegression(
        solver="newton-cholesky", class_weight="balanced", tol=1e-6, max_iter=1000, warm_start=True
    )
    for setting in settings:
        model.set_params(C=1.0 / (2.0 * len(train) * max(setting.l2, L2_FLOOR)))
        seconds, converged = _timed_fit(model, fitted, y[train])
        yield Fit(setting, model.decision_function(held_out), reference, seconds, converged)


def _timed_fit(model, X: np.ndarray, y: np.ndarray) -> tuple[float, bool]:
    """Fit and return the seconds it took and whether it went without a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
    return seconds, not caught


def _ranks(X: np.ndarray, reference: np.ndarray) -> np.ndarray:
    from optirank import ReferenceRankTransformer

    return ReferenceRankTransformer(reference=reference).fit_transform(X)
