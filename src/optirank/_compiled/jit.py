"""One wrapper around numba.njit: cached on disk where that works, silent where it does not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numba  # noqa: TID251  (this module is the wrapper)


def _set_writable_cache() -> None:
    """Point numba at a cache folder that can be written, if the default one cannot.

    numba keeps compiled code beside the source file. In a read-only installation it would fail
    with "cannot cache function", so we send it to a folder of the user's.
    """
    if "NUMBA_CACHE_DIR" in os.environ or os.access(Path(__file__).parent, os.W_OK):
        return
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "optirank"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    if os.access(folder, os.W_OK):
        numba.config.CACHE_DIR = str(folder)


_set_writable_cache()


def jit(function: Callable | None = None, *, fastmath: bool = False) -> Callable:
    """Compile with numba: no GIL, cached on disk where possible, never ``parallel``."""

    def compile_(f: Callable) -> Callable:
        try:
            return numba.njit(nogil=True, cache=True, fastmath=fastmath)(f)
        except RuntimeError:  # "cannot cache function": nowhere to write, so compile in memory
            return numba.njit(nogil=True, fastmath=fastmath)(f)

    return compile_ if function is None else compile_(function)
