"""Rounds of the joint problem that alternate between (W, b) and (gamma, b)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from optirank.solver.joint_fit import steps_on_weights
from optirank.solver.joint_matrices import GammaMap, JointMatrices
from optirank.solver.joint_steps import GroupLasso, joint_steps
from optirank.solver.softmax import SoftmaxLoss
from optirank.solver.stages import never

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.joint_problem import JointProblem

_W_STEPS = 4  # per round: products on the working set are cheap
_GAMMA_STEPS = 2  # per round: each takes two passes over the orders


@dataclass(frozen=True)
class JointState:
    """A point on the way: b belongs to centred maps, L to the blocks' step sizes."""

    W: NDArray
    b: NDArray
    gamma: NDArray
    objective: float = np.inf  # loss plus penalties
    L_W: float | None = None
    L_gamma: float | None = None
    n_iter: int = 0
    z: NDArray | None = None  # centred scores without b, where they are known


class JointAlternation:
    """Takes rounds on one problem, with its matrices and buffers."""

    def __init__(self, problem: JointProblem, matrices: JointMatrices | None = None) -> None:
        self.problem = problem
        self.matrices, self.loss = _matrices_and_loss(problem, matrices)
        self.penalty = GroupLasso(problem.l1, problem.l2)
        self.feasible = problem.feasible

    def round(self, state: JointState, lambda_p: float = 0.0) -> JointState:
        """A few steps on (W, b), then on (gamma, b) with the push penalty's tangent."""
        state = self.w_steps(state, _W_STEPS)
        done = joint_steps(
            GammaMap(self.matrices, state.W),
            self.loss,
            state.gamma,
            state.b,
            self.feasible,
            state.L_gamma,
            _GAMMA_STEPS,
            z=state.z,
            linear=lambda_p * (1.0 - 2.0 * state.gamma) if lambda_p else None,
        )
        return replace(
            state,
            gamma=done.x,
            b=done.b,
            z=done.z,
            L_gamma=done.L,
            objective=self.loss.value(done.z, done.b) + self.problem.penalty(state.W),
            n_iter=state.n_iter + done.n_steps,
        )

    def rounds(
        self, state: JointState, n_rounds: int, tol: float, stop: Callable[[], bool] = never
    ) -> tuple[JointState, bool]:
        """Rounds until one lowers the objective by less than ``tol`` of it; whether one did.

        At least one is taken, and none after ``stop`` says so.
        """
        for k in range(n_rounds):
            if k and stop():
                break
            new = self.round(state)
            if state.objective - new.objective < tol * new.objective:
                return min(state, new, key=lambda one: one.objective), True
            state = new
        return state, False

    def w_steps(self, state: JointState, n_steps: int) -> JointState:
        """Steps on (W, b) alone."""
        done = steps_on_weights(
            self.matrices.ranks(state.gamma),
            self.loss,
            self.penalty,
            state.W,
            state.b,
            state.L_W,
            n_steps,
            z=state.z,
        )
        return replace(
            state,
            W=done.W,
            b=done.b,
            z=done.z,
            L_W=done.L,
            objective=self.loss.value(done.z, done.b) + self.problem.penalty(done.W),
            n_iter=state.n_iter + done.n_iter,
        )

    def gradient_gamma(self, state: JointState) -> NDArray:
        """Gradient of the loss in gamma; leaves the loss differentiated at the state."""
        z = self.matrices.ranks(state.gamma).dot(state.W) if state.z is None else state.z
        self.loss.differentiate(z, state.b)
        return GammaMap(self.matrices, state.W).transpose_dot(self.loss.slopes)


def _matrices_and_loss(problem: JointProblem, matrices: JointMatrices | None):
    """What the steps are taken with, where the samples lie; known matrices are used again."""
    if hasattr(problem.orders, "whole"):
        from optirank.solver.device.joint import DeviceJointMatrices, DeviceSoftmaxLoss

        return matrices or DeviceJointMatrices(problem), DeviceSoftmaxLoss(problem)
    if matrices is None:
        matrices = JointMatrices(problem.orders, problem.v, problem.n_reference, problem.ties)
    return matrices, SoftmaxLoss(problem.codes, problem.n_classes, problem.v)
