"""One wrapper around numba.njit: cached on disk where that works, silent where it does
not.

numba looks for a folder to keep compiled code in: ``NUMBA_CACHE_DIR``, then
``__pycache__`` beside the source, then the user's own cache folder, so a read-only
installation is no trouble. Two things would still stop a fit, and here they only cost
the time to compile again: no such folder at all (numba raises when the function is
defined), and one that fails later, because the disk or the quota is full or a file in
it is damaged (numba raises at the first call).
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba  # noqa: TID251  (this module is the wrapper)

_PROXIMAL_MAP = "void(float64[::1], float64, float64[::1])"
_CACHE_TROUBLE = (OSError, EOFError, pickle.UnpicklingError)


def jit(function: Callable | None = None, *, fastmath: bool = False) -> Callable:
    """Compile with numba: no GIL, cached on disk where possible, never ``parallel``.

    A product and the sum it goes into may be rounded once instead of twice (fused
    multiply-add), which is faster and no less accurate; ``fastmath=True`` also lets
    sums be reordered.
    """
    flags = True if fastmath else {"contract"}

    def compile_(f: Callable) -> Callable:
        try:
            compiled = numba.njit(
                nogil=True, error_model="numpy", cache=True, fastmath=flags
            )(f)
        except (
            RuntimeError
        ):  # "cannot cache function": nowhere to write, so compile in memory
            return numba.njit(nogil=True, error_model="numpy", fastmath=flags)(f)
        _forgive(getattr(compiled, "_cache", None))
        return compiled

    return compile_ if function is None else compile_(function)


def proximal_map(function: Callable) -> Callable:
    """Compile ``function(x, step, parameters)`` so that a compiled loop takes it as an
    argument.

    x is changed in place; both arrays are float64 vectors. The loop gets the address of
    the code: it is compiled once for all maps, and both are cached on disk.
    """
    flags = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
    try:
        return numba.cfunc(_PROXIMAL_MAP, cache=True, **flags)(function)
    except (RuntimeError, *_CACHE_TROUBLE):  # compiled in memory alone
        return numba.cfunc(_PROXIMAL_MAP, **flags)(function)


def is_compiled(function: Any) -> bool:
    """Whether a compiled function needs no compilation now: it has run, or is kept
    on disk.
    """
    if function.signatures:
        return True
    folder = function.stats.cache_path
    name = f"*.{function.__name__}-*.nbi"
    return folder is not None and any(Path(folder).glob(name))


def _forgive(cache: Any) -> None:
    """Let a cache that cannot be read or written be as good as an empty one."""
    for name in ("load_overload", "save_overload"):
        if hasattr(cache, name):
            setattr(cache, name, _forgiving(getattr(cache, name)))


def _forgiving(method: Callable) -> Callable:
    def call(*args: Any) -> Any:
        with contextlib.suppress(*_CACHE_TROUBLE):
            return method(*args)
        return None

    return call
