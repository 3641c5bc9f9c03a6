"""One thread per fit: the threads of BLAS while fits run side by side."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager:
    """A context in which BLAS uses one thread: fits run in parallel over classes instead."""
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
