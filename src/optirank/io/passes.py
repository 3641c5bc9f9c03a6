"""A pass over the samples of some profiles: by this process, or as tasks of dask.

Groups of blocks are folded (`optirank._util.passes`) and merged in the order of the
samples. Blocks and groups are the same ones whatever folds them, so results are the
same to the last bit.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from optirank._util.passes import Accumulator, merge_all
from optirank._util.workers import cluster_threads
from optirank.io.data import DataError, ExpressionData
from optirank.io.joined import JoinedProfiles
from optirank.io.stored import LazyMatrix, Reordered, Summed, as_stored, is_dask

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.io.cluster import Cluster
    from optirank.io.data import Profiles

_LEAST_TOGETHER = 64  # tasks of lazy data that are given to the scheduler at once
_PER_THREAD = 8  # and for each thread that it has

Progress = Callable[[int, int], None]
Gathered = list[dict[str, Any]]  # what each accumulator of a group has gathered


@dataclass(frozen=True)
class Piece:
    """Samples of one file or object among those of a pass.

    Attributes
    ----------
    data : ExpressionData
    columns : positions of genes; None for all.
    rows : rising positions of samples; None for all.
    start : of its first sample among those of the pass.
    size : samples of a block.
    together : blocks of a group.
    as_sparse : whether blocks are made sparse, because those of another set are.
    as_dense : whether blocks are made arrays.
    """

    data: Any
    columns: NDArray | None
    rows: NDArray | None
    start: int
    size: int
    together: int
    as_sparse: bool = False
    as_dense: bool = False

    @property
    def n_samples(self) -> int:
        """Samples of this piece."""
        return self.data.n_samples if self.rows is None else len(self.rows)


def as_block(X: Any, as_sparse: bool, as_dense: bool) -> Any:
    """The values of a block as accumulators take them: an array or a CSR matrix."""
    if as_dense:
        return X.toarray() if sparse.issparse(X) else np.asarray(X)
    if as_sparse or sparse.issparse(X):
        return sparse.csr_matrix(X)
    return np.asarray(X)


def run_pass(
    profiles: Profiles,
    accumulators: Sequence[Accumulator],
    columns: NDArray | None = None,
    *,
    size: int,
    rows: NDArray | None = None,
    together: int = 1,
    as_dense: bool = False,
    cluster: Cluster | None = None,
    progress: Progress | None = None,
) -> None:
    """Feed accumulators with all samples of some profiles.

    Lazy profiles are computed by the scheduler of dask that the user has; all others
    are read one block after the other, unless a cluster is given.

    Parameters
    ----------
    profiles : where the samples are.
    accumulators : empty ones; afterwards they have seen all samples.
    columns : rising or other positions of genes; None for all.
    size : samples of a block.
    rows : rising positions of samples; None for all.
    together : blocks of a group, which is one task where there are tasks.
    as_dense : whether blocks are arrays also where the values are sparse.
    cluster : where groups are folded instead of here.
    progress : called with the number of samples that were seen, and of all.
    """
    empty = [copy.copy(accumulator) for accumulator in accumulators]
    n_samples = profiles.n_samples if rows is None else len(rows)
    pieces = pieces_of(profiles, columns, rows, size, together, as_dense)
    if cluster is not None:
        groups = cluster.gathered(empty, pieces, str(profiles.source))
    elif is_lazy(profiles):
        groups = _lazily(empty, pieces, str(profiles.source))
    else:
        groups = _one_by_one(empty, pieces, str(profiles.source))
    with contextlib.closing(groups):  # an interrupted pass ends its tasks at once
        for seen, gathered in groups:
            merge_all(accumulators, _filled(empty, gathered))
            if progress is not None:
                progress(seen, n_samples)


def fold_here(
    empty: Sequence[Accumulator], blocks: Iterable[Any], start: int, source: str
) -> tuple[int, Gathered]:
    """Where a group ends that begins at ``start``, and what accumulators gather
    from it.

    An error says which samples it is about.
    """
    own = [copy.copy(accumulator) for accumulator in empty]
    for block in blocks:
        stop = start + block.shape[0]
        try:
            for accumulator in own:
                accumulator.add(block, slice(start, stop))
        except DataError:
            raise
        except ValueError as error:
            place = f"{source}, samples {start + 1} to {stop}"
            raise DataError(f"{place}: {error}") from None
        start = stop
    return start, [
        {name: value for name, value in vars(after).items() if value is not old[name]}
        for after, old in zip(own, map(vars, empty), strict=True)
    ]


def _filled(
    empty: Sequence[Accumulator], gathered: Sequence[dict[str, Any]]
) -> list[Accumulator]:
    """Accumulators that have gathered this."""
    filled = [copy.copy(accumulator) for accumulator in empty]
    for accumulator, values in zip(filled, gathered, strict=True):
        vars(accumulator).update(values)
    return filled


def groups_of(
    empty: Sequence[Accumulator],
    piece: Piece,
    positions: NDArray | None,
    start: int,
    source: str,
) -> Generator[tuple[int, Gathered]]:
    """Read and fold the groups of a piece, or of its samples at some positions.

    Gives the samples that were seen up to the end of each group, and what was gathered.
    """
    blocks = (
        as_block(block.X, piece.as_sparse, piece.as_dense)
        for block in piece.data.blocks(piece.columns, piece.size, positions)
    )
    for first in blocks:
        rest = itertools.islice(blocks, piece.together - 1)
        start, gathered = fold_here(
            empty, itertools.chain([first], rest), start, source
        )
        yield start, gathered


def _one_by_one(
    empty: Sequence[Accumulator], pieces: Sequence[Piece], source: str
) -> Generator[tuple[int, Gathered]]:
    for piece in pieces:
        yield from groups_of(empty, piece, piece.rows, piece.start, source)


def pieces_of(
    profiles: Profiles,
    columns: NDArray | None,
    rows: NDArray | None,
    size: int,
    together: int,
    as_dense: bool,
) -> list[Piece]:
    """The files or objects that a pass reads, in order; no block has samples of two."""
    if not isinstance(profiles, JoinedProfiles):
        whole = Piece(profiles, columns, rows, 0, size, together, as_dense=as_dense)
        return [whole] if whole.n_samples else []
    rows = np.arange(profiles.n_samples) if rows is None else rows
    pieces = []
    start = 0
    for part in profiles.placed_parts():
        inside = rows[(rows >= part.start) & (rows < part.stop)] - part.start
        places = part.places if columns is None else part.places[columns]
        own = None if len(inside) == part.data.n_samples else inside
        if len(inside):
            pieces.append(
                Piece(
                    part.data,
                    places,
                    own,
                    start,
                    size,
                    together,
                    part.as_sparse,
                    as_dense,
                )
            )
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


def _lazily(
    empty: Sequence[Accumulator], pieces: Sequence[Piece], source: str
) -> Generator[tuple[int, Gathered]]:
    """Fold the groups of lazy profiles by the scheduler of dask that the user has.

    Groups are given to it some at a time: what they gather is small, and the values of
    a block are freed with its group.
    """
    from dask.base import compute

    at_once = max(_LEAST_TOGETHER, _PER_THREAD * _n_threads())
    for piece in pieces:
        tasks = list(_delayed_groups(empty, piece, source))
        for first in range(0, len(tasks), at_once):
            yield from compute(*tasks[first : first + at_once])


def _delayed_groups(
    empty: Sequence[Accumulator], piece: Piece, source: str
) -> Iterator[Any]:
    """Where each group ends, and what it gathers: not computed yet."""
    from dask.delayed import delayed

    shared = delayed(list(empty), pure=False, traverse=False)
    formed = delayed(as_block, pure=False)
    fold = delayed(fold_here, pure=False)
    blocks = _delayed_blocks(as_stored(piece.data.X).reader(piece.columns), piece)
    start = piece.start
    while group := list(itertools.islice(blocks, piece.together)):
        values = [formed(block, piece.as_sparse, piece.as_dense) for block, _ in group]
        yield fold(shared, values, start, source)
        start += sum(n_rows for _, n_rows in group)


def _delayed_blocks(reader: Any, piece: Piece) -> Iterator[tuple[Any, int]]:
    """The values of each block, not computed yet, and its number of samples."""
    from dask.delayed import delayed

    if isinstance(reader, Reordered | Summed):
        for values, n_rows in _delayed_blocks(reader.inner, piece):
            yield delayed(reader.of)(values), n_rows
        return
    chosen = reader.values if piece.rows is None else reader.values[piece.rows]
    blocks = chosen.rechunk({0: piece.size, 1: -1})
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
