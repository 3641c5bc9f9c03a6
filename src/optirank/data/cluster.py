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

from optirank.data.opening import open_profiles
from optirank.data.passes import Look, Pass, Stretch, distribution, reads_rows
from optirank.data.profiles import DataError, Opening, Profiles, need

if TYPE_CHECKING:
    from distributed import Client, Future

_CONNECT_SECONDS = 10  # in which a scheduler must answer
_RETRIES = 2  # of a task that fails; a worker that dies counts apart
_POLL_SECONDS = 0.02  # between looks at whether the scheduler is still there
_LOST = "the connection to the dask scheduler is lost: start it, and run this again"


@contextlib.contextmanager
def on_cluster(address: str | None) -> Iterator[None]:
    """Let passes over opened files run on the workers of a dask scheduler, which must
    see the same files; here without an address.
    """
    if address is None:
        yield
        return
    with connect(address) as client:
        token = distribution.set(functools.partial(_show, client))
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


def _show(
    client: Client, work: Pass, stretches: list[Stretch], looks: Sequence[Look]
) -> Iterator[int]:
    """Show stretches to looks, see `Pass.show`."""
    import cloudpickle

    together = max(int(getattr(look, "blocks_per_task", 1)) for look in looks)
    tasks = []
    for stretch in stretches:
        step = len(stretch.rows)  # of what cannot be read in parts
        if reads_rows(work.parts[stretch.part].X):
            step = work.size * together
        for first in range(0, len(stretch.rows), step):
            rows = stretch.rows[first : first + step]
            tasks.append(Stretch(stretch.part, rows, stretch.start + first))
    sent = replace(work, parts=[_without_values(part) for part in work.parts])
    # A task itself, so that it is made again where the worker that had it dies
    pickled = cloudpickle.dumps((sent, list(looks)))
    shared = client.submit(lambda given: given, pickled, pure=False)
    futures = client.map(_looked, tasks, given=shared, pure=False, retries=_RETRIES)
    try:
        for task, future in zip(tasks, futures, strict=True):
            others = _result(client, future, work.source, task)
            for look, other in zip(looks, others, strict=True):
                look.merge(other)
            future.release()
            yield task.start + len(task.rows)
    finally:
        if client.status == "running":
            client.cancel([*futures, shared], force=True)


def _result(client: Client, future: Future, source: str, task: Stretch) -> Any:
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
        end = task.start + len(task.rows)
        raise DataError(
            f"{source}, samples {task.start + 1} to {end}: a worker fails every time, "
            f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        ) from error


def _without_values(part: Profiles) -> Profiles:
    """What a worker needs to know of profiles that it opens itself."""
    return replace(part, X=part.X.shape, obs=part.obs.iloc[:0, :0])


def _looked(task: Stretch, given: bytes) -> list[Look]:
    """On a worker: show the samples of a task to looks that have seen nothing."""
    work, looks = pickle.loads(given)
    part = work.parts[task.part]
    X = _opened_once(part.opening)[0].X
    if X.shape != part.X:
        raise DataError(
            f"{part.source} is another file for the workers: put one where all see it"
        )
    parts = [replace(part, X=X) if other is part else other for other in work.parts]
    for _ in replace(work, parts=parts).show(task, looks):
        pass
    return looks


@functools.lru_cache(maxsize=4)  # tasks of one worker mostly read the same few files
def _opened_once(opening: Opening) -> tuple[Profiles, contextlib.ExitStack]:
    """An opened file, and what keeps it open as long as it is remembered."""
    stack = contextlib.ExitStack()
    return stack.enter_context(
        open_profiles(opening.path, **dict(opening.options))
    ), stack
