"""Exchanges of reference genes of the joint problem at an integral gamma.

In batches, by the gradient of gamma; then pair by pair, ranked by a second-order model of the loss
in the scores. Every exchange is judged by the objective after a short refit of (W, b).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from optirank.solver.stages import never

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.joint_alternation import JointAlternation, JointState

_SMALLEST_GAIN = 1e-6  # of the objective
_STEPS = 10  # on W after an exchange
_MORE_STEPS = 20  # the same where they are cheap
_CANDIDATES = 20  # inside, and as many outside
_ENTRIES = 3e7  # entries of rank matrices that one model may take
_MODELS = 4
_FAILURES = 4  # pairs refused in a row that end a model
_MORE_FAILURES = 12  # the same where fits are cheap


def exchange_joint_batches(
    alternation: JointAlternation,
    state: JointState,
    n_tries: int,
    stop: Callable[[], bool] = never,
) -> JointState:
    """Swap batches of genes by the gradient of gamma, halving the batch when a refit says no.

    No further one is tried once ``stop`` says so; the same holds of the pairs below.
    """
    problem, feasible = alternation.problem, alternation.feasible
    n_free = problem.n_genes if problem.candidates is None else int(problem.candidates.sum())
    batch = max(1, min(problem.n_reference, n_free - problem.n_reference) // 4)
    gradient = None
    for _ in range(n_tries):
        if stop():
            break
        if gradient is None:
            gradient = alternation.gradient_gamma(state)
        inside, outside = feasible.exchangeable(state.gamma, gradient, batch)
        size = min(len(inside), len(outside))
        inside, outside = inside[:size], outside[:size]
        better = gradient[outside] < gradient[inside]
        if not better.any():
            break
        new = _exchanged(alternation, state, inside[better], outside[better], _STEPS)
        if new.objective < state.objective * (1.0 - _SMALLEST_GAIN):
            state, gradient = new, None
        elif batch == 1:
            break
        else:
            batch //= 2
    return state


def exchange_joint_pairs(
    alternation: JointAlternation,
    state: JointState,
    *,
    thorough: bool,
    stop: Callable[[], bool] = never,
) -> JointState:
    """Swap the pairs that a second-order model ranks best, as long as the objective falls.

    The model of each pair takes one pass over the orders per candidate, so large problems, where
    few passes are affordable, are left as the batches left them.
    """
    problem = alternation.problem
    n_candidates = int(_ENTRIES / (2 * len(problem.codes) * problem.n_genes))
    if n_candidates < 4:
        return state
    for _ in range(_MODELS):
        if stop():
            break
        new = _exchange_by_one_model(
            alternation, state, min(n_candidates, _CANDIDATES), thorough=thorough, stop=stop
        )
        if new.objective >= state.objective:
            break
        state = new
    return state


def _exchange_by_one_model(
    alternation: JointAlternation,
    state: JointState,
    n_candidates: int,
    *,
    thorough: bool,
    stop: Callable[[], bool],
) -> JointState:
    n_steps, n_failures = (_MORE_STEPS, _MORE_FAILURES) if thorough else (_STEPS, _FAILURES)
    gradient = alternation.gradient_gamma(state)
    inside, outside = alternation.feasible.exchangeable(state.gamma, gradient, n_candidates)
    gains = _second_order_gains(alternation, state, gradient, inside, outside)
    used: set[int] = set()
    failures = 0
    for pair in np.argsort(gains, axis=None, kind="stable"):
        i, k = divmod(int(pair), gains.shape[1])
        goes, comes = int(inside[i]), int(outside[k])
        if failures >= n_failures or stop():
            break
        if goes in used or comes in used:
            continue
        new = _exchanged(alternation, state, np.array([goes]), np.array([comes]), n_steps)
        if new.objective < state.objective * (1.0 - _SMALLEST_GAIN):
            state, failures = new, 0
            used |= {goes, comes}
        else:
            failures += 1
    return state


def _second_order_gains(
    alternation: JointAlternation,
    state: JointState,
    gradient: NDArray,
    inside: NDArray,
    outside: NDArray,
) -> NDArray:
    """Predicted change of the loss, at fixed W, for each (inside, outside) pair.

    With u the change of the scores and H the softmax's Hessian in them it is ``g.u + u'Hu/2``: a
    quadratic form in the difference of two candidates. The loss is differentiated at the state.
    """
    loss, matrices = alternation.loss, alternation.matrices
    d = alternation.problem.n_genes
    form = loss.quadratic_form(
        matrices.ranks(np.eye(1, d, gene)[0]).dot(state.W)
        for gene in np.concatenate([inside, outside])
    )
    own = np.diag(form)
    m = len(inside)
    return (
        gradient[outside][None, :]
        - gradient[inside][:, None]
        + 0.5 * (own[None, m:] + own[:m, None])
        - form[:m, m:]
    )


def _exchanged(
    alternation: JointAlternation, state: JointState, out: NDArray, into: NDArray, n_steps: int
) -> JointState:
    """The state after an exchange and a short refit."""
    gamma = state.gamma.copy()
    gamma[out] = 0.0
    gamma[into] = 1.0
    return alternation.w_steps(replace(state, gamma=gamma, z=None), n_steps)
