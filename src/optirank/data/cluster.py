"""Passes on a cluster of dask: the one module that knows dask.

The samples of an opened file are cut into tasks; a worker opens the file itself and
shows its samples to copies of the looks, which are merged here in the order of the
samples. dask does a task again whose worker dies.
"""

from __future__ import annotations

import contextlib
import functools
import pickle
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from optirank.data.opening import open_profiles
from optirank.data.passes import Look, Reading, Stretch, distribution, show_samples
from optirank.data.profiles import DataError, Opening, Profiles, need

if TYPE_CHECKING:
    from distributed import Client, Future

_CONNECT_SECONDS = 10  # in which a scheduler must answer
_RETRIES = 2  # of a task that fails; a worker that dies counts apart
_POLL_SECONDS = 0.02  # between looks at whether the scheduler is still there
_LOST = "the connection to the dask scheduler is lost: start it, and run this again"


@contextlib.contextmanager
def on_cluster(address: str) -> Iterator[None]:
    """Let passes over opened files run on the workers of a dask scheduler, which must
    see the same files.
    """
    with connect(address) as client:
        token = distribution.set(functools.partial(_show_all, client))
        try:
            yield
        finally:
            distribution.reset(token)


@contextlib.contextmanager
def connect(address: str) -> Iterator[Client]:
    """A client of the dask scheduler at an address, which has workers."""
    distributed = need("distributed", "dask", "a dask cluster")
    try:
        client = distributed.Client(
            address, timeout=_CONNECT_SECONDS, set_as_default=False
        )
    except (OSError, ValueError, TypeError) as error:
        raise DataError(
            f"no dask scheduler answers at {address!r}: {error}; start one (dask "
            "scheduler), or write its address as tcp://HOST:PORT"
        ) from error
    with client, client.as_current():
        if not client.nthreads():
            raise DataError(
                f"the dask scheduler at {address!r} has no workers: start some (dask "
                f"worker {address})"
            )
        yield client


def _show_all(
    client: Client,
    stretches: Sequence[Stretch],
    looks: Sequence[Look],
    reading: Reading,
) -> Iterator[int]:
    """Show stretches to looks, see `run_pass`."""
    import cloudpickle

    together = max(int(getattr(look, "blocks_per_task", 1)) for look in looks)
    tasks = []
    for part, rows, start in stretches:
        step = reading.size * together
        in_memory = isinstance(part.X, np.ndarray | csr_matrix)
        if in_memory or getattr(part.X, "format", "") == "csc":
            step = len(rows)  # it cannot be read in parts
        # A worker opens the file itself
        closed = replace(part, X=part.X.shape, obs=part.obs.iloc[:0, :0])
        pickled = cloudpickle.dumps((closed, list(looks), reading))
        # A task itself, so that it is made again where the worker that had it dies
        shared = client.submit(lambda given: given, pickled, pure=False)
        for first in range(0, len(rows), step):
            task = rows[first : first + step], start + first
            tasks.append(
                client.submit(_looked, shared, *task, pure=False, retries=_RETRIES)
            )
    try:
        for future in tasks:
            others, n_seen = _result(client, future)
            for look, other in zip(looks, others, strict=True):
                look.merge(other)
            future.release()
            yield n_seen
    finally:
        if client.status == "running":
            client.cancel(tasks, force=True)


def _result(client: Client, future: Future) -> Any:
    """What a task gives, when it is done; one sentence where it cannot be had."""
    while not future.done():
        time.sleep(_POLL_SECONDS)
        if client.status != "running":
            raise DataError(_LOST)
    try:
        return future.result()
    except DataError:
        raise
    except BaseException as error:
        if client.status != "running" or future.cancelled():
            raise DataError(_LOST) from error
        raise DataError(
            f"a worker fails every time, {type(error).__name__}: "
            f"{' '.join(str(error).split())[:300]}"
        ) from error


def _looked(given: bytes, rows: NDArray, start: int) -> tuple[list[Look], int]:
    """On a worker: looks that have seen some samples and nothing before, and how many
    of the pass were seen then.
    """
    closed, looks, reading = pickle.loads(given)
    X = _opened_once(closed.opening)[0].X
    if X.shape != closed.X:
        raise DataError(
            f"{closed.source} is another file for the workers: put one where all see it"
        )
    for _ in show_samples(replace(closed, X=X), rows, start, looks, reading):
        pass
    return looks, start + len(rows)


@functools.lru_cache(maxsize=4)  # tasks of one worker mostly read the same few files
def _opened_once(opening: Opening) -> tuple[Profiles, contextlib.ExitStack]:
    """An opened file, and what keeps it open as long as it is remembered."""
    stack = contextlib.ExitStack()
    options = dict(opening.options)
    return stack.enter_context(open_profiles(opening.path, **options)), stack
