"""Where arrays live, and the orders of samples there: sorted genes, the places of their
ties, and the rank passes.

Arrays are CuPy's on a GPU; the tests put NumPy in its place, and the rest serves both.
A kernel is reached through :meth:`Backend.launch` alone, with the arguments that its
CUDA source lists. One sorts a sample, or passes over it, in the shared memory of a
block. Where a sample has more genes than that holds (the GPU says how much it is),
array operations on a block of samples do the same.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.ranks.scoring import check_ties
from optirank_lab.device.constants import BLOCK_BYTES, FILLS_DEVICE, USABLE

if TYPE_CHECKING:
    from numpy.typing import NDArray

_C_TYPES = {
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
}


class DeviceError(ValueError):
    """The device that was asked for cannot be used; the message names the remedy."""


class Backend:
    """An array module, its kernels, and the few operations that NumPy and CuPy do
    differently.
    """

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    @cached_property
    def shared_bytes(self) -> int:
        """Shared memory that a block of threads may ask for: 64 to 227 KiB on GPUs
        of today.
        """
        return _most_shared_bytes(self.xp)

    def launch(
        self,
        name: str,
        blocks: tuple[int, ...],
        threads: int,
        arguments: tuple,
        *,
        shared: int = 0,
        types: tuple[str, str] | None = None,
    ) -> None:
        """Run a kernel; ``types`` are the unsigned types of one in ``orders.cu``."""
        kernel = _kernel(self.xp, name, types)
        kernel(blocks, (threads,), arguments, shared_mem=shared)

    def fuse(self, function: Callable) -> Callable:
        """A function of arrays, element by element, as one kernel."""
        return self.xp.fuse()(function)

    def array(self, values: Any, dtype: Any = None) -> Any:
        """An array on the device."""
        return self.xp.asarray(values, dtype=dtype)

    def host(self, values: Any) -> NDArray:
        """The array as NumPy has it."""
        return self.xp.asnumpy(values)

    def free_bytes(self) -> int:
        """Memory that arrays may still take."""
        free, _ = self.xp.cuda.runtime.memGetInfo()
        pool = self.xp.get_default_memory_pool()
        return int(USABLE * (free + pool.total_bytes() - pool.used_bytes()))

    def check_memory(self, needed: int, what: str) -> None:
        """A :class:`DeviceError` where a problem does not fit, however small
        the batch.
        """
        free = self.free_bytes()
        if needed > free:
            raise DeviceError(
                f"device='cuda': {what} needs about {needed / 1e9:.1f} GB and "
                f"{free / 1e9:.1f} GB of GPU memory are free: select fewer genes or "
                "samples, free the GPU, or use device='cpu'"
            )

    def dot(self, matrix: Any, x: Any) -> Any:
        """``M x`` for each problem: (B, n, d) and (B, d) give (B, n); (B, m, d) give
        (B, m, n).
        """
        if x.ndim == 3 and x.shape[1] > 1:
            return self.xp.matmul(x, matrix.transpose(0, 2, 1))
        if x.ndim == 3:
            return self.dot(matrix, x[:, 0])[:, None]
        if matrix[0].size >= FILLS_DEVICE:
            return self.xp.stack(
                [item @ row for item, row in zip(matrix, x, strict=True)]
            )
        return self.xp.matmul(matrix, x[:, :, None])[:, :, 0]

    def transpose_dot(self, a: Any, matrix: Any) -> Any:
        """``M^T a`` for each problem: (B, n) gives (B, d); (B, m, n) give (B, m, d)."""
        if a.ndim == 3 and a.shape[1] > 1:
            return self.xp.matmul(a, matrix)
        if a.ndim == 3:
            return self.transpose_dot(a[:, 0], matrix)[:, None]
        if matrix[0].size >= FILLS_DEVICE:
            return self.xp.stack(
                [row @ item for item, row in zip(matrix, a, strict=True)]
            )
        return self.xp.matmul(a[:, None, :], matrix)[:, 0, :]


@cache
def _kernel(cupy: Any, name: str, types: tuple[str, str] | None) -> Any:
    kernel = _module(cupy, types).get_function(name)
    # Those of orders ask for shared memory at each launch, up to all of it
    if types is not None:
        kernel.max_dynamic_shared_size_bytes = _most_shared_bytes(cupy)
    return kernel


def _most_shared_bytes(cupy: Any) -> int:
    return int(cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"])


@cache
def _module(cupy: Any, types: tuple[str, str] | None) -> Any:
    """A compiled source of this folder: that of orders, with its INDEX and KEY, or
    of steps.
    """
    folder = resources.files("optirank_lab.device")
    source = folder.joinpath("steps.cu" if types is None else "orders.cu").read_text()
    if types is not None:
        index, key = (_C_TYPES[item] for item in types)
        source = source.replace("INDEX", index).replace("KEY", key)
    return cupy.RawModule(code=source, options=("--std=c++14",))


def threads_for(n: int) -> int:
    """Threads of a block that goes over n entries: whole warps, few where there is
    little to do.
    """
    return 128 if n <= 256 else 256 if n <= 4096 else 1024


@cache
def backend_of(device: str) -> Backend:
    """The backend of a device; a :class:`DeviceError` where it cannot be used."""
    if device != "cuda":
        raise ValueError(f"device={device!r}: use 'cpu' or 'cuda'")
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        raise DeviceError(
            "device='cuda' needs CuPy, which cannot be imported here: install it with "
            "pip install 'optirank-lab[gpu]', or use device='cpu'"
        ) from error
    try:
        cupy.cuda.runtime.getDeviceCount()  # an error where there is none
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise DeviceError(
            f"device='cuda': no CUDA GPU can be used ({reason}): check with nvidia-smi "
            "that there is one and its driver works, or use device='cpu'"
        ) from error
    return Backend(cupy)


def check_device(device: Any) -> None:
    """A known and usable device, or an error before any work."""
    if device != "cpu":
        backend_of(device)


_GRID = 65_535  # the most blocks that CUDA allows in the second axis of a grid


@dataclass(frozen=True)
class DeviceOrders:
    """The order of each sample: ``perm`` sorts its genes, ``start`` and ``end`` bound
    the ties.

    With ``c`` the prefix sums of weights in sorted order, the weights below gene j's
    group are ``c[start_j]`` and those of the group ``c[end_j] - c[start_j]``. Some of
    the samples, such as the training part of a fold, are the same arrays with other
    ``rows``: fits on several parts run side by side over all samples, those of the
    other parts having weight zero.
    """

    backend: Backend
    perm: Any  # (n, d): the gene at each place
    start: Any  # (n, d): the first place of each gene's tie group
    end: Any  # (n, d): the place behind its last one
    rows: NDArray  # positions of the samples that are meant

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.rows)

    @property
    def n_genes(self) -> int:
        """Number of genes, d."""
        return self.perm.shape[1]

    @property
    def whole(self) -> DeviceOrders:
        """All samples that lie sorted together with these."""
        return replace(self, rows=np.arange(len(self.perm)))

    def take(self, samples: NDArray) -> DeviceOrders:
        """The orders of some of the samples (positions or a mask): nothing
        is copied.
        """
        return replace(self, rows=self.rows[samples])

    def ranks(self, gamma: Any, ties: str, size: Any = 1.0) -> Any:
        """``(C_i gamma - offset) / size`` for each row of gamma: (B, n, d), float32.

        ``size`` is one number, or one per row.
        """
        tie, offset = check_ties(ties)
        xp = self.backend.xp
        size = xp.broadcast_to(xp.asarray(size, dtype=xp.float64), (len(gamma),))
        return self._pass(gamma / size[:, None], -offset / size, 1.0, tie)

    def coranks(self, w: Any, ties: str) -> Any:
        """``C_i^T w`` for each row of w: (B, n, d), float32."""
        tie, _ = check_ties(ties)
        return self._pass(w, w.sum(axis=1), -1.0, 1.0 - tie)

    def scores_of_many(
        self, w: NDArray, gamma: NDArray, ties: str = "average"
    ) -> NDArray:
        """``w . (C_i gamma - offset)`` of each sample for each row of w and
        gamma: (B, n).
        """
        backend, xp = self.backend, self.backend.xp
        scores = np.empty((len(w), self.n_samples))
        at_once = max(1, backend.free_bytes() // (8 * self.n_samples * self.n_genes))
        for begin in range(0, len(w), at_once):
            part = slice(begin, begin + at_once)
            values = self.ranks(backend.array(gamma[part]), ties)
            weights = backend.array(w[part], xp.float32)
            scores[part] = backend.host(backend.dot(values, weights))
        return scores

    def _pass(self, a: Any, base: Any, sign: float, tie: float) -> Any:
        """``base + sign (c_k + tie h_k)`` at each gene's tie group k, for each row of
        a.

        ``c_k`` is the sum of the weights below the group and ``h_k`` that of the group.
        """
        backend, xp = self.backend, self.backend.xp
        n, d = self.perm.shape
        out = xp.empty((len(a), n, d), xp.float32)
        threads = 128 if d <= 1024 else 256 if d <= 8192 else 512
        shared = 8 * (d + 1 + threads // 32)  # prefix sums, and a sum per warp
        if shared > backend.shared_bytes:
            for rows in _blocks_of_samples(n, d):
                self._pass_of_arrays(a, base, sign, tie, rows, out)
            return out
        a = xp.ascontiguousarray(a, dtype=xp.float32)
        base = xp.ascontiguousarray(base, dtype=xp.float64)
        for begin in range(0, len(out), _GRID):
            part = out[begin : begin + _GRID]
            arguments = (
                self.perm,
                self.start,
                self.end,
                a[begin:],
                base[begin:],
                xp.float64(sign),
                xp.float64(tie),
                xp.int32(n),
                xp.int32(d),
                part,
            )
            types = (str(self.perm.dtype), "uint32")
            backend.launch(
                "rank_pass",
                (n, len(part)),
                threads,
                arguments,
                shared=shared,
                types=types,
            )
        return out

    def _pass_of_arrays(
        self, a: Any, base: Any, sign: float, tie: float, rows: slice, out: Any
    ) -> None:
        xp = self.backend.xp
        perm, start, end = (
            part[rows].astype(xp.int64) for part in (self.perm, self.start, self.end)
        )
        c = xp.zeros((len(perm), perm.shape[1] + 1))
        for item, weights in enumerate(a):
            xp.cumsum(weights.astype(xp.float64)[perm], axis=1, out=c[:, 1:])
            low = xp.take_along_axis(c, start, axis=1)
            high = xp.take_along_axis(c, end, axis=1)
            out[item, rows] = base[item] + sign * (low + tie * (high - low))


def orders_for(X: Any, device: str) -> DeviceOrders:
    """Samples sorted on a device by its name; a DeviceError where it cannot be used."""
    return order_on_device(backend_of(device), X)


def order_on_device(backend: Backend, X: Any) -> DeviceOrders:
    """Sort the genes of each sample on the device; X is dense or sparse, on the host or
    there.

    The orders are dense whatever X is, and are sorted a block of samples at a time.
    """
    xp = backend.xp
    n, d = X.shape
    index = xp.dtype(xp.uint16 if d <= np.iinfo(np.uint16).max else xp.uint32)
    sorting = 4 * min(BLOCK_BYTES, 8 * n * d)  # arrays like the values of a block
    needed = 3 * n * d * index.itemsize + sorting
    backend.check_memory(needed, f"the order of {n} samples x {d} genes")
    perm, start, end = (xp.empty((n, d), index) for _ in range(3))
    rows = max(1, BLOCK_BYTES // (8 * d))
    for begin in range(0, n, rows):
        part = slice(begin, begin + rows)
        values = X[part].toarray() if hasattr(X, "toarray") else X[part]
        keys = _keys(xp, backend.array(values))
        _sort(backend, keys, perm[part], start[part], end[part])
    return DeviceOrders(backend, perm, start, end, np.arange(n))


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
        # + 0.0: one zero, not two
        bits = (values.astype(xp.float64) + 0.0).view(xp.uint64)
        return xp.where(bits >> xp.uint64(63), ~bits, bits | xp.uint64(1 << 63))
    bits = (single + xp.float32(0.0)).view(xp.uint32)
    return xp.where(bits >> xp.uint32(31), ~bits, bits | xp.uint32(1 << 31))


def _sort(backend: Backend, keys: Any, perm: Any, start: Any, end: Any) -> None:
    """Write the sorted genes of each row of unsigned ``keys``, and the places of
    their ties.
    """
    xp, index = backend.xp, perm.dtype
    n, d = keys.shape
    size = 1 << max(1, (d - 1).bit_length())  # a bitonic sort takes a power of two
    shared = size * (keys.dtype.itemsize + index.itemsize)
    if shared <= backend.shared_bytes:
        sizes = (xp.int32(n), xp.int32(d), xp.int32(size))
        backend.launch(
            "sort_samples",
            (n,),
            min(1024, max(32, size // 2)),
            (keys, *sizes, perm, start, end),
            shared=shared,
            types=(str(index), str(keys.dtype)),
        )
        return
    for rows in _blocks_of_samples(n, d):
        order = xp.argsort(keys[rows], axis=1, kind="stable")
        ordered = xp.take_along_axis(keys[rows], order, axis=1)
        first = xp.ones(order.shape, bool)
        first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        # Of the groups of all rows
        bounds = xp.append(xp.flatnonzero(first), first.size)
        group = xp.cumsum(first.ravel()).reshape(order.shape) - 1
        sample = xp.arange(len(order))[:, None]
        perm[rows] = order
        start[rows][sample, order] = bounds[group] - sample * d
        end[rows][sample, order] = bounds[group + 1] - sample * d


def _blocks_of_samples(n: int, d: int) -> Iterator[slice]:
    """Samples for which a dozen arrays of 64 bits are small beside the memory."""
    step = max(1, BLOCK_BYTES // (12 * 8 * d))
    return (slice(begin, begin + step) for begin in range(0, n, step))
