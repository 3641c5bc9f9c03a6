"""How many threads or processes to use, and where: of this machine or of a dask
cluster.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Client
    from threadpoolctl import ThreadpoolController

_CONNECT_SECONDS = 10  # in which a scheduler must answer


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


@contextmanager
def connect(address: str) -> Iterator[Client]:
    """A client of the dask scheduler at an address; it has workers, or this is a
    ValueError.
    """
    try:
        from distributed import Client
    except ImportError:
        raise ImportError(
            "a dask cluster needs: pip install 'optirank[dask]'"
        ) from None
    _check_listening(address)
    try:
        client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(
            f"no dask scheduler answers at {address!r}: {error}"
        ) from error
    with client:
        if cluster_threads(client) == 0:
            raise ValueError(
                f"the dask scheduler at {address!r} has no workers: start some "
                f"(dask worker {address})"
            )
        yield client


def _check_listening(address: str) -> None:
    """Refuse at once an address where nothing listens; dask would try for a while."""
    scheme, _, place = address.rpartition("://")
    host, _, port = place.rpartition(":")
    if scheme not in ("", "tcp", "tls"):
        return
    if not host or not port.isdigit():
        raise ValueError(
            f"{address!r} is no address of a dask scheduler: write it as "
            "tcp://HOST:PORT"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), 5.0).close()
    except (OSError, OverflowError) as error:
        raise ValueError(
            f"no dask scheduler answers at {address!r}: {error}; start one (dask "
            "scheduler) or check the address"
        ) from error


def cluster_threads(client: Client) -> int:
    """Threads of all workers of a dask cluster."""
    threads: Any = client.nthreads()  # of a client that waits: no coroutine
    return sum(threads.values())
