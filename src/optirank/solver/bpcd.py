"""The paper's algorithm: block proximal coordinate descent along a path of push penalties.

For a growing sequence of ``lambda_p``, each solution being the start of the next solve, minimise

    sum_i v_i logloss(y_i, z_i) + l1 |w|_1 + l2 |w|_2^2 + lambda_p sum_j gamma_j (1 - gamma_j)

over w, b and gamma in the capped simplex, by one proximal gradient step in w, one gradient step
in b, one projected gradient step in gamma, over and over. The concave push penalty is replaced
by its tangent, ``-lambda_p u . gamma`` up to a constant with ``u = 2 gamma - 1``, which is renewed
after each step in gamma. ``lambda_p`` grows until gamma is integral.

It is slow, and kept as the reference; ``alternating`` solves the same problem far faster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optirank.solver.capped_simplex import project_capped_simplex
from optirank.solver.problem import Problem, Solution, sigmoid
from optirank.solver.proximal import prox_elastic_net

if TYPE_CHECKING:
    from numpy.typing import NDArray

ETA = 1.5  # factor between the inverse step sizes tried
L_MIN = 1e-10  # smallest inverse step size
MAX_TRIALS = 60  # of an inverse step size: the last one is 1.5^58 (2e10) times the first
SLACK = 1e-14  # relative roundoff of a loss: the bound a step must meet is widened by this much
CHANGE_TOL = 1e-10  # squared changes below this end a solve
INTEGRAL_TOL = 1e-10  # sum |gamma - round(gamma)| below this ends the path
SCALE_ITERATION = 4  # the iteration of the first solve whose objective scales the tolerances
MAX_RELAXATIONS = 10_000


def solve_bpcd(
    problem: Problem,
    *,
    tol: float = 1e-5,
    max_iter: int = 10_000,
    path_step: float = 100,
    integral: bool = True,
    callback: Callable[[dict], None] | None = None,
) -> Solution:
    """Solve the problem as the paper does.

    Parameters
    ----------
    problem : Problem
    tol : float
        A solve ends when an iteration lowers the objective by less than ``tol * D``, D being the
        objective after the fourth iteration of the first solve.
    max_iter : int
        Iterations a solve, at most.
    path_step : float
        ``lambda_p`` grows by as much as raises the objective by ``path_step * tol * D``.
    integral : bool
        Whether to follow the path until gamma is a set; else stop at ``lambda_p = 0``.
    callback : callable, optional
        Called after each solve with its entry of ``Solution.path``.

    Returns
    -------
    Solution
        With, unless ``integral=False``, gamma of exactly ``n_reference`` ones, the rest zeros.
        ``converged`` is False when a solve ran into ``max_iter`` or the path into 10000
        relaxations; gamma then holds the largest entries of where it got to. ``path`` has for
        each lambda_p: ``lambda_p``, ``iterations``, ``objective`` (loss plus elastic net),
        ``rho`` (the push penalty of gamma) and ``n_fractional``.
    """
    descent = _Descent(problem)
    path: list[dict] = []
    lambda_p, scale, converged = 0.0, None, True
    while True:
        trace, solved = descent.solve(lambda_p, tol, max_iter, scale)
        if scale is None:
            scale = trace[min(SCALE_ITERATION, len(trace)) - 1]
        converged &= solved
        path.append(descent.summary(lambda_p, len(trace)))
        if callback is not None:
            callback(path[-1])
        if not integral or descent.is_integral:
            break
        if not descent.w.any():  # the scores do not depend on gamma: no push will ever move it
            break
        if len(path) > MAX_RELAXATIONS:
            converged = False
            break
        lambda_p += path_step * tol * scale / path[-1]["rho"]

    gamma = largest(descent.gamma, problem.n_reference) if integral else descent.gamma
    return Solution(
        w=descent.w,
        b=descent.b,
        gamma=gamma,
        objective=problem.objective(descent.w, descent.b, gamma),
        n_iter=sum(entry["iterations"] for entry in path),
        converged=converged,
        path=path,
    )


def largest(gamma: NDArray, s: int) -> NDArray:
    """Ones at the s largest entries (the first of equal ones), zeros elsewhere."""
    out = np.zeros_like(gamma)
    out[np.argsort(-gamma, kind="stable")[:s]] = 1.0
    return out


def push(gamma: NDArray) -> float:
    """``rho(gamma) = sum gamma (1 - gamma)``."""
    return float(gamma @ (1.0 - gamma))


@dataclass
class _Step:
    """What a block's step starts from, and how far its inverse step size has got."""

    L: float | None = None

    def start(self, curvature: float, squared_norm: float) -> None:
        """Set L to the curvature along the gradient, unless known or the gradient is zero."""
        if self.L is None and squared_norm > 0:
            self.L = max(L_MIN, curvature / squared_norm)


class _Descent:
    """The point (w, b, gamma) with its scores and objective, and the steps that move it."""

    def __init__(self, problem: Problem) -> None:
        d, s = problem.n_genes, problem.n_reference
        self.problem = problem
        self.w = np.zeros(d)
        self.b = 0.0
        self.gamma = np.full(d, s / d)
        self.z = np.zeros(problem.orders.n_samples)
        self.loss = problem.loss(self.z)
        self.lambda_p = 0.0

    @property
    def is_integral(self) -> bool:
        rounded = self.gamma > 0.5
        return bool(np.abs(self.gamma - rounded).sum() < INTEGRAL_TOL)

    def summary(self, lambda_p: float, iterations: int) -> dict:
        """The path's entry for a solve that has just ended."""
        return {
            "lambda_p": lambda_p,
            "iterations": iterations,
            "objective": self.loss + self.problem.penalty(self.w),
            "rho": push(self.gamma),
            "n_fractional": int((np.abs(self.gamma - (self.gamma > 0.5)) > INTEGRAL_TOL).sum()),
        }

    def objective(self, loss: float, w: NDArray, gamma: NDArray) -> float:
        """Loss, elastic net and push penalty."""
        return loss + self.problem.penalty(w) + self.lambda_p * push(gamma)

    def solve(
        self, lambda_p: float, tol: float, max_iter: int, scale: float | None
    ) -> tuple[list[float], bool]:
        """Iterate to convergence; the objective after each iteration, and whether it converged.

        Without a scale, the objective after the fourth iteration is the scale, and the first
        three are not judged by their decrease.
        """
        self.lambda_p = lambda_p
        steps = _Step(), _Step(), _Step()
        before = self.objective(self.loss, self.w, self.gamma)
        trace: list[float] = []
        for iteration in range(1, max_iter + 1):
            w, b, gamma = self.w, self.b, self.gamma
            self._step_w(steps[0])
            self._step_b(steps[1])
            self._step_gamma(steps[2])
            trace.append(self.objective(self.loss, self.w, self.gamma))
            if scale is None and iteration == SCALE_ITERATION:
                scale = trace[-1]
            if scale is not None and before - trace[-1] < tol * scale:
                return trace, True
            changes = _squared(self.w - w), (self.b - b) ** 2, _squared(self.gamma - gamma)
            if max(changes) < CHANGE_TOL:
                return trace, True
            before = trace[-1]
        return trace, False

    def _step_w(self, step: _Step) -> None:
        problem, s = self.problem, self.problem.n_reference
        R = problem.orders.ranks(self.gamma, problem.ties, np.float64)
        gradient = R.transpose_dot(problem.slopes(self.z)) / s
        if step.L is None:
            step.start(self._curvature(R.dot(gradient) / s), _squared(gradient))
        self._descend(
            step,
            "w",
            gradient,
            gradient,
            lambda x, L: prox_elastic_net(x, 1.0 / L, problem.l1, problem.l2),
            lambda w: R.dot(w) / s + self.b,
        )

    def _step_b(self, step: _Step) -> None:
        gradient = float(self.problem.slopes(self.z).sum())
        if step.L is None:
            step.start(self._curvature(gradient), gradient**2)
        self._descend(
            step,
            "b",
            gradient,
            gradient,
            lambda x, _: x,
            lambda b: self.z + (b - self.b),
        )

    def _step_gamma(self, step: _Step) -> None:
        problem, s = self.problem, self.problem.n_reference
        V = problem.orders.coranks(self.w, problem.ties, np.float64)
        loss_gradient = V.transpose_dot(problem.slopes(self.z)) / s
        gradient = loss_gradient - self.lambda_p * (2.0 * self.gamma - 1.0)
        if step.L is None:
            feasible = gradient - gradient.mean()
            step.start(self._curvature(V.dot(feasible) / s), _squared(feasible))
        constant = self.b - problem.offset * self.w.sum() / s
        self._descend(
            step,
            "gamma",
            gradient,
            loss_gradient,
            lambda x, _: project_capped_simplex(x, s),
            lambda gamma: V.dot(gamma) / s + constant,
        )

    def _curvature(self, z: NDArray | float) -> float:
        """The second derivative of the loss along a change ``z`` of the scores."""
        p = sigmoid(self.z)
        return float(np.sum(self.problem.v * p * (1.0 - p) * z**2))

    def _descend(self, step, name, gradient, loss_gradient, prox, scores) -> None:
        """Move one block by the longest proximal step tried that its quadratic bound allows.

        The bound is ``loss(old) + <gradient, change> + L/2 |change|^2``; the tangent of the push
        penalty is linear and would add the same to both sides. Near convergence both sides agree
        to the last digits, so the bound is widened by the roundoff of the loss, while a step
        that would raise the objective is never taken: when no trial passes, the block stays.
        """
        if step.L is None:  # a zero gradient since the solve began
            return
        old = getattr(self, name)
        before = self.objective(self.loss, self.w, self.gamma)
        for k in range(-1, MAX_TRIALS - 1):
            L = max(L_MIN, step.L * ETA**k)
            new = prox(old - gradient / L, L)
            change = new - old
            z = scores(new)
            loss = self.problem.loss(z)
            bound = self.loss + np.dot(loss_gradient, change) + 0.5 * L * _squared(change)
            if loss <= bound + SLACK * self.loss:
                setattr(self, name, new)
                if self.objective(loss, self.w, self.gamma) <= before:
                    self.z, self.loss, step.L = z, loss, L
                    return
                setattr(self, name, old)


def _squared(x: NDArray | float) -> float:
    """``|x|^2``."""
    return float(np.dot(x, x))
