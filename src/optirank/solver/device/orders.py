"""Orders of samples on a device: sorted genes and the places of their ties, and the passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.ranks.definition import check_ties
from optirank.solver.device.backend import Backend, out_of_memory
from optirank.solver.device.kernels import rank_values, sort_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGEST = 65_535  # genes whose places fit into 16 bits
_BLOCK_BYTES = 1 << 30  # values that are sorted at a time
_ARRAYS = 3  # of an order: genes in their order, first and last places of ties
_SORTING = 4  # arrays like the values of a block that sorting holds


@dataclass(frozen=True)
class DeviceOrders:
    """The order of each sample: ``perm`` sorts its genes, ``start`` and ``end`` bound the ties.

    With ``c`` the prefix sums of weights in sorted order, the weights below gene j's group are
    ``c[start_j]`` and those of the group ``c[end_j] - c[start_j]``.
    """

    backend: Backend
    perm: Any  # (n, d): the gene at each place
    start: Any  # (n, d): the first place of each gene's tie group
    end: Any  # (n, d): the place behind its last one

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return self.perm.shape[0]

    @property
    def n_genes(self) -> int:
        """Number of genes, d."""
        return self.perm.shape[1]

    @property
    def whole(self) -> DeviceOrders:
        """All samples, these being all."""
        return self

    @property
    def rows(self) -> NDArray:
        """Positions among all samples."""
        return np.arange(self.n_samples)

    def take(self, samples: NDArray) -> SomeOrders:
        """The orders of some of the samples (positions or a mask): nothing is copied."""
        return SomeOrders(self, self.rows[samples])

    def over(self, genes: NDArray) -> DeviceOrders:
        """The orders of some genes (positions) among themselves."""
        xp = self.backend.xp
        keys = self.start[:, self.backend.array(genes)].astype(xp.uint32)
        return DeviceOrders(self.backend, *sort_keys(xp, keys, self.perm.dtype))

    def ranks(self, gamma: Any, ties: str, out: Any = None, size: Any = 1.0) -> Any:
        """``(C_i gamma - offset) / size`` for each row of gamma: (B, n, d), float32.

        ``size`` is one number, or one per row.
        """
        tie, offset = check_ties(ties)
        xp = self.backend.xp
        size = xp.broadcast_to(xp.asarray(size, dtype=xp.float64), (len(gamma),))
        return self._values(gamma / size[:, None], -offset / size, 1.0, tie, out)

    def coranks(self, w: Any, ties: str, out: Any = None) -> Any:
        """``C_i^T w`` for each row of w: (B, n, d), float32."""
        tie, _ = check_ties(ties)
        return self._values(w, w.sum(axis=1), -1.0, 1.0 - tie, out)

    def coranks_of_samples(self, weights: Any, ties: str, out: Any = None) -> Any:
        """``C_i^T weights_i`` with a row of weights per sample: (n, d), float32."""
        tie, _ = check_ties(ties)
        xp = self.backend.xp
        out = xp.empty((1, self.n_samples, self.n_genes), xp.float32) if out is None else out
        return rank_values(xp, self, weights, xp.zeros(1), -1.0, 1.0 - tie, out, True)[0]

    def scores(self, w: NDArray, gamma: NDArray, ties: str = "average") -> NDArray:
        """``w . (C_i gamma - offset)`` of each sample, on the host."""
        return self.scores_of_many(w[None], gamma[None], ties)[0]

    def scores_of_many(self, w: NDArray, gamma: NDArray, ties: str = "average") -> NDArray:
        """The same for many models, one per row of w and gamma: (B, n)."""
        backend, xp = self.backend, self.backend.xp
        found = np.empty((len(w), self.n_samples))
        at_once = max(1, backend.free_bytes() // (8 * self.n_samples * self.n_genes))
        for begin in range(0, len(w), at_once):
            part = slice(begin, begin + at_once)
            values = self.ranks(backend.array(gamma[part]), ties)
            weights = backend.array(w[part], xp.float32)
            found[part] = backend.host(backend.dot(values, weights))
        return found

    def _values(self, a: Any, base: Any, sign: float, tie: float, out: Any) -> Any:
        xp = self.backend.xp
        if out is None:
            out = xp.empty((len(a), self.n_samples, self.n_genes), xp.float32)
        return rank_values(xp, self, a, base, sign, tie, out[: len(a)], False)


@dataclass(frozen=True)
class SomeOrders:
    """Some of the samples that lie sorted on a device, such as the training part of a fold.

    Fits on several parts run side by side over all samples, those of the other parts having weight
    zero.
    """

    whole: DeviceOrders
    rows: NDArray  # positions

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.rows)

    @property
    def n_genes(self) -> int:
        """Number of genes, d."""
        return self.whole.n_genes

    def scores(self, w: NDArray, gamma: NDArray, ties: str = "average") -> NDArray:
        """``w . (C_i gamma - offset)`` of each of these samples, on the host."""
        return self.whole.scores(w, gamma, ties)[self.rows]

    def over(self, genes: NDArray) -> SomeOrders:
        """The orders of some genes (positions) among themselves."""
        return SomeOrders(self.whole.over(genes), self.rows)

    def take(self, samples: NDArray) -> SomeOrders:
        """The orders of some of these samples (positions or a mask)."""
        return SomeOrders(self.whole, self.rows[samples])


def order_on_device(backend: Backend, X: Any) -> DeviceOrders:
    """Sort the genes of each sample on the device; X is dense or sparse, on either side.

    The orders are dense whatever X is, and are sorted a block of samples at a time.
    """
    xp = backend.xp
    n, d = X.shape
    index = xp.uint16 if d <= _LARGEST else xp.uint32
    needed = _ARRAYS * n * d * xp.dtype(index).itemsize + _SORTING * min(_BLOCK_BYTES, 8 * n * d)
    if backend.on_gpu and needed > (free := backend.free_bytes()):
        raise out_of_memory(needed, free, f"the order of {n} samples x {d} genes")
    parts: list[tuple[Any, Any, Any]] = []
    rows = max(1, _BLOCK_BYTES // (8 * d))
    for begin in range(0, n, rows):
        block = X[begin : begin + rows]
        parts.append(sort_keys(xp, _keys(xp, backend.dense(block)), index))
    joined = (
        parts[0] if len(parts) == 1 else [xp.concatenate(one) for one in zip(*parts, strict=True)]
    )
    return DeviceOrders(backend, *joined)


def _keys(xp: Any, values: Any) -> Any:
    """Unsigned integers in the order of the values; equal values have equal keys.

    Values that float32 holds exactly get 32 bits, others 64.
    """
    if values.dtype.kind in "bu":
        return values.astype(xp.uint32 if values.dtype.itemsize <= 4 else xp.uint64)
    if values.dtype.kind == "i":
        wide = values.dtype.itemsize > 4
        values = values.astype(xp.int64 if wide else xp.int32)
        unsigned, bits = (xp.uint64, 63) if wide else (xp.uint32, 31)
        return values.view(unsigned) ^ unsigned(1 << bits)
    if not bool(xp.isfinite(values).all()):
        raise ValueError("X has values that are not finite: remove or replace them")
    single = values.astype(xp.float32)
    if values.dtype.itemsize > 4 and not bool((single == values).all()):
        bits = (values.astype(xp.float64) + 0.0).view(xp.uint64)  # + 0.0: one zero, not two
        return xp.where(bits >> xp.uint64(63), ~bits, bits | xp.uint64(1 << 63))
    bits = (single + xp.float32(0.0)).view(xp.uint32)
    return xp.where(bits >> xp.uint32(31), ~bits, bits | xp.uint32(1 << 31))


def from_groups(backend: Backend, groups: Any) -> DeviceOrders:
    """Orders from tie groups that were found on the CPU (``DenseOrders.groups``)."""
    index = groups.dtype if groups.dtype in (np.uint16, np.uint32) else np.uint32
    xp = backend.xp
    keys = backend.array(groups).astype(xp.uint32)
    return DeviceOrders(backend, *sort_keys(xp, keys, xp.dtype(index)))
