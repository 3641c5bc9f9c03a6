"""The orders of the samples over the genes that a fit uses, sorted once for all that uses them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.ranks.fitting import order_for_fitting
from optirank.tuning.family import Samples

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass
class SortedSamples:
    """Sorts all samples over some genes, and again only when other genes are asked for."""

    X: Any
    n_jobs: int
    _last: tuple[NDArray, Samples] | None = field(default=None, init=False)

    def over(self, genes: NDArray) -> Samples:
        """All samples, with the genes at these positions."""
        if self._last is None or not np.array_equal(self._last[0], genes):
            self._last = genes, Samples(orders=order_for_fitting(self.X[:, genes], self.n_jobs))
        return self._last[1]
