"""The settings that are tried: nested grids, and the families of classifiers that fit them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.estimators._families import Family, OptirankFamily

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Grid:
    """Sizes of the reference set and penalties."""

    n_references: tuple[float, ...]
    l1s: tuple[float, ...]
    l2s: tuple[float, ...]

    @property
    def n_penalties(self) -> int:
        """Pairs of penalties."""
        return len(self.l1s) * len(self.l2s)


# From the widest to a single setting; each holds the next, so that a search which turns out to be
# slower than planned can go on with a narrower one and keep what is done.
GRIDS = (
    Grid((0.02, 0.05, 0.1, 0.2, 0.4, 1.0), (0.0, 1e-3, 5e-3, 2e-2), (1e-4, 1e-3, 1e-2)),
    Grid((0.02, 0.05, 0.2), (1e-3, 5e-3, 2e-2), (1e-3, 1e-2)),
    Grid((0.02, 0.05), (5e-3, 2e-2), (1e-3,)),
    Grid((0.02,), (5e-3,), (1e-3,)),
)

# Folds of one source cannot see which of the two minima carries over to another source; over real
# pairs the mean of both did best. Folds that leave a source out may decide.
SIDES = ("both",)
SIDES_OF_SOURCES = ("best", "both")


Tell = Callable[[int], None]  # is told how many settings of a chain were fitted


def _nothing(n_fits: int) -> None:
    pass


@dataclass(frozen=True)
class WatchedOptirank(OptirankFamily):
    """optirank, telling of each chain that is done; once time is up, the last grid alone is."""

    tell: Tell = _nothing
    until: float = math.inf  # of time.perf_counter

    def fit_chain(self, samples, y, v, chain) -> dict:
        """See :class:`Family`."""
        last, family = GRIDS[-1], self
        if time.perf_counter() > self.until:
            family = replace(self, n_references=last.n_references, l1s=last.l1s, l2s=last.l2s)
        wanted = chain in family.chains(samples.orders.n_genes)
        found = OptirankFamily.fit_chain(family, samples, y, v, chain) if wanted else {}
        self.tell(len(found))
        return found


@dataclass(frozen=True)
class FixedReference(Family):
    """Weights on ranks relative to a reference set that the user named."""

    reference: tuple[int, ...] = ()
    tell: Tell = _nothing
    until: float = math.inf  # of time.perf_counter

    def fit_chain(self, samples, y, v, chain) -> dict:
        """See :class:`Family`."""
        last, family = GRIDS[-1], self
        if time.perf_counter() > self.until:
            family = replace(self, l1s=last.l1s, l2s=last.l2s)
        gamma = np.zeros(samples.orders.n_genes)
        gamma[list(self.reference)] = 1.0
        found = family._fixed_chain(self._problem(samples, y, v, len(self.reference)), gamma)
        self.tell(len(found))
        return found


def make_family(
    grid: Grid,
    sides: tuple[str, ...],
    reference: NDArray | None,
    **watched: Any,
) -> Any:
    """The family whose settings are tried; ``reference`` are positions, None to learn the set.

    ``watched`` are ``tell`` and ``until`` of the families above.
    """
    if reference is not None:
        fixed = tuple(reference.tolist())
        return FixedReference(grid.l1s, grid.l2s, reference=fixed, **watched)
    return WatchedOptirank(
        grid.l1s, grid.l2s, n_references=grid.n_references, sides=sides, **watched
    )


def n_chains(grid: Grid, sides: tuple[str, ...], fixed: bool, n_genes: int) -> int:
    """Chains of fits of a class in a fold."""
    return 1 if fixed else len(make_family(grid, sides, None).chains(n_genes))
