"""Many problems at their reference sets: (w, b) to convergence, and exchanges of genes.

Exchanges go in batches by the gradient, then in judged pairs, which are ranked by the
second-order model of ``solver/exchange.py``. Where the CPU tries one pair after the
other, here several pairs of each problem are judged side by side by steps on (w, b),
and the best is kept.

The Hessian is ``M^T D M + 2 l2 I`` with the intercept eliminated. Small ones are
factored. Others are used through their products alone, by conjugate gradients: products
are what a GPU does best.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from optirank.solver import constants as c
from optirank_lab.device import constants as here
from optirank_lab.device.backend import threads_for
from optirank_lab.device.blocks import (
    Batch,
    CentredBatch,
    States,
    accelerated_steps,
    best_intercept,
    coranks_of,
    elastic_net,
    logistic,
    loss_of,
    ranks_of,
    start_length,
    steps_on_w,
    with_weights,
)


def fit_weights(
    batch: Batch, states: States, *, tol: float, max_iter: int, exact: bool = True
) -> tuple[States, Any]:
    """Minimise in (w, b) at the states' gamma; the states and whether each converged.

    Converged means that the proximal gradient is below ``tol`` times the gradient at w
    = 0. Steps also end, at ``max_iter`` at most, where they no longer lower an
    objective: whether such a problem has converged is then measured. ``exact`` ends
    problems of few weights in float64, as on the CPU.
    """
    xp = batch.xp
    matrix = ranks_of(batch, states.gamma)
    states = replace(states, L_w=start_length(batch, matrix, states.L_w))
    tols = xp.maximum(tol * _gradient_at_zero(batch, matrix), c.SMALLEST_RESIDUAL)
    reached, ended = xp.zeros(len(batch), bool), xp.zeros(len(batch), bool)
    spent = 0
    while spent < max_iter and not bool(ended.all()):
        open_ = xp.flatnonzero(~ended)
        part, current = batch.take(open_), states.take(open_)
        some = matrix if len(open_) == len(batch) else matrix.take(open_, part.v)
        w, b, stalled = current.w, current.b, xp.zeros(len(open_), bool)
        newton = spent >= c.FIRST_STEPS
        if newton:
            w, b, objective, decrease = newton_on_support(
                part, some, w, b, c.NEWTON_STEPS
            )
            stalled = decrease <= c.STALLED * objective
        n_steps = min(c.MORE_STEPS, max_iter - spent)
        done = accelerated_steps(
            part, some, w, b, elastic_net(part), current.L_w, n_steps, tol=tols[open_]
        )
        spent += n_steps + c.NEWTON_STEPS * newton
        new = with_weights(part, current, done)
        improved = (new.objective <= current.objective) | (not newton)
        same_support = ((w != 0) == (new.w != 0)).all(axis=1)
        states = states.put(open_, current.better(xp, new, improved))
        reached[open_] = improved & (done.residual <= tols[open_])
        ended[open_] = reached[open_] | (stalled & same_support) | ~improved
    del matrix
    few = xp.flatnonzero(_n_weights(batch, states.w) <= c.SMALL)
    if exact and len(few):
        part, current = batch.take(few), states.take(few)
        matrix = ranks_of(part, current.gamma, exact=True)
        w, b, objective, _ = newton_on_support(
            part, matrix, current.w, current.b, 20, tol=1e-15
        )
        states = states.put(few, replace(current, w=w, b=b, objective=objective))
        del matrix
    open_ = xp.flatnonzero(~reached)
    if len(open_):
        reached[open_] = _residual(batch.take(open_), states.take(open_)) <= tols[open_]
    return states, reached


def _gradient_at_zero(batch: Batch, matrix: CentredBatch) -> Any:
    """Largest entry of the gradient in w at w = 0."""
    zero = batch.xp.zeros_like(batch.v)
    b = best_intercept(batch, zero, batch.xp.zeros(len(batch)))
    return batch.xp.abs(matrix.transpose_dot(logistic(batch, zero, b)[0])).max(axis=1)


def _residual(batch: Batch, states: States) -> Any:
    """Largest entry of the proximal gradient in w, in float64."""
    xp, w = batch.xp, states.w
    matrix = ranks_of(batch, states.gamma, exact=True)
    z = matrix.dot(w)
    slopes, _ = logistic(batch, z, best_intercept(batch, z, states.b, 30))
    L, l1, l2 = (values[:, None] for values in (states.L_w, batch.l1, batch.l2))
    u = L * w - matrix.transpose_dot(slopes)
    to = xp.sign(u) * xp.maximum(xp.abs(u) - l1, 0.0) / (L + 2.0 * l2)
    return (L * xp.abs(to - w)).max(axis=1)


def _n_weights(batch: Batch, w: Any) -> Any:
    """How many weights of each problem Newton steps change."""
    return batch.xp.where(batch.l1 > 0, (w != 0).sum(axis=1), w.shape[1])


def newton_on_support(
    batch: Batch,
    matrix: CentredBatch,
    w: Any,
    b: Any,
    n_steps: int,
    *,
    tol: float = c.STALLED,
) -> tuple[Any, Any, Any, Any]:
    """As :func:`newton_steps`, on the columns of the weights alone where these
    are few.
    """
    xp = batch.xp
    n_columns = max(1, int(_n_weights(batch, w).max()))
    if n_columns > min(c.SMALL, matrix.n_columns - 1):
        return newton_steps(batch, matrix, w, b, n_steps, tol=tol)
    columns = xp.argsort(w == 0, axis=1)[:, :n_columns]
    values = xp.take_along_axis(matrix.values, columns[:, None, :], axis=2)
    part = CentredBatch(batch.backend, values, batch.v)
    taken = xp.take_along_axis(w, columns, axis=1)
    weights, *rest = newton_steps(batch, part, taken, b, n_steps, tol=tol)
    w = xp.zeros_like(w)
    w[xp.arange(len(w))[:, None], columns] = weights
    return (w, *rest)


def newton_steps(
    batch: Batch,
    matrix: CentredBatch,
    w: Any,
    b: Any,
    n_steps: int,
    *,
    tol: float = c.STALLED,
) -> tuple[Any, Any, Any, Any]:
    """Damped Newton steps on (w, b), each weight kept on its side of zero where l1 > 0.

    Returns w, b, the objectives and the last decreases of them. A problem whose step
    does not lower its objective stays where it is.
    """
    xp = batch.xp
    sign = xp.sign(w)
    support = xp.where((batch.l1 > 0)[:, None], w != 0, True)
    l1, l2 = batch.l1[:, None], batch.l2[:, None]
    z = matrix.dot(w)
    b = best_intercept(batch, z, b)
    objective = loss_of(batch, z, b) + batch.penalty(w)
    decrease = xp.full_like(b, xp.inf)
    for _ in range(n_steps):
        slopes, curvatures = logistic(batch, z, b)
        gradient = matrix.transpose_dot(slopes) + 2.0 * l2 * w + l1 * sign
        right = gradient[:, :, None]
        direction = solve_hessian(batch, matrix, curvatures, support, right)[:, :, 0]
        length = xp.ones_like(b)
        improved = xp.zeros(len(b), bool)
        best = (w, b, z, objective)
        for _ in range(5):
            new = w - length[:, None] * direction
            new = xp.where(l1 > 0, xp.where(new * sign < 0, 0.0, new), new)
            z_new = matrix.dot(new)
            b_new = best_intercept(batch, z_new, b, 5)
            value = loss_of(batch, z_new, b_new) + batch.penalty(new)
            good = (value < objective) & ~improved
            column = good[:, None]
            best = (
                xp.where(column, new, best[0]),
                xp.where(good, b_new, best[1]),
                xp.where(column, z_new, best[2]),
                xp.where(good, value, best[3]),
            )
            improved |= good
            if bool(improved.all()):
                break
            length = xp.where(improved, length, 0.4 * length)
        decrease = objective - best[3]
        w, b, z, objective = best
        if bool((decrease <= tol * objective).all()):
            break
    return w, b, objective, decrease


def solve_hessian(
    batch: Batch, matrix: CentredBatch, curvatures: Any, support: Any, right: Any
) -> Any:
    """``H^-1 right`` on the support, for m right-hand sides per problem: (B, d, m)."""
    solve = _solve_factored if matrix.n_columns <= c.SMALL else _conjugate_gradients
    return solve(batch, matrix, curvatures, support, right)


def _conjugate_gradients(
    batch: Batch, matrix: CentredBatch, curvatures: Any, support: Any, right: Any
) -> Any:
    """As :func:`solve_hessian`, with the diagonal of H as the preconditioner.

    A right-hand side ends when its residual is below ``CG_TOL`` times its norm.
    """
    xp, backend, values = batch.xp, batch.backend, matrix.values
    (size, n), (d, m) = curvatures.shape, right.shape[1:]
    n_, d_, m_ = map(xp.int32, (n, d, m))
    weights = xp.ascontiguousarray(curvatures, dtype=xp.float32)
    square = backend.transpose_dot(weights, values * values).astype(xp.float64)
    first = backend.transpose_dot(weights, values).astype(xp.float64)
    total = xp.maximum(curvatures.sum(axis=1), 1e-30)[:, None]
    # A column of little spread keeps a part of its mean square that float32 sums
    # resolve
    spread = xp.maximum(square - first * first / total, 1e-4 * square)
    ridge = 2.0 * batch.l2 + 1e-6 * square.max(axis=1) + 1e-30
    diagonal = spread + ridge[:, None]
    support = xp.ascontiguousarray(support)
    r = xp.ascontiguousarray(
        xp.where(support[:, None, :], right.transpose(0, 2, 1), 0.0)
    )
    x, p = xp.zeros_like(r), r / diagonal[:, None, :]
    single, weighted = p.astype(xp.float32), xp.empty((size, m, n), xp.float32)
    rz, limit = (
        (r * p).sum(axis=2),
        here.CG_TOL**2 * xp.maximum((r * r).sum(axis=2), 1e-300),
    )
    active = xp.ones((size, m), bool)
    for step in range(here.CG_STEPS):
        u = xp.ascontiguousarray(backend.dot(values, single))
        arguments = (u, weights, n_, m_, weighted)
        backend.launch("weigh_scores", (size * m,), threads_for(n), arguments)
        product = xp.ascontiguousarray(backend.transpose_dot(weighted, values))
        arguments = (
            product,
            diagonal,
            support,
            ridge,
            limit,
            d_,
            m_,
            x,
            r,
            p,
            single,
            rz,
            active,
        )
        backend.launch("gradient_step", (size * m,), threads_for(d), arguments)
        if step % here.CHECK_EVERY == here.CHECK_EVERY - 1 and not bool(active.any()):
            break
    return x.transpose(0, 2, 1)


def _solve_factored(
    batch: Batch, matrix: CentredBatch, curvatures: Any, support: Any, right: Any
) -> Any:
    xp, values = batch.xp, matrix.values
    dtype = values.dtype
    total = xp.maximum(curvatures.sum(axis=1), 1e-30)
    mean = (
        batch.backend.transpose_dot(curvatures.astype(dtype), values) / total[:, None]
    )
    roots = xp.sqrt(curvatures)[:, :, None].astype(dtype)
    scaled = (values - mean[:, None, :].astype(dtype)) * roots
    system = xp.matmul(scaled.transpose(0, 2, 1), scaled).astype(xp.float64)
    system = xp.where(support[:, :, None] & support[:, None, :], system, 0.0)
    lost = 1e-9 if dtype == xp.float32 else 1e-14  # by sums in this precision
    largest = xp.diagonal(system, axis1=1, axis2=2).max(axis=1)
    ridge = 2.0 * batch.l2 + lost * largest + 1e-30
    diagonal = xp.where(support, ridge[:, None], 1.0)
    system = system + diagonal[:, :, None] * xp.eye(matrix.n_columns)
    return xp.linalg.solve(system, xp.where(support[:, :, None], right, 0.0))


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
    for _ in range(here.MODELS_ON_DEVICE):
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
    pairs = xp.argsort(gains.reshape(size, -1), axis=1)[:, : here.PAIRS_AT_ONCE]
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
