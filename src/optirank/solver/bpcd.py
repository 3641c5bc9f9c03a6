"""The paper's algorithm: block proximal coordinate descent along a path of push
penalties.

For a growing sequence of ``lambda_p``, each solution being the start of the next solve,
minimise

    sum_i v_i logloss(y_i, z_i) + l1 |w|_1 + l2 |w|_2^2 + lambda_p sum_j gamma_j (1 -
    gamma_j)

over w, b and gamma in the capped simplex, by one proximal gradient step in w, one
gradient step in b, one projected gradient step in gamma, over and over. The concave
push penalty is replaced by its tangent, ``-lambda_p u . gamma`` up to a constant with
``u = 2 gamma - 1``, which is renewed after each step in gamma. ``lambda_p`` grows until
gamma is integral.

It is slow, and kept as the reference; ``solve_alternating`` solves the same problem far
faster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optirank.ranks.scoring import check_ties
from optirank.solver.convex import solve_at
from optirank.solver.problem import Problem, Solution, sigmoid

ETA = 1.5  # factor between the inverse step sizes tried
L_MIN = 1e-10  # smallest inverse step size
MAX_TRIALS = 60  # of an inverse step size: the last is 1.5^58 (2e10) times the first
# Relative roundoff of a loss: the bound a step must meet is widened by this much
SLACK = 1e-14
ROUNDOFF = 1e-10  # squared changes, and sum |gamma - round(gamma)|, below this are none
SCALE_ITERATION = 2  # of the first solve, whose objective scales the tolerances
MAX_RELAXATIONS = 10_000


def solve_bpcd(
    problem: Problem,
    *,
    tol: float = 1e-5,
    max_iter: int = 10_000,
    path_step: float = 100.0,
    integral: bool = True,
    refit: bool = True,
) -> Solution:
    """Solve the problem as the paper does, then (w, b) to convergence at its set.

    The options are those of :func:`~optirank.solver.solve.solve_alternating`. A
    solve ends after ``max_iter`` iterations, or when one lowers the objective by less
    than ``tol * D``, D being the objective after the second iteration of the first
    solve. ``lambda_p`` grows by as much as raises the objective by
    ``path_step * tol * D``; with ``integral=False`` it stays 0. The paper does not
    ``refit``.

    ``Solution.converged`` is False when a solve ran into ``max_iter`` or the path into
    10000 relaxations; gamma then holds the largest entries of where it got to. ``path``
    has for each lambda_p: ``lambda_p``, ``iterations``, ``objective`` (loss plus
    elastic net), ``rho`` (the push penalty of gamma) and ``n_fractional``.
    """
    descent = Descent(problem)
    path: list[dict] = []
    lambda_p = 0.0
    scale = None
    converged = True
    while True:
        trace, solved = descent.solve(lambda_p, tol, max_iter, scale)
        if scale is None:
            scale = trace[min(SCALE_ITERATION, len(trace)) - 1]
        converged &= solved
        path.append(descent.summary(len(trace)))
        if not integral or descent.has_ended:
            break
        if len(path) > MAX_RELAXATIONS:
            converged = False
            break
        lambda_p += path_step * tol * scale / path[-1]["rho"]

    n_iter = sum(entry["iterations"] for entry in path)
    gamma = descent.feasible.vertex(descent.gamma) if integral else descent.gamma
    if not (integral and refit):
        objective = problem.objective(descent.w, descent.b, gamma)
        return Solution(descent.w, descent.b, gamma, objective, n_iter, converged, path)
    refitted = solve_at(problem, gamma, w=descent.w, tol=tol, max_iter=max_iter)
    return replace(
        refitted,
        n_iter=refitted.n_iter + n_iter,
        converged=refitted.converged and converged,
        path=path,
    )


def push(gamma: NDArray) -> float:
    """``rho(gamma) = sum gamma (1 - gamma)``."""
    return float(gamma @ (1.0 - gamma))


def fractional(gamma: NDArray) -> NDArray:
    """How far each entry is from ``round(gamma) = 1[gamma > 1/2]``."""
    return np.abs(gamma - (gamma > 0.5))


class Descent:
    """A point (w, b, gamma) with its scores z and their loss, and the steps that
    move it.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.feasible = problem.feasible
        self.w = np.zeros(problem.n_genes)
        self.b = 0.0
        self.gamma = self.feasible.centre(problem.n_genes)
        self.z = np.zeros(problem.orders.n_samples)
        self.loss = problem.loss(self.z)
        self.lambda_p = 0.0
        self.L: dict[str, float] = {}  # each block's inverse step size, once it has one

    @property
    def has_ended(self) -> bool:
        """Whether gamma is a set, up to roundoff, or its fractional entries are equal.

        These are then the same in every sample's eyes (copies of one gene, or any genes
        when w is zero): no push can part them, and which of them are taken makes no
        difference.
        """
        left = self.gamma[fractional(self.gamma) > ROUNDOFF]
        is_integral = bool(fractional(self.gamma).sum() < ROUNDOFF)
        return is_integral or (left.size > 1 and bool(np.ptp(left) < ROUNDOFF))

    def summary(self, iterations: int) -> dict:
        """The path's entry for a solve that has just ended."""
        return {
            "lambda_p": self.lambda_p,
            "iterations": iterations,
            "objective": self.loss + self.problem.penalty.value(self.w),
            "rho": push(self.gamma),
            "n_fractional": int((fractional(self.gamma) > ROUNDOFF).sum()),
        }

    def objective(self) -> float:
        """Loss, penalty of w and push penalty."""
        return self._objective_at(self.loss, self.w, self.gamma)

    def _objective_at(self, loss: float, w: NDArray, gamma: NDArray) -> float:
        return loss + self.problem.penalty.value(w) + self.lambda_p * push(gamma)

    def solve(
        self, lambda_p: float, tol: float, max_iter: int, scale: float | None = None
    ) -> tuple[list[float], bool]:
        """Iterate to convergence; the objective after each iteration, and whether it
        converged.

        Without a scale for the tolerance, the objective after the second iteration
        becomes it, and the iterations before are not judged by their decrease.
        """
        self.lambda_p = lambda_p
        self.L = {}
        before = self.objective()
        trace: list[float] = []
        for iteration in range(1, max_iter + 1):
            w = self.w
            b = self.b
            gamma = self.gamma
            self._step_w()
            self._step_b()
            self._step_gamma()
            trace.append(self.objective())
            if scale is None and iteration == SCALE_ITERATION:
                scale = trace[-1]
            if scale is not None and before - trace[-1] < tol * scale:
                return trace, True
            changes = (
                _squared(self.w - w),
                (self.b - b) ** 2,
                _squared(self.gamma - gamma),
            )
            if max(changes) < ROUNDOFF:
                return trace, True
            before = trace[-1]
        return trace, False

    def _step_w(self) -> None:
        """A proximal gradient step; the scores are linear in w by the ranks R."""
        problem = self.problem
        s = problem.n_reference
        R = problem.orders.ranks(self.gamma, problem.ties, np.float64)
        gradient = R.transpose_dot(problem.slopes(self.z)) / s
        if "w" not in self.L:
            self._start("w", R.dot(gradient) / s, gradient)
        self._descend(
            "w", gradient, problem.penalty.prox, lambda w: R.dot(w) / s + self.b
        )

    def _step_b(self) -> None:
        """A gradient step."""
        gradient = float(self.problem.slopes(self.z).sum())
        if "b" not in self.L:
            self._start("b", gradient, gradient)
        self._descend("b", gradient, lambda b, _: b, lambda b: self.z + (b - self.b))

    def _step_gamma(self) -> None:
        """A projected gradient step, then a new tangent of the push penalty (u in the
        paper).

        The scores are linear in gamma by the co-ranks V. What the sum constraint lets
        through of the gradient is the gradient minus its mean.
        """
        problem = self.problem
        s = problem.n_reference
        V = problem.orders.coranks(self.w, problem.ties, np.float64)
        gradient = V.transpose_dot(problem.slopes(self.z)) / s
        tangent = -self.lambda_p * (2.0 * self.gamma - 1.0)
        if "gamma" not in self.L:
            direction = self.feasible.free_part(gradient + tangent)
            self._start("gamma", V.dot(direction) / s, direction)
        _, offset = check_ties(problem.ties)
        constant = self.b - offset * self.w.sum() / s
        prox = self.feasible.prox
        self._descend(
            "gamma", gradient, prox, lambda new: V.dot(new) / s + constant, tangent
        )

    def _start(
        self, block: str, z: NDArray | float, direction: NDArray | float
    ) -> None:
        """L from the curvature of the loss along a direction that changes the scores by
        z.

        ``L = (direction^T Hessian direction) / |direction|^2``. A zero direction says
        nothing: the block then waits for its first non-zero gradient.
        """
        squared = _squared(direction)
        if squared > 0:
            p = sigmoid(self.z)
            curvature = float(np.sum(self.problem.v * p * (1.0 - p) * z**2))
            self.L[block] = max(L_MIN, curvature / squared)

    def _descend(
        self, block: str, gradient, prox: Callable, scores: Callable, tangent: Any = 0.0
    ) -> None:
        """Move a block by the longest proximal step tried that meets its quadratic
        bound.

        The bound is ``loss(new) <= loss(old) + <gradient, change> + L/2 |change|^2``,
        with the loss alone: the tangent of the push penalty would add the same to both
        sides. Near convergence the sides differ by less than the roundoff of the loss,
        so that is allowed for; but a step that would raise the objective is never
        taken. When no trial passes, the block stays where it is.
        """
        if block not in self.L:
            return
        old = getattr(self, block)
        before = self.objective()
        for k in range(-1, MAX_TRIALS - 1):
            L = max(L_MIN, self.L[block] * ETA**k)
            new = prox(old - (gradient + tangent) / L, 1.0 / L)
            change = new - old
            z = scores(new)
            loss = self.problem.loss(z)
            bound = self.loss + np.dot(gradient, change) + 0.5 * L * _squared(change)
            w = new if block == "w" else self.w
            gamma = new if block == "gamma" else self.gamma
            not_higher = self._objective_at(loss, w, gamma) <= before
            if loss <= bound + SLACK * self.loss and not_higher:
                self.z = z
                self.loss = loss
                self.L[block] = L
                setattr(self, block, new)
                return


def _squared(x: NDArray | float) -> float:
    """``|x|^2``."""
    return float(np.dot(x, x))
