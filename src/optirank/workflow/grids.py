"""The settings that are tried: nested grids, and the families of classifiers that fit them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optirank.tuning.families import FixedReferenceFamily, OptirankFamily

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.tuning.family import Family


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


def make_family(grid: Grid, sides: tuple[str, ...], reference: NDArray | None) -> Family:
    """The family whose settings are tried; ``reference`` are positions, None to learn the set."""
    if reference is not None:
        return FixedReferenceFamily(grid.l1s, grid.l2s, reference=tuple(reference.tolist()))
    return OptirankFamily(grid.l1s, grid.l2s, n_references=grid.n_references, sides=sides)
