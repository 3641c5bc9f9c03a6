"""Folds that train on simulated platforms and score held-out samples on others.

The stack of samples holds the samples themselves, then their copies on the platforms to train on,
then those on the platforms to score; a fold is rows of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from optirank.tuning.search import HELD_OUT, Unit
from optirank.tuning.shifts import PlatformShift, simulate_platforms, with_platforms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.tuning.family import Samples
    from optirank.tuning.folds import Fold

VIEW_STRENGTHS = (0.5, 0.5, 1.0, 1.0)
"""Strengths of the platforms on which held-out samples are scored."""
_MOST_PLATFORMS = 5
_MOST_ROWS = 1500  # of a training set with its copies, where it has more than one copy
_VIEW_SEED = 1  # the platforms to score are not those to train on


def platforms_for(n_samples: int) -> int:
    """How many simulated platforms a training set of this size is worth.

    What copies teach is known after about 1500 rows: small sets get five, large ones fewer, and
    none beyond 3000 samples, which say enough themselves about which genes to rely on.
    """
    if n_samples > 2 * _MOST_ROWS:
        return 0
    return int(np.clip(_MOST_ROWS // n_samples, 1, _MOST_PLATFORMS))


@dataclass(frozen=True)
class PlatformFolds:
    """How folds are cut from a stack of samples that `stack_platforms` made."""

    n_samples: int
    n_platforms: int = 0  # to train on
    with_views: bool = True  # whether there are platforms to score

    @property
    def views(self) -> list[str]:
        """Names of the views on simulated platforms."""
        return [f"platform {k + 1}" for k in range(len(VIEW_STRENGTHS))] if self.with_views else []

    def rows(self, samples: NDArray) -> NDArray:
        """Rows of the stack to train on: samples and their copies."""
        return np.concatenate([samples + k * self.n_samples for k in range(1 + self.n_platforms)])

    def units(
        self,
        stack: Samples,
        codes: NDArray,
        folds: Sequence[Fold],
        *,
        n_classes: int,
        weights: NDArray | None = None,
        balanced: bool = True,
    ) -> list[Unit]:
        """One unit per fold; views are the held-out samples, plain and on simulated platforms."""
        copies = 1 + self.n_platforms
        return [
            Unit(
                train=stack.take(self.rows(train)),
                codes=np.tile(codes[train], copies),
                n_classes=n_classes,
                views={HELD_OUT: stack.take(test)}
                | {
                    name: stack.take(test + (copies + k) * self.n_samples)
                    for k, name in enumerate(self.views)
                },
                weights=None if weights is None else np.tile(weights[train], copies),
                balanced=balanced,
            )
            for train, test in folds
        ]


def stack_platforms(X: Any, folds: PlatformFolds, random_state: int = 0) -> Any:
    """The samples with their copies to train on and those to score (`VIEW_STRENGTHS`)."""
    stack = [with_platforms(X, folds.n_platforms, random_state) if folds.n_platforms else X]
    if folds.with_views:
        shifts = [PlatformShift(factors=strength) for strength in VIEW_STRENGTHS]
        stack += simulate_platforms(X, shifts, random_state + _VIEW_SEED)
    if len(stack) == 1:
        return stack[0]
    return sparse.vstack(stack, format="csr") if sparse.issparse(X) else np.concatenate(stack)
