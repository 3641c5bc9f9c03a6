"""Many binary problems on one order of samples, points on their way, and their matrices.

A problem of the batch is a row: labels, sample weights, size of the reference set, penalties. The
samples that a fold holds out have weight zero, so all folds of a search share one order, and the
scores of held-out samples come with those of the others.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from optirank.solver.device.backend import Backend
from optirank.solver.device.orders import DeviceOrders


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
    allowed: Any = None  # (d,) mask of the genes that may be in a reference set; None: all

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
    """A point of each problem; b belongs to centred matrices, L to the blocks' step sizes."""

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
        return States(**{one.name: getattr(self, one.name)[items] for one in fields(self)})

    def put(self, items: Any, others: States) -> States:
        """These points with some of them replaced."""
        arrays = {one.name: getattr(self, one.name).copy() for one in fields(self)}
        for name, values in arrays.items():
            values[items] = getattr(others, name)
        return States(**arrays)

    def better(self, xp: Any, others: States, improved: Any) -> States:
        """The others where ``improved``, else these."""
        mixed = {}
        for one in fields(self):
            old, new = getattr(self, one.name), getattr(others, one.name)
            mask = improved[:, None] if old.ndim == 2 else improved
            mixed[one.name] = xp.where(mask, new, old)
        return States(**mixed)


class CentredBatch:
    """Matrices M of the problems, (B, n, d), seen with weighted column means zero.

    The mean is subtracted in the products, not in the matrix, which saves two passes over it.
    """

    def __init__(self, backend: Backend, values: Any, v: Any) -> None:
        self.backend = backend
        self.values = values
        self.mean = backend.transpose_dot(v.astype(values.dtype), values).astype(backend.xp.float64)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.values.shape[2]

    def dot(self, x: Any) -> Any:
        """``(M - 1 mean^T) x`` of each problem, float64."""
        xp = self.backend.xp
        z = self.backend.dot(self.values, x.astype(self.values.dtype)).astype(xp.float64)
        return z - (self.mean * x).sum(axis=1)[:, None]

    def transpose_dot(self, a: Any) -> Any:
        """``(M - 1 mean^T)^T a`` of each problem, float64; a is (B, n), or (B, m, n)."""
        mean = self.mean if a.ndim == 2 else self.mean[:, None, :]
        product = self.backend.transpose_dot(a.astype(self.values.dtype), self.values)
        return product.astype(self.backend.xp.float64) - mean * a.sum(axis=-1)[..., None]

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
