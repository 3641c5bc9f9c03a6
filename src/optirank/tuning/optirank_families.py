"""optirank with its grid: one reference set per class, or one for all classes."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from optirank.solver.sizes import resolve_n_candidates
from optirank.tuning.family import Chain, Family, Key, Model, Samples, Values, models_of_chain

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class OptirankFamily(Family):
    """optirank, with the sides of its two minima as a dimension of the grid."""

    n_references: tuple[float, ...] = (0.2,)
    sides: tuple[str, ...] = ("best",)
    path_step: float = 100.0
    candidates: NDArray | None = field(default=None, compare=False)  # mask of genes
    whole_panel: bool = False  # whether models end on their whole panels, see `solver.panel`
    name = "optirank"
    on_device = True
    names = ("n_reference", "l1", "l2", "side")

    def fit_chain(self, samples, y, v, chain: Chain) -> dict[Key, Model]:
        """See :class:`Family`."""
        from optirank.solver.alternating import solve_alternating
        from optirank.solver.grid import solve_grid
        from optirank.solver.panel import on_whole_panel

        size, side = chain.head
        problem = replace(self._problem(samples, y, v, size), candidates=self.candidates)
        if side is None and not self.whole_panel:
            return self._fit_at(problem, self._whole(samples.n_genes), chain)
        options = {"side": side or "best"} | self._options()
        start = time.thread_time()
        if self.warm_start:
            found = solve_grid(problem, chain.penalties, **options)
        else:
            found = {
                (l1, l2): solve_alternating(replace(problem, l1=l1, l2=l2), **options)
                for l1, l2 in chain.penalties
            }
        if self.whole_panel:
            found = {
                pair: on_whole_panel(replace(problem, l2=pair[1]), one, **self._accuracy())
                for pair, one in found.items()
            }
        return models_of_chain(chain, found, start)

    def params(self, setting: Values) -> dict[str, object]:
        """See :class:`Family`."""
        more = {"whole_panel": True} if self.whole_panel else {}
        return super().params(setting) | more

    def start_of(self, chain: Chain, n_genes: int) -> tuple[int, str]:
        """See :class:`Family`."""
        if self.whole_panel:
            raise ValueError("whole_panel=True is fitted on the CPU alone: use device='cpu'")
        size, side = chain.head
        return size, side or "best"

    def keys_of(self, setting, models, n_genes) -> list[Key]:
        """See :class:`Family`."""
        s, l1, l2, side = setting
        size = self._size(s, n_genes)
        alone = (size, None if size == self._most(n_genes) else side, l1, l2)
        if alone in models:
            return [alone]
        pair = [(size, one, l1, l2) for one in ("rising", "falling")]
        objectives = [models[key].objective for key in pair]
        return pair if side == "both" else [pair[int(np.argmin(objectives))]]

    def _options(self) -> dict:
        return {"path_step": self.path_step} | self._accuracy()

    def _accuracy(self) -> dict:
        return {"tol": self.tol, "max_iter": self.max_iter}

    def _grid(self) -> list[Values]:
        return list(product(self.n_references, self.l1s, self.l2s, self.sides))

    def _size(self, n_reference: float, n_genes: int) -> int:
        return resolve_n_candidates(n_reference, n_genes, self.candidates)

    def _whole(self, n_genes: int) -> NDArray:
        """The reference weights of the largest set."""
        return np.ones(n_genes) if self.candidates is None else self.candidates.astype(float)

    def _most(self, n_genes: int) -> int:
        """The size of the largest set; there is one only, and it has no side."""
        return int(self._whole(n_genes).sum())

    def _heads(self, params: dict, n_genes: int) -> list[tuple]:
        """One chain per size of the reference set and side; the largest set has no side.

        "best" alone drops the worse side on the way; beside others it is the better of two. Cold
        fits have a chain of their own for "best", as they choose it on the way.
        """
        size = self._size(params["n_reference"], n_genes)
        if size == self._most(n_genes):
            return [(size, None)]
        side = params["side"]
        apart = self.warm_start and any(one != "best" for one in self.sides)
        if side == "both" or (side == "best" and apart):
            return [(size, "rising"), (size, "falling")]
        return [(size, side)]

    def _in_order(self, heads: Iterable[tuple]) -> list[tuple]:
        order = (None, "best", "rising", "falling")
        return sorted(heads, key=lambda head: (head[0], order.index(head[1])))


@dataclass(frozen=True)
class JointFamily(OptirankFamily):
    """optirank with one reference set for all classes; two classes are those of the base class."""

    name = "joint optirank"

    def params(self, setting: Values) -> dict[str, object]:
        """See :class:`Family`."""
        return super().params(setting) | {"shared_reference": True}

    def fits_together(self, n_classes: int) -> bool:
        """See :class:`Family`."""
        return n_classes > 2

    def fit_together(
        self,
        samples: Samples,
        codes: NDArray,
        problems: tuple[int, ...],
        weights: NDArray | None,
        balanced: bool,
        chain: Chain,
    ) -> dict[int, dict[Key, Model]]:
        """See :class:`Family`; samples of classes that are not learned are left out."""
        from optirank.solver.joint import solve_joint
        from optirank.solver.joint_grid import solve_joint_grid
        from optirank.solver.joint_problem import JointProblem, joint_weights
        from optirank.solver.panel import joint_on_whole_panel

        start = time.thread_time()
        orders = samples.orders
        learned = np.isin(codes, problems)
        if not learned.all():  # classes whose samples all weigh nothing
            orders, codes = orders.take(learned), codes[learned]
            weights = None if weights is None else weights[learned]
        codes = np.searchsorted(problems, codes)
        v = joint_weights(codes, len(problems), weights, balanced)
        problem = JointProblem(
            orders,
            codes,
            len(problems),
            v,
            chain.head[0],
            ties=self.ties,
            candidates=self.candidates,
        )
        if self.warm_start:
            found = solve_joint_grid(problem, chain.penalties, **self._options())
        else:
            found = {
                (l1, l2): solve_joint(replace(problem, l1=l1, l2=l2), **self._options())
                for l1, l2 in chain.penalties
            }
        if self.whole_panel:
            found = {
                pair: joint_on_whole_panel(replace(problem, l2=pair[1]), one, **self._accuracy())
                for pair, one in found.items()
            }
        each = (time.thread_time() - start) / (len(found) * len(problems))
        models: dict[int, dict[Key, Model]] = {k: {} for k in problems}
        for pair, solution in found.items():
            for k, row in zip(problems, solution.by_class(), strict=True):
                models[k][(*chain.head, *pair)] = Model.of(row, each)
        return models
