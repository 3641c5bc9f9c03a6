"""CUDA kernels: sorting, the rank pass, projections, intercepts, conjugate gradients.

Each has a twin in NumPy beside its wrapper, which the tests compare it with, and which also runs on
CuPy arrays where a sample has more genes than the shared memory of a block can hold.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from optirank.solver.device.fused import formulas

_SHARED = 224 * 1024  # bytes of shared memory that a block may ask for, at most


@cache
def cuda_module(name: str, index: str = "uint16", key: str = "uint32") -> Any:
    """A compiled source of this folder, its INDEX and KEY being these types."""
    import cupy  # loaded only where a GPU is used

    names = {"uint16": "unsigned short", "uint32": "unsigned int", "uint64": "unsigned long long"}
    folder = resources.files("optirank.solver.device")
    text = "".join(folder.joinpath(one).read_text() for one in ("blocks.cu", name))
    source = text.replace("INDEX", names[index]).replace("KEY", names[key])
    return cupy.RawModule(code=source, options=("--std=c++14",))


@cache
def _kernel(name: str, index: str, key: str, shared: int) -> Any:
    kernel = cuda_module("kernels.cu", index, key).get_function(name)
    if shared > 48 * 1024:
        kernel.max_dynamic_shared_size_bytes = shared
    return kernel


def rank_values(
    xp: Any, order: Any, a: Any, base: Any, sign: float, tie: float, out: Any, per_sample: bool
) -> Any:
    """Write ``base + sign (c_k + tie h_k)`` at each gene's tie group k, see ``rank_loops``.

    ``a`` has one row of weights per item, (B, d), and ``out`` is (B, n, d); or, ``per_sample``,
    one row per sample, (n, d), ``out`` being (1, n, d), and the sample's sum of weights is added:
    the base of co-ranks.
    """
    n, d = order.perm.shape
    threads = 128 if d <= 1024 else 256 if d <= 8192 else 512
    shared = 8 * (d + 1 + threads // 32)
    if xp.__name__ == "numpy" or shared > _SHARED:
        return _rank_values_plain(xp, order, a, base, sign, tie, out, per_sample)
    kernel = _kernel("rank_pass", str(order.perm.dtype), "uint32", shared)
    strides = (0, d) if per_sample else (d, 0)
    a = xp.ascontiguousarray(a, dtype=xp.float32)
    base = xp.ascontiguousarray(base, dtype=xp.float64)
    items = len(out)
    for begin in range(0, items, 65_535):  # the most blocks that the second axis of a grid can have
        part = out[begin : begin + 65_535]
        arguments = (
            order.perm, order.start, order.end,
            a if per_sample else a[begin:], xp.int64(strides[0]), xp.int64(strides[1]),
            base if per_sample else base[begin:], xp.float64(sign), xp.float64(tie),
            xp.int32(n), xp.int32(d), part,
        )  # fmt: skip
        kernel((n, len(part)), (threads,), arguments, shared_mem=shared)
    return out


def _rank_values_plain(xp, order, a, base, sign, tie, out, per_sample) -> Any:
    n, d = order.perm.shape
    perm, start, end = (part.astype(xp.int64) for part in (order.perm, order.start, order.end))
    rows = xp.arange(n)[:, None]
    for item in range(len(out)):
        weights = xp.asarray(a if per_sample else a[item], dtype=xp.float64)
        c = xp.zeros((n, d + 1))
        sorted_weights = weights[rows, perm] if per_sample else weights[perm]
        xp.cumsum(sorted_weights, axis=1, out=c[:, 1:])
        low, high = c[rows, start], c[rows, end]
        first = base[0] + c[:, -1:] if per_sample else base[item]
        out[item] = first + sign * (low + tie * (high - low))
    return out


def sort_keys(xp: Any, keys: Any, index: Any) -> tuple[Any, Any, Any]:
    """Sorted genes of each row of unsigned ``keys``, and the first and last place of their ties."""
    n, d = keys.shape
    perm, start, end = (xp.empty((n, d), index) for _ in range(3))
    size = 1 << max(1, (d - 1).bit_length())
    shared = size * (keys.dtype.itemsize + xp.dtype(index).itemsize)
    if xp.__name__ == "numpy" or shared > _SHARED or size > 65_536:
        return _sort_plain(xp, keys, perm, start, end)
    kernel = _kernel("sort_samples", str(xp.dtype(index)), str(keys.dtype), shared)
    threads = min(1024, max(32, size // 2))
    sizes = (xp.int32(n), xp.int32(d), xp.int32(size))
    kernel((n,), (threads,), (keys, *sizes, perm, start, end), shared_mem=shared)
    return perm, start, end


def _sort_plain(xp, keys, perm, start, end) -> tuple[Any, Any, Any]:
    d = keys.shape[1]
    for i in range(len(keys)):
        order = xp.argsort(keys[i], kind="stable")
        ordered = keys[i][order]
        perm[i] = order
        start[i, order] = xp.searchsorted(ordered, ordered, side="left")
        end[i, order] = xp.searchsorted(ordered, ordered, side="right")
    assert end.max() <= d
    return perm, start, end


def project_rows(xp: Any, x: Any, s: Any) -> Any:
    """The nearest point of ``{0 <= u <= 1, sum u = s}`` to each row of x, with its own s."""
    if xp.__name__ == "numpy":
        from optirank.solver.feasible import project_capped_simplex

        return xp.stack([project_capped_simplex(row, size) for row, size in zip(x, s, strict=True)])
    x = xp.ascontiguousarray(x, dtype=xp.float64)
    out = xp.empty_like(x)
    kernel = _kernel("project_rows", "uint16", "uint32", 0)
    sums = xp.ascontiguousarray(s, dtype=xp.float64)
    kernel((len(x),), (256,), (x, sums, xp.int32(x.shape[1]), out))
    return out


def best_intercept(xp: Any, z: Any, y: Any, v: Any, b: Any, n_steps: int = 10) -> Any:
    """The b of each problem that minimises the loss at scores z + b."""
    if xp.__name__ != "numpy":
        b = xp.array(b, dtype=xp.float64)
        rows = (xp.ascontiguousarray(one, dtype=xp.float64) for one in (z, y, v))
        threads = 256 if z.shape[1] <= 4096 else 1024
        kernel = _kernel("best_intercepts", "uint16", "uint32", 0)
        kernel((len(b),), (threads,), (*rows, xp.int32(z.shape[1]), xp.int32(n_steps), b))
        return b
    low, high = xp.full(len(b), -1e300), xp.full(len(b), 1e300)
    reach = 2.0
    for _ in range(n_steps):
        slopes, curvatures = formulas(xp).logistic(z, b[:, None], y, v)
        slope, curvature = slopes.sum(axis=1), curvatures.sum(axis=1)
        high = xp.where(slope > 0, xp.minimum(high, b), high)
        low = xp.where(slope > 0, low, xp.maximum(low, b))
        move = xp.clip(slope / xp.maximum(curvature, 1e-12), -reach, reach)
        following = b - move
        inside = (following >= low) & (following <= high)
        b = xp.where(inside, following, 0.5 * (low + high))
        reach *= 2.0
    return b


def weigh_scores(xp: Any, u: Any, c: Any) -> Any:
    """``c (u - sum c u / sum c)`` in float32: (B, m, n) scores, (B, n) weights."""
    size, m, n = u.shape
    if xp.__name__ == "numpy":
        weights = c[:, None, :].astype(xp.float64)
        total = xp.maximum(weights.sum(axis=2, keepdims=True), 1e-30)
        shift = (weights * u).sum(axis=2, keepdims=True) / total
        return (weights * (u - shift)).astype(xp.float32)
    u, c = (xp.ascontiguousarray(one, dtype=xp.float32) for one in (u, c))
    out = xp.empty_like(u)
    kernel = _kernel("weigh_scores", "uint16", "uint32", 0)
    threads = 256 if n <= 8192 else 1024
    kernel((size * m,), (threads,), (u, c, xp.int32(n), xp.int32(m), out))
    return out


class ConjugateGradients:
    """``H x = right`` for m right-hand sides of each problem, (B, m, d), step by step.

    ``H`` is a product that the caller forms with ``direction`` (float32), plus a ridge, on the
    support of each problem. The diagonal of H preconditions; a right-hand side whose residual is
    below ``tol`` times its norm, or that is bent downwards, stays where it is.
    """

    def __init__(self, xp: Any, right: Any, support: Any, diagonal: Any, ridge: Any, tol: float):
        self._xp = xp
        self._support = xp.ascontiguousarray(support)  # (B, d)
        self._diagonal = xp.ascontiguousarray(diagonal)  # (B, d)
        self._ridge = xp.ascontiguousarray(ridge)  # (B,)
        self._r = xp.where(support[:, None, :], right, 0.0)
        self._p = self._r / diagonal[:, None, :]
        self._rz = (self._r * self._p).sum(axis=2)
        squared = (self._r * self._r).sum(axis=2)
        self._limit = tol * tol * xp.maximum(squared, 1e-300)
        self.direction = self._p.astype(xp.float32)
        self.x = xp.zeros_like(self._r)
        self.active = xp.ones(squared.shape, bool)

    def step(self, product: Any) -> None:
        """Go on, given ``H direction`` without the ridge, float32."""
        xp = self._xp
        if xp.__name__ == "numpy":
            self._step_plain(product)
            return
        size, m, d = self.x.shape
        kernel = _kernel("gradient_step", "uint16", "uint32", 0)
        arguments = (
            xp.ascontiguousarray(product, dtype=xp.float32), self._diagonal, self._support,
            self._ridge, self._limit, xp.int32(d), xp.int32(m), self.x, self._r, self._p,
            self.direction, self._rz, self.active,
        )  # fmt: skip
        kernel((size * m,), (256,), arguments)

    def _step_plain(self, product: Any) -> None:
        xp, r, p = self._xp, self._r, self._p
        q = product + self._ridge[:, None, None] * p
        q = xp.where(self._support[:, None, :], q, 0.0)
        bent = (p * q).sum(axis=2)
        self.active &= ((r * r).sum(axis=2) > self._limit) & (bent > 0)
        alpha = xp.where(self.active, self._rz / xp.where(self.active, bent, 1.0), 0.0)
        self.x += alpha[:, :, None] * p
        r -= alpha[:, :, None] * q
        z = r / self._diagonal[:, None, :]
        after = (r * z).sum(axis=2)
        share = xp.where(self.active, after / xp.where(self.active, self._rz, 1.0), 0.0)
        self._p = xp.where(self.active[:, :, None], z + share[:, :, None] * p, p)
        self._rz = xp.where(self.active, after, self._rz)
        self.direction = self._p.astype(xp.float32)
