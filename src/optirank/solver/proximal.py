"""Proximal maps: ``argmin_w  |w - x|^2 / (2 step) + penalty(w)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def soft_threshold(x: ArrayLike, threshold: float) -> NDArray:
    """``sign(x) max(|x| - threshold, 0)``: the proximal map of ``threshold |w|_1`` at step 1."""
    x = np.asarray(x)
    return x - np.clip(x, -threshold, threshold)


def prox_elastic_net(x: ArrayLike, step: float, l1: float, l2: float) -> NDArray:
    """The proximal map of ``l1 |w|_1 + l2 |w|_2^2`` (no 1/2).

    ``soft_threshold(x, step l1) / (1 + 2 step l2)``
    """
    return soft_threshold(x, step * l1) / (1.0 + 2.0 * step * l2)
