"""Accelerated proximal steps on one block, (w, b) or (gamma, b), the other being fixed.

With the other block fixed the scores are linear, ``z = M x + b``, and the problem is convex. Steps
are Nesterov's with restarts; the step size adapts to the curvature where the loss stands, which for
well-separated samples is far below its bound of 1/4. The loop is compiled, and reads the matrix
once per step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optirank._compiled import solver_loops
from optirank.solver.constants import GROW, INTERCEPT_CURVATURE, LARGEST_L, RELAX, SLACK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.feasible import CappedSimplex
    from optirank.solver.losses import ElasticNet, LogisticLoss
    from optirank.solver.matrices import CentredMatrix


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
    proximal: ElasticNet | CappedSimplex,
    L: float,
    n_steps: int,
    *,
    linear: NDArray | None = None,
    tol: float = 0.0,
    z: NDArray | None = None,
) -> BlockResult:
    """Take up to ``n_steps`` accelerated steps; stop when the proximal gradient is below ``tol``.

    ``proximal`` is the penalty of w or the feasible set of gamma. ``linear`` is added to the
    gradient of the block (the tangent of the push penalty). ``z`` are the scores ``M x`` where they
    are known, and b is then their best intercept.
    """
    linear = np.empty(0) if linear is None else linear
    z = np.empty(0, np.float32) if z is None else z
    found = solver_loops.proximal_steps(
        *matrix.stored, loss.y, loss.v, np.asarray(x, dtype=np.float64), float(b), z, float(L),
        *proximal.parameters(), linear, n_steps, tol,
        (GROW, RELAX, LARGEST_L, SLACK, INTERCEPT_CURVATURE),
    )  # fmt: skip
    return BlockResult(*found)


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
