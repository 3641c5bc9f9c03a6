"""The parts of an accelerated proximal step on many problems: a CUDA kernel each, or NumPy.

A step takes the slopes at the point ahead, multiplies them with M^T, moves the block's variable,
multiplies it with M, and judges what came of it. The products are those of the array module. Each
other part is one launch with a block of threads per problem, since launches are what takes the time
of small problems; ``steps.cu`` holds them. The NumPy twin of each stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from optirank.solver.device.fused import formulas
from optirank.solver.device.kernels import cuda_module, project_rows

_GROW = 1.6  # a step refused: shorten it by this
_RELAX = 0.93  # a step taken: try a longer one next
FORBIDDEN = -1e30  # where a gene that may not be in a reference set is put before a projection


@dataclass
class Path:
    """Where the steps of a block are, one row per problem; the parts of a step change it."""

    x: Any  # (B, d)
    ahead: Any  # (B, d): x with momentum
    z: Any  # (B, n): centred M x
    z_ahead: Any  # (B, n)
    b: Any  # (B,)
    b_ahead: Any  # (B,)
    L: Any  # (B,)
    tol: Any  # (B,): a problem whose residual is below it is done
    t: Any  # (B,): of the momentum
    residual: Any  # (B,): largest entry of the last proximal gradient
    done: Any  # (B,)
    taken: Any  # (B,): steps that were accepted

    @classmethod
    def start(cls, xp: Any, x: Any, z: Any, b: Any, L: Any, tol: Any = None) -> Path:
        """At rest."""
        size = len(b)
        return cls(
            x=x.copy(), ahead=x.copy(), z=z, z_ahead=z.copy(), b=b.copy(), b_ahead=b.copy(),
            L=L.astype(xp.float64), tol=xp.full(size, -1.0) if tol is None else tol,
            t=xp.ones(size), residual=xp.full(size, xp.inf), done=xp.zeros(size, bool),
            taken=xp.zeros(size, xp.int64),
        )  # fmt: skip


@dataclass(frozen=True)
class Slopes:
    """Of the loss at the point ahead."""

    single: Any  # (B, n) in float32
    curvatures: Any  # (B, n)
    total: Any  # (B,): sum of the slopes
    L_b: Any  # (B,): bound of the curvature in b


@dataclass(frozen=True)
class Move:
    """Where a proximal step leads; the centred M^T a is ``product - mean total``."""

    to: Any  # (B, d)
    single: Any  # (B, d) in float32
    facts: Any  # (4, B): squared change, its product with the momentum, largest entry, mean . to


class Proximal(Protocol):
    """The proximal step of a block."""

    def __call__(self, xp: Any, path: Path, product: Any, mean: Any, slopes: Slopes) -> Move:
        """Move from the point ahead, given M^T slopes and the means of M's columns."""


def slopes_ahead(xp: Any, path: Path, y: Any, v: Any) -> Slopes:
    """Slopes and curvatures of ``v logloss(y, z + b)`` at the point ahead."""
    if xp.__name__ == "numpy":
        slopes, curvatures = formulas(xp).logistic(path.z_ahead, path.b_ahead[:, None], y, v)
        L_b = xp.maximum(curvatures.sum(axis=1), 1e-3)
        return Slopes(slopes.astype(xp.float32), curvatures, slopes.sum(axis=1), L_b)
    size, n = path.z.shape
    single, curvatures = xp.empty((size, n), xp.float32), xp.empty((size, n))
    total, L_b = xp.empty(size), xp.empty(size)
    y, v = xp.ascontiguousarray(y), xp.ascontiguousarray(v)
    arguments = (path.z_ahead, path.b_ahead, y, v, xp.int32(n), single, curvatures, total, L_b)
    _kernel("slopes_of_scores")((size,), (_threads(n),), arguments)
    return Slopes(single, curvatures, total, L_b)


@dataclass(frozen=True)
class ElasticNetStep:
    """The step of w under ``l1 |w|_1 + l2 |w|^2``."""

    l1: Any  # (B,)
    l2: Any  # (B,)

    def __call__(self, xp: Any, path: Path, product: Any, mean: Any, slopes: Slopes) -> Move:
        """See :class:`Proximal`."""
        if xp.__name__ == "numpy":
            L, l1, l2 = (one[:, None] for one in (path.L, self.l1, self.l2))
            u = L * path.ahead - (product - mean * slopes.total[:, None])
            to = xp.sign(u) * xp.maximum(xp.abs(u) - l1, 0.0) / (L + 2.0 * l2)
            return _measured(xp, path, to, mean)
        move = _empty_move(xp, path)
        size, d = path.x.shape
        arguments = (
            xp.ascontiguousarray(product), mean, slopes.total, path.ahead, path.x, path.L,
            self.l1, self.l2, xp.int32(d), xp.int32(size), move.to, move.single, move.facts,
        )  # fmt: skip
        _kernel("elastic_net_step")((size,), (_threads(d),), arguments)
        return move


@dataclass(frozen=True)
class CappedSimplexStep:
    """The step of gamma within {0 <= gamma <= 1, sum gamma = s}, on the genes allowed."""

    s: Any  # (B,)
    allowed: Any = None  # (d,) mask; None: all
    linear: Any = None  # (B, d): added to the gradient

    def __call__(self, xp: Any, path: Path, product: Any, mean: Any, slopes: Slopes) -> Move:
        """See :class:`Proximal`."""
        if xp.__name__ == "numpy":
            gradient = product - mean * slopes.total[:, None]
            gradient = gradient if self.linear is None else gradient + self.linear
            u = path.ahead - gradient / path.L[:, None]
            u = u if self.allowed is None else xp.where(self.allowed, u, FORBIDDEN)
            return _measured(xp, path, project_rows(xp, u, self.s), mean)
        move = _empty_move(xp, path)
        size, d = path.x.shape
        nothing = xp.intp(0)
        arguments = (
            xp.ascontiguousarray(product), mean, slopes.total,
            nothing if self.linear is None else self.linear,
            nothing if self.allowed is None else self.allowed, path.ahead, path.x, path.L, self.s,
            xp.int32(d), xp.int32(size), move.to, move.single, move.facts,
        )  # fmt: skip
        _kernel("capped_simplex_step")((size,), (_threads(d),), arguments)
        return move


def judge(xp: Any, path: Path, move: Move, product: Any, slopes: Slopes, v: Any) -> None:
    """Go on from where a move led, given M times it, or shorten the step where that rose too much.

    The bound of the loss's rise above its tangent is ``min(c (exp|t| - 1 - |t|), v t^2 / 8)`` per
    sample, t being the change of its score, as ``solver_loops.curvature_bound`` has it.
    """
    if xp.__name__ == "numpy":
        _judge_plain(xp, path, move, product, slopes, v)
        return
    (size, n), d = path.z.shape, path.x.shape[1]
    arguments = (
        xp.ascontiguousarray(product), move.facts, slopes.total, slopes.L_b, slopes.curvatures,
        xp.ascontiguousarray(v), move.to, path.tol, xp.float64(_RELAX), xp.float64(_GROW),
        xp.int32(n), xp.int32(d), xp.int32(size), path.x, path.ahead, path.z, path.z_ahead, path.b,
        path.b_ahead, path.t, path.L, path.residual, path.done, path.taken,
    )  # fmt: skip
    _kernel("judge_step")((size,), (_threads(max(n, d)),), arguments)


def _judge_plain(xp, path: Path, move: Move, product, slopes: Slopes, v) -> None:
    squared, turn, largest, shift = move.facts
    b_new = path.b_ahead - slopes.total / slopes.L_b
    b_move = b_new - path.b_ahead
    z_new = product - shift[:, None]
    rise = _bound(xp, xp.abs(z_new + b_move[:, None] - path.z_ahead), slopes.curvatures, v)
    most = 0.5 * (path.L * squared + slopes.L_b * b_move * b_move)
    accepted = (rise.sum(axis=1) <= most * (1.0 + 1e-6) + 1e-13) & ~path.done
    turned = turn - b_move * (b_new - path.b) > 0
    next_t = xp.where(turned, 1.0, 0.5 * (1.0 + xp.sqrt(1.0 + 4.0 * path.t * path.t)))
    momentum = xp.where(turned, 0.0, (path.t - 1.0) / next_t)
    path.residual = xp.where(accepted, path.L * largest, path.residual)
    path.L = xp.where(path.done, path.L, path.L * xp.where(accepted, _RELAX, _GROW))
    path.t = xp.where(accepted, next_t, path.t)
    path.done = path.done | (accepted & (path.residual <= path.tol))
    path.taken = path.taken + accepted
    column, row = accepted[:, None], momentum[:, None]
    path.b_ahead = xp.where(accepted, b_new + momentum * (b_new - path.b), path.b_ahead)
    path.b = xp.where(accepted, b_new, path.b)
    path.ahead = xp.where(column, move.to + row * (move.to - path.x), path.ahead)
    path.x = xp.where(column, move.to, path.x)
    path.z_ahead = xp.where(column, z_new + row * (z_new - path.z), path.z_ahead)
    path.z = xp.where(column, z_new, path.z)


def _bound(xp, t, curvatures, v) -> Any:
    """Of the rise; its exponential part is a series where the difference would cancel."""
    u = xp.minimum(t, 3.0)
    series = 0.5 + u * (1 / 6 + u * (1 / 24 + u * (1 / 120 + u * (1 / 720))))
    above = xp.where(u < 0.3, u * u * series, xp.exp(u) - 1.0 - u)
    quadratic = 0.125 * v * t * t
    return xp.where(t < 3.0, xp.minimum(1.0001 * curvatures * above, quadratic), quadratic)


def _measured(xp, path: Path, to, mean) -> Move:
    change = to - path.ahead
    facts = (
        (change * change).sum(axis=1), -(change * (to - path.x)).sum(axis=1),
        xp.abs(change).max(axis=1), (mean * to).sum(axis=1),
    )  # fmt: skip
    return Move(to, to.astype(xp.float32), xp.stack(facts))


def _empty_move(xp, path: Path) -> Move:
    size, d = path.x.shape
    return Move(xp.empty((size, d)), xp.empty((size, d), xp.float32), xp.empty((4, size)))


def _threads(n: int) -> int:
    return 128 if n <= 256 else 256 if n <= 4096 else 1024


@cache
def _kernel(name: str) -> Any:
    return cuda_module("steps.cu").get_function(name)
