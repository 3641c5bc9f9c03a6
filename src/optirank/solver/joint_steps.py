"""Accelerated proximal steps on one block of the joint problem, (W, b) or (gamma, b).

With the other block fixed the scores are linear, ``Z = M x + b``, and the problem is convex.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from optirank._compiled import joint_loops

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.feasible import CappedSimplex
    from optirank.solver.softmax import SoftmaxLoss

_GROW = 1.6  # a step refused: shorten it by this
_RELAX = 0.9  # a step taken: try a longer one next
_LARGEST_L = 1e12
_FLOOR = 1e-3  # least curvature in the intercepts
_REFRESH = 8  # steps that use one Hessian of the intercepts
_NOISE = 2e-13  # of the largest score squared: rises below may be rounding errors of the scores


class LinearMap(Protocol):
    """From a block to the scores."""

    def dot(self, x: NDArray) -> NDArray:
        """``M x``, n x K."""
        ...

    def transpose_dot(self, G: NDArray) -> NDArray:
        """``M^T G``, of the shape of a block."""
        ...


@dataclass(frozen=True)
class GroupLasso:
    """The step of W under ``l1 sum_j |W_j| + l2 |W|^2``."""

    l1: float
    l2: float

    def __call__(self, x: NDArray, gradient: NDArray, L: float, out: NDArray) -> float:
        """Write the new point into ``out``; return its squared distance."""
        return joint_loops.group_step(x, gradient, L, self.l1, self.l2, out)


@dataclass
class JointBlock:
    """Where a block's steps ended."""

    x: NDArray
    b: NDArray
    z: NDArray  # M x
    L: float  # to start the next steps of this block from
    residual: float  # largest entry of the last proximal gradient, b's included
    n_steps: int


def joint_steps(
    matrix: LinearMap,
    loss: SoftmaxLoss,
    x: NDArray,
    b: NDArray,
    proximal: GroupLasso | CappedSimplex,
    L: float | None,
    n_steps: int,
    *,
    z: NDArray | None = None,
    linear: NDArray | None = None,
    tol: float = 0.0,
) -> JointBlock:
    """Take up to ``n_steps`` accelerated steps; stop when the proximal gradient is below ``tol``.

    ``z`` is ``M x`` where it is known. ``linear`` is added to the gradient of the block (the
    tangent of the push penalty). Without L the steps start from the curvature along the first
    gradient.
    """
    z = matrix.dot(x) if z is None else z
    ahead, b_ahead, z_ahead = x, b, z  # the extrapolated point the gradient is taken at
    momentum_t = 1.0
    residual = np.inf
    taken = 0
    while taken < n_steps:
        loss.differentiate(z_ahead, b_ahead)
        if taken % _REFRESH == 0:
            hessian = loss.intercept_hessian(_FLOOR)
        taken += 1
        gradient = matrix.transpose_dot(loss.slopes)
        if linear is not None:
            gradient += linear
        slope_b = loss.intercept_slopes()
        if L is None:
            L = _curvature_along(matrix, loss, gradient)
        step_b = np.linalg.solve(hessian, slope_b)
        short = 1.0  # what the step of the intercepts is divided by
        while True:
            new = np.empty_like(x)  # not one array for all tries: maps are cached by their point
            squared = proximal(ahead, gradient, L, new)
            b_new = b_ahead - step_b / short
            z_new = matrix.dot(new)
            rise = loss.rise(z_new, b_new, z_ahead, b_ahead)
            allowed = 0.5 * (L * squared + float(step_b @ slope_b) / short)
            if rise <= allowed or squared == 0.0 or L > _LARGEST_L:
                break
            if rise <= _NOISE * max(1.0, float(np.abs(z_new).max()) ** 2):
                break
            L *= _GROW
            short *= _GROW
        # restart when the step turned against the momentum
        turned = np.vdot(ahead - new, new - x) + (b_ahead - b_new) @ (b_new - b) > 0
        next_t = 1.0 if turned else 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum_t**2))
        momentum = 0.0 if turned else (momentum_t - 1.0) / next_t
        if tol:
            residual = max(L * float(np.abs(new - ahead).max()), float(np.abs(slope_b).max()))
        ahead = new + momentum * (new - x)
        b_ahead = b_new + momentum * (b_new - b)
        z_ahead = z_new + np.float32(momentum) * (z_new - z)
        x, b, z, momentum_t = new, b_new, z_new, next_t
        if tol and residual <= tol:
            break
        L *= _RELAX
    return JointBlock(x, b, z, L, residual, taken)


def _curvature_along(matrix: LinearMap, loss: SoftmaxLoss, gradient: NDArray) -> float:
    """Curvature of the loss along the gradient, less its mean (what a constrained sum allows)."""
    direction = gradient - gradient.mean(axis=0)
    squared = float(np.vdot(direction, direction))
    if squared == 0.0:
        return 1.0
    return max(loss.curvature_along(matrix.dot(direction)) / squared, 1e-8)
