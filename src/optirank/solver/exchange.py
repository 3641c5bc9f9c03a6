"""Exchanges of reference genes at an integral gamma.

In batches, judged by the gradient and a short refit; then pair by pair, ranked by a second-order
model of the objective in which (w, b) respond to the exchange.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from optirank._compiled import solver_loops
from optirank.ranks.definition import check_ties
from optirank.solver.hessian import RidgeHessian, newton_steps
from optirank.solver.matrices import CentredDense
from optirank.solver.steps import ElasticNet, accelerated_steps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.alternation import Alternation, State

_SMALLEST_GAIN = 1e-6  # of the objective
_BATCH_STEPS = 15
_MODEL_SIZE = 1500  # largest number of unknowns in the model
_MODEL_ENTRIES = 2e7  # largest matrix that trials go over: beyond, they take longer than the rest
_NEWTON_SIZE = 100  # up to here, with l1 = 0, an exchange is judged by Newton steps
_NEWTON_SIZE_FEW = 300  # the same where one gene is much of the set
_FEW = 20
_NEAR_ACTIVE = 0.8  # of l1: genes that may get a weight after an exchange


def exchange_batches(alternation: Alternation, state: State, n_tries: int) -> State:
    """Swap batches of genes by the gradient of gamma, halving the batch when a refit says no."""
    s = alternation.problem.n_reference
    batch = max(1, min(s, alternation.problem.n_genes - s) // 4)
    gradient = None
    for _ in range(n_tries):
        if gradient is None:
            gradient = _gradient_gamma(alternation, state)
        inside, outside = alternation.feasible.exchangeable(state.gamma, gradient, batch)
        size = min(len(inside), len(outside))
        inside, outside = inside[:size], outside[:size]
        better = gradient[outside] < gradient[inside]
        if not better.any():
            break
        gamma = state.gamma.copy()
        gamma[inside[better]] = 0.0
        gamma[outside[better]] = 1.0
        new = alternation.steps_on_w(replace(state, gamma=gamma), _BATCH_STEPS)
        if new.objective < state.objective * (1.0 - _SMALLEST_GAIN):
            state, gradient = new, None
        elif batch == 1:
            break
        else:
            batch //= 2
    return state


def exchange_pairs(
    alternation: Alternation, state: State, *, n_models: int, n_candidates: int, n_failures: int
) -> State:
    """Swap the pairs that a second-order model ranks best, as long as the objective falls.

    Each model serves until ``n_failures`` pairs in a row were refused; then a new one is made, if
    any was accepted, up to ``n_models``.
    """
    for _ in range(n_models):
        new = _exchange_by_one_model(alternation, state, n_candidates, n_failures)
        if new is None:
            break
        state = new
    return state


def _exchange_by_one_model(
    alternation: Alternation, state: State, n_candidates: int, n_failures: int
) -> State | None:
    problem, loss = alternation.problem, alternation.loss
    orders = problem.orders
    tie, _ = check_ties(problem.ties)
    s, d = problem.n_reference, problem.n_genes
    state = alternation.steps_on_w(state, _BATCH_STEPS)
    matrix = alternation.matrices.ranks(state.gamma)
    columns = np.arange(d)
    if problem.l1 > 0:
        near = np.abs(matrix.transpose_dot(loss.slopes)) > _NEAR_ACTIVE * problem.l1
        columns = np.flatnonzero((state.w != 0) | near)
    active = np.flatnonzero(state.w[columns] != 0)
    if not 0 < min(len(active), orders.n_samples) <= _MODEL_SIZE:
        return None
    if len(columns) * orders.n_samples > _MODEL_ENTRIES:
        return None
    ranks = matrix.columns(columns)
    if d <= _NEWTON_SIZE and problem.l1 == 0:
        w, b, objective, _ = newton_steps(ranks, loss, state.w, state.b, 0.0, problem.l2, 10)
        state = replace(state, w=w, b=b, objective=objective)

    slopes, curvatures = loss.slopes.copy(), loss.curvatures.copy()
    coranks = alternation.matrices.coranks(state.w)
    gradient = coranks.transpose_dot(slopes)
    inside, outside = alternation.feasible.exchangeable(state.gamma, gradient, n_candidates)
    chosen = np.concatenate([inside, outside])
    v_chosen = coranks.columns(chosen)
    groups, groups_chosen = orders.groups_of(columns), orders.groups_of(chosen)
    spare = np.empty_like(ranks) if len(columns) < d else coranks.columns(columns)
    gains, responses = _second_order_model(
        ranks, groups, active, groups_chosen, v_chosen, slopes, curvatures,
        gradient[chosen], state.w[columns], problem, tie, len(inside),
    )  # fmt: skip

    w, b, objective = state.w[columns], state.b, state.objective
    gamma = state.gamma.copy()
    used: set[int] = set()
    failures = accepted = 0
    proximal = ElasticNet(problem.l1, problem.l2)
    for pair in np.argsort(gains, axis=None, kind="stable"):
        i, k = divmod(int(pair), gains.shape[1])
        if failures >= n_failures or gains[i, k] > 0.003 * objective:
            break
        goes, comes = int(inside[i]), int(outside[k])
        if goes in used or comes in used:
            continue
        group_in, group_out = groups_chosen[:, len(inside) + k], groups_chosen[:, i]
        solver_loops.exchange_in_ranks(groups, group_in, group_out, tie, 1.0 / s, ranks, spare)
        guess = w.copy()
        guess[active] -= responses[:, len(inside) + k] - responses[:, i]
        if problem.l1 > 0:
            guess[guess * w < 0] = 0.0
        if problem.l1 == 0 and d <= (_NEWTON_SIZE_FEW if s <= _FEW else _NEWTON_SIZE):
            new_w, new_b, new_objective, _ = newton_steps(
                spare, loss, guess, b, problem.l1, problem.l2, 4, target=objective
            )
        else:
            done = accelerated_steps(CentredDense(spare), loss, guess, b, proximal, state.L_w, 12)
            new_w, new_b = done.x, loss.best_intercept(done.z, done.b)
            new_objective = loss.evaluate(done.z, new_b) + problem.penalty(new_w)
        if new_objective < objective * (1.0 - _SMALLEST_GAIN):
            gamma[goes], gamma[comes] = 0.0, 1.0
            used |= {goes, comes}
            ranks, spare = spare, ranks
            w, b, objective = new_w, new_b, new_objective
            failures = 0
            accepted += 1
        else:
            failures += 1
    if not accepted:
        return None
    full_w = np.zeros(d)
    full_w[columns] = w
    return replace(state, w=full_w, b=b, gamma=gamma, objective=objective)


def _second_order_model(
    ranks: NDArray,
    groups: NDArray,
    active: NDArray,
    candidate_groups: NDArray,
    v: NDArray,
    slopes: NDArray,
    curvatures: NDArray,
    gradient: NDArray,
    w: NDArray,
    problem,
    tie: float,
    n_inside: int,
) -> tuple[NDArray, NDArray]:
    """Predicted change of the objective for each (inside, outside) pair, and the response of w.

    With u the change of the scores at fixed w, H the Hessian in w and q the change of w's gradient
    (through the scores' curvature and through the ranks themselves), the change is
    ``g.u + u'Du/2 - q'H^-1 q/2``: a quadratic form in the difference of two candidates.
    """
    if len(active) < ranks.shape[1]:
        ranks = np.ascontiguousarray(ranks[:, active])
        groups = np.ascontiguousarray(groups[:, active])
    hessian = RidgeHessian(ranks, curvatures, problem.l2)
    roots = np.sqrt(curvatures)[:, None]
    mean = curvatures @ v / max(curvatures.sum(), 1e-30)
    v_scaled = ((v - mean) * roots).astype(np.float32)
    turn = np.zeros((v.shape[1], ranks.shape[1]), np.float32)
    solver_loops.slopes_of_comparisons(groups, slopes, candidate_groups, tie, turn)
    q = turn.T.astype(np.float64) / problem.n_reference
    q += hessian.transpose_scaled_dot(v_scaled)
    w = w[active]
    rest = (slopes @ ranks) + 2.0 * problem.l2 * w + problem.l1 * np.sign(w)
    responses = hessian.solve(q)
    linear = gradient - responses.T @ rest
    form = (v_scaled.T @ v_scaled).astype(np.float64) - q.T @ responses
    own = np.diag(form)
    gains = (
        linear[None, n_inside:]
        - linear[:n_inside, None]
        + 0.5 * (own[None, n_inside:] + own[:n_inside, None])
        - form[:n_inside, n_inside:]
    )
    return gains, responses


def _gradient_gamma(alternation: Alternation, state: State) -> NDArray:
    coranks = alternation.matrices.coranks(state.w)
    z = coranks.dot(state.gamma)
    alternation.loss.differentiate(z, alternation.loss.best_intercept(z, state.b))
    return coranks.transpose_dot(alternation.loss.slopes)
