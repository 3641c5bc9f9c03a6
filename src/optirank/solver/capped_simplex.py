"""Projection onto the capped simplex, where the reference weights live."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

_EPS = float(np.finfo(np.float64).eps)
_NEWTON_STEPS = 12  # three to five are usual; past these, bisection over the breakpoints finishes


def project_capped_simplex(x: ArrayLike, s: float) -> NDArray[np.float64]:
    """The point of ``{z : 0 <= z <= 1, sum z = s}`` nearest to ``x``.

    It is ``z = clip(x - shift, 0, 1)`` for the ``shift`` at which ``z`` sums to ``s``. With ``p``
    the ``ceil(s)``-th largest entry of ``x``, the sum is at least ``ceil(s)`` at ``p - 1`` and at
    most ``ceil(s) - 1`` at ``p``, so the shift lies in ``[p - 1, p)``. Working with ``x - p``
    therefore keeps full accuracy however large ``x`` is, and only the entries within 1 of ``p``
    are in question. O(d): a partition, then a few Newton steps on a piecewise linear function.

    Parameters
    ----------
    x : array of d finite numbers.
    s : the sum asked for, between 0 and d.
    """
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 1:
        raise ValueError(f"x has {x.ndim} dimensions: the projection takes a vector")
    d = x.size
    if not 0 <= s <= d:
        raise ValueError(f"s={s} cannot be the sum of {d} weights in [0, 1]: use 0 <= s <= {d}")
    if not np.isfinite(x).all():
        raise ValueError(f"x has {np.count_nonzero(~np.isfinite(x))} entries that are not finite")
    if s == 0 or s == d:
        return np.full(d, 0.0 if s == 0 else 1.0)

    place = d - math.ceil(s)
    with np.errstate(
        over="ignore"
    ):  # a difference that overflows is clipped to 0 or 1 all the same
        y = x - np.partition(x, place)[place]
    near = y[np.abs(y) < 1]
    z = y - _shift(near, s - np.count_nonzero(y >= 1))
    return np.clip(z, 0.0, 1.0, out=z)


def _shift(y: NDArray[np.float64], s: float) -> float:
    """The root in [-1, 0] of ``sum clip(y - shift, 0, 1) - s``, for y in (-1, 1).

    Newton's method on a falling, piecewise linear function, inside a bracket that shrinks at each
    step. Newton alone may go round in circles: where it leaves the bracket or takes too long, the
    median of the breakpoints left in the bracket takes over, which ends in log2(d) steps more.
    """
    low, high = -1.0, 0.0
    shift = min(max(float(np.add.reduce(y) - s) / y.size, low), high)
    for step in itertools.count(1):
        excess, n_free = _excess(y, s, shift)
        if abs(excess) <= 4 * _EPS * (s - n_free * shift):  # as exact as the sum itself
            break
        if excess > 0:
            low = shift
        else:
            high = shift
        shift += excess / n_free if n_free else math.inf
        if step > _NEWTON_STEPS or not low < shift < high:
            breaks = np.where(y < 0, y, y - 1)
            breaks = breaks[(breaks > low) & (breaks < high)]
            if breaks.size == 0:  # linear from low to high, so the root is known
                free = y[(y >= high) & (y - 1 <= low)]
                n_ones = np.count_nonzero(y - 1 > low)
                shift = float(np.add.reduce(free) + (n_ones - s)) / max(free.size, 1)
                break
            shift = float(np.partition(breaks, breaks.size // 2)[breaks.size // 2])
    return min(max(shift, low), high)


def _excess(y: NDArray[np.float64], s: float, shift: float) -> tuple[float, int]:
    """By how much ``clip(y - shift, 0, 1)`` sums to more than ``s``; how many are not clipped."""
    moved = y - shift
    clipped = moved.clip(0.0, 1.0)
    return float(np.add.reduce(clipped)) - s, np.count_nonzero(moved == clipped)
