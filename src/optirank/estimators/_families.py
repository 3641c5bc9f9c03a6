"""Families of classifiers whose whole grids are fitted in chains of neighbouring settings.

A family lists its settings, cuts them into chains (what can run apart), and fits a chain on one
training part for one class against the rest. Everything else of a search is the same for all.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from optirank.estimators._options import resolve_n_reference

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.ranks.orders import SampleOrders
    from optirank.solver.problem import Solution

Setting = tuple  # values of the grid's parameters, in the order of the family's names
Key = tuple  # what tells models apart that are fitted; several settings may share one


@dataclass(frozen=True)
class Samples:
    """Samples to train on or to score, in the forms that the families need."""

    X: object = None  # values, for families that see them
    orders: SampleOrders | None = None
    dataset: NDArray | None = None

    def take(self, rows: NDArray) -> Samples:
        """Some of the samples."""
        return Samples(
            None if self.X is None else self.X[rows],
            None if self.orders is None else self.orders.take(rows),
            None if self.dataset is None else self.dataset[rows],
        )


@dataclass
class Model:
    """One fitted binary model; ``gamma`` is None where values are used instead of ranks."""

    w: NDArray
    b: float
    gamma: NDArray | None
    objective: float
    converged: bool
    n_iter: int
    seconds: float = 0.0

    @property
    def genes(self) -> NDArray:
        """Mask of the genes the model needs."""
        return self.w != 0 if self.gamma is None else (self.w != 0) | (self.gamma > 0)


@dataclass(frozen=True)
class Family(ABC):
    """A classifier with its grid."""

    l1s: tuple[float, ...]
    l2s: tuple[float, ...]
    tol: float = 1e-5
    max_iter: int = 10_000
    ties: str = "average"
    warm_start: bool = True
    names: tuple[str, ...] = field(default=("l1", "l2"), init=False)
    needs_values = False
    needs_ranks = True

    @property
    def penalties(self) -> list[tuple[float, float]]:
        """All pairs of penalties."""
        return list(product(self.l1s, self.l2s))

    def settings(self) -> list[Setting]:
        """The grid."""
        return self.penalties

    def chains(self, n_genes: int) -> list[object]:
        """What can be fitted apart."""
        return [None]

    @abstractmethod
    def fit_chain(
        self, samples: Samples, y: NDArray, v: NDArray, chain: object
    ) -> dict[Key, Model]:
        """Fit the settings of a chain."""

    def models_of(self, setting: Setting, models: dict[Key, Model], n_genes: int) -> list[Model]:
        """The models of a setting, whose scores are averaged."""
        return [models[setting]]

    def scores(self, samples: Samples, model: Model) -> NDArray:
        """Decision scores of a model."""
        s = model.gamma.sum()
        return samples.orders.scores(model.w, model.gamma, self.ties) / s + model.b

    def _problem(self, samples: Samples, y: NDArray, v: NDArray, n_reference: int):
        from optirank.solver.problem import Problem

        return Problem(samples.orders, y, v, n_reference, ties=self.ties)

    def _fixed_chain(self, problem, gamma: NDArray) -> dict[tuple[float, float], Model]:
        """All penalties at fixed reference weights."""
        from optirank.solver.fixed import solve_at
        from optirank.solver.grid import solve_grid_at

        options = {"tol": self.tol, "max_iter": self.max_iter}
        start = time.thread_time()
        if self.warm_start:
            found = solve_grid_at(problem, gamma, self.penalties, **options)
        else:
            found = {
                (l1, l2): solve_at(replace(problem, l1=l1, l2=l2), gamma, **options)
                for l1, l2 in self.penalties
            }
        each = (time.thread_time() - start) / len(found)
        return {penalties: _model(solution, each) for penalties, solution in found.items()}


@dataclass(frozen=True)
class RankFamily(Family):
    """rank-lr."""

    def fit_chain(self, samples, y, v, chain) -> dict[Key, Model]:
        """See :class:`Family`."""
        d = samples.orders.n_genes
        return self._fixed_chain(self._problem(samples, y, v, d), np.ones(d))


@dataclass(frozen=True)
class AnovaFamily(Family):
    """ANrank-lr; the data sets are told by ``Samples.dataset`` or by auxiliary samples."""

    n_references: tuple[float, ...] = (0.2,)
    auxiliary: tuple | None = None  # values and labels of another data set
    names: tuple[str, ...] = field(default=("n_reference", "l1", "l2"), init=False)
    needs_values = True

    def settings(self) -> list[Setting]:
        """The grid."""
        return list(product(self.n_references, self.l1s, self.l2s))

    def chains(self, n_genes: int) -> list[object]:
        """One chain a size of the reference set."""
        return sorted({resolve_n_reference(s, n_genes) for s in self.n_references})

    def fit_chain(self, samples, y, v, chain) -> dict[Key, Model]:
        """See :class:`Family`."""
        chosen = self._stable_genes(samples, y, chain)
        gamma = np.zeros(samples.orders.n_genes)
        gamma[chosen] = 1.0
        found = self._fixed_chain(self._problem(samples, y, v, len(chosen)), gamma)
        return {(chain, *penalties): model for penalties, model in found.items()}

    def models_of(self, setting, models, n_genes) -> list[Model]:
        """See :class:`Family`."""
        return [models[(resolve_n_reference(setting[0], n_genes), *setting[1:])]]

    def _stable_genes(self, samples: Samples, y: NDArray, size: int) -> NDArray:
        from optirank.preprocessing.anova import select_stable_genes

        X, dataset = samples.X, samples.dataset
        if self.auxiliary is not None:
            X_auxiliary, y_auxiliary = self.auxiliary
            stack = [sparse.csr_array(part) for part in (X, X_auxiliary)]
            X, y = sparse.vstack(stack, format="csr"), np.concatenate([y, y_auxiliary])
            dataset = np.repeat([0, 1], [samples.orders.n_samples, len(y_auxiliary)])
        if dataset is None or len(np.unique(dataset)) < 2:
            return np.arange(samples.orders.n_genes)
        return select_stable_genes(X, y, dataset, size)


@dataclass(frozen=True)
class LogisticFamily(Family):
    """lr: elastic-net logistic regression on the values as they are."""

    needs_values = True
    needs_ranks = False

    def fit_chain(self, samples, y, v, chain) -> dict[Key, Model]:
        """See :class:`Family`."""
        from optirank.solver.convex import few_weights, finish_exactly, fit_weights
        from optirank.solver.grid import fit_weights_grid
        from optirank.solver.losses import LogisticLoss
        from optirank.solver.matrices import centred_values
        from optirank.solver.problem import RIDGE_FLOOR

        matrix = centred_values(samples.X, v)
        loss = LogisticLoss(y, v)
        options = {"tol": self.tol, "max_iter": self.max_iter}
        start = time.thread_time()
        if self.warm_start:
            found = fit_weights_grid(matrix, loss, self.penalties, **options)
        else:
            found = {
                (l1, l2): fit_weights(matrix, loss, l1, l2 if l1 or l2 else RIDGE_FLOOR, **options)
                for l1, l2 in self.penalties
            }
        each = (time.thread_time() - start) / len(found)
        models = {}
        for (l1, l2), one in found.items():
            w, floor = one.w, l2 if l1 or l2 else RIDGE_FLOOR
            if not self.warm_start and few_weights(w, y):
                columns = _dense(samples.X[:, np.flatnonzero(w)])
                w = finish_exactly(columns, y, v, w, one.b, l1, floor)
            z = samples.X @ w
            b = float(loss.best_intercept(z, 0.0))
            objective = loss.evaluate(z, b) + l1 * np.abs(w).sum() + floor * (w @ w)
            models[l1, l2] = Model(w, b, None, objective, one.converged, one.n_iter, each)
        return models

    def scores(self, samples: Samples, model: Model) -> NDArray:
        """See :class:`Family`."""
        return samples.X @ model.w + model.b


@dataclass(frozen=True)
class OptirankFamily(Family):
    """optirank, with the sides of its two minima as a dimension of the grid."""

    n_references: tuple[float, ...] = (0.2,)
    sides: tuple[str, ...] = ("best",)
    path_step: float = 100.0
    names: tuple[str, ...] = field(default=("n_reference", "l1", "l2", "side"), init=False)

    def settings(self) -> list[Setting]:
        """The grid."""
        return list(product(self.n_references, self.l1s, self.l2s, self.sides))

    def chains(self, n_genes: int) -> list[object]:
        """One chain a size of the reference set and side; full ranks have no side."""
        sizes = sorted({resolve_n_reference(s, n_genes) for s in self.n_references})
        return [
            (size, side)
            for size in sizes
            for side in ((None,) if size == n_genes else self._chain_sides())
        ]

    def _chain_sides(self) -> list[str]:
        """ "best" alone drops the worse side on the way; beside others it is the better of two.

        Cold fits have a chain of their own for "best", as they choose it on the way.
        """
        wanted = {*self.sides}
        apart = [side for side in ("rising", "falling") if {side, "both"} & wanted]
        if "best" not in wanted:
            return apart
        if apart and self.warm_start:
            return ["rising", "falling"]
        return ["best", *apart]

    def fit_chain(self, samples, y, v, chain) -> dict[Key, Model]:
        """See :class:`Family`."""
        from optirank.solver.alternating import solve_alternating
        from optirank.solver.grid import solve_grid

        size, side = chain
        problem = self._problem(samples, y, v, size)
        if side is None:
            found = self._fixed_chain(problem, np.ones(size))
            return {(size, *penalties, None): model for penalties, model in found.items()}
        options = {
            "side": side,
            "tol": self.tol,
            "max_iter": self.max_iter,
            "path_step": self.path_step,
        }
        start = time.thread_time()
        if self.warm_start:
            found = solve_grid(problem, self.penalties, **options)
        else:
            found = {
                (l1, l2): solve_alternating(replace(problem, l1=l1, l2=l2), **options)
                for l1, l2 in self.penalties
            }
        each = (time.thread_time() - start) / len(found)
        return {
            (size, *penalties, side): _model(solution, each)
            for penalties, solution in found.items()
        }

    def models_of(self, setting, models, n_genes) -> list[Model]:
        """See :class:`Family`."""
        s, l1, l2, side = setting
        size = resolve_n_reference(s, n_genes)
        if size == n_genes:
            return [models[size, l1, l2, None]]
        if (size, l1, l2, side) in models:
            return [models[size, l1, l2, side]]
        pair = [models[size, l1, l2, one] for one in ("rising", "falling")]
        return pair if side == "both" else [min(pair, key=lambda model: model.objective)]


def _dense(X) -> NDArray:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def _model(solution: Solution, seconds: float) -> Model:
    return Model(
        solution.w,
        solution.b,
        solution.gamma,
        solution.objective,
        solution.converged,
        solution.n_iter,
        seconds,
    )
