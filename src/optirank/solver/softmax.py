"""The softmax loss over the scores of several classes, n x K."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optirank._compiled import joint_loops

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from optirank.solver.device.joint import DeviceSoftmaxLoss

_NEWTON_STEPS = 30
_SMALLEST_GRADIENT = 1e-12


class SoftmaxLoss:
    """``sum_i v_i (log sum_k exp(z_ik + b_k) - z_ic - b_c)``, with c the class of sample i.

    The derivatives in the scores are ``v_i (p_ik - 1[k = c])``, with p the softmax.
    """

    def __init__(self, codes: NDArray, n_classes: int, v: NDArray) -> None:
        self.codes = codes
        self.n_classes = n_classes
        self.v = v
        self.probabilities = np.empty((len(codes), n_classes), np.float32)
        self.slopes = np.empty((len(codes), n_classes), np.float32)

    def differentiate(self, z: NDArray, b: NDArray) -> None:
        """Write ``probabilities`` and ``slopes`` at scores z + b."""
        joint_loops.softmax_slopes(z, b, self.codes, self.v, self.probabilities, self.slopes)

    def value(self, z: NDArray, b: NDArray) -> float:
        """The loss at scores z + b."""
        return joint_loops.softmax_loss(z, b, self.codes, self.v)

    def rise(self, z_new: NDArray, b_new: NDArray, z: NDArray, b: NDArray) -> float:
        """The rise above the tangent at z + b, where the derivatives were taken last."""
        return joint_loops.softmax_rise(z_new, b_new, z, b, self.probabilities, self.v)

    def intercept_hessian(self, floor: float) -> NDArray:
        """Second derivatives in the intercepts, where the loss was differentiated last.

        ``diag(m) - P^T diag(v) P``, with m the expected weight of each class, is singular along the
        ones, where the loss is constant; ``1 1^T / K`` takes that direction, ``floor`` the rest.
        """
        p = self.probabilities
        weighted = p * self.v[:, None].astype(np.float32)
        hessian = 1.0 / self.n_classes - (weighted.T @ p).astype(np.float64)
        diagonal = weighted.sum(axis=0, dtype=np.float64) + floor
        hessian[np.diag_indices_from(hessian)] += diagonal
        return hessian

    def intercept_slopes(self) -> NDArray:
        """Derivatives in the intercepts, where the loss was differentiated last."""
        return self.slopes.sum(axis=0, dtype=np.float64)

    def curvature_along(self, u: NDArray) -> float:
        """``u' H u`` for a change u of the scores, H the second derivatives in them."""
        u = u.astype(np.float64)
        u -= (self.probabilities * u).sum(axis=1, keepdims=True)
        return float(self.v @ (self.probabilities * u * u).sum(axis=1))

    def quadratic_form(self, changes: Iterable[NDArray]) -> NDArray:
        """``u_k' H u_l`` for changes u of the scores."""
        p = self.probabilities
        roots = np.sqrt(p * self.v[:, None]).astype(np.float32)
        rows = [(roots * (u - (p * u).sum(axis=1, keepdims=True))).ravel() for u in changes]
        rows = np.array(rows, dtype=np.float32)
        return (rows @ rows.T).astype(np.float64)

    def mean_scores(self, z: NDArray) -> NDArray:
        """Weighted means of the scores of each class."""
        return self.v @ z

    def best_intercept(self, z: NDArray, b: NDArray, tol: float = 1e-9) -> NDArray:
        """The b with sum 0 that minimises the loss at scores z + b."""
        return minimise_intercepts(self, z, b, tol)


def minimise_intercepts(
    loss: SoftmaxLoss | DeviceSoftmaxLoss, z: NDArray, b: NDArray, tol: float
) -> NDArray:
    """The b with sum 0 that minimises a loss at scores z + b, by damped Newton steps."""
    value = loss.value(z, b)
    for _ in range(_NEWTON_STEPS):
        loss.differentiate(z, b)
        gradient = loss.intercept_slopes()
        if np.abs(gradient).max() < max(tol, _SMALLEST_GRADIENT):
            break
        hessian = loss.intercept_hessian(1e-12)
        step = np.linalg.solve(hessian, gradient)
        scale = min(1.0, 4.0 / max(np.abs(step).max(), 1e-30))
        while True:
            new = b - scale * step
            new_value = loss.value(z, new)
            if new_value <= value or scale < 1e-6:
                break
            scale *= 0.5
        if new_value > value:
            break
        b, value = new - new.mean(), new_value
    return b
