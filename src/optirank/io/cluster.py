"""Passes by dask: the one module that knows it.

A lazy array is computed by the scheduler that the user has. On a cluster, a task is a
range of rows of a file that the worker opens itself, so no values travel. A task whose
worker dies is done again by another; one that fails every time is named at the end,
when all others are done. Results are written here as they come, so that a run that was
interrupted goes on where it stopped.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import itertools
import os
import platform
import socket
import sys
import time
from asyncio import CancelledError
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import optirank
from optirank._util.names import some
from optirank._util.passes import Accumulator
from optirank.io.blocks import Columns
from optirank.io.data import DataError, about, matrix_of
from optirank.io.passes import Form, Gathered, Groups, Piece, fold_group, groups_of
from optirank.io.reading import Store, open_matrix
from optirank.io.runs import ChangedFileError, Parts, check_unchanged, signature
from optirank.io.stored import streams

if TYPE_CHECKING:
    from distributed import Client, Future, as_completed
    from numpy.typing import NDArray

RETRIES = 2  # of a task that fails; a worker that dies counts apart
_MOST_FAILURES = 20  # tasks: as many mean that more is wrong than a block
_PATIENCE = 60.0  # seconds to wait for a worker when all are gone
_POLL = 0.02  # seconds between looks at whether a task is done
_CONNECT_SECONDS = 10  # in which a scheduler must answer
_COMPARED = ("numpy", "scipy", "numba", "dask", "distributed")
_LEAST_TOGETHER = 64  # tasks of lazy data that are given to the scheduler at once
_PER_THREAD = 8  # and for each thread that it has
_GO_ON = "then run the same command, which goes on where it stopped"


class ClusterError(ValueError):
    """A cluster that cannot be used; the message says why and what to do."""


@contextlib.contextmanager
def cluster_at(
    address: str | None, parts: Path | None = None, run: Mapping[str, Any] | None = None
) -> Iterator[Cluster | None]:
    """What runs passes on the cluster at an address; None without an address.

    Parameters
    ----------
    address : of a dask scheduler whose workers can read the same files.
    parts : a folder for finished blocks, removed when the block ends without an error.
    run : what the finished blocks belong to, see `optirank.io.runs.run_of`.
    """
    if address is None:
        yield None
        return
    with connect(address) as client:
        check_versions(client)
        store = None if parts is None else Parts(parts, run or {})
        yield Cluster(client, store)
        if store is not None:
            store.remove()


@contextlib.contextmanager
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


class _Task(NamedTuple):
    """Rows of one file that a worker folds."""

    piece: int
    rows: NDArray[np.intp] | range
    start: int  # of the first among the samples of the pass

    @property
    def stop(self) -> int:
        return self.start + len(self.rows)


class _Work(NamedTuple):
    """What all tasks of a pass need."""

    empty: list[Accumulator]
    stores: list[Store]
    columns: list[Columns]
    form: Form


class Cluster:
    """Folds the samples of opened files on a dask cluster, see `run_pass`.

    Parameters
    ----------
    client : of a cluster that `check_versions` accepts.
    parts : where results of finished tasks are kept.
    """

    def __init__(self, client: Client, parts: Parts | None = None) -> None:
        self._client = client
        self._parts = parts

    def for_file(self, number: int) -> Cluster:
        """The same for one of several files, whose finished tasks are kept apart."""
        parts = None if self._parts is None else self._parts.of_file(number)
        return Cluster(self._client, parts)

    def groups(
        self, empty: Sequence[Accumulator], pieces: Sequence[Piece], form: Form
    ) -> Groups:
        """Where each group of blocks ends and what it gathers, in order."""
        stores = [_store_of(piece) for piece in pieces]
        check_files(self._client, stores)
        columns = [piece.columns for piece in pieces]
        work = _Work(list(empty), stores, columns, form)
        waiting: dict[int, list[tuple[int, Gathered]]] = {}
        following = 0
        for number, groups in self._results(work, list(_tasks(pieces, form))):
            waiting[number] = groups
            while following in waiting:
                yield from waiting.pop(following)
                following += 1

    def _results(
        self, work: _Work, tasks: list[_Task]
    ) -> Iterator[tuple[int, list[tuple[int, Gathered]]]]:
        """Numbers and results of tasks, stored ones first, then as they come."""
        to_do = []
        for number in range(len(tasks)):
            stored = None if self._parts is None else self._parts.load(number)
            if stored is None:
                to_do.append(number)
            else:
                yield number, _from_arrays(work.empty, stored)
        failures: dict[str, str] = {}
        for number, future in self._futures(work, tasks, to_do):
            try:
                groups = future.result()
            except ChangedFileError:
                raise
            except (Exception, CancelledError) as error:
                self._check_connected()
                task = tasks[number]
                place = f"{work.form.source}, samples {task.start + 1} to {task.stop}"
                failures[place] = _reason(error)
                if len(failures) >= _MOST_FAILURES:
                    break
                continue
            if self._parts is not None:
                self._parts.save(number, _as_arrays(groups))
            yield number, groups
        if failures:
            kept = "" if self._parts is None else "; all other blocks are kept"
            raise DataError(f"{_failure_text(failures)}{kept}")

    def _futures(
        self, work: _Work, tasks: list[_Task], to_do: list[int]
    ) -> Iterator[tuple[int, Future]]:
        """Numbers of tasks and their futures, as they are done.

        What all tasks need is a task itself, so that it is made again where the worker
        that had it dies.
        """
        from distributed import as_completed

        if not to_do:
            return
        client = self._client
        shared = client.submit(_same, work, pure=False)
        asked = [tasks[number] for number in to_do]
        futures = client.map(
            _fold_rows, asked, work=shared, pure=False, retries=RETRIES
        )
        numbers = dict(zip((future.key for future in futures), to_do, strict=True))
        completed = as_completed(futures, loop=client.loop)
        try:
            for _ in futures:
                self._wait_for(completed)
                future = next(completed)
                yield numbers[future.key], future
                future.release()
        finally:
            client.cancel([*futures, shared], force=True)

    def _wait_for(self, completed: as_completed) -> None:
        """Wait for a task that is done; an error where nobody is left to do it."""
        last_seen = time.monotonic()
        while not completed.has_ready():
            time.sleep(_POLL)
            self._check_connected()
            if cluster_threads(self._client):
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > _PATIENCE:
                raise ClusterError(
                    f"the dask cluster has had no worker for {_PATIENCE:.0f} seconds: "
                    f"start some, {_GO_ON}"
                )

    def _check_connected(self) -> None:
        """Refuse to wait for a scheduler that is gone."""
        if self._client.status != "running":
            raise ClusterError(
                "the connection to the dask scheduler is lost: start it again, "
                f"{_GO_ON}"
            )


def _same(work: _Work) -> _Work:
    return work


def _store_of(piece: Piece) -> Store:
    """How workers open the file of some samples."""
    known = about(piece.adata)
    if "store" not in known:
        raise DataError(
            f"{known['source']} is not an opened file, so that workers of a cluster "
            "cannot read it: name a file"
        )
    return known["store"]


def _tasks(pieces: Sequence[Piece], form: Form) -> Iterator[_Task]:
    """The tasks of a pass: groups of whole blocks, each of one file."""
    for number, piece in enumerate(pieces):
        n_samples = len(piece.rows)
        step = form.size * form.together
        if not streams(matrix_of(piece.adata)):
            step = n_samples
        for first in range(0, n_samples, step):
            rows = piece.rows[first : first + step]
            yield _Task(number, rows, piece.start + first)


def _fold_rows(task: _Task, work: _Work) -> list[tuple[int, Gathered]]:
    """On a worker: fold the groups of a task."""
    X = _opened(work.stores[task.piece])
    columns = work.columns[task.piece]
    return list(groups_of(work.empty, X, columns, task.rows, task.start, work.form))


def _opened(store: Store) -> Any:
    """The matrix of a file, which must be as it was when the pass began."""
    check_unchanged(store.path, store.mark)
    return _opened_once(store)[0]


@functools.lru_cache(maxsize=4)  # tasks of one worker mostly read the same few files
def _opened_once(store: Store) -> tuple[Any, contextlib.ExitStack]:
    stack = contextlib.ExitStack()  # keeps the file open as long as it is remembered
    return open_matrix(store, stack), stack


def _as_arrays(groups: list[tuple[int, Gathered]]) -> list[dict[str, NDArray]]:
    """What groups gathered as arrays by name, one dictionary per group, for `Parts`."""
    parts = []
    for stop, gathered in groups:
        arrays = {"stop": np.array(stop)}
        for number, values in enumerate(gathered):
            for name, value in values.items():
                listed = value if isinstance(value, list) else [value]
                for place, entry in enumerate(listed):
                    arrays[f"{number}.{name}.{place}"] = np.asarray(entry)
        parts.append(arrays)
    return parts


def _from_arrays(
    empty: Sequence[Accumulator], parts: list[dict[str, NDArray]]
) -> list[tuple[int, Gathered]]:
    """The reverse of `_as_arrays`; what is a list, a number or a text follows from the
    empty accumulators.
    """
    groups = []
    for arrays in parts:
        gathered: Gathered = [{} for _ in empty]
        for key, array in arrays.items():
            if key == "stop":
                continue
            number, name, _ = key.split(".")
            values = gathered[int(number)]
            entry = array if array.ndim else array.item()
            if isinstance(vars(empty[int(number)])[name], list):
                values[name] = [*values.get(name, []), entry]
            else:
                values[name] = entry
        groups.append((int(arrays["stop"]), gathered))
    return groups


def _reason(error: BaseException) -> str:
    """An error in one line; that of a worker that died says what may have happened."""
    if type(error).__name__ == "KilledWorker":
        return (
            "every worker that was given these samples died, perhaps for lack of "
            "memory: give workers more of it, or fewer threads"
        )
    text = " ".join(str(error).split())[:300]
    return text if isinstance(error, DataError) else f"{type(error).__name__}: {text}"


def _failure_text(failures: dict[str, str]) -> str:
    """Which blocks failed, and why; one reason for all is given once."""
    reasons = set(failures.values())
    n_blocks = len(failures)
    what = "a group of blocks fails" if n_blocks == 1 else f"{n_blocks} groups fail"
    if len(reasons) == 1:
        return f"{what} every time, {some(failures, 5)}: {reasons.pop()}"
    listed = [f"{place} ({reason})" for place, reason in failures.items()]
    return f"{what} every time: {some(listed, 5)}"


def check_versions(client: Client) -> None:
    """Refuse a cluster that runs another optirank than this process, or other versions
    of what it needs.

    These may give other labels, and Python cannot send its functions to another Python.
    The source files of optirank are compared, not the number of its version.
    """
    ours = installed()
    there = {"the scheduler": _asked(lambda: client.run_on_scheduler(installed))}
    workers: Any = _asked(lambda: client.run(installed, on_error="return"))
    if not isinstance(workers, Mapping):
        workers = {"": workers}
    there |= {f"the worker {name}": answer for name, answer in workers.items()}
    for where, theirs in there.items():
        if isinstance(theirs, BaseException):
            raise ClusterError(
                f"{where} has no optirank, or another one ({_reason(theirs)}): install "
                f"optirank {optirank.__version__} where the scheduler and the workers "
                "run"
            )
        for package, version in ours.items():
            if theirs[package] != version:
                raise ClusterError(
                    f"{where} has {package} {theirs[package]}, and here it is "
                    f"{version}: install the same versions everywhere"
                )


def _asked(ask: Any) -> Any:
    """An answer of a cluster, or the error that is the answer."""
    try:
        return ask()
    except Exception as error:
        return error


@functools.cache
def installed() -> dict[str, str]:
    """Versions of what counts; of Python the first two numbers, of optirank a digest of
    its source files too.
    """
    folder = Path(optirank.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode())
        digest.update(path.read_bytes())
    versions = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in _COMPARED:
        versions[name] = importlib.metadata.version(name)
    source = digest.hexdigest()[:12]
    return versions | {"optirank": f"{optirank.__version__} (source {source})"}


def check_files(client: Client, stores: Sequence[Store]) -> None:
    """Refuse a cluster on which a worker does not see the files as they are here."""
    here = {store.path: store.mark for store in stores}
    seen: Any = client.run(signatures, sorted(here), on_error="return")
    for worker, there in seen.items():
        if isinstance(there, BaseException):
            raise ClusterError(f"the worker {worker} fails: {_reason(there)}")
        for path, mark in here.items():
            if there[path] is None:
                raise ClusterError(
                    f"the worker {worker} cannot read {path}: put the file where all "
                    "workers see it under this name"
                )
            if there[path] != mark:
                raise ClusterError(
                    f"the worker {worker} has another {path} than this machine "
                    "(another size or time): put one file where all see it"
                )


def signatures(paths: list[str]) -> dict[str, tuple[int, ...] | None]:
    """What changes when files are written again; None for one that cannot be read."""
    marks: dict[str, tuple[int, ...] | None] = {}
    for path in paths:
        try:
            marks[path] = signature(path)
        except OSError:
            marks[path] = None
    return marks


def lazy_groups(
    empty: Sequence[Accumulator], X: Any, piece: Piece, form: Form
) -> Groups:
    """Fold the groups of a lazy array by the scheduler of dask that the user has.

    Groups are given to it some at a time: what they gather is small, and the values of
    a block are freed with its group.
    """
    from dask.base import compute

    at_once = max(_LEAST_TOGETHER, _PER_THREAD * _n_threads())
    tasks = list(_delayed_groups(empty, X, piece, form))
    for first in range(0, len(tasks), at_once):
        yield from compute(*tasks[first : first + at_once])


def _delayed_groups(
    empty: Sequence[Accumulator], X: Any, piece: Piece, form: Form
) -> Iterator[Any]:
    """Where each group ends, and what it gathers: not computed yet."""
    from dask.delayed import delayed

    shared = delayed(list(empty), pure=False, traverse=False)
    formed = delayed(_formed, pure=False)
    fold = delayed(fold_group, pure=False)
    places, sums = piece.columns
    order = None
    if places is not None:
        # dask slices rising positions well, and makes many small chunks of others
        order = np.argsort(np.argsort(places))
        X = X[:, np.sort(places)]
    if not isinstance(piece.rows, range):
        X = X[piece.rows]
    chunks = X.rechunk({0: form.size, 1: -1})
    blocks = zip(chunks.to_delayed().ravel(), chunks.chunks[0], strict=True)
    start = piece.start
    while group := list(itertools.islice(blocks, form.together)):
        values = [formed(block, order, sums, form) for block, _ in group]
        yield fold(shared, values, start, form.source)
        start += sum(n_rows for _, n_rows in group)


def _formed(block: Any, order: NDArray[np.intp] | None, sums: Any, form: Form) -> Any:
    """A block of rising columns as accumulators take it."""
    block = block if order is None else block[:, order]
    return form.block(Columns(None, sums).of(block))


def _n_threads() -> int:
    """Threads of the cluster that this process is connected to, or of this machine."""
    if "distributed" in sys.modules:
        from distributed import default_client

        with contextlib.suppress(ValueError):  # no client
            return cluster_threads(default_client())
    return os.cpu_count() or 1
