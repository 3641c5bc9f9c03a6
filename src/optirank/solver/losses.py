"""The two terms of the objective: the loss of the scores, and the penalty of the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optirank._compiled import solver_loops

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class ElasticNet:
    """``l1 |w|_1 + l2 |w|_2^2`` (no 1/2)."""

    l1: float
    l2: float

    def value(self, w: NDArray) -> float:
        """The penalty of w."""
        return float(self.l1 * np.abs(w).sum() + self.l2 * (w @ w))

    def gradient(self, w: NDArray, sign: NDArray) -> NDArray:
        """Its gradient where each weight keeps the sign given."""
        return 2.0 * self.l2 * w + self.l1 * sign

    def prox(self, x: NDArray, step: float) -> NDArray:
        """``argmin_w |w - x|^2 / (2 step) + value(w)``: shrink by step l1, then scale."""
        shrunk = x - np.clip(x, -step * self.l1, step * self.l1)
        return shrunk / (1.0 + 2.0 * step * self.l2)

    def parameters(self) -> tuple[float, float, float, NDArray]:
        """What the compiled steps are told: l1, l2, no sum to keep, no candidates."""
        return float(self.l1), float(self.l2), 0.0, np.empty(0, np.int64)


class LogisticLoss:
    """``sum_i v_i (log(1 + exp(z_i + b)) - y_i (z_i + b))`` with y_i of 0 and 1.

    ``slopes`` and ``curvatures`` are its first and second derivatives in the scores:
    ``v_i (p_i - y_i)`` and ``v_i p_i (1 - p_i)``, with ``p_i = sigmoid(z_i + b)``. The loss owns
    these buffers.
    """

    def __init__(self, y: NDArray, v: NDArray, dtype: type = np.float32) -> None:
        self.y = y
        self.v = v
        self.slopes = np.empty(len(y), dtype)  # in the precision of the matrix they meet
        self.curvatures = np.empty(len(y))

    def value(self, z: NDArray, b: float = 0.0) -> float:
        """The loss at scores z + b."""
        return solver_loops.logistic_loss(z, b, self.y, self.v)

    def differentiate(self, z: NDArray, b: float = 0.0) -> None:
        """Write ``slopes`` and ``curvatures`` at scores z + b."""
        solver_loops.logistic_slopes(z, b, self.y, self.v, self.slopes, self.curvatures)

    def evaluate(self, z: NDArray, b: float) -> float:
        """The loss at scores z + b; leaves ``slopes`` and ``curvatures`` there."""
        self.differentiate(z, b)
        return self.value(z, b)

    def best_intercept(self, z: NDArray, b: float) -> float:
        """The b that minimises the loss at scores z + b, searched from the one given."""
        return solver_loops.optimal_intercept(z, b, self.y, self.v)
