"""Passes on a cluster of dask.

A task is a range of rows of a file that the worker opens itself, so no values travel.
A task whose worker dies is done again by another; one that fails every time is named at
the end, when all others are done. Results are written here as they come: a run that was
interrupted goes on where it stopped. Each file of results is written whole or not at
all, and what they belong to (model, query, options) beside them: results of another run
are thrown away.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import platform
import shutil
import time
import zipfile
from asyncio import CancelledError
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import optirank
from optirank._util.files import replacing, write_text
from optirank._util.names import counted
from optirank.io.data import DataError, about, matrix_of, need
from optirank.io.passes import Fold, Group, Piece, streams
from optirank.io.reading import ChangedFileError, Store, check_unchanged, signature

if TYPE_CHECKING:
    from anndata import AnnData
    from distributed import Client, Future, as_completed
    from numpy.typing import NDArray

RETRIES = 2  # of a task that fails; a worker that dies counts apart
_MOST_FAILURES = 20  # tasks: as many mean that more is wrong than a block
_PATIENCE = 60.0  # seconds to wait for a worker when all are gone
_POLL = 0.02  # seconds between looks at whether a task is done
_CONNECT_SECONDS = 10  # in which a scheduler must answer
_COMPARED = ("numpy", "scipy", "numba", "dask", "distributed")
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
    run : what the finished blocks belong to, see `run_of`.
    """
    if address is None:
        yield None
        return
    with connect(address) as client:
        check_versions(client)
        store = None if parts is None else Parts(parts, run or {})
        yield Cluster(client, store)
        if store is not None:
            shutil.rmtree(store.folder, ignore_errors=True)


@contextlib.contextmanager
def connect(address: str) -> Iterator[Client]:
    """A client of the dask scheduler at an address; it has workers, or this is a
    ValueError.
    """
    distributed = need("distributed", "dask", "a dask cluster")

    class ClosingClient(distributed.Client):
        """Closed where it cannot start: the collector of garbage would close it at any
        time, also while another client starts, which then waits for ever.
        """

        def start(self, **options: Any) -> None:
            try:
                super().start(**options)
            except BaseException:
                self.close()
                raise

    try:
        client = ClosingClient(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(
            f"no dask scheduler answers at {address!r}: {error}; start one (dask "
            "scheduler), or write its address as tcp://HOST:PORT"
        ) from error
    with client:
        if cluster_threads(client) == 0:
            raise ValueError(
                f"the dask scheduler at {address!r} has no workers: start some "
                f"(dask worker {address})"
            )
        yield client


def cluster_threads(client: Client) -> int:
    """Threads of all workers of a dask cluster."""
    threads: Any = client.nthreads()  # of a client that waits: no coroutine
    return sum(threads.values())


# Of a task: which of several files, rows of it, and the first of them among the samples
# of the pass
_Task = tuple[int, "NDArray[np.intp] | range", int]
# What all tasks need: `Piece`s have a `Store` in place of what is opened
_Work = tuple[Fold, list[Piece]]


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
        self._n_before = 0  # tasks of earlier passes: stored results are numbered

    def groups(self, fold: Fold, pieces: Sequence[Piece]) -> Generator[Group]:
        """What each group of blocks gathers, in order."""
        stored: list[Any] = []
        tasks: list[_Task] = []
        for number, piece in enumerate(pieces):
            known = about(piece.adata)
            if "store" not in known:
                raise DataError(
                    f"{known['source']} is not an opened file, so that workers of a "
                    "cluster cannot read it: name a file"
                )
            stored.append(piece._replace(adata=known["store"], rows=range(0)))
            is_cut = streams(matrix_of(piece.adata))
            n_rows = len(piece.rows)
            step = fold.size * fold.together if is_cut else max(1, n_rows)
            tasks += [
                (number, piece.rows[first : first + step], piece.start + first)
                for first in range(0, n_rows, step)
            ]
        waiting: dict[int, list[Group]] = {}
        following = 0
        for number, groups in self._results((fold, stored), tasks):
            waiting[number] = groups
            while following in waiting:
                yield from waiting.pop(following)
                following += 1
        for piece in stored:
            check_unchanged(piece.adata.path, piece.adata.mark)
        self._n_before += len(tasks)

    def _results(
        self, work: _Work, tasks: list[_Task]
    ) -> Iterator[tuple[int, list[Group]]]:
        """Numbers and results of tasks, stored ones first, then as they come."""
        fold, _ = work
        to_do = []
        for number in range(len(tasks)):
            stored = self._parts and self._parts.load(
                self._n_before + number, len(fold.empty)
            )
            if stored:
                yield number, stored
            else:
                to_do.append(number)
        failures: list[str] = []
        for number, future in self._futures(work, tasks, to_do):
            try:
                groups = future.result()
            except ChangedFileError:
                raise
            except (Exception, CancelledError) as error:
                self._check_connected()
                _, rows, start = tasks[number]
                place = f"{fold.source}, samples {start + 1} to {start + len(rows)}"
                own = isinstance(error, DataError)  # which names its samples
                failures.append(str(error) if own else f"{place}: {_reason(error)}")
                if len(failures) >= _MOST_FAILURES:
                    break
                continue
            if self._parts is not None:
                self._parts.save(self._n_before + number, groups)
            yield number, groups
        if failures:
            kept = "" if self._parts is None else "; all other blocks are kept"
            what = counted(len(failures), "group fails", "groups fail")
            raise DataError(f"{what} every time: {'; '.join(failures[:5])}{kept}")

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
        shared = client.submit(lambda given: given, work, pure=False)
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


def _fold_rows(task: _Task, work: _Work) -> list[Group]:
    """On a worker: fold the groups of a task."""
    number, rows, start = task
    fold, pieces = work
    piece: Any = pieces[number]
    adata, _ = _opened_once(piece.adata)
    return list(fold.groups(piece._replace(adata=adata, rows=rows, start=start)))


@functools.lru_cache(maxsize=4)  # tasks of one worker mostly read the same few files
def _opened_once(store: Store) -> tuple[AnnData, contextlib.ExitStack]:
    check_unchanged(store.path, store.mark)
    stack = contextlib.ExitStack()  # keeps the file open as long as it is remembered
    return store.open(stack), stack


def _reason(error: BaseException) -> str:
    """An error in one line; that of a worker that died says what may have happened."""
    if type(error).__name__ == "KilledWorker":
        return (
            "every worker that was given these samples died, perhaps for lack of "
            "memory: give workers more of it, or fewer threads"
        )
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}"


def check_versions(client: Client) -> None:
    """Refuse a cluster that runs another optirank than this process, or other versions
    of what it needs.

    These may give other labels, and Python cannot send its functions to another Python.
    The source files of optirank are compared, not the number of its version.
    """
    ours = installed()
    there: dict[str, Any]
    try:
        there = {"the scheduler": client.run_on_scheduler(installed)}
        workers: Any = client.run(installed, on_error="return")
        there |= {f"the worker {name}": answer for name, answer in workers.items()}
    except Exception as error:  # there is no such function
        there = {"the scheduler": error}
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
    source = digest.hexdigest()[:12]
    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        **{name: importlib.metadata.version(name) for name in _COMPARED},
        "optirank": f"{optirank.__version__} (source {source})",
    }


def run_of(
    model_digest: str,
    files: Sequence[str | Path],
    options: Mapping[str, Any],
    reading: Mapping[str, Any],
) -> dict[str, Any]:
    """What finished blocks belong to: model, files as they are now, and options."""
    asked = {"options": options, "reading": reading}
    texts = json.dumps(asked, sort_keys=True, default=str)
    return {
        "optirank": optirank.__version__,
        "model": model_digest,
        "files": {str(Path(file).resolve()): [*signature(file)] for file in files},
        "options": hashlib.sha256(texts.encode()).hexdigest(),
    }


def parts_folder(out: Path) -> Path:
    """Where finished blocks of the labels in a file are kept until it is written."""
    return out.with_name(f"{out.name}.parts")


class Parts:
    """The folder of a run: arrays by name, nothing else is read back.

    Parameters
    ----------
    folder : made where it does not exist.
    run : what the results belong to, in the types that JSON has.
    """

    def __init__(self, folder: Path, run: Mapping[str, Any]) -> None:
        self.folder = folder
        text = json.dumps(run, indent=1, sort_keys=True) + "\n"
        written = folder / "run.json"
        is_same = written.is_file() and written.read_bytes() == text.encode()
        if folder.is_dir() and not is_same:
            shutil.rmtree(folder)
        folder.mkdir(exist_ok=True)
        write_text(written, text)

    def load(self, number: int, n_accumulators: int) -> list[Group] | None:
        """What a task gave for each group; None where it is not there, or damaged."""
        try:
            with np.load(self._path(number), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile):
            return None
        groups: list[Group] = [
            (stop, [{} for _ in range(n_accumulators)])
            for stop in arrays.pop("stops").tolist()
        ]
        for key, array in arrays.items():
            group, place, name, entry = key.split(".")
            gathered = groups[int(group)][1][int(place)]
            value = array if array.ndim else array.item()
            if entry:
                gathered.setdefault(name, []).append(value)
            else:
                gathered[name] = value
        return groups

    def save(self, number: int, groups: list[Group]) -> None:
        """Write what a task gave for each group; entries of lists are numbered."""
        arrays = {"stops": np.array([stop for stop, _ in groups])}
        for group, (_, gathered) in enumerate(groups):
            for place, values in enumerate(gathered):
                for name, value in values.items():
                    is_list = isinstance(value, list)
                    for k, entry in enumerate(value) if is_list else [("", value)]:
                        arrays[f"{group}.{place}.{name}.{k}"] = np.asarray(entry)
        with replacing(self._path(number)) as temporary, open(temporary, "xb") as file:
            np.savez(file, allow_pickle=False, **arrays)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08}.npz"
