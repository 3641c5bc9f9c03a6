"""What the values of a query look like beside those of the training data.

Ranks within a sample do not change under any rising function of its values, so counts,
CPM and log(CPM + 1) are all the same to a model on ranks. They do change when each gene
is scaled or centred, smoothed or imputed, and zeros are ties. A model stores shares of
its training data, over the genes of its panel, in its card.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

MANY_ZEROS = 0.1  # share of zeros from which data are those of single cells
MORE_ZEROS = 0.35  # a third of the panel more is tied: a guess, not measured
SCALED = (
    "ranks within a sample change when genes are scaled or centred: if they were, give "
    "counts or their logarithm (layer=)"
)


@dataclass(frozen=True)
class ValueShares:
    """The scale of values, and the shares of them that are zero or negative."""

    scale: str | None = None  # counts, linear or log; None where there were no values
    zeros: float = 0.0
    negative: float = 0.0

    def __str__(self) -> str:
        return f"{self.scale}, {self.zeros:.0%} zeros"


@dataclass
class ValueCounter:
    """Zeros, negative values and the scale of data, accumulated block by block."""

    n_values: int = 0
    n_zero: int = 0
    n_negative: int = 0
    scale: str | None = None

    def add(self, block: Any, rows: slice | None = None) -> None:
        """Count the values of a block, dense or sparse."""
        values = block.data if hasattr(block, "indptr") else np.asarray(block)
        n_values = int(np.prod(block.shape))
        self.n_values += n_values
        self.n_zero += n_values - int(np.count_nonzero(values))
        self.n_negative += int(np.count_nonzero(values < 0))
        if self.scale is None and values.size:
            from optirank._util.matrices import value_scale  # scipy loads

            self.scale = value_scale(block)

    def merge(self, other: ValueCounter) -> None:
        """Count the values of another one."""
        self.n_values += other.n_values
        self.n_zero += other.n_zero
        self.n_negative += other.n_negative
        self.scale = self.scale or other.scale

    def result(self) -> ValueShares:
        """The shares of all values that were added."""
        n_values = max(1, self.n_values)
        return ValueShares(
            scale=self.scale,
            zeros=round(self.n_zero / n_values, 6),
            negative=round(self.n_negative / n_values, 6),
        )


def value_notes(query: ValueShares, trained: ValueShares) -> list[str]:
    """How the values of a query differ from those of training, in ways that matter."""
    if query.scale is None or trained.scale is None:
        return []
    notes = []
    if query.negative and not trained.negative:
        notes.append(
            f"{query.negative:.1%} of the values are negative, and none were in the "
            f"training data: {SCALED}"
        )
    if not query.zeros and trained.zeros >= MANY_ZEROS:
        notes.append(
            f"no value is zero, and {trained.zeros:.0%} were in the training data: "
            "that is usual for a microarray; smoothed or imputed values would change "
            "ranks"
        )
    elif query.zeros - trained.zeros > MORE_ZEROS:
        notes.append(
            f"{query.zeros:.0%} of the values are zero, and {trained.zeros:.0%} were "
            "in the training data: zeros are ties, so labels are less certain; a "
            "larger panel may do better"
        )
    return notes
