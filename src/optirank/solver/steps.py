"""Accelerated proximal steps on one block, (w, b) or (gamma, b), the other being fixed.

With the other block fixed the scores are linear, ``z = M x + b``, and the problem is convex. Steps
are Nesterov's with restarts; the step size adapts to the curvature where the loss stands, which for
well-separated samples is far below its bound of 1/4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from optirank._compiled import solver_loops

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.losses import LogisticLoss
    from optirank.solver.matrices import CentredMatrix

_GROW = 1.6  # a step refused: shorten it by this
_RELAX = 0.9  # a step taken: try a longer one next
_LARGEST_L = 1e12
_SLACK = 1e-12  # what roundoff of float32 scores adds to the rise of the loss


class Proximal(Protocol):
    """The step of a block: :class:`ElasticNet` for w, a feasible set for gamma."""

    def __call__(self, x: NDArray, gradient: NDArray, L: float, out: NDArray) -> float:
        """Write the point a step of length 1/L leads to into ``out``; return ``|out - x|^2``."""
        ...

    def parameters(self) -> tuple[float, float, float, NDArray]:
        """What the compiled loop is told: l1, l2, the sum s (0 for w), the candidates (if any)."""
        ...


@dataclass(frozen=True)
class ElasticNet:
    """The step of w under ``l1 |w|_1 + l2 |w|^2``."""

    l1: float
    l2: float

    def __call__(self, x: NDArray, gradient: NDArray, L: float, out: NDArray) -> float:
        """See :class:`Proximal`."""
        return solver_loops.elastic_net_step(x, gradient, L, self.l1, self.l2, out)

    def parameters(self) -> tuple[float, float, float, NDArray]:
        """See :class:`Proximal`."""
        return float(self.l1), float(self.l2), 0.0, np.empty(0, np.int64)


@dataclass
class BlockResult:
    """Where a block's steps ended."""

    x: NDArray
    b: float
    z: NDArray  # M x
    L: float  # to start the next steps of this block from
    residual: float  # largest entry of the last proximal gradient
    n_steps: int


def accelerated_steps(
    matrix: CentredMatrix,
    loss: LogisticLoss,
    x: NDArray,
    b: float,
    proximal: Proximal,
    L: float,
    n_steps: int,
    *,
    linear: NDArray | None = None,
    tol: float = 0.0,
    z: NDArray | None = None,
) -> BlockResult:
    """Take up to ``n_steps`` accelerated steps; stop when the proximal gradient is below ``tol``.

    ``linear`` is added to the gradient of the block (the tangent of the push penalty). ``z`` are
    the scores ``M x`` where they are known, and b is then their best intercept. Dense matrices have
    a compiled loop, which reads the matrix once per step instead of twice.
    """
    stored = matrix.stored
    if stored is None:
        return plain_steps(matrix, loss, x, b, proximal, L, n_steps, linear=linear, tol=tol)
    x, b, L = np.asarray(x, dtype=np.float64), float(b), float(L)
    linear = np.empty(0) if linear is None else linear
    z = np.empty(0, np.float32) if z is None else z
    found = solver_loops.dense_steps(
        *stored, loss.y, loss.v, x, b, z, L, *proximal.parameters(), linear, n_steps, tol,
        (_GROW, _RELAX, _LARGEST_L, _SLACK),
    )  # fmt: skip
    return BlockResult(*found)


def plain_steps(
    matrix: CentredMatrix,
    loss: LogisticLoss,
    x: NDArray,
    b: float,
    proximal: Proximal,
    L: float,
    n_steps: int,
    *,
    linear: NDArray | None = None,
    tol: float = 0.0,
) -> BlockResult:
    """As :func:`accelerated_steps`, through the methods of matrix, loss and proximal map alone."""
    z = matrix.dot(x)
    b = loss.best_intercept(z, b)
    ahead, b_ahead, z_ahead = x, b, z  # the extrapolated point the gradient is taken at
    momentum_t = 1.0
    residual = np.inf
    taken = 0
    while taken < n_steps:
        taken += 1
        loss.differentiate(z_ahead, b_ahead)
        gradient = matrix.transpose_dot(loss.slopes)
        if linear is not None:
            gradient += linear
        slope_b = float(loss.slopes.sum(dtype=np.float64))
        L_b = max(float(loss.curvatures.sum()), 1e-3)
        new = np.empty_like(x)
        while True:
            squared = proximal(ahead, gradient, L, new)
            b_new = b_ahead - slope_b / L_b
            z_new = matrix.dot(new)
            rise = loss.rise_bound(z_new, b_new, z_ahead, b_ahead)
            allowed = 0.5 * (L * squared + L_b * (b_new - b_ahead) ** 2)
            if rise <= allowed + _SLACK or L > _LARGEST_L:
                break
            L *= _GROW
            L_b *= _GROW
        # restart when the step turned against the momentum
        turned = (ahead - new) @ (new - x) + (b_ahead - b_new) * (b_new - b) > 0
        next_t = 1.0 if turned else 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum_t**2))
        momentum = 0.0 if turned else (momentum_t - 1.0) / next_t
        residual = L * float(np.abs(new - ahead).max()) if tol else np.inf
        ahead = new + momentum * (new - x)
        b_ahead = b_new + momentum * (b_new - b)
        z_ahead = z_new + np.float32(momentum) * (z_new - z)
        x, b, z, momentum_t = new, b_new, z_new, next_t
        if residual <= tol:
            break
        L *= _RELAX
    return BlockResult(x, b, z, L, residual, taken)


def curvature_scale(matrix: CentredMatrix, v: NDArray) -> float:
    """About the largest eigenvalue of ``M^T diag(v/4) M``, by a few power steps."""
    x = 1.0 + np.arange(matrix.n_columns) % 3
    norm = 0.0
    for _ in range(3):
        x = matrix.transpose_dot((v * matrix.dot(x)).astype(np.float32))
        norm = float(np.linalg.norm(x))
        if norm == 0.0:
            break
        x /= norm
    return max(0.25 * norm, 1e-8)
