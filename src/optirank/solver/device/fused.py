"""Formulas of the loss, element by element: one launch each on a GPU, plain NumPy elsewhere.

Each is written once, as a function of arrays; CuPy compiles it into one kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any


@cache
def formulas(xp: Any) -> SimpleNamespace:
    """The formulas of an array module."""

    def logistic(z, b, y, v):
        """Slopes and curvatures of ``v logloss(y, z + b)`` in the scores."""
        score = z + b
        e = xp.exp(-xp.abs(score))
        q = 1.0 / (1.0 + e)
        p = xp.where(score > 0, q, e * q)
        return v * (p - y), v * (e * q * q)

    def loss(z, b, y, v):
        """``v logloss(y, z + b)``."""
        score = z + b
        return v * (xp.log1p(xp.exp(-xp.abs(score))) + xp.maximum(score, 0.0) - y * score)

    every = (logistic, loss)
    return SimpleNamespace(**{one.__name__: _fused(xp, one) for one in every})


def _fused(xp: Any, function: Callable) -> Callable:
    return function if xp.__name__ == "numpy" else xp.fuse()(function)
