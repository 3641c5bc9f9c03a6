"""Many binary problems on one order of samples: their points and matrices, and steps in
lock step.

A problem of the batch is a row: labels, sample weights, size of the reference set,
penalties. The samples that a fold holds out have weight zero, so all folds of a search
share one order.

See ``solver/blocks.py`` for the steps of one problem. Where a problem's step is refused
it waits, with a shorter step, while the others go on: one product with each matrix per
step, whatever the problems do. Problems that converged stay where they are. A step
takes the slopes at the point ahead, multiplies them with M^T, moves the block's
variable, multiplies it with M, and judges what came of it. The products are those of
the array module. Each other part is one launch of a kernel of ``steps.cu``, with a
block of threads per problem, since launches are what takes the time of small problems.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

from optirank.solver import constants as c
from optirank.solver.blocks import BlockResult
from optirank_lab.device import constants as here
from optirank_lab.device.backend import Backend, DeviceOrders, threads_for


@dataclass(frozen=True)
class Batch:
    """The data of B problems; see :class:`optirank.solver.problem.Problem` for one."""

    orders: DeviceOrders
    ties: str
    y: Any  # (B, n) of 0 and 1
    v: Any  # (B, n), rows sum to 1
    s: Any  # (B,) sizes of the reference sets
    l1: Any  # (B,)
    l2: Any  # (B,)
    owner: Any  # (B,) position of the problem that a start belongs to
    allowed: Any = None  # (d,) mask of who may be in a reference set; None: all

    @property
    def backend(self) -> Backend:
        """Where the arrays live."""
        return self.orders.backend

    @property
    def xp(self) -> Any:
        """The array module."""
        return self.orders.backend.xp

    def __len__(self) -> int:
        return len(self.s)

    def take(self, items: Any) -> Batch:
        """Some of the problems."""
        names = ("y", "v", "s", "l1", "l2", "owner")
        return replace(self, **{name: getattr(self, name)[items] for name in names})

    def with_ridge(self, least: float) -> Batch:
        """The same problems with l2 of at least ``least``."""
        return replace(self, l2=self.xp.maximum(self.l2, least))

    def penalty(self, w: Any) -> Any:
        """``l1 |w|_1 + l2 |w|_2^2`` of each problem."""
        xp = self.xp
        return self.l1 * xp.abs(w).sum(axis=1) + self.l2 * (w * w).sum(axis=1)


@dataclass(frozen=True)
class States:
    """A point of each problem; b belongs to centred matrices, L to the blocks'
    step sizes.
    """

    w: Any  # (B, d)
    b: Any  # (B,)
    gamma: Any  # (B, d)
    objective: Any  # (B,) loss plus elastic net
    L_w: Any  # (B,) 0 where no step was taken yet
    L_gamma: Any  # (B,)
    n_iter: Any  # (B,)
    z: Any  # (B, n) centred scores; zeros at w = 0
    swap: Any  # (B,) genes that an exchange swaps next; -1: not begun, 0: ended

    def __len__(self) -> int:
        return len(self.b)

    def take(self, items: Any) -> States:
        """Some of the points."""
        return States(
            **{name: getattr(self, name)[items] for name in _ARRAYS_OF_STATES}
        )

    def put(self, items: Any, others: States) -> States:
        """These points with some of them replaced."""
        arrays = {name: getattr(self, name).copy() for name in _ARRAYS_OF_STATES}
        for name, values in arrays.items():
            values[items] = getattr(others, name)
        return States(**arrays)

    def better(self, xp: Any, others: States, improved: Any) -> States:
        """The others where ``improved``, else these."""
        mixed = {}
        for name in _ARRAYS_OF_STATES:
            old = getattr(self, name)
            new = getattr(others, name)
            mask = improved[:, None] if old.ndim == 2 else improved
            mixed[name] = xp.where(mask, new, old)
        return States(**mixed)


_ARRAYS_OF_STATES = tuple(field.name for field in fields(States))


class CentredBatch:
    """Matrices M of the problems, (B, n, d), seen with weighted column means zero.

    The mean is subtracted in the products, not in the matrix, which saves two passes
    over it.
    """

    def __init__(self, backend: Backend, values: Any, v: Any) -> None:
        self.backend = backend
        self.values = values
        self.mean = backend.transpose_dot(v.astype(values.dtype), values).astype(
            backend.xp.float64
        )

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.values.shape[2]

    def dot(self, x: Any) -> Any:
        """``(M - 1 mean^T) x`` of each problem, float64."""
        xp = self.backend.xp
        z = self.backend.dot(self.values, x.astype(self.values.dtype)).astype(
            xp.float64
        )
        return z - (self.mean * x).sum(axis=1)[:, None]

    def transpose_dot(self, a: Any) -> Any:
        """``(M - 1 mean^T)^T a`` of each problem, float64; a is (B, n), or
        (B, m, n).
        """
        mean = self.mean if a.ndim == 2 else self.mean[:, None, :]
        product = self.backend.transpose_dot(a.astype(self.values.dtype), self.values)
        return (
            product.astype(self.backend.xp.float64) - mean * a.sum(axis=-1)[..., None]
        )

    def take(self, items: Any, v: Any) -> CentredBatch:
        """The matrices of some problems, whose sample weights are ``v``."""
        return CentredBatch(self.backend, self.values[items], v)


def ranks_of(batch: Batch, gamma: Any, *, exact: bool = False) -> CentredBatch:
    """``R(gamma) / s``, centred; ``exact``: in float64.

    Ranks among a set are whole or half, which float32 holds before they are divided.
    """
    values = batch.orders.ranks(gamma, batch.ties, size=1.0 if exact else batch.s)
    if exact:
        values = values.astype(batch.xp.float64)
        values /= batch.s[:, None, None]
    return CentredBatch(batch.backend, values, batch.v)


def coranks_of(batch: Batch, w: Any) -> CentredBatch:
    """``V(w) / s``, centred."""
    values = batch.orders.coranks(w / batch.s[:, None], batch.ties)
    return CentredBatch(batch.backend, values, batch.v)


@cache
def _formulas(backend: Backend) -> tuple[Callable, Callable]:
    xp = backend.xp

    def logistic(z, b, y, v):
        score = z + b
        e = xp.exp(-xp.abs(score))
        q = 1.0 / (1.0 + e)
        p = xp.where(score > 0, q, e * q)
        return v * (p - y), v * (e * q * q)

    def loss(z, b, y, v):
        score = z + b
        return v * (
            xp.log1p(xp.exp(-xp.abs(score))) + xp.maximum(score, 0.0) - y * score
        )

    return backend.fuse(logistic), backend.fuse(loss)


def logistic(batch: Batch, z: Any, b: Any) -> tuple[Any, Any]:
    """Slopes and curvatures of ``v logloss(y, z + b)`` in the scores."""
    return _formulas(batch.backend)[0](z, b[:, None], batch.y, batch.v)


def loss_of(batch: Batch, z: Any, b: Any) -> Any:
    """``sum_i v_i logloss(y_i, z_i + b)`` of each problem."""
    return _formulas(batch.backend)[1](z, b[:, None], batch.y, batch.v).sum(axis=1)


def best_intercept(batch: Batch, z: Any, b: Any, n_steps: int = 10) -> Any:
    """The b of each problem that minimises the loss at scores z + b, by
    Newton steps.
    """
    xp, n = batch.xp, z.shape[1]
    b = xp.array(b, dtype=xp.float64)
    rows = (
        xp.ascontiguousarray(values, dtype=xp.float64)
        for values in (z, batch.y, batch.v)
    )
    arguments = (*rows, xp.int32(n), xp.int32(n_steps), b)
    batch.backend.launch("best_intercepts", (len(b),), threads_for(n), arguments)
    return b


def project(batch: Batch, x: Any) -> Any:
    """The point of ``{0 <= u <= 1, sum u = s}``, on the genes allowed, nearest to
    each row.
    """
    xp, d = batch.xp, x.shape[1]
    if batch.allowed is not None:
        x = xp.where(batch.allowed[None, :], x, here.FORBIDDEN)
    x = xp.ascontiguousarray(x, dtype=xp.float64)
    out = xp.empty_like(x)
    arguments = (x, batch.s, xp.int32(d), out)
    batch.backend.launch("project_rows", (len(x),), threads_for(d), arguments)
    return out


# The proximal step of a block: a kernel, and what it takes beside the step's arrays
ProximalKernel = tuple[str, tuple]


def elastic_net(batch: Batch) -> ProximalKernel:
    """The step of w under ``l1 |w|_1 + l2 |w|^2``."""
    return "elastic_net_step", (batch.l1, batch.l2)


def capped_simplex(batch: Batch, linear: Any = None) -> ProximalKernel:
    """The step of gamma in the set of :func:`project`; ``linear`` is added to the
    gradient.
    """
    nothing = batch.xp.intp(0)
    added = nothing if linear is None else linear
    allowed = nothing if batch.allowed is None else batch.allowed
    return "capped_simplex_step", (batch.s, added, allowed)


def accelerated_steps(
    batch: Batch,
    matrix: CentredBatch,
    x: Any,
    b: Any,
    proximal: ProximalKernel,
    L: Any,
    n_steps: int,
    *,
    tol: Any = None,
    z: Any = None,
) -> BlockResult:
    """Take ``n_steps`` steps on each problem; one whose residual is below its ``tol``
    stops.

    The result has one row per problem; its steps are those that were accepted. ``z``
    are the centred scores M x, where they are known.
    """
    xp, backend, values = batch.xp, batch.backend, matrix.values
    kernel, own = proximal
    z = matrix.dot(x) if z is None else z.copy()
    b = best_intercept(batch, z, b)
    x, L = x.copy(), L.astype(xp.float64)
    (size, n), d = z.shape, x.shape[1]
    n_, d_, size_ = map(xp.int32, (n, d, size))
    limit = xp.full(size, -1.0) if tol is None else tol
    residual, done = xp.full(size, xp.inf), xp.zeros(size, bool)
    taken = xp.zeros(size, xp.int64)
    # With momentum
    ahead, z_ahead, b_ahead = x.copy(), z.copy(), b.copy()
    t = xp.ones(size)
    slopes, curvatures = xp.empty((size, n), xp.float32), xp.empty((size, n))
    total, L_b = xp.empty(size), xp.empty(size)  # sum of the slopes, curvature in b
    to, single = xp.empty((size, d)), xp.empty((size, d), xp.float32)
    # Squared change, product with momentum, largest, mean . to
    facts = xp.empty((4, size))
    y, v = xp.ascontiguousarray(batch.y), xp.ascontiguousarray(batch.v)
    for step in range(n_steps):
        arguments = (z_ahead, b_ahead, y, v, n_, slopes, curvatures, total, L_b)
        backend.launch("slopes_of_scores", (size,), threads_for(n), arguments)
        product = xp.ascontiguousarray(backend.transpose_dot(slopes, values))
        point = (product, matrix.mean, total, ahead, x, L)
        arguments = (*point, *own, d_, size_, to, single, facts)
        backend.launch(kernel, (size,), threads_for(d), arguments)
        product = xp.ascontiguousarray(backend.dot(values, single))
        arguments = (
            product,
            facts,
            total,
            L_b,
            curvatures,
            v,
            to,
            limit,
            xp.float64(c.RELAX),
            xp.float64(c.GROW),
            n_,
            d_,
            size_,
            x,
            ahead,
            z,
            z_ahead,
            b,
            b_ahead,
            t,
            L,
            residual,
            done,
            taken,
        )
        backend.launch("judge_step", (size,), threads_for(max(n, d)), arguments)
        look = tol is not None and step % here.CHECK_EVERY == here.CHECK_EVERY - 1
        if look and bool(done.all()):
            break
    return BlockResult(x, b, z, L, residual, taken)


def start_length(batch: Batch, matrix: CentredBatch, L: Any) -> Any:
    """The step sizes to start from: those known, else from the curvature.

    That is about the largest eigenvalue of ``M^T diag(v/4) M`` of each problem, by
    power steps.
    """
    xp = batch.xp
    unknown = L <= 0
    if not bool(unknown.any()):
        return L
    start = 1.0 + xp.arange(matrix.n_columns) % 3
    x = xp.broadcast_to(start.astype(xp.float64), (len(batch), matrix.n_columns))
    for _ in range(3):
        x = matrix.transpose_dot(batch.v * matrix.dot(x))
        norm = xp.sqrt((x * x).sum(axis=1))
        x = x / xp.maximum(norm, 1e-300)[:, None]
    return xp.where(unknown, xp.maximum(0.25 * norm, 1e-8), L)


def steps_on_w(batch: Batch, states: States, n_steps: int) -> States:
    """Steps on (w, b) alone at the states' reference weights."""
    matrix = ranks_of(batch, states.gamma)
    L = start_length(batch, matrix, states.L_w)
    done = accelerated_steps(
        batch, matrix, states.w, states.b, elastic_net(batch), L, n_steps
    )
    return with_weights(batch, states, done)


def with_weights(batch: Batch, states: States, done: BlockResult) -> States:
    """The states after steps on (w, b), with best intercepts and objectives."""
    b = best_intercept(batch, done.z, done.b)
    objective = loss_of(batch, done.z, b) + batch.penalty(done.x)
    n_iter = states.n_iter + done.n_steps
    return replace(
        states, w=done.x, b=b, objective=objective, L_w=done.L, n_iter=n_iter, z=done.z
    )
