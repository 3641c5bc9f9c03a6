"""Compiled loops of the solver over samples or genes; the matrix products
are BLAS's.
"""

from __future__ import annotations

import numpy as np

from optirank._compiled.jit import jit, proximal_map


@jit
def _exp_of_negative(t):
    """``exp(t)`` for t <= 0, to 1e-12, in a form that the compiler turns into vector
    instructions.

    ``exp(t / 4096)`` by its series, squared twelve times.
    """
    x = max(t, -700.0) * (1.0 / 4096.0)
    p = 1.0 / 5040.0 + x * (1.0 / 40320.0 + x * (1.0 / 362880.0))
    p = 1.0 / 24.0 + x * (1.0 / 120.0 + x * (1.0 / 720.0 + x * p))
    p = 1.0 + x * (1.0 + x * (0.5 + x * (1.0 / 6.0 + x * p)))
    for _ in range(12):
        p *= p
    return p


@jit
def _logistic(score):
    """The sigmoid of a score, and its derivative."""
    e = _exp_of_negative(-abs(score))
    q = 1.0 / (1.0 + e)
    return q if score > 0 else e * q, e * q * q


@jit(fastmath=True)
def logistic_slopes(z, b, y, v, slopes, curvatures):
    """First and second derivatives of ``v_i logloss(y_i, z_i + b)`` in the scores.

    ``slopes`` are written in their own precision, to be multiplied by a matrix of the
    same.
    """
    for i in range(z.shape[0]):
        p, curvature = _logistic(z[i] + b)
        slopes[i] = v[i] * (p - y[i])
        curvatures[i] = v[i] * curvature


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
    """Upper bound of the loss's rise above its tangent, from scores z + b to z_new +
    b_new.

    The logistic loss rises by at most ``c (exp(|t|) - 1 - |t|)``, c its curvature at
    the start, and by at most ``t^2 / 8``. Unlike a difference of two losses, the bound
    does not cancel.
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
        rise = (
            1.0001 * curvatures[i] * u * u * series
        )  # the factor: what the series leaves out
        bound += min(rise, quadratic) if t < 3.0 else quadratic
    return bound


@jit(fastmath=True)
def _slope_and_curvature(z, b, y, v):
    """First and second derivative of the loss in the intercept."""
    slope = 0.0
    curvature = 0.0
    for i in range(z.shape[0]):
        p, derivative = _logistic(z[i] + b)
        slope += v[i] * (p - y[i])
        curvature += v[i] * derivative
    return slope, curvature


@jit
def optimal_intercept(z, b, y, v):
    """The b that minimises ``sum_i v_i logloss(y_i, z_i + b)``.

    Newton steps, trusted up to 2; a longer one goes twice as far each time until the
    minimum is passed, and then to the middle of what it is known to lie in.
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
def _clipped_sum(values, shift):
    """The sum of ``clip(values - shift, 0, 1)``, and how many entries are between
    the bounds.
    """
    total = 0.0
    n_free = 0
    for j in range(values.shape[0]):
        u = values[j] - shift
        if u >= 1.0:
            total += 1.0
        elif u > 0.0:
            total += u
            n_free += 1
    return total, n_free


@jit
def _shift_to_sum(values, s):
    """The shift at which ``clip(values - shift, 0, 1)`` sums to s, and what is left of
    s there.

    Newton's method, kept inside a bracket.
    """
    low = values.min() - 1.0  # here the clipped sum is d, at `high` it is 0
    high = values.max()
    shift = min(max((values.sum() - s) / values.shape[0], low), high)
    excess = 0.0
    for _ in range(200):
        clipped, n_free = _clipped_sum(values, shift)
        excess = clipped - s
        if excess > 0.0:
            low = shift
        else:
            high = shift
        if abs(excess) <= 1e-13 * s:
            break
        if high - low <= 1e-16 * max(abs(low), abs(high)):
            break
        following = shift + excess / n_free if n_free > 0 else low
        if not low < following < high:
            following = 0.5 * (low + high)
        if following == shift:
            break
        shift = following
    return shift, excess


@jit
def project_capped_simplex(out, s):
    """Project a vector, in place, onto {0 <= u <= 1, sum u = s}.

    The shift of values far from 0 has too few digits; what is left after subtracting it
    has them, and is projected again.
    """
    for _ in range(3):
        shift, excess = _shift_to_sum(out, s)
        for j in range(out.shape[0]):
            out[j] -= shift
        if abs(excess) <= 1e-13 * s:
            break
    for j in range(out.shape[0]):
        out[j] = min(max(out[j], 0.0), 1.0)


@proximal_map
def elastic_net_map(x, step, parameters):
    """``x`` becomes ``argmin_w |w - x|^2 / (2 step) + l1 |w|_1 + l2 |w|^2``."""
    bound = step * parameters[0]
    shrink = 1.0 / (1.0 + 2.0 * step * parameters[1])
    for j in range(x.shape[0]):
        x[j] = (x[j] - min(max(x[j], -bound), bound)) * shrink


@proximal_map
def capped_simplex_map(x, step, parameters):
    """``x`` becomes the nearest point of the capped simplex, whatever the step.

    ``parameters`` are the sum s, and then the positions of the genes that may have a
    weight; none means all.
    """
    s = parameters[0]
    if parameters.shape[0] == 1:
        project_capped_simplex(x, s)
        return
    genes = parameters[1:].astype(np.int64)
    part = x[genes]
    project_capped_simplex(part, s)
    x[:] = 0.0
    x[genes] = part


@jit
def apply_map(proximal, parameters, step, x):
    """Replace x by its proximal point: a step of the compiled loop, from Python."""
    proximal(x, step, parameters)


# of the rows that go through both products of a step while they are in the cache
_ENTRIES = 1 << 17


@jit(fastmath=True)
def _dot(matrix, begin, end, x, shift, total, z):
    """``z = M x`` for some rows of a matrix, dense or a constant per row plus the
    non-zeros.

    ``shift`` is ``mean . x`` and ``total`` the sum of x.
    """
    values, indptr, genes, excess, constants, _ = matrix
    if values.shape[0]:
        z[begin:end] = np.dot(values[begin:end], x) - shift
        return
    for i in range(begin, end):
        score = constants[i] * total - shift
        for p in range(indptr[i], indptr[i + 1]):
            score += excess[p] * x[genes[p]]
        z[i] = score


@jit(fastmath=True)
def _add_transpose_dot(matrix, begin, end, a, out):
    """Add ``sum_i a_i M_i`` over some rows into ``out``, without the constants of the
    rows.

    Returns what these add to every column.
    """
    values, indptr, genes, excess, constants, _ = matrix
    if values.shape[0]:
        out += np.dot(a[begin:end], values[begin:end])
        return 0.0
    constant = 0.0
    for i in range(begin, end):
        constant += a[i] * constants[i]
        for p in range(indptr[i], indptr[i + 1]):
            out[genes[p]] += a[i] * excess[p]
    return constant


@jit(fastmath=True)
def _sums(mean, x):
    """``mean . x`` and the sum of x."""
    shift = np.float32(0.0)
    total = 0.0
    for j in range(x.shape[0]):
        shift += mean[j] * x[j]
        total += x[j]
    return shift, total


@jit(fastmath=True)
def _total(a):
    """The sum of a vector, in float64."""
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i]
    return total


@jit(fastmath=True)
def _centre_gradient(gradient, constant, mean, slopes):
    """Add what all columns share, subtract what centring them takes away."""
    # the sum has a loop that writes nothing: else where the arrays lie would decide how
    # to add up
    total = _total(slopes)
    for j in range(gradient.shape[0]):
        gradient[j] += constant - mean[j] * total


@jit(fastmath=True)
def _scores(matrix, x, z):
    """``z = M x``."""
    point = x.astype(np.float32)
    shift, total = _sums(matrix[5], point)
    _dot(matrix, 0, z.shape[0], point, shift, total, z)


@jit(fastmath=True)
def _scores_and_gradient(
    matrix, samples, x, z_before, momentum, b, z, z_ahead, slopes, curvatures, gradient
):
    """Scores of a point, and the gradient in x at the point that momentum leads to from
    there.

    ``z = M x``, ``z_ahead = z + momentum (z - z_before)``, then the loss's derivatives
    at ``z_ahead + b`` and ``gradient = M^T slopes``, all in one pass over M.
    """
    y, v = samples
    n = z.shape[0]
    mean = matrix[5]
    point = x.astype(np.float32)
    shift, total = _sums(mean, point)
    gradient[:] = 0.0
    constant = 0.0
    rows = max(16, _ENTRIES // x.shape[0])
    for begin in range(0, n, rows):
        end = min(n, begin + rows)
        _dot(matrix, begin, end, point, shift, total, z)
        for i in range(begin, end):
            z_ahead[i] = z[i] + momentum * (z[i] - z_before[i])
            p, curvature = _logistic(z_ahead[i] + b)
            slopes[i] = v[i] * (p - y[i])
            curvatures[i] = v[i] * curvature
        constant += _add_transpose_dot(matrix, begin, end, slopes, gradient)
    _centre_gradient(gradient, constant, mean, slopes)


@jit
def _gradient_at_start(matrix, samples, start):
    """The best intercept, scores, slopes, curvatures and gradient in x at the start."""
    y, v = samples
    x, b, z_known, _ = start
    n = y.shape[0]
    z = np.empty(n, np.float32)
    if z_known.shape[0]:
        z[:] = z_known
    else:
        _scores(matrix, x, z)
        b = optimal_intercept(z, b, y, v)
    slopes = np.empty(n, np.float32)
    curvatures = np.empty(n)
    logistic_slopes(z, b, y, v, slopes, curvatures)
    gradient = np.zeros(x.shape[0])
    constant = _add_transpose_dot(matrix, 0, n, slopes, gradient)
    _centre_gradient(gradient, constant, matrix[5], slopes)
    return b, z, slopes, curvatures, gradient


@jit
def _proximal_step(proximal, parameters, x, ahead, gradient, L, new):
    """``new`` = the proximal point of ``ahead - gradient / L``.

    Returns ``|new - ahead|^2``, the largest change, and the product of the change with
    the last movement, which is positive where the step turns against the momentum.
    """
    for j in range(x.shape[0]):
        new[j] = ahead[j] - gradient[j] / L
    proximal(new, 1.0 / L, parameters)
    squared = 0.0
    largest = 0.0
    against = 0.0
    for j in range(x.shape[0]):
        change = ahead[j] - new[j]
        squared += change * change
        largest = max(largest, abs(change))
        against += change * (new[j] - x[j])
    return squared, largest, against


@jit
def _momentum(t, against):
    """Nesterov's next t and momentum; none where the step turned against the
    momentum.
    """
    if against > 0.0:
        return 1.0, 0.0
    following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t**2))
    return following, (t - 1.0) / following


@jit
def proximal_steps(
    matrix, samples, start, proximal, parameters, linear, n_steps, tol, rules
):
    """The loop of ``solver.blocks.accelerated_steps``, over the matrix once per step.

    ``matrix`` has the values of a dense matrix or else the indptr, genes, excess and
    constants of a sparse one, what it has not being empty, and the means that are
    subtracted from its columns. ``samples`` are the labels and weights. ``start`` is x,
    b, the scores of x (where they are known, with b their best intercept; else empty)
    and L. ``proximal`` is the compiled map of the penalty or the feasible set, called
    with ``parameters``. ``linear`` is empty or added to each gradient. ``rules`` of the
    step size: how it grows when refused, how it relaxes when taken, its largest value,
    the slack of the bound, the least curvature of the intercept.

    Returns x, b, z, L, the residual and the number of steps.
    """
    grow, relax, largest_L, slack, least = rules
    b, z, slopes, curvatures, gradient = _gradient_at_start(matrix, samples, start)
    x = start[0].copy()
    L = start[3]
    ahead = x.copy()
    z_ahead = z.copy()
    b_ahead = b
    new = np.empty_like(x)
    z_new = np.empty_like(z)
    z_next = np.empty_like(z)
    curvatures_next = np.empty_like(curvatures)
    gradient_next = np.empty_like(gradient)
    t = 1.0
    residual = np.inf
    taken = 0
    while taken < n_steps:
        taken += 1
        if linear.shape[0]:
            gradient += linear
        slope_b = _total(slopes)
        L_b = max(_total(curvatures), least)
        while True:
            squared, largest, against = _proximal_step(
                proximal, parameters, x, ahead, gradient, L, new
            )
            b_new = b_ahead - slope_b / L_b
            next_t, momentum = _momentum(t, against + (b_ahead - b_new) * (b_new - b))
            b_next = b_new + momentum * (b_new - b)
            residual = L * largest if tol > 0.0 else np.inf
            if taken == n_steps or residual <= tol:
                _scores(matrix, new, z_new)  # no gradient is needed after this step
            else:
                _scores_and_gradient(
                    matrix,
                    samples,
                    new,
                    z,
                    np.float32(momentum),
                    b_next,
                    z_new,
                    z_next,
                    slopes,
                    curvatures_next,
                    gradient_next,
                )
            rise = curvature_bound(
                z_new, b_new, z_ahead, b_ahead, curvatures, samples[1]
            )
            allowed = 0.5 * (L * squared + L_b * (b_new - b_ahead) ** 2)
            if rise <= allowed + slack or largest_L < L:
                break
            L *= grow
            L_b *= grow
        ahead[:] = new + momentum * (new - x)
        b = b_new
        b_ahead = b_next
        t = next_t
        x, new = new, x
        z, z_new = z_new, z
        z_ahead, z_next = z_next, z_ahead
        curvatures, curvatures_next = curvatures_next, curvatures
        gradient, gradient_next = gradient_next, gradient
        if residual <= tol:
            break
        L *= relax
    return x, b, z, L, residual, taken
