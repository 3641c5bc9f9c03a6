"""The samples over the genes that a fit uses, sorted (or as values) once for all that uses them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.estimators.value_rows import as_seen
from optirank.solver.device.problems import orders_for
from optirank.tuning.family import Samples
from optirank.tuning.platforms import PlatformFolds, stack_platforms

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_SAMPLES = 5000  # with which held-out samples are scored on simulated platforms too


@dataclass
class SortedSamples:
    """Sorts all samples over some genes, and again only when other genes are asked for.

    Below the samples themselves stand their copies on simulated platforms: those to train on and
    those to score. For weights on values (``values``) there is nothing to sort: values are taken as
    they are, or, with ``target_sum``, as logarithms of counts relative to the total of the genes.
    """

    X: Any
    n_jobs: int
    n_platforms: int = 0
    device: str = "cpu"  # where the fits take place, and the orders lie
    values: bool = False
    target_sum: float | None = None
    _last: tuple[NDArray, int, Samples] | None = field(default=None, init=False)

    @property
    def folds(self) -> PlatformFolds:
        """How folds are cut from the samples."""
        n = self.X.shape[0]
        return PlatformFolds(n, self.n_platforms, with_views=n <= _MOST_SAMPLES)

    def part(self, rows: NDArray) -> SortedSamples:
        """Some of the samples."""
        return replace(self, X=self.X[rows])

    def over(self, genes: NDArray) -> Samples:
        """All samples, with the genes at these positions."""
        last = self._last
        if last is None or last[1] != self.n_platforms or not np.array_equal(last[0], genes):
            stack = stack_platforms(self.X[:, genes], self.folds)
            self._last = None  # its memory is free for the next
            if self.values:
                found = Samples(X=as_seen(stack, self.target_sum))
            else:
                found = Samples(orders=orders_for(stack, self.device, self.n_jobs))
            self._last = genes, self.n_platforms, found
        return self._last[2]
