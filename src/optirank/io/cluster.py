"""Blocks of files as tasks of a dask cluster whose workers can read the files.

A task is a group of blocks. Each worker opens the files itself, so no values travel. A
task whose worker dies is done again by another; one that fails every time is named at
the end, when all others are done. Finished tasks can be kept in a folder, so that a run
that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import contextlib
import pickle
import queue
from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from optirank._util.names import some
from optirank.io.blocks import BlockJob, Piece, combined, look_at, pieces_of
from optirank.io.data import DataError, ExpressionData
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
    """Blocks of one file that a worker looks at together."""

    piece: int
    rows: slice  # among those of the job
    positions: slice | np.ndarray  # in the file
    own: list[np.ndarray]  # entries of the job's arrays for these samples


class Cluster:
    """Runs over the blocks of opened files on a dask cluster: an engine of
    `run_blocks`.

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

    def __call__(self, job: BlockJob) -> Iterator[tuple[slice, Any]]:
        """Rows and result of each block, or group of blocks, in order."""
        pieces = pieces_of(job)
        check_files(self._client, [piece.data for piece in pieces])
        tasks = list(_tasks(job, pieces))
        results = self._results(job, pieces, tasks)
        waiting: dict[int, list[tuple[slice, Any]]] = {}
        following = 0
        for number, of_task in results:
            waiting[number] = of_task
            while following in waiting:
                yield from waiting.pop(following)
                following += 1

    def _results(
        self, job: BlockJob, pieces: list[Piece], tasks: list[_Task]
    ) -> Iterator[tuple[int, list[tuple[slice, Any]]]]:
        """Numbers and results of tasks, stored ones first, then as they come."""
        to_do = []
        for number, task in enumerate(tasks):
            stored = None if self._store is None else self._store.load(number)
            if stored is None or len(stored) != _n_results(job, task):
                to_do.append(number)
                continue
            yield number, _with_rows(job, task, stored)
        failures: dict[str, str] = {}
        for number, outcome in self._computed(job, pieces, tasks, to_do):
            task = tasks[number]
            if isinstance(outcome, BaseException):
                failures[_place(job, task)] = _reason(outcome)
                if len(failures) >= _MOST_FAILURES:
                    break
                continue
            if self._store is not None:
                self._store.save(number, [result for _, result in outcome])
            yield number, outcome
        if failures:
            kept = "" if self._store is None else "; all other blocks are kept"
            raise DataError(f"{_failure_text(failures)}{kept}")

    def _computed(
        self,
        job: BlockJob,
        pieces: list[Piece],
        tasks: list[_Task],
        to_do: list[int],
    ) -> Iterator[tuple[int, Any]]:
        """Numbers of tasks with their results, or the error of one that failed.

        As many tasks are sent as the workers can start soon. What all tasks need is a
        task itself, so that it is made again where the worker that had it dies.
        """
        if not to_do:
            return
        client = self._client
        work = client.submit(_unpacked, _packed(job, pieces), pure=False)
        finished: queue.SimpleQueue[Future] = queue.SimpleQueue()
        numbers: dict[Hashable, int] = {}
        futures: dict[Hashable, Future] = {}
        rest = iter(to_do)

        def send(count: int) -> None:
            for number in _first(rest, count):
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


def _tasks(job: BlockJob, pieces: list[Piece]) -> Iterator[_Task]:
    """The tasks of a job: groups of whole blocks, each of one file."""
    for number, piece in enumerate(pieces):
        step = job.size * job.together
        if not _streams(piece.data.X):
            step = max(1, piece.n_samples)
        for first in range(0, piece.n_samples, step):
            stop = min(first + step, piece.n_samples)
            positions: slice | np.ndarray = slice(first, stop)
            if piece.rows is not None:
                positions = piece.rows[first:stop]
            rows = slice(piece.start + first, piece.start + stop)
            yield _Task(number, rows, positions, [own[rows] for own in job.per_sample])


def _streams(stored: Any) -> bool:
    """Whether some samples can be read without all others: not where genes
    are stored.
    """
    while hasattr(stored, "stored"):
        stored = stored.stored
    return not isinstance(stored, CompressedColumns)


class _Work(NamedTuple):
    """What all tasks of a job need."""

    job: BlockJob
    pieces: list[Piece]
    marks: list[tuple[int, ...]]  # signatures of the files


def _packed(job: BlockJob, pieces: list[Piece]) -> bytes:
    """What all tasks need, in the form in which it is sent."""
    light = [
        replace(piece, data=without_annotations(piece.data), rows=None)
        for piece in pieces
    ]
    marks = [signature(piece.data.source) for piece in pieces]
    return pickle.dumps(_Work(job.without_samples(), light, marks))


def _unpacked(packed: bytes) -> _Work:
    """On a worker: open the files."""
    return pickle.loads(packed)


def _run(work: _Work, task: _Task) -> bytes:
    """On a worker: look at the blocks of a task; their results, pickled.

    dask would pack every array apart, which takes longer.
    """
    job = work.job
    piece = work.pieces[task.piece]
    data = piece.data
    check_unchanged(data.source, work.marks[task.piece])
    positions = task.positions
    if isinstance(positions, slice):
        positions = np.arange(positions.start, positions.stop)

    def results() -> Iterator[tuple[slice, Any]]:
        start = task.rows.start
        for block in data.blocks(piece.columns, job.size, positions):
            rows = slice(start, start + block.n_samples)
            inside = slice(rows.start - task.rows.start, rows.stop - task.rows.start)
            X = sparse.csr_matrix(block.X) if piece.as_sparse else block.X
            own = [array[inside] for array in task.own]
            yield rows, look_at(job, X, rows, own)
            start = rows.stop

    return pickle.dumps(list(combined(job, results())))


def _n_results(job: BlockJob, task: _Task) -> int:
    """Results of a task: one per block, or one of all."""
    if job.combine is not None:
        return 1
    return -(-(task.rows.stop - task.rows.start) // job.size)


def _with_rows(
    job: BlockJob, task: _Task, results: list[Any]
) -> list[tuple[slice, Any]]:
    """Stored results of a task with the rows of its blocks."""
    if job.combine is not None:
        return [(task.rows, results[0])]
    starts = range(task.rows.start, task.rows.stop, job.size)
    return [
        (slice(start, min(start + job.size, task.rows.stop)), result)
        for start, result in zip(starts, results, strict=True)
    ]


def _outcome(future: Future) -> Any:
    """The result of a task, or its error; a file that has changed ends the run."""
    try:
        return pickle.loads(future.result())
    except ChangedFileError:
        raise
    except Exception as error:
        return error


def _place(job: BlockJob, task: _Task) -> str:
    return f"{job.profiles.source}, samples {task.rows.start + 1} to {task.rows.stop}"


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


def _first(numbers: Iterator[int], count: int) -> list[int]:
    return [number for _, number in zip(range(count), numbers, strict=False)]


def _n_threads(client: Client) -> int:
    threads: Any = client.nthreads()
    return sum(threads.values())


def _window(client: Client) -> int:
    """Tasks that are under way: two per thread, so that none waits for the client."""
    return max(2, 2 * _n_threads(client))
