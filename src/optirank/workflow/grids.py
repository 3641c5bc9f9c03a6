"""The settings that are tried: nested grids, and the families of classifiers that fit them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
# slower than planned can go on with the next one and keep what is done.
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


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class WatchedOptirank(OptirankFamily):
    """optirank, telling of each chain that is done."""

    tell: Callable[[], None] = _nothing

    def fit_chain(self, samples, y, v, chain) -> dict:
        """See :class:`Family`."""
        found = super().fit_chain(samples, y, v, chain)
        self.tell()
        return found


@dataclass(frozen=True)
class FixedReference(Family):
    """Weights on ranks relative to a reference set that the user named."""

    reference: tuple[int, ...] = ()
    tell: Callable[[], None] = _nothing

    def fit_chain(self, samples, y, v, chain) -> dict:
        """See :class:`Family`."""
        gamma = np.zeros(samples.orders.n_genes)
        gamma[list(self.reference)] = 1.0
        found = self._fixed_chain(self._problem(samples, y, v, len(self.reference)), gamma)
        self.tell()
        return found


def make_family(
    grid: Grid,
    sides: tuple[str, ...],
    reference: NDArray | None,
    tell: Callable[[], None] = _nothing,
) -> Any:
    """The family whose settings are tried; ``reference`` are positions, None to learn the set."""
    if reference is not None:
        return FixedReference(grid.l1s, grid.l2s, reference=tuple(reference.tolist()), tell=tell)
    return WatchedOptirank(
        grid.l1s, grid.l2s, n_references=grid.n_references, sides=sides, tell=tell
    )


def n_chains(grid: Grid, sides: tuple[str, ...], fixed: bool, n_genes: int) -> int:
    """Chains of fits of a class in a fold."""
    return 1 if fixed else len(make_family(grid, sides, None).chains(n_genes))
