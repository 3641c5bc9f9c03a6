"""What a family of classifiers is: a grid of settings, cut into chains of neighbouring fits.

A family lists its settings, groups them into chains (what can run apart), and fits a chain on one
training part for one class against the rest. Everything else of a search is the same for all.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.ranks.orders import SampleOrders
    from optirank.solver.problem import Problem, Solution

Values = tuple  # of a setting's parameters, in the order of the family's names
Key = tuple  # what tells fitted models apart; several settings may share one
Penalties = tuple[float, float]  # l1, l2


@dataclass(frozen=True)
class Samples:
    """Samples to train on or to score, in the forms that the families need."""

    X: object = None  # values, for families that see them
    orders: SampleOrders | None = None
    dataset: NDArray | None = None

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.orders.n_samples if self.orders is not None else self.X.shape[0]

    @property
    def n_genes(self) -> int:
        """Number of genes."""
        return self.orders.n_genes if self.orders is not None else self.X.shape[1]

    def take(self, rows: NDArray) -> Samples:
        """Some of the samples."""
        return Samples(
            None if self.X is None else self.X[rows],
            None if self.orders is None else self.orders.take(rows),
            None if self.dataset is None else self.dataset[rows],
        )


@dataclass(frozen=True, kw_only=True)
class Model:
    """One fitted binary model; ``gamma`` is None where values are used instead of ranks."""

    w: NDArray
    b: float
    gamma: NDArray | None
    objective: float
    converged: bool
    n_iter: int
    seconds: float = 0.0  # CPU time, its share of its chain

    @classmethod
    def of(cls, solution: Solution, seconds: float) -> Model:
        """A solver's solution, with the time it took."""
        return cls(
            w=solution.w,
            b=solution.b,
            gamma=solution.gamma,
            objective=solution.objective,
            converged=solution.converged,
            n_iter=solution.n_iter,
            seconds=seconds,
        )

    @property
    def genes(self) -> NDArray:
        """Mask of the genes the model needs."""
        return self.w != 0 if self.gamma is None else (self.w != 0) | (self.gamma > 0)


@dataclass(frozen=True)
class Chain:
    """Fits that follow each other, neighbours starting from each other."""

    head: tuple  # what the fits have in common, such as the size of the reference set
    penalties: tuple[Penalties, ...]

    def keys(self) -> list[Key]:
        """Of the models, one per pair of penalties."""
        return [(*self.head, *pair) for pair in self.penalties]


@dataclass(frozen=True)
class Family(ABC):
    """A classifier with its grid.

    ``names`` are the parameters of a setting. ``kept`` are the settings to try where these are not
    the whole grid. Without ``warm_start`` each setting is fitted on its own, as the estimator does.
    """

    l1s: tuple[float, ...]
    l2s: tuple[float, ...]
    _: KW_ONLY
    tol: float = 1e-5
    max_iter: int = 10_000
    ties: str = "average"
    warm_start: bool = True
    kept: tuple[Values, ...] | None = None

    name: ClassVar[str]
    names: ClassVar[tuple[str, ...]] = ("l1", "l2")
    needs_values: ClassVar[bool] = False
    needs_ranks: ClassVar[bool] = True
    on_device: ClassVar[bool] = False  # whether it can be fitted on a GPU, see start_of

    def settings(self) -> list[Values]:
        """The settings to try."""
        return self._grid() if self.kept is None else list(self.kept)

    def keeping(self, settings: Iterable[Values]) -> Self:
        """The same family with some settings of its grid only."""
        return replace(self, kept=tuple(settings))

    def params(self, setting: Values) -> dict[str, object]:
        """A setting's parameters by name."""
        return dict(zip(self.names, setting, strict=True))

    def chains(self, n_genes: int) -> list[Chain]:
        """What can be fitted apart."""
        found: dict[tuple, dict[Penalties, None]] = {}
        for setting in self.settings():
            params = self.params(setting)
            for head in self._heads(params, n_genes):
                found.setdefault(head, {})[params["l1"], params["l2"]] = None
        return [Chain(head, tuple(found[head])) for head in self._in_order(found)]

    @abstractmethod
    def fit_chain(self, samples: Samples, y: NDArray, v: NDArray, chain: Chain) -> dict[Key, Model]:
        """Fit the settings of a chain; ``y`` is 1 for the positive class, ``v`` are weights."""

    def fits_together(self, n_classes: int) -> bool:
        """Whether the problems of all classes are one fit, see :meth:`fit_together`."""
        return False

    def fit_together(
        self,
        samples: Samples,
        codes: NDArray,
        problems: tuple[int, ...],
        weights: NDArray | None,
        balanced: bool,
        chain: Chain,
    ) -> dict[int, dict[Key, Model]]:
        """Fit the settings of a chain for all classes of ``problems`` at once."""
        raise ValueError(f"{self.name} fits each class by itself")

    def start_of(self, chain: Chain, n_genes: int) -> tuple[int, str]:
        """The size of the reference set of a chain, and the side that its fits start from."""
        raise ValueError(f"{self.name} cannot be fitted on a GPU: use device='cpu' for it")

    def spread(self, scores: NDArray) -> float:
        """What a model is divided by, given its scores of the training samples."""
        return 1.0

    def keys_of(self, setting: Values, models: Mapping[Key, Model], n_genes: int) -> list[Key]:
        """Keys of a setting's models, whose scores are averaged; KeyError if one is not there."""
        params = self.params(setting)
        (head,) = self._heads(params, n_genes)
        key = (*head, params["l1"], params["l2"])
        if key not in models:
            raise KeyError(key)
        return [key]

    def scores(self, samples: Samples, model: Model) -> NDArray:
        """Decision scores of a model."""
        s = model.gamma.sum()
        return samples.orders.scores(model.w, model.gamma, self.ties) / s + model.b

    def scores_of_many(self, samples: Samples, models: Sequence[Model]) -> list[NDArray]:
        """The same of several models at once, for samples on a device."""
        w, gamma = (np.array([getattr(one, name) for one in models]) for name in ("w", "gamma"))
        scores = samples.orders.scores_of_many(w, gamma, self.ties)
        b = np.array([model.b for model in models])
        return list(scores / gamma.sum(axis=1)[:, None] + b[:, None])

    def _grid(self) -> list[Values]:
        """The whole grid."""
        return list(product(self.l1s, self.l2s))

    def _heads(self, params: dict, n_genes: int) -> list[tuple]:
        """Heads of the chains in which the models of a setting are fitted."""
        return [()]

    def _in_order(self, heads: Iterable[tuple]) -> list[tuple]:
        """Heads in the order in which they are fitted."""
        return list(heads)

    def _problem(self, samples: Samples, y: NDArray, v: NDArray, n_reference: int) -> Problem:
        from optirank.solver.problem import Problem

        return Problem(samples.orders, y, v, n_reference, ties=self.ties)

    def _fit_at(self, problem: Problem, gamma: NDArray, chain: Chain) -> dict[Key, Model]:
        """All penalties of a chain at fixed reference weights."""
        from optirank.solver.convex import solve_at
        from optirank.solver.grid import solve_grid_at

        options = {"tol": self.tol, "max_iter": self.max_iter}
        start = time.thread_time()
        if self.warm_start:
            found = solve_grid_at(problem, gamma, chain.penalties, **options)
        else:
            found = {
                (l1, l2): solve_at(replace(problem, l1=l1, l2=l2), gamma, **options)
                for l1, l2 in chain.penalties
            }
        return models_of_chain(chain, found, start)


def models_of_chain(
    chain: Chain, found: Mapping[Penalties, Solution], start: float
) -> dict[Key, Model]:
    """A chain's solutions by key; each has its share of the CPU time since ``start``."""
    each = (time.thread_time() - start) / len(found)
    return {(*chain.head, *pair): Model.of(solution, each) for pair, solution in found.items()}
