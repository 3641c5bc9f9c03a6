"""How many threads to use of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


def worker_count(n_jobs: int | None) -> int:
    """Number of workers: ``n_jobs``, one for None, all processors for -1, all but one
    for -2, ...

    Processors are those that this process may use (its affinity and its container's
    limit count), as joblib sees them; inside a worker of joblib there is one.
    """
    if n_jobs == 0:
        raise ValueError(
            "n_jobs=0 leaves no worker: use a count of at least 1, or -1 for all"
        )
    if n_jobs is None or n_jobs > 0:
        return n_jobs or 1
    from joblib import effective_n_jobs

    return effective_n_jobs(n_jobs)


@contextmanager
def threads(n_threads: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """A function like `map` that works in so many threads.

    One thread is the caller's own: to start another, and to wait for it, takes longer
    than much of the work.
    """
    if n_threads <= 1:
        yield map
        return
    with ThreadPoolExecutor(n_threads) as pool:
        yield pool.map


def one_blas_thread() -> AbstractContextManager:
    """A context in which BLAS uses one thread: fits run in parallel over classes
    instead.
    """
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    # It knows what is loaded: SciPy has a BLAS of its own
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
