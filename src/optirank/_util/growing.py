"""Arrays whose last size is not known when they begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GROWTH = 1.2  # room that is made ahead


class GrowingArray:
    """Blocks of an array joined as they come, without a second copy of what is there already."""

    def __init__(self) -> None:
        self._array: NDArray | None = None
        self._size = 0

    def add(self, block: NDArray) -> None:
        """Put a block behind the others."""
        if self._array is None:
            self._array = np.empty(0, block.dtype)
        self._array = self._array.astype(np.result_type(self._array, block), copy=False)
        end = self._size + len(block)
        if end > len(self._array):
            self._array.resize(int(_GROWTH * end), refcheck=False)  # moves pages, copies nothing
        self._array[self._size : end] = block
        self._size = end

    def whole(self) -> NDArray:
        """All blocks."""
        self._array.resize(self._size, refcheck=False)
        return self._array
