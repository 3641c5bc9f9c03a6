"""Compiled loops of the solver over samples or genes; the matrix products are BLAS's."""

from __future__ import annotations

import numpy as np

from optirank._compiled.jit import jit


@jit
def _exp_of_negative(t):
    """``exp(t)`` for t <= 0, to 1e-12, in a form that the compiler turns into vector instructions.

    ``exp(t / 4096)`` by its series, squared twelve times.
    """
    x = max(t, -700.0) * (1.0 / 4096.0)
    p = 1.0 / 5040.0 + x * (1.0 / 40320.0 + x * (1.0 / 362880.0))
    p = 1.0 / 24.0 + x * (1.0 / 120.0 + x * (1.0 / 720.0 + x * p))
    p = 1.0 + x * (1.0 + x * (0.5 + x * (1.0 / 6.0 + x * p)))
    for _ in range(12):
        p *= p
    return p


@jit(fastmath=True)
def logistic_slopes(z, b, y, v, slopes, curvatures):
    """First and second derivatives of ``v_i logloss(y_i, z_i + b)`` in the scores.

    ``slopes`` are written in their own precision, to be multiplied by a matrix of the same.
    """
    for i in range(z.shape[0]):
        score = z[i] + b
        e = _exp_of_negative(-abs(score))
        q = 1.0 / (1.0 + e)
        p = q if score > 0 else e * q
        slopes[i] = v[i] * (p - y[i])
        curvatures[i] = v[i] * e * q * q


@jit
def logistic_loss(z, b, y, v):
    """``sum_i v_i logloss(y_i, z_i + b)``."""
    loss = 0.0
    for i in range(z.shape[0]):
        score = z[i] + b
        loss += v[i] * (np.log1p(np.exp(-abs(score))) + max(score, 0.0) - y[i] * score)
    return loss


@jit(fastmath=True)
def curvature_bound(z_new, b_new, z, b, curvatures, v):
    """Upper bound of the loss's rise above its tangent, from scores z + b to z_new + b_new.

    The logistic loss rises by at most ``c (exp(|t|) - 1 - |t|)``, c its curvature at the start, and
    by at most ``t^2 / 8``. Unlike a difference of two losses, the bound does not cancel.
    """
    bound = 0.0
    for i in range(z.shape[0]):
        t = abs(z_new[i] + b_new - z[i] - b)
        u = min(t, 3.0)  # beyond, the second bound is taken
        series = 1.0 / 3628800.0 + u * (1.0 / 39916800.0 + u * (1.0 / 479001600.0))
        series = 1.0 / 5040.0 + u * (1.0 / 40320.0 + u * (1.0 / 362880.0 + u * series))
        series = 1.0 / 24.0 + u * (1.0 / 120.0 + u * (1.0 / 720.0 + u * series))
        series = 0.5 + u * (1.0 / 6.0 + u * series)
        quadratic = v[i] * t * t * 0.125
        rise = 1.0001 * curvatures[i] * u * u * series  # the factor: what the series leaves out
        bound += min(rise, quadratic) if t < 3.0 else quadratic
    return bound


@jit(fastmath=True)
def _slope_and_curvature(z, b, y, v):
    """First and second derivative of the loss in the intercept."""
    slope = 0.0
    curvature = 0.0
    for i in range(z.shape[0]):
        score = z[i] + b
        e = _exp_of_negative(-abs(score))
        q = 1.0 / (1.0 + e)
        p = q if score > 0 else e * q
        slope += v[i] * (p - y[i])
        curvature += v[i] * e * q * q
    return slope, curvature


@jit
def optimal_intercept(z, b, y, v):
    """The b that minimises ``sum_i v_i logloss(y_i, z_i + b)``.

    Newton steps, trusted up to 2; a longer one goes twice as far each time until the minimum is
    passed, and then to the middle of what it is known to lie in.
    """
    low = -np.inf
    high = np.inf
    reach = 2.0
    for _ in range(100):
        slope, curvature = _slope_and_curvature(z, b, y, v)
        step = slope / max(curvature, 1e-12)
        if abs(slope) < 1e-12 or abs(step) < 1e-10:
            b -= min(max(step, -2.0), 2.0)
            break
        if slope > 0.0:
            high = b
        else:
            low = b
        following = b - step
        if abs(step) > 2.0 and high - low == np.inf:
            following = b - reach if slope > 0.0 else b + reach
            reach *= 2.0
        elif abs(step) > 2.0 or not low < following < high:
            following = 0.5 * (low + high)
            if not low < following < high:
                break
        b = following
    return b


@jit
def elastic_net_step(x, gradient, L, l1, l2, out):
    """``out`` = the minimiser of ``gradient . u + L/2 |u - x|^2 + l1 |u|_1 + l2 |u|^2``.

    Returns ``|out - x|^2``.
    """
    shrink = 1.0 / (L + 2.0 * l2)
    squared = 0.0
    for j in range(x.shape[0]):
        u = L * x[j] - gradient[j]
        value = 0.0
        if u > l1:
            value = (u - l1) * shrink
        elif u < -l1:
            value = (u + l1) * shrink
        out[j] = value
        squared += (value - x[j]) ** 2
    return squared


@jit
def capped_simplex_step(x, gradient, L, s, out):
    """``out`` = the projection of ``x - gradient / L`` onto {0 <= u <= 1, sum u = s}.

    Newton's method on the shift, kept inside a bracket. Returns ``|out - x|^2``.
    """
    d = x.shape[0]
    low = np.inf
    high = -np.inf
    total = 0.0
    for j in range(d):
        value = x[j] - gradient[j] / L
        out[j] = value
        total += value
        low = min(low, value)
        high = max(high, value)
    low -= 1.0  # here the clipped sum is d, at `high` it is 0
    shift = min(max((total - s) / d, low), high)
    for _ in range(200):
        clipped = 0.0
        free = 0
        for j in range(d):
            u = out[j] - shift
            if u >= 1.0:
                clipped += 1.0
            elif u > 0.0:
                clipped += u
                free += 1
        excess = clipped - s
        if excess > 0.0:
            low = shift
        else:
            high = shift
        if abs(excess) <= 1e-13 * s or high - low <= 1e-16 * max(abs(low), abs(high)):
            break
        following = shift + excess / free if free > 0 else low
        if not low < following < high:
            following = 0.5 * (low + high)
        if following == shift:
            break
        shift = following
    squared = 0.0
    for j in range(d):
        u = min(max(out[j] - shift, 0.0), 1.0)
        out[j] = u
        squared += (u - x[j]) ** 2
    return squared


@jit
def exchange_in_ranks(groups, group_in, group_out, tie, scale, ranks, out):
    """``out`` = ``ranks`` after one reference gene came in and another went out.

    ``group_in`` and ``group_out`` are the two genes' groups in each sample; ``scale`` is 1/s.
    """
    n, d = groups.shape
    one = np.float32(scale)
    part = np.float32(scale * tie)
    zero = np.float32(0.0)
    for i in range(n):
        come = group_in[i]
        gone = group_out[i]
        for j in range(d):
            g = groups[i, j]
            gain = (one if g > come else zero) + (part if g == come else zero)
            loss = (one if g > gone else zero) + (part if g == gone else zero)
            out[i, j] = ranks[i, j] + gain - loss


@jit
def slopes_of_comparisons(groups, slopes, candidates, tie, out):
    """``out[q, j] = sum_i slopes_i C_i[j, k_q]``: how the gradient of w_j turns when k_q comes in.

    ``candidates[i, q]`` is the group of gene k_q in sample i.
    """
    n, d = groups.shape
    zero = np.float32(0.0)
    for i in range(n):
        full = np.float32(slopes[i])
        part = np.float32(slopes[i] * tie)
        for q in range(candidates.shape[1]):
            group = candidates[i, q]
            for j in range(d):
                g = groups[i, j]
                out[q, j] += (full if g > group else zero) + (part if g == group else zero)


_ROWS = 32  # rows that go through both products of a step while they are in the cache


@jit(fastmath=True)
def _rows_dot(values, begin, end, x, shift, z):
    """``z_i = values_i . x - shift`` for some rows, four at a time."""
    d = values.shape[1]
    whole = begin + (end - begin) // 4 * 4
    for i in range(begin, whole, 4):
        row0, row1, row2, row3 = values[i], values[i + 1], values[i + 2], values[i + 3]
        sum0 = sum1 = sum2 = sum3 = np.float32(0.0)
        for j in range(d):
            sum0 += row0[j] * x[j]
            sum1 += row1[j] * x[j]
            sum2 += row2[j] * x[j]
            sum3 += row3[j] * x[j]
        z[i] = sum0 - shift
        z[i + 1] = sum1 - shift
        z[i + 2] = sum2 - shift
        z[i + 3] = sum3 - shift
    for i in range(whole, end):
        row0 = values[i]
        sum0 = np.float32(0.0)
        for j in range(d):
            sum0 += row0[j] * x[j]
        z[i] = sum0 - shift


@jit(fastmath=True)
def _rows_transpose_dot(values, begin, end, a, out):
    """``out = sum_i a_i values_i`` over some rows, four at a time."""
    d = values.shape[1]
    out[:] = np.float32(0.0)
    whole = begin + (end - begin) // 4 * 4
    for i in range(begin, whole, 4):
        row0, row1, row2, row3 = values[i], values[i + 1], values[i + 2], values[i + 3]
        a0, a1, a2, a3 = a[i], a[i + 1], a[i + 2], a[i + 3]
        for j in range(d):
            out[j] += (a0 * row0[j] + a1 * row1[j]) + (a2 * row2[j] + a3 * row3[j])
    for i in range(whole, end):
        row0 = values[i]
        a0 = a[i]
        for j in range(d):
            out[j] += a0 * row0[j]


@jit(fastmath=True)
def _scores_and_gradient(
    values, mean, x, z_before, momentum, b, y, v, z, z_ahead, slopes, curvatures, block, gradient
):
    """Scores of a point, and the gradient in x at the point that momentum leads to from there.

    With ``M = values - 1 mean^T``: ``z = M x``, ``z_ahead = z + momentum (z - z_before)``, then the
    loss's derivatives at ``z_ahead + b`` and ``gradient = M^T slopes``, all in one pass over M.
    """
    n, d = values.shape
    shift = np.float32(0.0)
    for j in range(d):
        shift += mean[j] * x[j]
    gradient[:] = 0.0
    for begin in range(0, n, _ROWS):
        end = min(n, begin + _ROWS)
        _rows_dot(values, begin, end, x, shift, z)
        for i in range(begin, end):
            z_ahead[i] = z[i] + momentum * (z[i] - z_before[i])
            score = z_ahead[i] + b
            e = _exp_of_negative(-abs(score))
            q = 1.0 / (1.0 + e)
            p = q if score > 0 else e * q
            slopes[i] = v[i] * (p - y[i])
            curvatures[i] = v[i] * e * q * q
        _rows_transpose_dot(values, begin, end, slopes, block)
        for j in range(d):
            gradient[j] += block[j]
    # sums stand in loops that write nothing: else where the arrays lie would decide how to add up
    total = 0.0
    for i in range(n):
        total += slopes[i]
    for j in range(d):
        gradient[j] -= mean[j] * total


@jit
def _proximal_step(x, gradient, L, l1, l2, s, where, out):
    """The step of w (``s = 0``) or of gamma, zero outside the genes ``where``."""
    if s == 0.0:
        return elastic_net_step(x, gradient, L, l1, l2, out)
    if where.shape[0] == 0:
        return capped_simplex_step(x, gradient, L, s, out)
    part = np.empty(where.shape[0])
    squared = capped_simplex_step(x[where], gradient[where], L, s, part)
    out[:] = 0.0
    out[where] = part
    return squared


@jit
def dense_steps(
    values, mean, y, v, x, b, z_start, L, l1, l2, s, where, linear, n_steps, tol, rules
):  # fmt: skip
    """The loop of ``solver.steps.plain_steps`` for a dense float32 matrix and the logistic loss.

    ``s`` is 0 for steps of w under ``l1`` and ``l2``. Else they are steps of gamma in the capped
    simplex of sum s, over the genes ``where`` (all, if empty). ``linear`` is empty or added to each
    gradient. Each step goes over the matrix once. ``z_start`` are the scores of x where they are
    known, with b their best intercept; else empty. ``rules`` of the step size: how it grows when
    refused, how it relaxes when taken, its largest value, the slack of the bound.

    Returns x, b, z, L, the residual and the number of steps.
    """
    n, d = values.shape
    grow, relax, largest, slack = rules
    z, z_new = np.empty(n, np.float32), np.empty(n, np.float32)
    z_ahead, z_next = np.empty(n, np.float32), np.empty(n, np.float32)
    slopes, curvatures, curvatures_next = np.empty(n, np.float32), np.empty(n), np.empty(n)
    gradient, gradient_next = np.empty(d), np.empty(d)
    block = np.empty(d, np.float32)
    new, ahead = np.empty(d), x.copy()
    point = x.astype(np.float32)
    if z_start.shape[0]:
        z[:] = z_start
    else:
        shift = np.float32(0.0)
        for j in range(d):
            shift += mean[j] * point[j]
        _rows_dot(values, 0, n, point, shift, z)
        b = optimal_intercept(z, b, y, v)
    b_ahead = b
    z_ahead[:] = z
    logistic_slopes(z, b, y, v, slopes, curvatures)
    total = 0.0
    for i in range(n):
        total += slopes[i]
    for j in range(d):
        gradient[j] = -mean[j] * total
    for begin in range(0, n, _ROWS):
        _rows_transpose_dot(values, begin, min(n, begin + _ROWS), slopes, block)
        for j in range(d):
            gradient[j] += block[j]
    x = x.copy()
    momentum_t = 1.0
    residual = np.inf
    taken = 0
    while taken < n_steps:
        taken += 1
        if linear.shape[0]:
            gradient += linear
        slope_b = 0.0
        L_b = 0.0
        for i in range(n):
            slope_b += slopes[i]
            L_b += curvatures[i]
        L_b = max(L_b, 1e-3)
        while True:
            squared = _proximal_step(ahead, gradient, L, l1, l2, s, where, new)
            b_new = b_ahead - slope_b / L_b
            against = (b_ahead - b_new) * (b_new - b)
            moved = 0.0
            for j in range(d):
                against += (ahead[j] - new[j]) * (new[j] - x[j])
                moved = max(moved, abs(new[j] - ahead[j]))
                point[j] = new[j]
            next_t = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum_t**2))
            momentum = (momentum_t - 1.0) / next_t
            if against > 0.0:  # the step turned against the momentum
                next_t = 1.0
                momentum = 0.0
            residual = L * moved if tol > 0.0 else np.inf
            if taken == n_steps or residual <= tol:  # no gradient is needed after this step
                shift = np.float32(0.0)
                for j in range(d):
                    shift += mean[j] * point[j]
                _rows_dot(values, 0, n, point, shift, z_new)
            else:
                _scores_and_gradient(
                    values, mean, point, z, np.float32(momentum), b_new + momentum * (b_new - b),
                    y, v, z_new, z_next, slopes, curvatures_next, block, gradient_next,
                )  # fmt: skip
            rise = curvature_bound(z_new, b_new, z_ahead, b_ahead, curvatures, v)
            allowed = 0.5 * (L * squared + L_b * (b_new - b_ahead) ** 2)
            if rise <= allowed + slack or largest < L:
                break
            L *= grow
            L_b *= grow
        for j in range(d):
            ahead[j] = new[j] + momentum * (new[j] - x[j])
        b_ahead = b_new + momentum * (b_new - b)
        b = b_new
        momentum_t = next_t
        x, new = new, x
        z, z_new = z_new, z
        z_ahead, z_next = z_next, z_ahead
        curvatures, curvatures_next = curvatures_next, curvatures
        gradient, gradient_next = gradient_next, gradient
        if residual <= tol:
            break
        L *= relax
    return x, b, z, L, residual, taken
