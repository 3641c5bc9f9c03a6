"""Exchanges of reference genes on many problems: batches by the gradient, then judged pairs.

Pairs are ranked by the second-order model of ``solver/exchange.py``. Where the CPU tries one pair
after the other, here several exchanges of each problem, single pairs and the best few together, are
judged side by side by steps on (w, b), and the best is kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from optirank.solver.device import constants as c
from optirank.solver.device.batch import Batch, CentredBatch, States, coranks_of, ranks_of
from optirank.solver.device.steps import accelerated_steps, best_intercept, elastic_net, logistic
from optirank.solver.device.weights import newton_steps, solve_hessian, steps_on_w, with_weights


def gradient_gamma(batch: Batch, states: States) -> tuple[Any, CentredBatch, Any, Any]:
    """Gradient of the loss in gamma, the co-ranks it came from, slopes and curvatures."""
    matrix = coranks_of(batch, states.w)
    z = matrix.dot(states.gamma)
    slopes, curvatures = logistic(batch, z, best_intercept(batch, z, states.b))
    return matrix.transpose_dot(slopes), matrix, slopes, curvatures


def sorted_candidates(batch: Batch, gamma: Any, gradient: Any) -> tuple[Any, Any, Any, Any]:
    """Genes inside that most want out and outside that most want in, best first, with counts."""
    xp = batch.xp
    inside = gamma > 0.5
    outside = ~inside if batch.allowed is None else ~inside & batch.allowed[None, :]
    out_first = xp.argsort(xp.where(inside, -gradient, xp.inf), axis=1)
    in_first = xp.argsort(xp.where(outside, gradient, xp.inf), axis=1)
    return out_first, in_first, inside.sum(axis=1), outside.sum(axis=1)


def first_sizes(batch: Batch) -> Any:
    """How many genes of each problem are swapped at once at first."""
    xp = batch.xp
    n_allowed = batch.orders.n_genes if batch.allowed is None else int(batch.allowed.sum())
    return xp.maximum(1, xp.minimum(batch.s, n_allowed - batch.s) // 4).astype(xp.int64)


def exchange_batches(
    batch: Batch, states: States, n_tries: int, size: Any = None
) -> tuple[States, Any]:
    """Swap batches of genes by the gradient of gamma, halving a batch that a refit refuses.

    Returns the states and the sizes of the batches to try next, 0 where none is left, with which
    another call goes on.
    """
    xp = batch.xp
    size = first_sizes(batch) if size is None else size.copy()
    active = xp.flatnonzero(size)
    for _ in range(n_tries):
        if not len(active):
            break
        part, here = batch.take(active), states.take(active)
        gradient, *_ = gradient_gamma(part, here)
        out_first, in_first, n_in, n_out = sorted_candidates(part, here.gamma, gradient)
        most = int(size[active].max())
        goes, comes = out_first[:, :most], in_first[:, :most]
        rows = xp.arange(len(active))[:, None]
        count = xp.minimum(size[active], xp.minimum(n_in, n_out))
        chosen = (xp.arange(most)[None, :] < count[:, None]) & (
            gradient[rows, comes] < gradient[rows, goes]
        )
        gamma = _exchanged(xp, here.gamma, goes, comes, chosen)
        new = steps_on_w(part, replace(here, gamma=gamma), c.BATCH_STEPS)
        tried = chosen.any(axis=1)
        improved = tried & (new.objective < here.objective * (1.0 - c.SMALLEST_GAIN))
        states = states.put(active, here.better(xp, new, improved))
        size[active] = xp.where(improved, size[active], xp.where(tried, size[active] // 2, 0))
        active = active[size[active] > 0]
    return states, size


def _exchanged(xp: Any, gamma: Any, goes: Any, comes: Any, chosen: Any) -> Any:
    """Gamma after the chosen pairs changed places."""
    rows = xp.broadcast_to(xp.arange(len(gamma))[:, None], goes.shape)
    new = gamma.copy()
    new[rows[chosen], goes[chosen]] = 0.0
    new[rows[chosen], comes[chosen]] = 1.0
    return new


def exchange_pairs(
    batch: Batch, states: States, n_models: int, n_candidates: int, n_trials: int
) -> States:
    """Swap the pairs that a second-order model ranks best, as long as the objective falls."""
    xp = batch.xp
    active = xp.arange(len(batch))
    for _ in range(n_models):
        new, improved = _one_model(batch.take(active), states.take(active), n_candidates, n_trials)
        states = states.put(active[improved], new.take(improved))
        active = active[improved]
        if not len(active):
            break
    return states


def _one_model(
    batch: Batch, states: States, n_candidates: int, n_trials: int
) -> tuple[States, Any]:
    """Judge the exchanges that one model proposes; the states, and which of them improved."""
    xp = batch.xp
    states = steps_on_w(batch, states, c.BATCH_STEPS)
    gradient, coranks, slopes, curvatures = gradient_gamma(batch, states)
    out_first, in_first, n_in, n_out = sorted_candidates(batch, states.gamma, gradient)
    m_in, m_out = (min(n_candidates, int(count.min())) for count in (n_in, n_out))
    if not m_in or not m_out:
        return states, xp.zeros(len(batch), bool)
    inside, outside = out_first[:, :m_in], in_first[:, :m_out]
    chosen = xp.concatenate([inside, outside], axis=1)
    v_chosen = xp.take_along_axis(coranks.values, chosen[:, None, :], axis=2).copy()
    del coranks
    ranks = ranks_of(batch, states.gamma)
    weights_gradient = ranks.transpose_dot(slopes)
    support = xp.where((batch.l1 > 0)[:, None], states.w != 0, True)
    turn = _turns(batch, slopes, chosen)
    root = xp.sqrt(curvatures)
    total = xp.maximum(curvatures.sum(axis=1), 1e-30)
    mean = xp.matmul(curvatures[:, None, :], v_chosen) / total[:, None, None]
    v_scaled = ((v_chosen - mean) * root[:, :, None]).astype(xp.float32)
    change = ranks.rows_transpose_dot((v_scaled * root[:, :, None]).transpose(0, 2, 1))
    q = turn + change.transpose(0, 2, 1)
    responses = solve_hessian(batch, ranks, curvatures, support, q)
    l1, l2 = batch.l1[:, None], batch.l2[:, None]
    rest = weights_gradient + 2.0 * l2 * states.w + l1 * xp.sign(states.w)
    rest = xp.where(support, rest, 0.0)
    picked = xp.take_along_axis(gradient, chosen, axis=1)
    linear = picked - (responses * rest[:, :, None]).sum(axis=1)
    form = xp.matmul(v_scaled.transpose(0, 2, 1), v_scaled).astype(xp.float64) - xp.matmul(
        xp.where(support[:, :, None], q, 0.0).transpose(0, 2, 1), responses
    )
    own = xp.diagonal(form, axis1=1, axis2=2)
    gains = (
        linear[:, None, m_in:]
        - linear[:, :m_in, None]
        + 0.5 * (own[:, None, m_in:] + own[:, :m_in, None])
        - form[:, :m_in, m_in:]
    )
    return _judge(batch, states, ranks, inside, outside, gains, responses, n_trials)


def _turns(batch: Batch, slopes: Any, chosen: Any) -> Any:
    """``sum_i slopes_i C_i[j, k] / s`` for each candidate k: how the gradient of w_j turns.

    A column of C is the rank pass of one gene alone, the slopes then give its weighted sum.
    """
    xp = batch.xp
    size, m = chosen.shape
    d = batch.orders.n_genes
    out = xp.empty((size, d, m))
    at_once = max(1, batch.backend.free_bytes() // 4 // (4 * batch.orders.n_samples * d * size))
    for begin in range(0, m, at_once):
        genes = chosen[:, begin : begin + at_once]
        n_here = genes.shape[1]
        one = xp.zeros((size * n_here, d), xp.float32)
        one[xp.arange(size * n_here), genes.reshape(-1)] = 1.0
        columns = batch.orders.ranks(one, batch.ties)  # less the offset, which sums away in H
        repeated = xp.repeat(slopes.astype(xp.float32), n_here, axis=0)
        sums = batch.backend.transpose_dot(repeated, columns).reshape(size, n_here, d)
        out[:, :, begin : begin + at_once] = sums.transpose(0, 2, 1)
    return out / batch.s[:, None, None]


def _judge(
    batch: Batch, states: States, ranks: CentredBatch, inside: Any, outside: Any, gains: Any,
    responses: Any, n_trials: int,
) -> tuple[States, Any]:  # fmt: skip
    """Try the best pairs one by one and the best disjoint ones together; keep what is best."""
    xp = batch.xp
    size, m_in, m_out = gains.shape
    apart = disjoint_pairs(batch, gains, c.TOGETHER[-1])
    singles = xp.argsort(gains.reshape(size, -1), axis=1)[:, :n_trials]
    goes = xp.concatenate([apart[0], singles // m_out], axis=1)
    comes = xp.concatenate([apart[1], singles % m_out], axis=1)
    n_apart = apart[0].shape[1]
    plans = [(0, k) for k in c.TOGETHER if k <= n_apart]
    plans += [(n_apart + k, n_apart + k + 1) for k in range(singles.shape[1])]
    value = xp.take_along_axis(gains.reshape(size, -1), goes * m_out + comes, axis=1)
    worth = value < c.HOPE * states.objective[:, None]
    rows = xp.arange(size)
    best, improved = states, xp.zeros(size, bool)
    at_once = max(
        1, batch.backend.free_bytes() // (16 * batch.orders.n_samples * batch.orders.n_genes * size)
    )
    for begin in range(0, len(plans), at_once):
        some = plans[begin : begin + at_once]
        gammas, guesses = [], []
        for first, last in some:
            use = worth[:, first:last]
            g_out = inside[rows[:, None], goes[:, first:last]]
            g_in = outside[rows[:, None], comes[:, first:last]]
            gammas.append(_exchanged(xp, states.gamma, g_out, g_in, use))
            guess = states.w.copy()
            for k in range(first, last):
                response = responses[rows, :, m_in + comes[:, k]] - responses[rows, :, goes[:, k]]
                guess = guess - xp.where(worth[:, k, None], response, 0.0)
            flipped = (guess * states.w < 0) & (batch.l1 > 0)[:, None]
            guesses.append(xp.where(flipped, 0.0, guess))
        repeat = xp.tile(rows, len(some))
        trial = batch.take(repeat)
        there = replace(
            states.take(repeat), gamma=xp.concatenate(gammas), w=xp.concatenate(guesses)
        )
        judged = _judged(trial, there)
        objective = judged.objective.reshape(len(some), size)
        winner = objective.argmin(axis=0)
        won = judged.take(winner * size + rows)
        better = won.objective < xp.minimum(
            best.objective, states.objective * (1.0 - c.SMALLEST_GAIN)
        )
        best, improved = best.better(xp, won, better), improved | better
    return best, improved


def _judged(batch: Batch, states: States) -> States:
    """Steps on (w, b) that tell what an exchange is worth."""
    matrix = ranks_of(batch, states.gamma)
    if batch.orders.n_genes <= c.EXACT_SIZE and not bool((batch.l1 > 0).any()):
        w, b, objective, _ = newton_steps(batch, matrix, states.w, states.b, c.TRIAL_NEWTON_STEPS)
        return replace(states, w=w, b=b, objective=objective)
    done = accelerated_steps(
        batch, matrix, states.w, states.b, elastic_net(batch), states.L_w, c.TRIAL_STEPS
    )
    return with_weights(batch, states, done)


def disjoint_pairs(batch: Batch, gains: Any, n_pairs: int) -> tuple[Any, Any]:
    """The best pairs of each problem that share no gene: positions inside and outside."""
    xp = batch.xp
    size, m_in, m_out = gains.shape
    left = gains.copy()
    rows = xp.arange(size)
    goes, comes = [], []
    for _ in range(min(n_pairs, m_in, m_out)):
        best = left.reshape(size, -1).argmin(axis=1)
        i, k = best // m_out, best % m_out
        goes.append(i)
        comes.append(k)
        left[rows, i, :] = xp.inf
        left[rows, :, k] = xp.inf
    return xp.stack(goes, axis=1), xp.stack(comes, axis=1)
