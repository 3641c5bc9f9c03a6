"""Families of classifiers: a grid of settings, cut into chains of neighbouring fits.

A family lists its settings, groups them into chains (what can run apart), and fits a
chain on one training part for one class against the rest. Everything else of a search
is the same for all.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import product
from typing import Any, ClassVar, NamedTuple

from numpy.typing import NDArray

from optirank.solver.problem import (
    PenaltyPair,
    Problem,
    Solution,
    resolve_n_reference,
)

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
        from optirank.solver.alternating import solve_alternating
        from optirank.solver.solve import solve_grid

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
