"""Formulas of a step, element by element: one launch each on a GPU, plain NumPy elsewhere.

Each is written once, as a function of arrays; CuPy compiles it into one kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

_GROW = 1.6  # a step refused: shorten it by this
_RELAX = 0.93  # a step taken: try a longer one next


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

    def rise(z_new, b_new, z, b, curvatures, v):
        """Bound of the loss's rise above its tangent from scores z + b to z_new + b_new.

        ``min(c (exp|t| - 1 - |t|), v t^2 / 8)``, as ``solver_loops.curvature_bound``; the
        difference is taken from its series where it would cancel.
        """
        t = xp.abs(z_new + b_new - z - b)
        u = xp.minimum(t, 3.0)
        series = 0.5 + u * (1 / 6 + u * (1 / 24 + u * (1 / 120 + u * (1 / 720))))
        above = xp.where(u < 0.3, u * u * series, xp.exp(u) - 1.0 - u)
        quadratic = 0.125 * v * t * t
        return xp.where(t < 3.0, xp.minimum(1.0001 * curvatures * above, quadratic), quadratic)

    def elastic_net(x, gradient, L, l1, l2):
        """The minimiser of ``gradient . u + L/2 |u - x|^2 + l1 |u|_1 + l2 |u|^2``."""
        u = L * x - gradient
        return xp.sign(u) * xp.maximum(xp.abs(u) - l1, 0.0) / (L + 2.0 * l2)

    def changes(new, ahead, x):
        """Squared change, product with the momentum, and size of the change."""
        change = new - ahead
        return change * change, -change * (new - x), xp.abs(change)

    def judge(rise, squared, turn, largest, L, L_b, b_new, b_ahead, b, t, residual, done, tol):
        """What becomes of each problem's step: see ``steps.accelerated_steps``."""
        most = 0.5 * (L * squared + L_b * (b_new - b_ahead) * (b_new - b_ahead))
        accepted = (rise <= most * (1.0 + 1e-6) + 1e-13) & ~done
        turned = turn + (b_ahead - b_new) * (b_new - b) > 0
        next_t = xp.where(turned, 1.0, 0.5 * (1.0 + xp.sqrt(1.0 + 4.0 * t * t)))
        momentum = xp.where(turned, 0.0, (t - 1.0) / next_t)
        residual = xp.where(accepted, L * largest, residual)
        L = xp.where(done, L, xp.where(accepted, L * _RELAX, L * _GROW))
        t = xp.where(accepted, next_t, t)
        b_ahead = xp.where(accepted, b_new + momentum * (b_new - b), b_ahead)
        b = xp.where(accepted, b_new, b)
        done = done | (accepted & (residual <= tol))
        return accepted, momentum, residual, L, t, b_ahead, b, done

    def advance(accepted, momentum, new, x, ahead):
        """The point after the step, and the one ahead of it."""
        return xp.where(accepted, new + momentum * (new - x), ahead), xp.where(accepted, new, x)

    every = (logistic, loss, rise, elastic_net, changes, judge, advance)
    return SimpleNamespace(**{one.__name__: _fused(xp, one) for one in every})


def _fused(xp: Any, function: Callable) -> Callable:
    return function if xp.__name__ == "numpy" else xp.fuse()(function)
