"""Long work: Ctrl-C that is not lost where a library swallows it, one kind of progress
bar with the time left, and how many threads to use.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cache
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from rich.progress import Progress
    from threadpoolctl import ThreadpoolController

_state = {"interrupted": False, "hidden": False}  # hidden: no bars are shown


def remember_interrupts() -> None:
    """Remember each Ctrl-C, so that `raise_if_interrupted` can raise it again.

    A process that was started to ignore it, as in the background of a script, still
    does.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    _state["interrupted"] = True
    raise KeyboardInterrupt


def raise_if_interrupted() -> None:
    """Raise the interrupt that was swallowed, if there was one."""
    if _state["interrupted"]:
        raise KeyboardInterrupt


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let a short block end before Ctrl-C acts; raise before it what was swallowed."""
    raise_if_interrupted()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: waiting.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if waiting:
            signal.raise_signal(signal.SIGINT)


_FIRST_SHARE = 0.05  # of the work, before which nothing is said of the time left


def hide_progress(hidden: bool = True) -> None:
    """Show no bars from now on, as for ``--quiet``; False shows them again."""
    _state["hidden"] = hidden


class Bar:
    """How much is done, of how much. It is drawn where ``drawn`` is given."""

    def __init__(
        self, description: str, total: float | None, drawn: Progress | None, lines: bool
    ):
        self.description, self.total, self.done = description, total, 0.0
        self._stored = 0.0  # found done at the start: it took no time
        self._said = time.monotonic()
        # Files are opened and loops compiled before the first report
        self._first: tuple[float, float] | None = None
        self._drawn, self._lines = drawn, lines
        if drawn is not None:
            self._task = drawn.add_task(description, total=total, left="")

    def advance(
        self, amount: float = 1.0, *, stored: bool = False, text: str | None = None
    ):
        """Count more as done; ``stored`` if it was done before, which says nothing
        about speed.
        """
        self._stored += amount if stored else 0.0
        self.update(self.done + amount, text=text)

    def update(
        self, done: float, total: float | None = None, *, text: str | None = None
    ) -> None:
        """Set how much is done and, where given, of how much; ``text`` is a new
        description.
        """
        raise_if_interrupted()
        self.done = done
        if self._first is None and done > self._stored:
            self._first = (time.monotonic(), done - self._stored)
        self.total = self.total if total is None else total
        self.description = self.description if text is None else text
        if self._drawn is not None:
            self._drawn.update(
                self._task,
                completed=done,
                total=self.total,
                description=self.description,
                left=self.left(),
            )
        elif self._lines and time.monotonic() - self._said > 60.0:  # a line per minute
            self._said = time.monotonic()
            print(
                f"{self.description}, time left: {self.left() or '?'}", file=sys.stderr
            )

    def left(self) -> str:
        """The time left in words, as far as it can be told."""
        if not self.total or self._first is None:
            return ""
        start, before = self._first
        computed = self.done - self._stored - before
        if computed <= 0 or self.done - self._stored < _FIRST_SHARE * self.total:
            return ""
        seconds = (time.monotonic() - start) * (self.total - self.done) / computed
        return f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"


@contextmanager
def progress_bar(
    description: str,
    total: float | None = None,
    *,
    shown: bool = True,
    lines: bool = False,
) -> Iterator[Bar]:
    """A bar on stderr that disappears at the end.

    Parameters
    ----------
    description : what is done.
    total : of how much; None until ``update`` tells.
    shown : whether to draw it on a terminal and in a notebook.
    lines : whether to print one line per minute to stderr where no bar can be drawn.
    """
    from rich.console import Console

    console = Console(stderr=True)
    silent = _state["hidden"] or not shown
    if silent or not (console.is_terminal or console.is_jupyter):
        yield Bar(description, total, None, lines and not silent)
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left: {task.fields[left]}"),
        console=console,
        transient=True,
    ) as drawn:
        yield Bar(description, total, drawn, False)


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


_threads_in_use: ContextVar[int] = ContextVar("threads_in_use", default=1)


@contextmanager
def using_threads(n_jobs: int | None) -> Iterator[None]:
    """Let what is called inside use so many threads, see `worker_count`."""
    token = _threads_in_use.set(worker_count(n_jobs))
    try:
        yield
    finally:
        _threads_in_use.reset(token)


def threads_in_use() -> int:
    """How many threads to use here: those of the verb that runs, else one."""
    return _threads_in_use.get()


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
