"""A pass over samples is a fold: blocks of samples are added to accumulators.

An accumulator has three methods: ``add(block, rows)`` takes the samples of a block,
whose places among all samples are the slice ``rows``; ``merge(other)`` takes what
another one has gathered from the samples that follow; ``result()`` gives what was
looked for. Sums are added up in one order: over the blocks of a group, then over the
groups. So results have the same bits wherever the groups are folded.

``add`` binds attributes anew and never changes what they hold. A shallow copy of an
accumulator that is empty is therefore empty too, and what was gathered are the
attributes that differ from those of the empty one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


Progress = Callable[[int, int], None]  # called with what is done, and of how much


class Accumulator(Protocol):
    """What a pass feeds with blocks of samples."""

    def add(self, block: Any, rows: slice) -> None:
        """Take the samples of a block: an array or a CSR matrix."""
        ...

    def merge(self, other: Self) -> None:
        """Take what another one gathered from the samples that follow."""
        ...

    def result(self) -> Any:
        """What was looked for."""
        ...


class PerSample:
    """Gathers what a function gives for the samples of a block: an array with one
    entry, or row, per sample.
    """

    def __init__(self, n_samples: int, of_block: Callable[[Any], NDArray]) -> None:
        self._n_samples = n_samples
        self._of_block = of_block
        self._starts: list[int] = []
        self._parts: list[NDArray] = []
        self._whole: NDArray | None = None

    def add(self, block: Any, rows: slice) -> None:
        """Keep the entries of a block."""
        self._starts = [*self._starts, rows.start]
        self._parts = [*self._parts, self._of_block(block)]

    def merge(self, other: Self) -> None:
        """Put the entries of others where their samples are."""
        for start, entries in zip(other._starts, other._parts, strict=True):
            if self._whole is None:
                shape = (self._n_samples, *entries.shape[1:])
                self._whole = np.empty(shape, entries.dtype)
            self._whole[start : start + len(entries)] = entries

    def result(self) -> NDArray:
        """The entries of all samples, in order."""
        return np.zeros(0) if self._whole is None else self._whole
