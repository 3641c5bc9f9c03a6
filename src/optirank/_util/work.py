"""Long work: a progress bar, and how many threads to use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


@contextmanager
def progress_bar(
    description: str, total: float | None = None, *, shown: bool = True
) -> Iterator[Callable[..., None]]:
    """A bar on stderr that disappears at the end, where somebody can see it.

    Gives a function of how much is done and, where that is known by then, of how much.
    """
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    seen = shown and (console.is_terminal or console.is_jupyter)
    with Progress(console=console, transient=True, disable=not seen) as bar:
        task = bar.add_task(description, total=total)

        def update(
            done: float, total: float | None = None, text: str | None = None
        ) -> None:
            bar.update(task, completed=done, total=total, description=text)

        yield update


def _check_count(n_jobs: int | None) -> None:
    """Refuse a count that leaves no worker."""
    if n_jobs == 0:
        raise ValueError(
            "n_jobs=0 leaves no worker: use a count of at least 1, or -1 for all"
        )


def worker_count(n_jobs: int | None) -> int:
    """Number of workers: ``n_jobs``, one for None, all processors for -1, all but one
    for -2, ...

    Processors are those that this process may use (its affinity and its container's
    limit count), as joblib sees them; inside a worker of joblib there is one.
    """
    _check_count(n_jobs)
    if n_jobs is None or n_jobs > 0:
        return n_jobs or 1
    from joblib import effective_n_jobs

    return effective_n_jobs(n_jobs)


_n_jobs: ContextVar[int | None] = ContextVar("n_jobs", default=None)


@contextmanager
def using_threads(n_jobs: int | None) -> Iterator[None]:
    """Let what is called inside use so many threads, see `worker_count`."""
    _check_count(n_jobs)
    token = _n_jobs.set(n_jobs)
    try:
        yield
    finally:
        _n_jobs.reset(token)


def threads_in_use() -> int:
    """How many threads to use here: those of the verb that runs, else one."""
    return worker_count(_n_jobs.get())  # asked late: joblib takes a while to load


@contextmanager
def threads(n_threads: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """A function like `map` that works in so many threads.

    One thread is the caller's own: to start another, and to wait for it, takes longer
    than much of the work.
    """
    if n_threads <= 1:
        yield map
        return
    pool = ThreadPoolExecutor(n_threads)
    try:
        yield pool.map
    finally:
        pool.shutdown(cancel_futures=True)  # of an error or Ctrl-C: start no more


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
