"""Exchanges of reference genes on many problems: batches by the gradient, then judged
pairs.

Pairs are ranked by the second-order model of ``solver/exchange.py``. Where the CPU
tries one pair after the other, here several pairs of each problem are judged side by
side by steps on (w, b), and the best is kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from optirank.solver import constants as c
from optirank.solver.device.blocks import (
    Batch,
    CentredBatch,
    States,
    accelerated_steps,
    best_intercept,
    coranks_of,
    elastic_net,
    logistic,
    ranks_of,
)
from optirank.solver.device.weights import (
    newton_steps,
    solve_hessian,
    steps_on_w,
    with_weights,
)


def exchange_batches(batch: Batch, states: States, n_tries: int) -> States:
    """Swap batches of genes by the gradient of gamma, halving a batch that a refit
    refuses.
    """
    xp = batch.xp
    n_allowed = (
        batch.orders.n_genes if batch.allowed is None else int(batch.allowed.sum())
    )
    first = xp.maximum(1, xp.minimum(batch.s, n_allowed - batch.s) // 4).astype(
        xp.int64
    )
    states = replace(states, swap=xp.where(states.swap < 0, first, states.swap))
    for _ in range(n_tries):
        active = xp.flatnonzero(states.swap)
        if not len(active):
            break
        part, current = batch.take(active), states.take(active)
        gradient, *_ = _gradient_gamma(part, current)
        out_first, in_first, n_in, n_out = _sorted_candidates(
            part, current.gamma, gradient
        )
        most = int(current.swap.max())
        goes, comes = out_first[:, :most], in_first[:, :most]
        rows = xp.broadcast_to(xp.arange(len(active))[:, None], goes.shape)
        count = xp.minimum(current.swap, xp.minimum(n_in, n_out))
        chosen = (xp.arange(most)[None, :] < count[:, None]) & (
            gradient[rows, comes] < gradient[rows, goes]
        )
        gamma = current.gamma.copy()
        gamma[rows[chosen], goes[chosen]] = 0.0
        gamma[rows[chosen], comes[chosen]] = 1.0
        new = steps_on_w(part, replace(current, gamma=gamma), c.REFIT_STEPS)
        tried = chosen.any(axis=1)
        improved = tried & (new.objective < current.objective * (1.0 - c.SMALLEST_GAIN))
        smaller = xp.where(tried, current.swap // 2, 0)
        kept = current.better(xp, new, improved)
        states = states.put(
            active, replace(kept, swap=xp.where(improved, current.swap, smaller))
        )
    return states


def exchange_pairs(batch: Batch, states: States) -> States:
    """Swap the pair that judged best of those a second-order model proposes, again and
    again.

    A problem that a model does not improve is done.
    """
    active = batch.xp.arange(len(batch))
    for _ in range(c.MODELS_ON_DEVICE):
        new, improved = _one_model(batch.take(active), states.take(active))
        states = states.put(active[improved], new.take(improved))
        active = active[improved]
        if not len(active):
            break
    return states


def _gradient_gamma(batch: Batch, states: States) -> tuple[Any, CentredBatch, Any, Any]:
    """Gradient of the loss in gamma, the co-ranks it came from, slopes and
    curvatures.
    """
    matrix = coranks_of(batch, states.w)
    z = matrix.dot(states.gamma)
    slopes, curvatures = logistic(batch, z, best_intercept(batch, z, states.b))
    return matrix.transpose_dot(slopes), matrix, slopes, curvatures


def _sorted_candidates(
    batch: Batch, gamma: Any, gradient: Any
) -> tuple[Any, Any, Any, Any]:
    """Genes inside that most want out and outside that most want in, best first,
    with counts.
    """
    xp = batch.xp
    inside = gamma > 0.5
    outside = ~inside if batch.allowed is None else ~inside & batch.allowed[None, :]
    out_first = xp.argsort(xp.where(inside, -gradient, xp.inf), axis=1)
    in_first = xp.argsort(xp.where(outside, gradient, xp.inf), axis=1)
    return out_first, in_first, inside.sum(axis=1), outside.sum(axis=1)


def _one_model(batch: Batch, states: States) -> tuple[States, Any]:
    """Judge the exchanges that one model proposes; the states, and which of them
    improved.

    The model is ``g.u + u'Du/2 - q'H^-1 q/2`` as on the CPU: a quadratic form in the
    difference of two candidates.
    """
    xp = batch.xp
    states = steps_on_w(batch, states, c.REFIT_STEPS)
    gradient, coranks, slopes, curvatures = _gradient_gamma(batch, states)
    out_first, in_first, n_in, n_out = _sorted_candidates(batch, states.gamma, gradient)
    m_in, m_out = (min(2 * c.PAIR_GENES, int(count.min())) for count in (n_in, n_out))
    if not m_in or not m_out:
        return states, xp.zeros(len(batch), bool)
    chosen = xp.concatenate([out_first[:, :m_in], in_first[:, :m_out]], axis=1)
    v_chosen = xp.take_along_axis(coranks.values, chosen[:, None, :], axis=2).copy()
    del coranks
    ranks = ranks_of(batch, states.gamma)
    support = xp.where((batch.l1 > 0)[:, None], states.w != 0, True)
    root = xp.sqrt(curvatures)[:, :, None]
    total = xp.maximum(curvatures.sum(axis=1), 1e-30)
    mean = xp.matmul(curvatures[:, None, :], v_chosen) / total[:, None, None]
    v_scaled = ((v_chosen - mean) * root).astype(xp.float32)
    change = ranks.transpose_dot((v_scaled * root).transpose(0, 2, 1))
    q = _turns(batch, slopes, chosen) + change.transpose(0, 2, 1)
    responses = solve_hessian(batch, ranks, curvatures, support, q)
    rest = ranks.transpose_dot(slopes) + 2.0 * batch.l2[:, None] * states.w
    rest = xp.where(support, rest + batch.l1[:, None] * xp.sign(states.w), 0.0)
    picked = xp.take_along_axis(gradient, chosen, axis=1)
    linear = picked - (responses * rest[:, :, None]).sum(axis=1)
    q = xp.where(support[:, :, None], q, 0.0)
    form = xp.matmul(v_scaled.transpose(0, 2, 1), v_scaled).astype(xp.float64)
    form -= xp.matmul(q.transpose(0, 2, 1), responses)
    alone = 0.5 * xp.diagonal(form, axis1=1, axis2=2)
    gains = (alone + linear)[:, None, m_in:] + (alone - linear)[:, :m_in, None]
    gains = gains - form[:, :m_in, m_in:]
    return _judge(batch, states, chosen, gains, responses.transpose(0, 2, 1))


def _turns(batch: Batch, slopes: Any, chosen: Any) -> Any:
    """``sum_i slopes_i C_i[j, k] / s`` for each candidate k: how the gradient of w_j
    turns.

    A column of C is the rank pass of one gene alone, the slopes then give its weighted
    sum.
    """
    xp, d = batch.xp, batch.orders.n_genes
    size, m = chosen.shape
    out = xp.empty((size, d, m))
    at_once = max(
        1, batch.backend.free_bytes() // 4 // (4 * batch.orders.n_samples * d * size)
    )
    for begin in range(0, m, at_once):
        genes = chosen[:, begin : begin + at_once]
        n_trials = genes.shape[1]
        unit_vectors = xp.zeros((size * n_trials, d), xp.float32)
        unit_vectors[xp.arange(size * n_trials), genes.reshape(-1)] = 1.0
        # Less the offset, which sums away in H
        columns = batch.orders.ranks(unit_vectors, batch.ties)
        repeated = xp.repeat(slopes.astype(xp.float32), n_trials, axis=0)
        sums = batch.backend.transpose_dot(repeated, columns).reshape(size, n_trials, d)
        out[:, :, begin : begin + at_once] = sums.transpose(0, 2, 1)
    return out / batch.s[:, None, None]


def _judge(
    batch: Batch, states: States, chosen: Any, gains: Any, responses: Any
) -> tuple[States, Any]:
    """Try the pairs of the best predicted gains; the states, and which of them
    improved.

    ``gains`` are those of (inside, outside) pairs, (B, m_in, m_out), whose genes are
    ``chosen``, and ``responses`` how w follows each of these genes, (B, m_in + m_out,
    d).
    """
    xp, n, d = batch.xp, batch.orders.n_samples, batch.orders.n_genes
    size, m_in, m_out = gains.shape
    best, improved = states, xp.zeros(size, bool)
    target = states.objective * (1.0 - c.SMALLEST_GAIN)
    pairs = xp.argsort(gains.reshape(size, -1), axis=1)[:, : c.PAIRS_AT_ONCE]
    at_once = max(1, batch.backend.free_bytes() // (16 * n * d * size))
    for begin in range(0, pairs.shape[1], at_once):
        some = pairs[:, begin : begin + at_once]
        n_trials = some.shape[1]
        rows, trials = xp.repeat(xp.arange(size), n_trials), xp.arange(size * n_trials)
        goes, comes = some.ravel() // m_out, m_in + some.ravel() % m_out
        current = states.take(rows)
        gamma = current.gamma  # a copy
        gamma[trials, chosen[rows, goes]] = 0.0
        gamma[trials, chosen[rows, comes]] = 1.0
        guess = current.w - (responses[rows, comes] - responses[rows, goes])
        flipped = (guess * current.w < 0) & (batch.l1 > 0)[rows, None]
        guessed = replace(current, w=xp.where(flipped, 0.0, guess))
        judged = _judged(batch.take(rows), guessed)
        winner = judged.objective.reshape(size, n_trials).argmin(axis=1)
        won = judged.take(xp.arange(size) * n_trials + winner)
        better = won.objective < xp.minimum(best.objective, target)
        best, improved = best.better(xp, won, better), improved | better
    return best, improved


def _judged(batch: Batch, states: States) -> States:
    """Steps on (w, b) that tell what an exchange is worth."""
    matrix = ranks_of(batch, states.gamma)
    if batch.orders.n_genes <= c.SMALL and not bool((batch.l1 > 0).any()):
        w, b, objective, _ = newton_steps(
            batch, matrix, states.w, states.b, c.TRIAL_NEWTON_STEPS
        )
        return replace(states, w=w, b=b, objective=objective)
    penalty, n_steps = elastic_net(batch), 2 * c.REFIT_STEPS
    done = accelerated_steps(
        batch, matrix, states.w, states.b, penalty, states.L_w, n_steps
    )
    return with_weights(batch, states, done)
