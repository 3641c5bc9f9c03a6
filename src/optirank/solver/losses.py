"""The loss of the scores: its value, derivatives, best intercept, and how far a step may go.

A loss owns the buffers that its derivatives are written to. The algorithms ask nothing else of it,
so another loss (softmax, for scores of shape n x K) has the same methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optirank._compiled import solver_loops

if TYPE_CHECKING:
    from numpy.typing import NDArray


class LogisticLoss:
    """``sum_i v_i (log(1 + exp(z_i + b)) - y_i (z_i + b))`` with y_i of 0 and 1.

    ``slopes`` and ``curvatures`` are its first and second derivatives in the scores:
    ``v_i (p_i - y_i)`` and ``v_i p_i (1 - p_i)``, with ``p_i = sigmoid(z_i + b)``.
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

    def rise_bound(self, z_new: NDArray, b_new: float, z: NDArray, b: float) -> float:
        """Upper bound of the loss's rise above its tangent, from scores z + b to z_new + b_new.

        The loss must have been differentiated at z + b last.
        """
        return solver_loops.curvature_bound(z_new, b_new, z, b, self.curvatures, self.v)
