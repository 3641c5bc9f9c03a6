"""Exchanges of reference genes at an integral gamma.

In batches, judged by the gradient and a short refit; then pair by pair, ranked by a second-order
model of the objective in which (w, b) respond to the exchange.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optirank._compiled import solver_loops
from optirank.ranks.orders import take_columns
from optirank.ranks.relative import check_ties
from optirank.solver import constants as c
from optirank.solver.blocks import CentredDense, accelerated_steps
from optirank.solver.convex import RidgeHessian, newton_steps, steps_with_hessian
from optirank.solver.problem import Problem
from optirank.solver.terms import LogisticLoss, spread

if TYPE_CHECKING:
    from optirank.solver.alternating import Alternation, State


def exchange_batches(alternation: Alternation, state: State, n_tries: int) -> State:
    """Swap batches of genes by the gradient of gamma, halving the batch when a refit says no.

    If all tries are refused, ``state.batch`` keeps the size that comes next, so that another call
    goes on from there.
    """
    s = alternation.problem.n_reference
    batch = state.batch
    if batch is None:
        batch = max(1, min(s, alternation.problem.n_genes - s) // 4)
    gradient, changed = None, False
    for _ in range(n_tries):
        if batch == 0:
            break
        if gradient is None:
            gradient = _gradient_gamma(alternation, state)
        inside, outside = alternation.feasible.exchangeable(
            state.gamma, gradient, batch
        )
        size = min(len(inside), len(outside))
        inside, outside = inside[:size], outside[:size]
        better = gradient[outside] < gradient[inside]
        if not better.any():
            batch = 0
            break
        gamma = state.gamma.copy()
        gamma[inside[better]] = 0.0
        gamma[outside[better]] = 1.0
        new = alternation.steps_on_w(replace(state, gamma=gamma), c.REFIT_STEPS)
        if new.objective < state.objective * (1.0 - c.SMALLEST_GAIN):
            state, gradient, changed = new, None, True
        else:
            batch //= 2
    return replace(state, batch=None if changed else batch)


def exchange_pairs(
    alternation: Alternation, state: State, *, n_models: int, cheap: bool
) -> State:
    """Swap the pairs that a second-order model ranks best, as long as the objective falls.

    Each model serves until too many pairs in a row were refused; then a new one is made, if any was
    accepted, up to ``n_models``. ``cheap`` problems have more pairs tried.
    """
    for _ in range(n_models):
        new = _exchange_by_one_model(alternation, state, 2 if cheap else 1)
        if new is None:
            break
        state = new
    return state


def _exchange_by_one_model(
    alternation: Alternation, state: State, effort: int
) -> State | None:
    """Try pairs in the order of one model; None if there is none or no pair was accepted."""
    problem, loss, penalty = alternation.problem, alternation.loss, alternation.penalty
    orders, s, d = problem.orders, problem.n_reference, problem.n_genes
    l1, l2 = penalty.l1, penalty.l2
    tie, _ = check_ties(problem.ties)
    state = alternation.steps_on_w(state, c.REFIT_STEPS)
    matrix = alternation.matrices.ranks(state.gamma)
    columns = active = np.arange(d)
    if l1 > 0:
        near = np.abs(matrix.transpose_dot(loss.slopes)) > c.NEAR_ACTIVE * l1
        columns = np.flatnonzero((state.w != 0) | near)
        active = np.flatnonzero(state.w[columns])
    if not state.w.any() or min(len(active), orders.n_samples) > c.NEWTON_SIZE:
        return None
    if len(columns) * orders.n_samples > c.MODEL_ENTRIES:
        return None
    ranks = matrix.columns(columns)
    w, b, objective = state.w[columns], state.b, state.objective
    exact = l1 == 0 and d <= c.EXACT_TRIALS
    if exact:
        w, b, objective, _ = newton_steps(ranks, loss, w, b, penalty, 10)
    hessian = RidgeHessian(take_columns(ranks, active), loss.curvatures, l2)
    if l1 == 0 and not exact:  # the model wants w where its gradient is nearly zero
        w, b, objective = steps_with_hessian(hessian, ranks, loss, w, b, l2, 2)
    coranks = alternation.matrices.coranks(spread(w, columns, d))
    gradient = coranks.transpose_dot(loss.slopes)
    inside, outside = alternation.feasible.exchangeable(
        state.gamma, gradient, effort * c.PAIR_GENES
    )
    chosen = np.concatenate([inside, outside])
    groups, groups_chosen = orders.groups_of(columns), orders.groups_of(chosen)
    gains, responses = _second_order_model(
        hessian, ranks, groups, active, groups_chosen, coranks.columns(chosen), loss,
        gradient[chosen], w, problem, tie, len(inside),
    )  # fmt: skip

    gamma = state.gamma.copy()
    used: set[int] = set()
    failures = accepted = 0
    spare = np.empty_like(ranks) if len(columns) < d else coranks.columns(columns)
    uncentred = np.zeros(len(columns), np.float32)
    for pair in np.argsort(gains, axis=None, kind="stable"):
        i, k = divmod(int(pair), gains.shape[1])
        if failures >= effort * c.REFUSALS or gains[i, k] > c.HOPELESS * objective:
            break
        goes, comes = int(inside[i]), int(outside[k])
        if goes in used or comes in used:
            continue
        group_in, group_out = groups_chosen[:, len(inside) + k], groups_chosen[:, i]
        solver_loops.exchange_in_ranks(
            groups, group_in, group_out, tie, 1.0 / s, ranks, spare
        )
        guess = w.copy()
        guess[active] -= responses[:, len(inside) + k] - responses[:, i]
        target = objective * (1.0 - c.SMALLEST_GAIN)
        if exact:
            new_w, new_b, new_objective, _ = newton_steps(
                spare, loss, guess, b, penalty, c.TRIAL_NEWTON_STEPS, target=objective
            )
        elif l1 > 0:
            guess[guess * w < 0] = 0.0
            trial = CentredDense(spare, uncentred)
            n_steps = effort * c.REFIT_STEPS
            done = accelerated_steps(trial, loss, guess, b, penalty, state.L_w, n_steps)
            new_w, new_b = done.x, loss.best_intercept(done.z, done.b)
            new_objective = loss.value(done.z, new_b) + penalty.value(new_w)
        else:
            new_w, new_b, new_objective = steps_with_hessian(
                hessian, spare, loss, guess, b, l2, c.TRIAL_NEWTON_STEPS, target
            )
        if new_objective < target:
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
    return replace(
        state, w=spread(w, columns, d), b=b, gamma=gamma, objective=objective
    )


def _second_order_model(
    hessian: RidgeHessian,
    ranks: NDArray,
    groups: NDArray,
    active: NDArray,
    candidate_groups: NDArray,
    v: NDArray,
    loss: LogisticLoss,
    gradient: NDArray,
    w: NDArray,
    problem: Problem,
    tie: float,
    n_inside: int,
) -> tuple[NDArray, NDArray]:
    """Predicted change of the objective for each (inside, outside) pair, and the response of w.

    With u the change of the scores at fixed w, H the Hessian in w and q the change of w's gradient
    (through the scores' curvature and through the ranks themselves), the change is
    ``g.u + u'Du/2 - q'H^-1 q/2``: a quadratic form in the difference of two candidates.
    """
    slopes, curvatures = loss.slopes, loss.curvatures
    ranks, groups = take_columns(ranks, active), take_columns(groups, active)
    roots = np.sqrt(curvatures)[:, None]
    mean = curvatures @ v / max(curvatures.sum(), 1e-30)
    v_scaled = ((v - mean) * roots).astype(np.float32)
    turn = np.zeros((v.shape[1], ranks.shape[1]), np.float32)
    solver_loops.slopes_of_comparisons(groups, slopes, candidate_groups, tie, turn)
    q = turn.T.astype(np.float64) / problem.n_reference
    q += hessian.transpose_scaled_dot(v_scaled)
    w = w[active]
    rest = (slopes @ ranks) + problem.penalty.gradient(w, np.sign(w))
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
