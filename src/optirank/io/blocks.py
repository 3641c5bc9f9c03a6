"""A function over blocks of samples: one after the other, or as tasks of dask.

What looks at all samples of some profiles is a `BlockJob`: a function of one block,
which gives back little. An engine runs it and yields the results in the order of the
samples. Blocks are the same ones whatever runs them, so results are the same to the
last bit.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from optirank._util.workers import cluster_threads
from optirank.io.data import DataError, ExpressionData
from optirank.io.joined import JoinedProfiles
from optirank.io.stored import LazyMatrix, Reordered, Summed, as_stored, is_dask

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.io.data import Profiles

_LEAST_TOGETHER = 64  # tasks of lazy data that are given to the scheduler at once
_PER_THREAD = 8  # and for each thread that it has


@dataclass(frozen=True)
class Named:
    """Profiles of which only the name is known, for messages."""

    source: str


@dataclass(frozen=True)
class BlockJob:
    """A function over all samples of some profiles, block by block.

    Attributes
    ----------
    function : called with the values of a block, the rows it has among those of the job
        (a slice), and the part of each array of ``per_sample`` for these rows.
    profiles : where the samples are.
    columns : rising or other positions of genes; None for all.
    size : samples of a block.
    rows : rising positions of samples; None for all.
    per_sample : arrays with an entry for each sample of the job.
    together : blocks that make one task, where there are tasks.
    combine : makes one result of two, from left to right within a task; None leaves one
        result per block. Groups of blocks are the same ones whatever runs them, so that
        sums are added up in one order.
    """

    function: Callable[..., Any]
    profiles: Any  # Profiles; a worker of a cluster has no more than their name
    columns: NDArray | None
    size: int
    rows: NDArray | None = None
    per_sample: tuple[NDArray, ...] = ()
    together: int = 1
    combine: Callable[[Any, Any], Any] | None = None

    @property
    def n_samples(self) -> int:
        """Samples that are looked at."""
        return self.profiles.n_samples if self.rows is None else len(self.rows)

    def without_samples(self) -> BlockJob:
        """The job for a worker, which gets the samples of each block with its task."""
        named = Named(str(self.profiles.source))
        return replace(self, profiles=named, rows=None, per_sample=())


Engine = Callable[[BlockJob], Iterator[tuple[slice, Any]]]


def run_blocks(
    job: BlockJob, engine: Engine | None = None
) -> Iterator[tuple[slice, Any]]:
    """Rows and result of each block, in order.

    Without an engine, lazy profiles are computed by the scheduler of dask that the user
    has, and all others are read one block after the other.
    """
    if not job.n_samples:
        return iter(())
    if engine is None:
        engine = lazily if is_lazy(job.profiles) else one_by_one
    return engine(job)


def look_at(
    job: BlockJob, X: Any, rows: slice, own: Iterable[NDArray] | None = None
) -> Any:
    """The result of a block; an error says which samples it is about."""
    parts = [array[rows] for array in job.per_sample] if own is None else own
    try:
        return job.function(X, rows, *parts)
    except DataError:
        raise
    except ValueError as error:
        place = f"{job.profiles.source}, samples {rows.start + 1} to {rows.stop}"
        raise DataError(f"{place}: {error}") from None


def one_by_one(job: BlockJob) -> Iterator[tuple[slice, Any]]:
    """Read and look at one block after the other."""
    for piece in pieces_of(job):
        yield from combined(job, _results(job, piece))


def _results(job: BlockJob, piece: Piece) -> Iterator[tuple[slice, Any]]:
    start = piece.start
    for block in piece.data.blocks(piece.columns, job.size, piece.rows):
        rows = slice(start, start + block.n_samples)
        X = sparse.csr_matrix(block.X) if piece.as_sparse else block.X
        yield rows, look_at(job, X, rows)
        start = rows.stop


def combined(
    job: BlockJob, results: Iterable[tuple[slice, Any]]
) -> Iterator[tuple[slice, Any]]:
    """Results of blocks as they are, or those of each group made one."""
    if job.combine is None:
        yield from results
        return
    results = iter(results)
    for first_rows, result in results:
        stop = first_rows.stop
        for rows, more in itertools.islice(results, job.together - 1):
            result = job.combine(result, more)
            stop = rows.stop
        yield slice(first_rows.start, stop), result


@dataclass(frozen=True)
class Piece:
    """Samples of one file or object among those of a job."""

    data: Any  # ExpressionData
    columns: NDArray | None
    rows: NDArray | None  # positions in the data; None for all
    start: int  # of its first sample among those of the job
    as_sparse: bool = False

    @property
    def n_samples(self) -> int:
        """Samples of this piece."""
        return self.data.n_samples if self.rows is None else len(self.rows)


def pieces_of(job: BlockJob) -> list[Piece]:
    """The files or objects that a job reads, in order; no block has samples of two."""
    profiles = job.profiles
    if not isinstance(profiles, JoinedProfiles):
        return [Piece(profiles, job.columns, job.rows, 0)]
    rows = np.arange(profiles.n_samples) if job.rows is None else job.rows
    pieces = []
    start = 0
    for part in profiles.placed_parts():
        inside = rows[(rows >= part.start) & (rows < part.stop)] - part.start
        columns = part.places if job.columns is None else part.places[job.columns]
        if len(inside):
            own = None if len(inside) == part.data.n_samples else inside
            pieces.append(Piece(part.data, columns, own, start, part.as_sparse))
        start += len(inside)
    return pieces


def is_lazy(profiles: Profiles) -> bool:
    """Whether the values are dask arrays that can be cut into blocks of samples."""
    if isinstance(profiles, JoinedProfiles):
        return all(is_lazy(part) for part in profiles.parts)
    if not isinstance(profiles, ExpressionData):
        return False
    stored = profiles.X
    while hasattr(stored, "stored"):  # columns of it are chosen or added up
        stored = stored.stored
    if not isinstance(stored, LazyMatrix):
        return is_dask(stored) and LazyMatrix(stored).by_rows
    return stored.by_rows


def lazily(job: BlockJob) -> Iterator[tuple[slice, Any]]:
    """Compute the blocks of lazy profiles by the scheduler of dask that the user has.

    Tasks are given to it some at a time: their results are small, and the values of a
    block are freed with its task.
    """
    from dask.base import compute

    together = max(_LEAST_TOGETHER, _PER_THREAD * _n_threads())
    for piece in pieces_of(job):
        tasks = list(_delayed_results(job, piece))
        for first in range(0, len(tasks), together):
            some_tasks = tasks[first : first + together]
            results = compute(*(task for _, task in some_tasks))
            for (rows, _), result in zip(some_tasks, results, strict=True):
                yield rows, result


def _delayed_results(job: BlockJob, piece: Piece) -> Iterator[tuple[slice, Any]]:
    """Rows and the delayed result of each block, or group of blocks, of a piece."""
    from dask.delayed import delayed

    shared = delayed(job.without_samples(), pure=False, traverse=False)
    look = delayed(_look_at_values, pure=False)
    combine = delayed(job.combine, pure=False) if job.combine else None

    def results() -> Iterator[tuple[slice, Any]]:
        reader = as_stored(piece.data.X).reader(piece.columns)
        start = piece.start
        for values, n_rows in _delayed_values(reader, piece.rows, job.size):
            rows = slice(start, start + n_rows)
            own = [array[rows] for array in job.per_sample]
            yield rows, look(shared, values, rows, own, piece.as_sparse)
            start = rows.stop

    return combined(replace(job, combine=combine), results())


def _look_at_values(
    job: BlockJob, X: Any, rows: slice, own: list[NDArray], as_sparse: bool
) -> Any:
    by_rows = as_sparse or sparse.issparse(X)
    values = sparse.csr_matrix(X) if by_rows else np.asarray(X)
    return look_at(job, values, rows, own)


def _delayed_values(
    reader: Any, rows: NDArray | None, size: int
) -> Iterator[tuple[Any, int]]:
    """The values of each block, not computed yet, and its number of samples."""
    from dask.delayed import delayed

    if isinstance(reader, Reordered | Summed):
        for values, n_rows in _delayed_values(reader.inner, rows, size):
            yield delayed(reader.of)(values), n_rows
        return
    chosen = reader.values if rows is None else reader.values[rows]
    blocks = chosen.rechunk({0: size, 1: -1})
    yield from zip(blocks.to_delayed().ravel(), blocks.chunks[0], strict=True)


def _n_threads() -> int:
    """Threads of the cluster that this process is connected to, or of this machine."""
    if "distributed" in sys.modules:
        from distributed import default_client

        try:
            return cluster_threads(default_client())
        except ValueError:  # no client
            pass
    return os.cpu_count() or 1
