"""NumPy in the place of a GPU: what each kernel of ``device/steps.cu`` computes.

A function has the name and the arguments of its kernel, and writes where the kernel
does. The kernels of ``orders.cu`` need no twin: no shared memory, so array operations
do their work.
"""

from __future__ import annotations

import numpy as np

from optirank_lab.device.backend import Backend


class NumpyBackend(Backend):
    """The same code without a GPU."""

    shared_bytes = 0

    def __init__(self, memory: int = 2 << 30) -> None:
        super().__init__(np)
        self.memory = memory

    def launch(self, name, blocks, threads, arguments, *, shared=0, types=None):
        KERNELS[name](*arguments)

    def fuse(self, function):
        return function

    def host(self, values):
        return np.asarray(values)

    def free_bytes(self):
        return self.memory


def derivatives(z, b, y, v):
    """Slopes and curvatures of ``v logloss(y, z + b)``."""
    score = z + b[:, None]
    e = np.exp(-np.abs(score))
    p = np.where(score > 0, 1.0, e) / (1.0 + e)
    return v * (p - y), v * e / (1.0 + e) ** 2


def project_rows(x, s, d, out):
    low, high = x.max(axis=1) - 1e6, x.max(axis=1)
    for _ in range(200):
        shift = 0.5 * (low + high)
        above = np.clip(x - shift[:, None], 0, 1).sum(axis=1) > s
        low, high = np.where(above, shift, low), np.where(above, high, shift)
    out[:] = np.clip(x - shift[:, None], 0, 1)


def best_intercepts(z, y, v, n, steps, b):
    low, high, reach = np.full(len(b), -1e300), np.full(len(b), 1e300), 2.0
    for _ in range(steps):
        slope, curvature = (one.sum(axis=1) for one in derivatives(z, b, y, v))
        high = np.where(slope > 0, np.minimum(high, b), high)
        low = np.where(slope > 0, low, np.maximum(low, b))
        following = b - np.clip(slope / np.maximum(curvature, 1e-12), -reach, reach)
        inside = (following >= low) & (following <= high)
        b[:] = np.where(inside, following, 0.5 * (low + high))
        reach *= 2.0


def weigh_scores(u, c, n, m, out):
    weights = c[:, None, :].astype(float)
    total = np.maximum(weights.sum(axis=2, keepdims=True), 1e-30)
    out[:] = weights * (u - (weights * u).sum(axis=2, keepdims=True) / total)


def gradient_step(
    q, diagonal, support, ridge, limit, d, m, x, r, p, single, rz, active
):
    q = np.where(support[:, None, :], q + ridge[:, None, None] * p, 0.0)
    bent = (p * q).sum(axis=2)
    active &= ((r * r).sum(axis=2) > limit) & (bent > 0)
    alpha = np.where(active, rz / np.where(active, bent, 1.0), 0.0)[:, :, None]
    x += alpha * p
    r -= alpha * q
    after = (r * r / diagonal[:, None, :]).sum(axis=2)
    share = np.where(active, after / np.where(active, rz, 1.0), 0.0)
    p[active] = (r / diagonal[:, None, :] + share[:, :, None] * p)[active]
    rz[active] = after[active]
    single[:] = p


def slopes_of_scores(z, b, y, v, n, slopes, curvatures, total, L_b):
    slopes[:], curvatures[:] = exact, _ = derivatives(z, b, y, v)
    total[:] = exact.sum(axis=1)
    L_b[:] = np.maximum(curvatures.sum(axis=1), 1e-3)


def elastic_net_step(
    product, mean, total, ahead, x, L, l1, l2, d, size, to, single, facts
):
    L, l1, l2 = (one[:, None] for one in (L, l1, l2))
    u = L * ahead - (product - mean * total[:, None])
    to[:] = np.sign(u) * np.maximum(np.abs(u) - l1, 0.0) / (L + 2.0 * l2)
    _measure(to, ahead, x, mean, single, facts)


def capped_simplex_step(
    product, mean, total, ahead, x, L, s, linear, allowed, d, size, to, single, facts
):
    gradient = product - mean * total[:, None] + (linear if np.ndim(linear) else 0.0)
    u = ahead - gradient / L[:, None]
    project_rows(np.where(allowed, u, -1e30) if np.ndim(allowed) else u, s, d, to)
    _measure(to, ahead, x, mean, single, facts)


def _measure(to, ahead, x, mean, single, facts):
    change = to - ahead
    facts[0], facts[1] = (change**2).sum(axis=1), -(change * (to - x)).sum(axis=1)
    facts[2], facts[3] = np.abs(change).max(axis=1), (mean * to).sum(axis=1)
    single[:] = to


def judge_step(
    product, facts, total, L_b, curvatures, v, to, tol, relax, grow, n, d, size, x, ahead, z,
    z_ahead, b, b_ahead, t, L, residual, done, taken,
):  # fmt: skip
    squared, turn, largest, shift = facts
    b_new, z_new = b_ahead - total / L_b, product - shift[:, None]
    b_move = b_new - b_ahead
    moved = np.abs(z_new + b_move[:, None] - z_ahead)
    quadratic = v * moved**2 / 8
    near = np.minimum(moved, 3.0)
    exponential = 1.0001 * curvatures * (np.expm1(near) - near)
    rise = np.where(moved < 3, np.minimum(exponential, quadratic), quadratic).sum(
        axis=1
    )
    most = 0.5 * (L * squared + L_b * b_move**2)
    good = (rise <= most * (1 + 1e-6) + 1e-13) & ~done
    turned = turn - b_move * (b_new - b) > 0
    t_new = np.where(turned, 1.0, 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t)))
    momentum = np.where(turned, 0.0, (t - 1.0) / t_new)
    residual[good] = (L * largest)[good]
    L *= np.where(done, 1.0, np.where(good, relax, grow))
    done |= good & (residual <= tol)
    taken += good
    t[good] = t_new[good]
    for here, there, new in ((b, b_ahead, b_new), (x, ahead, to), (z, z_ahead, z_new)):
        by = momentum if new.ndim == 1 else momentum[:, None]
        there[good] = (new + by * (new - here))[good]
        here[good] = new[good]


KERNELS = {
    one.__name__: one
    for one in (
        project_rows, best_intercepts, weigh_scores, gradient_step, slopes_of_scores,
        elastic_net_step, capped_simplex_step, judge_step,
    )
}  # fmt: skip
