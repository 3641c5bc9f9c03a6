"""Passes over the samples of profiles: the one way to their values, wherever they are.

A pass is a loop: every block of samples is given to every look. Blocks follow from the
shape of the data alone, and a look sees them in order, so that results have the same
bits on every run. On a cluster (`optirank.data.cluster.on_cluster`) blocks are tasks
whose looks are merged in the order of the samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse, vstack

from optirank._util.numbers import Look, Progress
from optirank.data.profiles import DataError, Profiles, readable

Block = Any  # an array, or a CSR matrix

# Values of whole rows read together, of which some columns are kept: at most 160 MB
_WHOLE_VALUES = 20_000_000
# Up to so many rows between two wanted ones are cheaper to read than to leave out
_GAP = 16


def run_pass(
    data: Profiles | Sequence[Profiles],
    looks: Sequence[Look],
    genes: NDArray | None = None,
    *,
    rows: NDArray | None = None,
    size: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Show all samples to some looks, those of one data set after the other.

    The genes that all looks want are read once. An error of a look says which samples
    it is about.

    Parameters
    ----------
    data : profiles, or several over the same genes.
    looks : what looks at the samples; afterwards they have seen all of them.
    genes : positions of the genes for looks that name none; None for all.
    rows : rising positions of samples; None for all.
    size : samples of a block; None for as many as the number of genes allows.
    progress : called with the number of samples that were seen, and of all.
    """
    parts = [data] if isinstance(data, Profiles) else data
    wanted = [getattr(look, "genes", None) for look in looks]
    read, columns = _shared_genes([genes if own is None else own for own in wanted])
    reading = Reading(
        genes=read,
        columns=columns,
        size=size or block_rows(len(parts[0].genes)),
        as_sparse=len(parts) > 1 and any(_sparse_format(part.X) for part in parts),
    )
    stretches: list[Stretch] = []
    first = start = 0
    for part in parts:
        inside = np.arange(part.n_samples)
        if rows is not None:
            inside = rows[(rows >= first) & (rows < first + part.n_samples)] - first
        if len(inside):
            stretches.append((part, inside, start))
        first += part.n_samples
        start += len(inside)
    show_all = distribution.get()
    if show_all is not None and all(part.opening is not None for part in parts):
        seen = show_all(stretches, looks, reading)
    else:
        seen = chain.from_iterable(
            show_samples(*stretch, looks, reading) for stretch in stretches
        )
    for n_seen in seen:
        if progress is not None:
            progress(n_seen, start)


class Reading(NamedTuple):
    """What is read in a pass.

    Attributes
    ----------
    genes : positions of the genes that are read; None for all.
    columns : of each look, where its genes are among those that are read; None for all
        of these.
    size : samples of a block.
    as_sparse : whether blocks are made sparse, because those of another set are.
    """

    genes: NDArray[np.intp] | None
    columns: Sequence[NDArray[np.intp] | None]
    size: int
    as_sparse: bool


# Some samples of a pass: a data set, rising positions in it, and where the first of
# them is among all samples of the pass
Stretch = tuple[Profiles, NDArray[np.intp], int]
# What shows all samples on a cluster; gives how many were seen after each task
Show = Callable[[Sequence[Stretch], Sequence[Look], Reading], Iterator[int]]
distribution: ContextVar[Show | None] = ContextVar("distribution", default=None)


def show_samples(
    part: Profiles, rows: NDArray, first: int, looks: Sequence[Look], reading: Reading
) -> Iterator[int]:
    """Show the samples of a stretch; gives how many were seen after each block."""
    start = first
    for read in read_blocks(part, reading.genes, size=reading.size, rows=rows):
        block: Any = csr_matrix(read) if reading.as_sparse else read
        stop = start + block.shape[0]
        try:
            for look, columns in zip(looks, reading.columns, strict=True):
                shown = block if columns is None else block[:, columns]
                look.add(shown, slice(start, stop))
        except DataError:
            raise
        except ValueError as error:
            ends = rows[start - first] + 1, rows[stop - first - 1] + 1
            raise DataError(
                f"{part.source}, samples {ends[0]} to {ends[1]}: {error}"
            ) from None
        start = stop
        yield stop


def _shared_genes(
    wanted: Sequence[NDArray | None],
) -> tuple[NDArray | None, Sequence[NDArray | None]]:
    """The genes that are read for some looks, and where those of each are among them.

    What all looks want in one order is read in this order.
    """
    named = [genes for genes in wanted if genes is not None]
    if len(named) < len(wanted):
        return None, wanted
    if all(np.array_equal(genes, named[0]) for genes in named):
        return named[0], [None] * len(wanted)
    read = np.unique(np.concatenate(named))
    return read, [
        None if np.array_equal(genes, read) else np.searchsorted(read, genes)
        for genes in named
    ]


def block_rows(n_genes: int) -> int:
    """How many samples of so many genes are read together."""
    # Were it dense, a block has 80 MB in single precision
    return max(64, 20_000_000 // max(1, n_genes))


def read_values(
    profiles: Profiles, genes: NDArray | None = None, rows: NDArray | None = None
) -> Block:
    """The values of some genes, by their positions, in some samples (None: all)."""
    size = profiles.n_samples if rows is None else len(rows)
    if not size:
        n_genes = len(profiles.genes) if genes is None else len(genes)
        return np.zeros((0, n_genes))
    return next(read_blocks(profiles, genes, size=size, rows=rows))


def read_blocks(
    profiles: Profiles,
    genes: NDArray | None = None,
    *,
    size: int = 1024,
    rows: NDArray | None = None,
) -> Iterator[Block]:
    """Read all samples, or those at rising positions, in blocks of some genes.

    Memory follows the size of a block; of lazy data that of a chunk, where this is
    larger. Of samples that are not asked for long runs are not read.
    """
    features, sums = profiles.features_of(genes)
    rows = np.arange(profiles.n_samples) if rows is None else rows
    with readable(profiles.source):
        X, columns = _with_chosen_columns(profiles.X, features)
    n_together = size
    if is_dask(X):  # whole chunks, so that each is computed once or twice
        n_together *= max(1, -(-max(X.chunks[0]) // size))
    for first in range(0, len(rows), n_together):
        with readable(profiles.source):
            read = _take_rows(X, columns, rows[first : first + n_together])
        if sums is not None:
            # Small integers would overflow
            read = read @ sums.astype(read.dtype if read.dtype.kind == "f" else float)
        for start in range(0, read.shape[0], size):
            yield read[start : start + size]


def is_dask(X: Any) -> bool:
    """Whether this is a dask array, without importing dask."""
    return hasattr(X, "dask") and hasattr(X, "chunks")


def _sparse_format(X: Any) -> str:
    """How a matrix is sparse, "" where it is not."""
    return getattr(X._meta if is_dask(X) else X, "format", "")


def _with_chosen_columns(X: Any, features: NDArray) -> tuple[Any, NDArray | None]:
    """What gives rows, and the columns that are still to be chosen of these (None:
    all).

    Of a matrix that is stored by genes (CSC) columns are read once and kept as rows.
    """
    columns = None if np.array_equal(features, np.arange(X.shape[1])) else features
    is_csc = _sparse_format(X) == "csc"
    if columns is not None and (is_csc or is_dask(X)):
        # Rising positions are read well; dask makes many small chunks of others
        order = np.argsort(columns)
        X, columns = X[:, columns[order]], np.argsort(order)
    return (_in_memory(X, columns), None) if is_csc else (X, columns)


def _take_rows(X: Any, columns: NDArray | None, rows: NDArray) -> Block:
    """The rows at rising positions; those with few others between are read together."""
    if is_dask(X):
        return _in_memory(X[rows], columns)
    # zarr then reads only the chunks with these columns
    selects = columns is not None and hasattr(X, "get_orthogonal_selection")
    most = X.shape[0] + 1
    if columns is not None and not selects and not _sparse_format(X):
        # Whole rows are read, so few at a time: the columns chosen are few of them
        most = max(1, _WHOLE_VALUES // max(1, X.shape[1]))
    is_end = (np.diff(rows) > _GAP) | (np.diff(rows // most) > 0)
    parts = []
    for span in np.split(rows, np.flatnonzero(is_end) + 1):
        first, last = int(span[0]), int(span[-1]) + 1
        if selects:
            selected = X.get_orthogonal_selection((slice(first, last), columns))
            block = np.ascontiguousarray(selected)
        else:
            block = _in_memory(X[first:last], columns)
        parts.append(block if len(span) == last - first else block[span - first])
    if len(parts) == 1:
        return parts[0]
    return vstack(parts, format="csr") if issparse(parts[0]) else np.concatenate(parts)


def _in_memory(X: Any, columns: NDArray | None = None) -> Block:
    """A matrix, or part of one, that may be on disk or lazy, with some of its columns;
    a sparse one by rows.
    """
    for way in ("to_memory", "compute"):
        if hasattr(X, way):
            X = getattr(X, way)()
    if not issparse(X):
        values = np.asarray(X)
        return np.ascontiguousarray(values if columns is None else values[:, columns])
    # Entries outside of it are refused before anything follows them into memory. As
    # unsigned numbers, negative ones are larger than all others
    places = X.indices.view(f"u{X.indices.itemsize}")
    if places.size and places.max() >= X.shape[X.format == "csr"]:
        raise ValueError("its sparse matrix has entries outside its shape")
    by_rows = csr_matrix(X if columns is None else X[:, columns])
    by_rows.sum_duplicates()
    return by_rows
