"""Worker processes that end with this one, whatever ends it, and leave Ctrl-C to it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress


class _Inline(Executor):
    """Run each task at once in this process."""

    def submit(self, function: Callable, /, *args, **kwargs) -> Future:
        future: Future = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def worker_processes(jobs: int) -> Iterator[Executor]:
    """One process: this one. More: workers that end with this process, whatever ends it."""
    if jobs == 1:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            yield _Inline()
        return
    context = multiprocessing.get_context("spawn")
    lifeline, ours = context.Pipe(duplex=False)
    executor = ProcessPoolExecutor(
        jobs, mp_context=context, initializer=_start_worker, initargs=(lifeline,)
    )
    try:
        yield executor
    except BrokenProcessPool as error:
        raise RuntimeError(
            "a worker process was ended from outside, perhaps for lack of memory; finished units "
            "are kept: run the same again, with fewer jobs"
        ) from error
    finally:
        ours.close()  # the workers see the end of the pipe and leave, even amid a task
        executor.shutdown(wait=True, cancel_futures=True)
        lifeline.close()


def submit(executor: Executor, function: Callable, *args) -> Future:
    """Submit with Ctrl-C held back: workers started meanwhile inherit that, and leave it to us."""
    if isinstance(executor, _Inline) or not hasattr(signal, "pthread_sigmask"):  # Windows
        return executor.submit(function, *args)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return executor.submit(function, *args)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker(lifeline) -> None:
    """One thread of linear algebra per worker, which ends when the parent has ended."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    threading.Thread(target=_leave_with_parent, args=(lifeline,), daemon=True).start()


def _leave_with_parent(lifeline) -> None:
    try:
        lifeline.recv_bytes()
    except (EOFError, OSError):
        for action in tuple(_last_actions):
            with suppress(Exception):
                action()
        os._exit(1)


_last_actions: list[Callable[[], None]] = []


@contextmanager
def before_leaving(action: Callable[[], None]) -> Iterator[None]:
    """Call an action if this worker has to leave within the block, which ends without cleaning."""
    _last_actions.append(action)
    try:
        yield
    finally:
        _last_actions.remove(action)
