"""(w, b) to convergence with the matrix fixed: elastic-net logistic regression.

Accelerated steps go first; where they are slow, Newton steps on the support of w take over, with a
factored Hessian. At fixed reference weights this solves the whole problem, which is then convex.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from optirank.solver import constants as c
from optirank.solver.blocks import (
    CentredMatrix,
    ProblemMatrices,
    accelerated_steps,
    curvature_scale,
)
from optirank.solver.problem import Problem, Solution
from optirank.solver.terms import ElasticNet, LogisticLoss, spread

_ROWS = 512  # rows whose scaled copy is held at a time: a few megabytes at 1000 genes


@dataclass
class Weights:
    """A solution in (w, b) for a fixed matrix."""

    w: NDArray
    b: float
    L: float
    n_iter: int
    converged: bool


def solve_at(
    problem: Problem,
    gamma: NDArray,
    *,
    exact: bool = True,
    matrices: ProblemMatrices | None = None,
    **options: Any,
) -> Solution:
    """Optimise (w, b) to convergence at ``gamma``; the options are those of ``fit_weights``.

    ``exact`` ends small problems with Newton steps in float64, down to roundoff.
    """
    matrix = (ProblemMatrices(problem) if matrices is None else matrices).ranks(gamma)
    loss, (l1, l2) = LogisticLoss(problem.y, problem.v), (problem.l1, problem.l2)
    found = fit_weights(matrix, loss, l1, l2, **options)
    w = found.w
    if exact and 0 < min(len(problem.y), np.count_nonzero(w)) <= c.SMALL:
        columns = problem.orders.ranks(
            gamma / problem.n_reference,
            problem.ties,
            np.float64,
            genes=np.flatnonzero(w),
        ).values
        w = finish_exactly(columns, problem.y, problem.v, w, found.b, l1, l2)
    return solution_at(problem, w, gamma, found.n_iter, found.converged)


def solution_at(
    problem: Problem, w: NDArray, gamma: NDArray, n_iter: int, converged: bool
) -> Solution:
    """The solution with these weights: best intercept and objective from float64 scores."""
    z = problem.scores(w, 0.0, gamma)
    b = LogisticLoss(problem.y, problem.v).best_intercept(z, 0.0)
    objective = problem.loss(z + b) + problem.penalty.value(w)
    return Solution(w, float(b), gamma, objective, n_iter, converged)


def fit_weights(
    matrix: CentredMatrix,
    loss: LogisticLoss,
    l1: float,
    l2: float,
    *,
    w: NDArray | None = None,
    b: float = 0.0,
    L: float | None = None,
    tol: float = 1e-5,
    max_iter: int = 10_000,
) -> Weights:
    """Minimise ``loss(M w + b) + l1 |w|_1 + l2 |w|^2`` from a start near or far.

    Converged means that the proximal gradient is below ``tol`` times the gradient at w = 0, or that
    Newton's method no longer lowers the objective.
    """
    penalty = ElasticNet(l1, l2)
    w = np.zeros(len(matrix.mean)) if w is None else w
    L = curvature_scale(matrix, loss.v) if L is None else L
    nothing = np.zeros(len(loss.y))
    loss.differentiate(nothing, loss.best_intercept(nothing, 0.0))
    scale = float(np.abs(matrix.transpose_dot(loss.slopes)).max())
    tol = max(tol * scale, c.SMALLEST_RESIDUAL)

    n_steps = min(c.FIRST_STEPS, max_iter)
    done = accelerated_steps(matrix, loss, w, b, penalty, L, n_steps, tol=tol)
    n_iter = done.n_steps
    converged = done.residual <= tol
    while not converged and n_iter < max_iter:
        support = np.flatnonzero(done.x)
        stalled = False
        if len(support) > 0 and min(len(loss.y), len(support)) <= c.NEWTON_SIZE:
            found, done.b, objective, decrease = newton_steps(
                matrix.columns(support),
                loss,
                done.x[support],
                done.b,
                penalty,
                c.NEWTON_STEPS,
            )
            done.x = spread(found, support, len(matrix.mean))
            n_iter += c.NEWTON_STEPS
            stalled = decrease <= c.STALLED * objective
        n_steps = min(
            c.MORE_STEPS if stalled else c.FIRST_STEPS, max(1, max_iter - n_iter)
        )
        before = done.x
        done = accelerated_steps(
            matrix, loss, done.x, done.b, penalty, done.L, n_steps, tol=tol
        )
        n_iter += done.n_steps
        same_support = np.array_equal(before != 0, done.x != 0)
        converged = done.residual <= tol or (stalled and same_support)
    return Weights(
        done.x, loss.best_intercept(done.z, done.b), done.L, n_iter, converged
    )


def finish_exactly(
    columns: NDArray, y: NDArray, v: NDArray, w: NDArray, b: float, l1: float, l2: float
) -> NDArray:
    """Newton steps in float64 on the support of w, down to roundoff.

    ``columns`` are those of the support, not centred. The last digits of w no longer show in the
    objective, which is flat there, but in its gradient, which judges the last steps.
    """
    penalty, loss = ElasticNet(l1, l2), LogisticLoss(y, v, np.float64)
    support = np.flatnonzero(w)
    columns = np.array(columns, dtype=np.float64, order="C")
    columns -= v @ columns
    found, b, *_ = newton_steps(columns, loss, w[support], b, penalty, 20, tol=1e-15)
    sign = np.sign(found)

    def gradient_at(found: NDArray) -> NDArray:
        z = columns @ found
        loss.differentiate(z, loss.best_intercept(z, b))
        return loss.slopes @ columns + penalty.gradient(found, sign)

    gradient = gradient_at(found)
    for _ in range(4):  # Newton's method gains half the digits that are left each time
        new = found - RidgeHessian(columns, loss.curvatures, l2).solve(gradient)
        if l1 > 0 and (new * sign < 0).any():
            break
        new_gradient = gradient_at(new)
        if np.abs(new_gradient).max() >= np.abs(gradient).max():
            break
        found, gradient = new, new_gradient
    return spread(found, support, len(w))


class RidgeHessian:
    """``H = M^T D M + 2 l2 I`` with D the curvatures and the intercept eliminated.

    Eliminating the intercept centres the columns of M under the weights D. With more columns than
    rows the system is solved in the space of the rows.
    """

    def __init__(self, values: NDArray, curvatures: NDArray, l2: float) -> None:
        n, m = values.shape
        total = curvatures.sum()
        self._values = values
        self._roots = np.sqrt(curvatures)
        self._mean = (curvatures.astype(values.dtype) @ values) / max(total, 1e-30)
        self._ridge = 2.0 * l2
        self._by_rows = m > n
        if self._by_rows:
            scaled = self.scaled(slice(None))
            system = (scaled @ scaled.T).astype(np.float64)
        else:
            system = np.zeros((m, m))
            for begin in range(0, n, _ROWS):
                scaled = self.scaled(slice(begin, begin + _ROWS))
                system += scaled.T @ scaled
        diagonal = np.einsum("ii->i", system)
        lost = (
            1e-9 if values.dtype == np.float32 else 1e-14
        )  # by sums in this precision
        self._ridge += lost * diagonal.max()  # above 0 also where l2 is 0
        diagonal += self._ridge
        if values.dtype == np.float32 and self._ridge > c.SINGLE * diagonal.max():
            system = system.astype(np.float32)  # well enough conditioned; twice as fast
        self._factor = linalg.cho_factor(
            system, lower=True, overwrite_a=True, check_finite=False
        )

    def scaled(self, rows: slice) -> NDArray:
        """``D^(1/2) (M - 1 mean^T)`` for some rows."""
        roots = self._roots[rows, None].astype(self._values.dtype)
        return (self._values[rows] - self._mean) * roots

    def transpose_scaled_dot(self, right: NDArray) -> NDArray:
        """``(D^(1/2) (M - 1 mean^T))^T right``."""
        out = np.zeros((self._values.shape[1], right.shape[1]))
        for begin in range(0, len(right), _ROWS):
            rows = slice(begin, begin + _ROWS)
            out += self.scaled(rows).T @ right[rows]
        return out

    def solve(self, right: NDArray) -> NDArray:
        """``H^-1 right`` for a vector or the columns of a matrix."""
        if not self._by_rows:
            return self._solve_factored(right)
        scaled = self.scaled(slice(None))
        return (right - scaled.T @ self._solve_factored(scaled @ right)) / self._ridge

    def _solve_factored(self, right: NDArray) -> NDArray:
        right = right.astype(self._factor[0].dtype, copy=False)
        return linalg.cho_solve(self._factor, right, check_finite=False).astype(
            np.float64
        )


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
    """Damped Newton steps on (w, b), no coefficient passing zero when l1 > 0.

    Stops when a step lowers the objective by less than ``tol`` of it, or so little that there is no
    hope of going below ``target``. Returns w, b, the objective and the last decrease of it.
    """
    sign = np.sign(w)
    dtype = values.dtype

    def evaluate(w: NDArray, b: float) -> tuple[float, float]:
        z = values @ w.astype(dtype)
        b = loss.best_intercept(z, b)
        return loss.evaluate(z, b) + penalty.value(w), b

    objective, b = evaluate(w, b)
    decrease = np.inf
    for _ in range(n_steps):
        gradient = (loss.slopes @ values).astype(np.float64) + penalty.gradient(w, sign)
        direction = RidgeHessian(values, loss.curvatures, penalty.l2).solve(gradient)
        for halving in range(6):
            new = w - 0.4**halving * direction
            if penalty.l1 > 0:
                new[new * sign < 0] = 0.0
            new_objective, new_b = evaluate(new, b)
            if new_objective < objective:
                break
        else:
            decrease = 0.0
            objective, b = evaluate(w, b)
            break
        decrease = objective - new_objective
        w, b, objective = new, new_b, new_objective
        if decrease <= tol * objective or objective - 1.5 * decrease > target:
            break
    return w, b, objective, decrease


def steps_with_hessian(
    hessian: RidgeHessian,
    values: NDArray,
    loss: LogisticLoss,
    w: NDArray,
    b: float,
    l2: float,
    n_steps: int,
    target: float | None = None,
) -> tuple[NDArray, float, float]:
    """Steps on (w, b) at l1 = 0 along the Newton direction of a nearby Hessian.

    The length of a step is Newton's along its direction, with the curvature of the loss where w
    stands. With a ``target``, they end when the objective is below it, or so far above it that
    twice the decrease in sight does not reach it. Returns w, b and the objective; the loss is left
    differentiated there.
    """
    z = values @ w.astype(values.dtype)
    b = loss.best_intercept(z, b)
    objective = loss.evaluate(z, b) + l2 * (w @ w)
    for _ in range(n_steps):
        if target is not None and objective < target:
            break
        gradient = (loss.slopes @ values).astype(np.float64) + 2.0 * l2 * w
        direction = hessian.solve(gradient)
        change = values @ direction.astype(values.dtype)
        curvatures = loss.curvatures
        mean = (curvatures @ change) / max(
            curvatures.sum(), 1e-30
        )  # the intercept follows
        slope = gradient @ direction
        length = slope / (
            curvatures @ (change - mean) ** 2 + 2.0 * l2 * (direction @ direction)
        )
        if target is not None and objective - length * slope >= target:
            break  # a quadratic would fall by half of this
        new = w - length * direction
        z_new = z - values.dtype.type(length) * change
        b_new = loss.best_intercept(z_new, b - length * mean)
        new_objective = loss.evaluate(z_new, b_new) + l2 * (new @ new)
        if not new_objective < objective:
            loss.differentiate(z, b)
            break
        w, b, z, objective = new, b_new, z_new, new_objective
    return w, b, objective
