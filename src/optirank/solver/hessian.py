"""The Hessian of the ridge-penalised loss in w, factored, and Newton steps with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.losses import LogisticLoss

_ROWS = 512  # rows whose scaled copy is held at a time
_SHARPER = 4  # Newton steps at the end that the gradient judges
_SINGLE = 1e-5  # ridge over the largest diagonal entry, above which a float32 factor will do


class RidgeHessian:
    """``H = M^T D M + 2 l2 I`` with D the curvatures and the intercept eliminated.

    Eliminating the intercept centres the columns of M under the weights D. With more columns than
    rows the system is solved in the space of the rows. ``factored`` is the Hessian of a nearby
    point, whose factor stands in for this one's.
    """

    def __init__(
        self,
        values: NDArray,
        curvatures: NDArray,
        l2: float,
        factored: RidgeHessian | None = None,
    ) -> None:
        n, m = values.shape
        total = curvatures.sum()
        self._values = values
        self._roots = np.sqrt(curvatures)
        self._mean = (curvatures.astype(values.dtype) @ values) / max(total, 1e-30)
        self._ridge = 2.0 * l2
        self._by_rows = m > n
        if factored is not None:
            self._ridge, self._factor = factored._ridge, factored._factor
            return
        if self._by_rows:
            scaled = self.scaled(slice(None))
            system = (scaled @ scaled.T).astype(np.float64)
        else:
            system = np.zeros((m, m))
            for begin in range(0, n, _ROWS):
                scaled = self.scaled(slice(begin, begin + _ROWS))
                system += scaled.T @ scaled
        diagonal = np.einsum("ii->i", system)
        lost = 1e-9 if values.dtype == np.float32 else 1e-14  # by sums in this precision
        self._ridge += lost * diagonal.max()  # above 0 also where l2 is 0
        diagonal += self._ridge
        if values.dtype == np.float32 and self._ridge > _SINGLE * diagonal.max():
            system = system.astype(np.float32)  # well enough conditioned; twice as fast
        self._factor = linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)

    def scaled(self, rows: slice) -> NDArray:
        """``D^(1/2) (M - 1 mean^T)`` for some rows."""
        roots = self._roots[rows, None].astype(self._values.dtype)
        return (self._values[rows] - self._mean) * roots

    def transpose_scaled_dot(self, right: NDArray) -> NDArray:
        """``(D^(1/2) (M - 1 mean^T))^T right``."""
        out = np.zeros((self._values.shape[1], right.shape[1]))
        for begin in range(0, len(right), _ROWS):
            rows = slice(begin, begin + _ROWS)
            out += self.scaled(rows).T @ right[rows]
        return out

    def solve(self, right: NDArray) -> NDArray:
        """``H^-1 right`` for a vector or the columns of a matrix."""
        if not self._by_rows:
            return self._solve_factored(right)
        scaled = self.scaled(slice(None))
        return (right - scaled.T @ self._solve_factored(scaled @ right)) / self._ridge

    def _solve_factored(self, right: NDArray) -> NDArray:
        right = right.astype(self._factor[0].dtype, copy=False)
        return linalg.cho_solve(self._factor, right, check_finite=False).astype(np.float64)


def newton_steps(
    values: NDArray,
    loss: LogisticLoss,
    w: NDArray,
    b: float,
    l1: float,
    l2: float,
    n_steps: int,
    *,
    target: float = np.inf,
    tol: float = 1e-9,
) -> tuple[NDArray, float, float, float]:
    """Damped Newton steps on (w, b), each coefficient kept on its side of zero when l1 > 0.

    Stops when a step lowers the objective by less than ``tol`` of it, or so little that there is no
    hope of going below ``target``. Returns w, b, the objective and the last decrease of it.
    """
    sign = np.sign(w)
    dtype = values.dtype

    def evaluate(w: NDArray, b: float) -> tuple[float, float]:
        z = values @ w.astype(dtype)
        b = loss.best_intercept(z, b)
        return loss.evaluate(z, b) + l1 * np.abs(w).sum() + l2 * (w @ w), b

    objective, b = evaluate(w, b)
    decrease = np.inf
    for _ in range(n_steps):
        gradient = (loss.slopes @ values).astype(np.float64) + 2.0 * l2 * w + l1 * sign
        direction = RidgeHessian(values, loss.curvatures, l2).solve(gradient)
        for halving in range(6):
            new = w - 0.4**halving * direction
            if l1 > 0:
                new[new * sign < 0] = 0.0
            new_objective, new_b = evaluate(new, b)
            if new_objective < objective:
                break
        else:
            decrease = 0.0
            objective, b = evaluate(w, b)
            break
        decrease = objective - new_objective
        w, b, objective = new, new_b, new_objective
        if decrease <= tol * objective or objective - 1.5 * decrease > target:
            break
    return w, b, objective, decrease


def sharpened(
    values: NDArray, loss: LogisticLoss, w: NDArray, b: float, l1: float, l2: float
) -> NDArray:
    """w after Newton steps that are judged by the gradient.

    The last digits of w no longer show in the objective, which is flat there, but in its gradient.
    """
    sign = np.sign(w)

    def gradient_at(w: NDArray) -> NDArray:
        z = values @ w
        loss.differentiate(z, loss.best_intercept(z, b))
        return loss.slopes @ values + 2.0 * l2 * w + l1 * sign

    gradient = gradient_at(w)
    for _ in range(_SHARPER):
        new = w - RidgeHessian(values, loss.curvatures, l2).solve(gradient)
        if l1 > 0 and (new * sign < 0).any():
            break
        new_gradient = gradient_at(new)
        if np.abs(new_gradient).max() >= np.abs(gradient).max():
            break
        w, gradient = new, new_gradient
    return w


def steps_with_hessian(
    hessian: RidgeHessian,
    values: NDArray,
    loss: LogisticLoss,
    w: NDArray,
    b: float,
    l2: float,
    n_steps: int,
    target: float | None = None,
) -> tuple[NDArray, float, float]:
    """Steps on (w, b) at l1 = 0 along the Newton direction of a nearby Hessian.

    The length of a step is Newton's along its direction, with the curvature of the loss where w
    stands. With a ``target``, they end when the objective is below it, or so far above it that
    twice the decrease in sight does not reach it. Returns w, b and the objective; the loss is left
    differentiated there.
    """
    z = values @ w.astype(values.dtype)
    b = loss.best_intercept(z, b)
    objective = loss.evaluate(z, b) + l2 * (w @ w)
    for _ in range(n_steps):
        if target is not None and objective < target:
            break
        gradient = (loss.slopes @ values).astype(np.float64) + 2.0 * l2 * w
        direction = hessian.solve(gradient)
        change = values @ direction.astype(values.dtype)
        curvatures = loss.curvatures
        mean = (curvatures @ change) / max(curvatures.sum(), 1e-30)  # the intercept follows
        slope = gradient @ direction
        length = slope / (curvatures @ (change - mean) ** 2 + 2.0 * l2 * (direction @ direction))
        if target is not None and objective - length * slope >= target:
            break  # a quadratic would fall by half of this
        new = w - length * direction
        z_new = z - values.dtype.type(length) * change
        b_new = loss.best_intercept(z_new, b - length * mean)
        new_objective = loss.evaluate(z_new, b_new) + l2 * (new @ new)
        if not new_objective < objective:
            loss.differentiate(z, b)
            break
        w, b, z, objective = new, b_new, z_new, new_objective
    return w, b, objective
