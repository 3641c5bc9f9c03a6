"""The end of the time that a search has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optirank.tuning.family import Chain, Family


@dataclass(frozen=True)
class Deadline:
    """Tasks that start after ``until`` fit the settings of ``least`` only.

    ``least`` holds the families of the search, in the same order, with the settings that are worth
    having even if it takes longer; see :meth:`Family.keeping`.
    """

    until: float  # of time.time
    least: Sequence[Family]

    def chain(self, family: int, chain: Chain, n_genes: int) -> Chain | None:
        """What is left of a chain once the time is up."""
        for one in self.least[family].chains(n_genes):
            if one.head == chain.head:
                return one
        return None
