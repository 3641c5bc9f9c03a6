"""Blocks of files as tasks of a dask cluster whose workers can read the files.

A task is a group of blocks. Each worker opens the files itself, so no values travel. A
task whose worker dies is done again by another; one that fails every time is named at
the end, when all others are done. Finished tasks can be kept in a folder, so that a run
that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import contextlib
import itertools
import pickle
import queue
from collections.abc import Generator, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from optirank._util.names import some
from optirank._util.passes import Accumulator
from optirank.io.data import DataError, ExpressionData
from optirank.io.passes import Gathered, Piece, groups_of
from optirank.io.reading import without_annotations
from optirank.io.signatures import ChangedFileError, check_unchanged, signature
from optirank.io.stored import CompressedColumns

if TYPE_CHECKING:
    from distributed import Client, Future

RETRIES = 2  # of a task that fails; a worker that dies counts apart
_MOST_FAILURES = 20  # tasks: as many mean that more is wrong than a block
_PATIENCE = 60.0  # seconds to wait for a worker when all are gone
_POLL = 2.0  # seconds between looks at whether there are workers
_COMPARED = ("optirank", "numpy", "scipy", "numba", "dask", "distributed")


class ClusterError(ValueError):
    """A cluster that cannot be used; the message says why and what to do."""


class Store(Protocol):
    """Where the results of finished tasks are kept."""

    def load(self, number: int) -> list[Any] | None:
        """The results of a task, or None."""
        ...

    def save(self, number: int, results: list[Any]) -> None:
        """Keep the results of a task."""
        ...

    def of_file(self, number: int) -> Store:
        """The results of one of several files."""
        ...


class _Task(NamedTuple):
    """Groups of blocks of one file that a worker folds."""

    piece: int
    start: int  # of its first sample among those of the pass
    stop: int
    positions: slice | np.ndarray  # in the file


class Cluster:
    """Folds the samples of opened files on a dask cluster, see `run_pass`.

    Parameters
    ----------
    client : of a cluster whose workers have the same versions, see `check_versions`.
    store : where results of finished tasks are kept.
    """

    def __init__(self, client: Client, store: Store | None = None) -> None:
        self._client = client
        self._store = store

    def for_file(self, number: int) -> Cluster:
        """The same for one of several files, whose finished tasks are kept apart."""
        store = None if self._store is None else self._store.of_file(number)
        return Cluster(self._client, store)

    def gathered(
        self, empty: Sequence[Accumulator], pieces: list[Piece], source: str
    ) -> Generator[tuple[int, Gathered]]:
        """Where each group of blocks ends and what it gathers, in order."""
        check_files(self._client, [piece.data for piece in pieces])
        tasks = list(_tasks(pieces))
        waiting: dict[int, list[tuple[int, Gathered]]] = {}
        following = 0
        for number, groups in self._results(empty, pieces, tasks, source):
            waiting[number] = groups
            while following in waiting:
                yield from waiting.pop(following)
                following += 1

    def _results(
        self,
        empty: Sequence[Accumulator],
        pieces: list[Piece],
        tasks: list[_Task],
        source: str,
    ) -> Iterator[tuple[int, list[tuple[int, Gathered]]]]:
        """Numbers and results of tasks, stored ones first, then as they come."""
        to_do = []
        for number in range(len(tasks)):
            stored = None if self._store is None else self._store.load(number)
            if stored is None:
                to_do.append(number)
            else:
                yield number, unpacked(empty, stored)
        failures: dict[str, str] = {}
        work = pickle.dumps(_work(empty, pieces, source))
        for number, outcome in self._computed(work, tasks, to_do):
            if isinstance(outcome, BaseException):
                task = tasks[number]
                place = f"{source}, samples {task.start + 1} to {task.stop}"
                failures[place] = _reason(outcome)
                if len(failures) >= _MOST_FAILURES:
                    break
                continue
            if self._store is not None:
                self._store.save(number, packed(outcome))
            yield number, outcome
        if failures:
            kept = "" if self._store is None else "; all other blocks are kept"
            raise DataError(f"{_failure_text(failures)}{kept}")

    def _computed(
        self, packed_work: bytes, tasks: list[_Task], to_do: list[int]
    ) -> Iterator[tuple[int, Any]]:
        """Numbers of tasks with their results, or the error of one that failed.

        As many tasks are sent as the workers can start soon. What all tasks need is a
        task itself, so that it is made again where the worker that had it dies.
        """
        if not to_do:
            return
        client = self._client
        work = client.submit(pickle.loads, packed_work, pure=False)
        finished: queue.SimpleQueue[Future] = queue.SimpleQueue()
        numbers: dict[Hashable, int] = {}
        futures: dict[Hashable, Future] = {}
        rest = iter(to_do)

        def send(count: int) -> None:
            for number in itertools.islice(rest, count):
                future = client.submit(
                    _run, work, tasks[number], pure=False, retries=RETRIES
                )
                numbers[future.key] = number
                futures[future.key] = future
                future.add_done_callback(finished.put)

        try:
            send(_window(client))
            while futures:
                future = self._next(finished)
                futures.pop(future.key)
                yield numbers.pop(future.key), _outcome(future)
                future.release()
                send(max(0, _window(client) - len(futures)))
        finally:
            client.cancel([*futures.values(), work], force=True)

    def _next(self, finished: queue.SimpleQueue[Future]) -> Future:
        """The next task that is done; an error where nobody is left to do it."""
        waited = 0.0
        while True:
            with contextlib.suppress(queue.Empty):
                return finished.get(timeout=_POLL)
            if self._client.status != "running":
                raise ClusterError(
                    "the connection to the dask scheduler is lost: start it again, "
                    "then run the same command, which goes on where it stopped"
                )
            waited = 0.0 if _n_threads(self._client) else waited + _POLL
            if waited >= _PATIENCE:
                raise ClusterError(
                    f"the dask cluster has had no worker for {_PATIENCE:.0f} seconds: "
                    "start some, then run the same command, which goes on where it "
                    "stopped"
                )


def check_versions(client: Client) -> None:
    """Refuse a cluster whose versions are not those of this process.

    Other versions may give other labels, and Python cannot send its functions to
    another Python.
    """
    versions: Any = client.get_versions(packages=list(_COMPARED))
    ours = _versions(versions["client"])
    members = {"the scheduler": versions["scheduler"], **versions["workers"]}
    for name, theirs in members.items():
        where = name if name == "the scheduler" else f"the worker {name}"
        installed = _versions(theirs or {})
        if installed.get("optirank") is None:
            raise ClusterError(
                f"{where} has no optirank: install optirank {ours['optirank']} where "
                "the scheduler and the workers run"
            )
        for package, version in ours.items():
            there = installed.get(package)
            if there != version:
                raise ClusterError(
                    f"{where} has {package} {there or 'not installed'}, "
                    f"and here it is {version}: install the same versions everywhere"
                )


def _versions(of_member: dict[str, Any]) -> dict[str, str | None]:
    """Versions of what counts; of Python the first two numbers."""
    packages = dict(of_member.get("packages", {}))
    python = str(packages.get("python", "")).split(".")[:2]
    return {"python": ".".join(python)} | {
        name: packages.get(name) for name in _COMPARED
    }


def check_files(client: Client, parts: list[ExpressionData]) -> None:
    """Refuse a cluster on which a worker does not see the files as they are here."""
    for part in parts:
        if not isinstance(part, ExpressionData) or part.reopen is None:
            raise DataError(
                f"{part.source} is not an opened file, so that workers of a cluster "
                "cannot read it: name a file"
            )
    paths = sorted({part.source for part in parts})
    here = signatures(paths)
    seen: Any = client.run(signatures, paths, on_error="return")
    for worker, there in seen.items():
        if isinstance(there, BaseException):
            raise ClusterError(f"the worker {worker} fails: {_reason(there)}")
        for path in paths:
            if there[path] is None:
                raise ClusterError(
                    f"the worker {worker} cannot read {path}: put the file where all "
                    "workers see it under this name"
                )
            if there[path] != here[path]:
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


def _tasks(pieces: list[Piece]) -> Iterator[_Task]:
    """The tasks of a pass: groups of whole blocks, each of one file."""
    for number, piece in enumerate(pieces):
        step = piece.size * piece.together
        if not _streams(piece.data.X):
            step = max(1, piece.n_samples)
        for first in range(0, piece.n_samples, step):
            stop = min(first + step, piece.n_samples)
            positions: slice | np.ndarray = slice(first, stop)
            if piece.rows is not None:
                positions = piece.rows[first:stop]
            yield _Task(number, piece.start + first, piece.start + stop, positions)


def _streams(stored: Any) -> bool:
    """Whether some samples can be read without all others: not where genes
    are stored.
    """
    while hasattr(stored, "stored"):
        stored = stored.stored
    return not isinstance(stored, CompressedColumns)


class _Work(NamedTuple):
    """What all tasks of a pass need."""

    empty: list[Accumulator]
    pieces: list[Piece]
    marks: list[tuple[int, ...]]  # signatures of the files
    source: str


def _work(empty: Sequence[Accumulator], pieces: list[Piece], source: str) -> _Work:
    light = [
        replace(piece, data=without_annotations(piece.data), rows=None)
        for piece in pieces
    ]
    marks = [signature(piece.data.source) for piece in pieces]
    return _Work(list(empty), light, marks, source)


def _run(work: _Work, task: _Task) -> bytes:
    """On a worker: fold the groups of a task; what they gather, pickled.

    dask would pack every array apart, which takes longer.
    """
    piece = work.pieces[task.piece]
    check_unchanged(piece.data.source, work.marks[task.piece])
    positions = task.positions
    if isinstance(positions, slice):
        positions = np.arange(positions.start, positions.stop)
    groups = groups_of(work.empty, piece, positions, task.start, work.source)
    return pickle.dumps(list(groups))


def packed(groups: list[tuple[int, Gathered]]) -> list[dict[str, np.ndarray]]:
    """What groups gathered as arrays by name, one dictionary per group."""
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


def unpacked(
    empty: Sequence[Accumulator], parts: list[dict[str, np.ndarray]]
) -> list[tuple[int, Gathered]]:
    """The reverse of `packed`; what is a list, a number or a text follows from the
    empty accumulators.
    """
    groups = []
    for arrays in parts:
        gathered: Gathered = [{} for _ in empty]
        for key, array in arrays.items():
            if key == "stop":
                continue
            number, name, _ = key.split(".")
            before = vars(empty[int(number)])[name]
            values = gathered[int(number)]
            if isinstance(before, list):
                entry = array if array.ndim else array.item()
                values[name] = [*values.get(name, []), entry]
            else:
                values[name] = array if array.ndim else array.item()
        groups.append((int(arrays["stop"]), gathered))
    return groups


def _outcome(future: Future) -> Any:
    """The result of a task, or its error; a file that has changed ends the run."""
    try:
        return pickle.loads(future.result())
    except ChangedFileError:
        raise
    except Exception as error:
        return error


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


def _n_threads(client: Client) -> int:
    threads: Any = client.nthreads()
    return sum(threads.values())


def _window(client: Client) -> int:
    """Tasks that are under way: two per thread, so that none waits for the client."""
    return max(2, 2 * _n_threads(client))
