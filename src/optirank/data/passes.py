"""Passes over the samples of profiles: the one way to their values, wherever they are.

A pass is a loop: every block of samples is given to every look. Blocks follow from the
shape of the data alone, and a look sees them in order, so that results have the same
bits on every run. On a cluster (`optirank.data.cluster.on_cluster`) blocks are tasks
whose looks are merged in the order of the samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

from numpy.typing import NDArray

from optirank.data.profiles import Profiles

Block = Any  # an array, or a CSR matrix
Progress = Callable[[int, int], None]  # called with what is done, and of how much

# Values of whole rows read together, of which some columns are kept: at most 160 MB
_WHOLE_VALUES = 20_000_000
# Up to so many rows between two wanted ones are cheaper to read than to leave out
_GAP = 16


class Look(Protocol):
    """What looks at the samples of a pass.

    It may have two attributes: ``genes``, positions of the genes that it wants, in this
    order (without one it gets all genes of the pass); and ``blocks_per_task``, how many
    blocks are looked at together on a cluster (without one a single one: sums that
    depend on the order of the blocks then have the same bits there).
    """

    def add(self, block: Any, rows: slice) -> None:
        """Look at the samples of a block, an array or a CSR matrix, whose places among
        all samples of the pass are ``rows``.
        """

    def merge(self, other: Self) -> None:
        """Take what another one has seen of the samples that follow."""

    def result(self) -> Any:
        """What was looked for."""


def run_pass(
    data: Profiles | Sequence[Profiles],
    looks: Sequence[Look],
    genes: NDArray | None = None,
    *,
    rows: NDArray | None = None,
    size: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Show all samples to some looks, those of one data set after the other.

    The genes that all looks want are read once. An error of a look says which samples
    it is about.

    Parameters
    ----------
    data : profiles, or several over the same genes (`join_profiles`).
    looks : what looks at the samples; afterwards they have seen all of them.
    genes : positions of the genes for looks that name none; None for all.
    rows : rising positions of samples; None for all.
    size : samples of a block; None for as many as the number of genes allows.
    progress : called with the number of samples that were seen, and of all.
    """
