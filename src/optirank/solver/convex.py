"""(w, b) to convergence with the matrix fixed: elastic-net logistic regression.

Accelerated steps go first; where they are slow, Newton steps on the support of w take
over, with a factored Hessian. At fixed reference weights this solves the whole problem,
which is then convex.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from optirank._util.numbers import product
from optirank.solver import constants as c
from optirank.solver.blocks import (
    BlockResult,
    CentredMatrix,
    ElasticNet,
    LogisticLoss,
    ProblemMatrices,
    accelerated_steps,
    spread,
)
from optirank.solver.problem import PenaltyPair, Problem, Solution

_ROWS = 512  # rows whose scaled copy is held at a time: a few megabytes at 1000 genes


def solve_at(
    problem: Problem,
    gamma: NDArray,
    *,
    exact: bool = True,
    matrices: ProblemMatrices | None = None,
    **options: Any,
) -> Solution:
    """Optimise (w, b) to convergence at ``gamma``; the options are those of
    ``fit_weights``.

    ``exact`` ends small problems with Newton steps in float64, down to roundoff.
    """
    matrices = ProblemMatrices(problem) if matrices is None else matrices
    penalty = problem.penalty
    loss = LogisticLoss(problem.y, problem.v)
    fitted = fit_weights(matrices.ranks(gamma), loss, penalty, **options)
    w = fitted.x
    if exact and 0 < min(len(problem.y), np.count_nonzero(w)) <= c.SMALL:
        columns = problem.orders.ranks(
            gamma / problem.n_reference,
            problem.ties,
            np.float64,
            genes=np.flatnonzero(w),
        ).values
        w = finish_exactly(columns, problem.y, problem.v, w, fitted.b, penalty)
    return solution_at(problem, w, gamma, fitted.n_steps, fitted.converged)


def solution_at(
    problem: Problem, w: NDArray, gamma: NDArray, n_iter: int, converged: bool
) -> Solution:
    """The solution with these weights: best intercept and objective from
    float64 scores.
    """
    z = problem.scores(w, 0.0, gamma)
    b = LogisticLoss(problem.y, problem.v).best_intercept(z, 0.0)
    objective = problem.loss(z + b) + problem.penalty.value(w)
    return Solution(w, float(b), gamma, objective, n_iter, converged)


def fit_weights(
    matrix: CentredMatrix,
    loss: LogisticLoss,
    penalty: ElasticNet,
    *,
    w: NDArray | None = None,
    b: float = 0.0,
    L: float | None = None,
    tol: float = 1e-5,
    max_iter: int = 10_000,
) -> BlockResult:
    """Minimise ``loss(M w + b) + penalty(w)`` from a start near or far.

    Converged means that the proximal gradient is below ``tol`` times the gradient at w
    = 0, or that Newton's method no longer lowers the objective.
    """
    w = np.zeros(len(matrix.mean)) if w is None else w
    nothing = np.zeros(len(loss.y))
    loss.differentiate(nothing, loss.best_intercept(nothing, 0.0))
    at_zero = float(np.abs(matrix.transpose_dot(loss.slopes)).max())
    tol = max(tol * at_zero, c.SMALLEST_RESIDUAL)

    n_steps = min(c.FIRST_STEPS, max_iter)
    done = accelerated_steps(matrix, loss, w, b, penalty, L, n_steps, tol=tol)
    n_iter = done.n_steps
    converged = done.residual <= tol
    while not converged and n_iter < max_iter:
        w = done.x
        b = done.b
        stalled = False
        support = np.flatnonzero(w)
        n_newton = min(c.NEWTON_STEPS, max_iter - n_iter)
        if 0 < min(len(loss.y), len(support)) <= c.NEWTON_SIZE:
            columns = matrix.columns(support)
            part, b, objective, decrease = newton_steps(
                columns, loss, w[support], b, penalty, n_newton
            )
            w = spread(part, support, len(matrix.mean))
            n_iter += n_newton
            stalled = decrease <= c.STALLED * objective
        n_steps = c.MORE_STEPS if stalled else c.FIRST_STEPS
        n_steps = min(n_steps, max(1, max_iter - n_iter))
        done = accelerated_steps(matrix, loss, w, b, penalty, done.L, n_steps, tol=tol)
        n_iter += done.n_steps
        same_support = np.array_equal(w != 0, done.x != 0)
        converged = done.residual <= tol or (stalled and same_support)
    b = loss.best_intercept(done.z, done.b)
    return replace(done, b=b, n_steps=n_iter, converged=converged)


def finish_exactly(
    columns: NDArray, y: NDArray, v: NDArray, w: NDArray, b: float, penalty: ElasticNet
) -> NDArray:
    """Newton steps in float64 on the support of w, down to roundoff.

    ``columns`` are those of the support, not centred. The last digits of w no longer
    show in the objective, which is flat there, but in its gradient, which judges the
    last steps. So near the minimum one Hessian serves them all.
    """
    loss = LogisticLoss(y, v, np.float64)
    support = np.flatnonzero(w)
    columns = np.array(columns, dtype=np.float64, order="C")
    columns -= v @ columns
    weights, b, *_ = newton_steps(
        columns, loss, w[support], b, penalty, 20, tol=c.SMALLEST_GAIN
    )
    sign = np.sign(weights)

    def gradient_at(weights: NDArray) -> NDArray:
        z = columns @ weights
        loss.differentiate(z, loss.best_intercept(z, b))
        return loss.slopes @ columns + penalty.gradient(weights, sign)

    gradient = gradient_at(weights)
    hessian = RidgeHessian(columns, loss.curvatures, penalty.curvature)
    for _ in range(c.LAST_STEPS):
        new = weights - hessian.solve(gradient)
        if not penalty.smooth and (new * sign < 0).any():
            break
        new_gradient = gradient_at(new)
        if np.abs(new_gradient).max() >= np.abs(gradient).max():
            break
        weights = new
        gradient = new_gradient
    return spread(weights, support, len(w))


class RidgeHessian:
    """``H = M^T D M + ridge I`` with D the curvatures and the intercept eliminated.

    Eliminating the intercept centres the columns of M under the weights D. With more
    columns than rows the system is solved in the space of the rows. ``factored`` is the
    Hessian of a nearby point, whose factor stands in for this one's.
    """

    def __init__(
        self,
        values: NDArray,
        curvatures: NDArray,
        ridge: float,
        factored: RidgeHessian | None = None,
    ) -> None:
        n_rows, n_columns = values.shape
        self._values = values
        self._roots = np.sqrt(curvatures)
        self._mean = product(curvatures.astype(values.dtype), values)
        self._mean /= max(curvatures.sum(), 1e-30)
        self._by_rows = n_columns > n_rows
        if factored is None:
            self._ridge, self._factor = self._factored(ridge)
        else:
            self._ridge, self._factor = factored._ridge, factored._factor

    def _factored(self, ridge: float) -> tuple[float, tuple]:
        """The ridge, raised until the system is positive definite, and the system's
        factor.

        Sums of float32 products can leave a system of dependent columns indefinite.
        """
        system = self._system()
        single = self._values.dtype == np.float32
        diagonal = np.einsum("ii->i", system)
        largest = diagonal.max()
        lost = 1e-9 if single else 1e-14  # by sums in this precision
        ridge += lost * largest  # above 0 also where the penalty has none
        diagonal += ridge
        if single and ridge > c.SINGLE * (largest + ridge):
            system = system.astype(np.float32)  # well enough conditioned; twice as fast
            diagonal = np.einsum("ii->i", system)
        for _ in range(6):
            try:
                return ridge, linalg.cho_factor(system, lower=True, check_finite=False)
            except linalg.LinAlgError:
                diagonal += 9.0 * ridge
                ridge *= 10.0
        return ridge, linalg.cho_factor(system, lower=True, check_finite=False)

    def _system(self) -> NDArray:
        """The matrix to factor, in float64, without the ridge."""
        if self._by_rows:
            scaled = self.scaled(slice(None))
            return product(scaled, scaled.T).astype(np.float64)
        n_rows, n_columns = self._values.shape
        system = np.zeros((n_columns, n_columns))
        for begin in range(0, n_rows, _ROWS):
            scaled = self.scaled(slice(begin, begin + _ROWS))
            system += product(scaled.T, scaled)
        return system

    def scaled(self, rows: slice) -> NDArray:
        """``D^(1/2) (M - 1 mean^T)`` for some rows."""
        roots = self._roots[rows, None].astype(self._values.dtype)
        return (self._values[rows] - self._mean) * roots

    def transpose_scaled_dot(self, right: NDArray) -> NDArray:
        """``(D^(1/2) (M - 1 mean^T))^T right``."""
        out = np.zeros((self._values.shape[1], right.shape[1]))
        for begin in range(0, len(right), _ROWS):
            rows = slice(begin, begin + _ROWS)
            out += product(self.scaled(rows).T, right[rows])
        return out

    def solve(self, right: NDArray) -> NDArray:
        """``H^-1 right`` for a vector or the columns of a matrix."""
        if not self._by_rows:
            return self._solve_factored(right)
        scaled = self.scaled(slice(None))
        return (right - scaled.T @ self._solve_factored(scaled @ right)) / self._ridge

    def _solve_factored(self, right: NDArray) -> NDArray:
        factor = self._factor[0]
        right = right.astype(factor.dtype, copy=False)
        if right.ndim > 1:
            solved = linalg.cho_solve(self._factor, right, check_finite=False)
        else:  # LAPACK's own solver takes three to six times as long for one vector
            (solve_triangle,) = linalg.get_blas_funcs(["trsv"], [factor])
            half = solve_triangle(factor, right, lower=1)
            solved = solve_triangle(factor, half, lower=1, trans=1)
        return solved.astype(np.float64)


def newton_steps(
    values: NDArray,
    loss: LogisticLoss,
    w: NDArray,
    b: float,
    penalty: ElasticNet,
    n_steps: int,
    *,
    target: float = np.inf,
    tol: float = c.STALLED,
) -> tuple[NDArray, float, float, float]:
    """Damped Newton steps on (w, b); no weight leaves its sign unless the penalty is
    smooth.

    Returns w, b, the objective and the decrease of it by the last step.
    Stops when a step lowers the objective by less than ``tol`` of it, or so little that
    there is no hope of going below ``target``. The loss is left differentiated at the
    result.
    """
    sign = np.sign(w)
    dtype = values.dtype

    def evaluate(w: NDArray, b: float) -> tuple[float, float]:
        z = product(values, w.astype(dtype))
        b = loss.best_intercept(z, b)
        return loss.evaluate(z, b) + penalty.value(w), b

    objective, b = evaluate(w, b)
    decrease = np.inf
    for _ in range(n_steps):
        gradient = product(loss.slopes, values).astype(np.float64)
        gradient += penalty.gradient(w, sign)
        hessian = RidgeHessian(values, loss.curvatures, penalty.curvature)
        direction = hessian.solve(gradient)
        for halving in range(6):
            new = penalty.keep_signs(w - 0.4**halving * direction, sign)
            new_objective, new_b = evaluate(new, b)
            if new_objective < objective:
                break
        else:
            decrease = 0.0
            objective, b = evaluate(w, b)
            break
        decrease = objective - new_objective
        w = new
        b = new_b
        objective = new_objective
        if decrease <= tol * objective or objective - 1.5 * decrease > target:
            break
    return w, b, objective, decrease


def steps_with_hessian(
    hessian: RidgeHessian,
    values: NDArray,
    loss: LogisticLoss,
    w: NDArray,
    b: float,
    penalty: ElasticNet,
    n_steps: int,
    target: float | None = None,
) -> tuple[NDArray, float, float]:
    """Steps on (w, b) under a smooth penalty along the Newton direction of a nearby
    Hessian; w, b and the objective.

    The length of a step is Newton's along its direction, with the curvature of the loss
    where w stands. With a ``target``, they end when the objective is below it, or so
    far above it that twice the decrease in sight does not reach it. The loss is left
    differentiated at the result.
    """
    z = product(values, w.astype(values.dtype))
    b = loss.best_intercept(z, b)
    objective = loss.evaluate(z, b) + penalty.value(w)
    for _ in range(n_steps):
        if target is not None and objective < target:
            break
        gradient = product(loss.slopes, values).astype(np.float64)
        gradient += penalty.gradient(w, np.sign(w))
        direction = hessian.solve(gradient)
        change = product(values, direction.astype(values.dtype))
        curvatures = loss.curvatures
        mean = (curvatures @ change) / max(curvatures.sum(), 1e-30)  # b follows
        slope = gradient @ direction
        bend = curvatures @ (change - mean) ** 2
        length = slope / (bend + penalty.curvature * (direction @ direction))
        if target is not None and objective - length * slope >= target:
            break  # a quadratic would fall by half of this
        new = w - length * direction
        z_new = z - values.dtype.type(length) * change
        b_new = loss.best_intercept(z_new, b - length * mean)
        new_objective = loss.evaluate(z_new, b_new) + penalty.value(new)
        if not new_objective < objective:
            loss.differentiate(z, b)
            break
        w = new
        b = b_new
        z = z_new
        objective = new_objective
    return w, b, objective


def walk(
    penalties: Iterable[PenaltyPair],
) -> list[tuple[PenaltyPair, PenaltyPair | None]]:
    """Each setting with the one it starts from (None: from nothing), in an order
    that works.
    """
    rows: dict[float, list[float]] = {}
    for l1, l2 in penalties:
        rows.setdefault(l2, []).append(l1)
    order: list[tuple[PenaltyPair, PenaltyPair | None]] = []
    before: PenaltyPair | None = None
    for l2 in sorted(rows, reverse=True):
        l1s = sorted(set(rows[l2]))
        order.append(((l1s[0], l2), before))
        before = (l1s[0], l2)
        order += [((after, l2), (l1, l2)) for l1, after in pairwise(l1s)]
    return order


def solve_grid_at(
    problem: Problem, gamma: NDArray, penalties: Iterable[PenaltyPair], **accuracy: Any
) -> dict[PenaltyPair, Solution]:
    """Solutions at many penalties for fixed reference weights (convex)."""
    matrix = ProblemMatrices(problem).ranks(gamma)
    loss = LogisticLoss(problem.y, problem.v)
    problems = {(l1, l2): replace(problem, l1=l1, l2=l2) for l1, l2 in penalties}
    weights = fit_weights_grid(
        matrix, loss, {pair: one.penalty for pair, one in problems.items()}, **accuracy
    )
    return {
        setting: solution_at(
            problems[setting], fitted.x, gamma, fitted.n_steps, fitted.converged
        )
        for setting, fitted in weights.items()
    }


def fit_weights_grid(
    matrix: CentredMatrix,
    loss: LogisticLoss,
    penalties: Mapping[PenaltyPair, ElasticNet],
    **accuracy: Any,
) -> dict[PenaltyPair, BlockResult]:
    """Logistic regression at many penalties on one matrix, each from its neighbour's
    solution.

    ``accuracy`` is ``tol`` and ``max_iter`` of ``fit_weights``.
    """
    fits: dict[PenaltyPair, BlockResult] = {}
    for setting, before in walk(penalties):
        start: dict[str, Any] = {}
        if before is not None:
            near = fits[before]
            start = {"w": near.x, "b": near.b, "L": near.L}
        fits[setting] = fit_weights(
            matrix, loss, penalties[setting], **start, **accuracy
        )
    return fits
