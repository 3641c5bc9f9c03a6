"""Products of many matrices, each with a vector of its own, on a GPU.

The array module's batched product is made for matrices times matrices and reaches a part of the
memory's speed here, which is what these products take their time from.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

_WARPS = 8  # of a block
_ROWS = 4  # of a warp, as in products.cu
_BLOCKS = 2000  # that keep a GPU busy
_FEWEST_ROWS = 64  # of a part of the sum over samples
MOST = 65_535  # problems: the blocks of the second axis of a grid


def batched_dot(xp: Any, matrix: Any, x: Any) -> Any:
    """``M x`` of each problem: (B, n, d) and (B, d) give (B, n), in float32."""
    size, n, d = matrix.shape
    out = xp.empty((size, n), xp.float32)
    arguments = (matrix, xp.ascontiguousarray(x), xp.int32(n), xp.int32(d), out)
    blocks = -(-n // (_WARPS * _ROWS))
    _kernel("batched_dot")((blocks, size), (32 * _WARPS,), arguments)
    return out


def batched_transpose_dot(xp: Any, a: Any, matrix: Any) -> Any:
    """``M^T a`` of each problem: (B, n) and (B, n, d) give (B, d), in float32.

    Few problems are cut into parts of their samples, whose sums are then added.
    """
    size, n, d = matrix.shape
    tiles = -(-d // 128)
    parts = max(1, min(-(-_BLOCKS // (tiles * size)), n // _FEWEST_ROWS))
    out = xp.empty((parts, size, d), xp.float32)
    arguments = (
        matrix, xp.ascontiguousarray(a), xp.int32(n), xp.int32(d), xp.int32(-(-n // parts)),
        xp.int32(size), out,
    )  # fmt: skip
    _kernel("batched_transpose_dot")(
        (tiles, size, parts), (32 * _WARPS,), arguments, shared_mem=4 * 128 * _WARPS
    )
    return out[0] if parts == 1 else out.sum(axis=0)


@cache
def _module() -> Any:
    import cupy  # loaded only where a GPU is used

    text = resources.files("optirank.solver.device").joinpath("products.cu").read_text()
    return cupy.RawModule(code=text, options=("--std=c++14",))


@cache
def _kernel(name: str) -> Any:
    return _module().get_function(name)
