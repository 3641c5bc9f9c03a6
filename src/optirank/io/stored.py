"""Matrices that stay where they are stored: rows of them, some columns, in flat memory.

A stored matrix has a ``shape`` and a ``reader(columns)``, which chooses columns and
returns what reads rows of them (``rows(start, stop)``). `take_rows` uses such a reader.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_matrix, issparse, vstack

from optirank.io.chunks import entries_of

logger = logging.getLogger("optirank.datasets")

# Entries looked at together: 1 MB of values and columns fits a core's cache
_PIECE = 1 << 17
# Entries read together: 8 MB, since every request to a store costs time
_SPAN = 1 << 20
# Values of whole rows read together, of which some columns are kept: at most 160 MB
_WHOLE_VALUES = 20_000_000
# A run of columns costs one request to the store: with more than this share of the
# columns chosen, whole rows are read instead
_SPARSE_SHARE = 0.25

Block = csr_matrix | np.ndarray


class RowReader(Protocol):
    """What reads rows of the columns that were chosen."""

    def rows(self, start: int, stop: int) -> Block:
        """Return these rows."""
        ...


class StoredMatrix(Protocol):
    """A matrix of samples by genes that is read in parts."""

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and genes."""
        ...

    def reader(self, columns: np.ndarray | None) -> RowReader:
        """Choose columns (None: all)."""
        ...


def as_stored(X: Any) -> StoredMatrix:
    """A stored matrix as it is; anything else that gives slices of rows as one."""
    if hasattr(X, "reader"):
        return X
    return LazyMatrix(X) if is_dask(X) else Sliceable(X)


def is_dask(X: Any) -> bool:
    """Whether this is a dask array, without importing dask."""
    return hasattr(X, "dask") and hasattr(X, "chunks")


@dataclass(frozen=True)
class Sliceable:
    """A matrix that gives slices of rows: array or sparse, in memory, HDF5 or zarr."""

    values: Any
    columns: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and genes."""
        n_rows, n_columns = self.values.shape
        return n_rows, n_columns

    def reader(self, columns: np.ndarray | None) -> RowReader:
        """Choose columns; a matrix stored by genes is cut to them before rows
        are read.
        """
        if getattr(self.values, "format", "") == "csc":
            chosen = self.values if columns is None else self.values[:, columns]
            return Sliceable(in_memory(chosen).tocsr())
        return Sliceable(self.values, columns)

    def rows(self, start: int, stop: int) -> Block:
        """Return these rows."""
        if self.columns is not None and hasattr(
            self.values, "get_orthogonal_selection"
        ):
            # zarr then reads only the chunks with these columns
            selection = (slice(start, stop), self.columns)
            return np.asarray(self.values.get_orthogonal_selection(selection))
        if self.columns is None:
            block = in_memory(self.values[start:stop])
            return block if hasattr(block, "tocsr") else np.ascontiguousarray(block)
        # Whole rows are read, so few at a time: the columns chosen are few of them
        step = max(1, _WHOLE_VALUES // max(1, self.values.shape[1]))
        parts = []
        for first in range(start, max(stop, start + 1), step):
            whole = in_memory(self.values[first : min(first + step, stop)])
            parts.append(whole[:, self.columns])
        return _stacked(parts)


class LazyMatrix:
    """A dask array: its chunks of rows are computed one after the other, by any
    scheduler.

    The last chunk is kept, because a block of samples may end within it.
    """

    def __init__(self, values: Any) -> None:
        self.values = values
        self.shape: tuple[int, int] = tuple(values.shape)
        if np.isnan(self.shape).any():
            raise ValueError(
                "its dask array does not know its number of samples: call "
                "compute_chunk_sizes() on it first"
            )
        self._bounds = np.cumsum([0, *values.chunks[0]])
        self._kept: tuple[int, Block] | None = None

    @property
    def by_rows(self) -> bool:
        """Whether its chunks can be cut by rows: sparse ones by genes (CSC) cannot."""
        return getattr(getattr(self.values, "_meta", None), "format", "") != "csc"

    def reader(self, columns: np.ndarray | None) -> RowReader:
        """Choose columns, before anything is computed."""
        chosen = self.values
        order = None
        if columns is not None:
            # dask slices rising positions well, and makes many small chunks of others
            order = np.argsort(columns)
            chosen = self.values[:, columns[order]]
        if not self.by_rows:
            block = in_memory(chosen).tocsr()
            return Sliceable(block if order is None else block[:, np.argsort(order)])
        lazy = LazyMatrix(chosen)
        if order is None:
            return lazy
        return Reordered(lazy, np.argsort(order))

    def rows(self, start: int, stop: int) -> Block:
        """Compute the chunks with these rows."""
        if len(self._bounds) == 2 or start == stop:
            return _by_rows(in_memory(self.values[start:stop]))
        first = int(np.searchsorted(self._bounds, start, side="right")) - 1
        last = int(np.searchsorted(self._bounds, stop, side="left"))
        chunks = [self._chunk(k) for k in range(first, last)]
        offset = int(self._bounds[first])
        return _stacked(chunks)[start - offset : stop - offset]

    def _chunk(self, k: int) -> Block:
        if self._kept is None or self._kept[0] != k:
            rows = slice(int(self._bounds[k]), int(self._bounds[k + 1]))
            self._kept = k, _by_rows(in_memory(self.values[rows]))
        return self._kept[1]


@dataclass(frozen=True)
class Reordered:
    """A reader whose columns are put into another order."""

    inner: RowReader
    order: np.ndarray

    def rows(self, start: int, stop: int) -> Block:
        """Return these rows."""
        return self.of(self.inner.rows(start, stop))

    def of(self, block: Block) -> Block:
        """A block of the inner reader with its columns in the other order."""
        return block[:, self.order]


@dataclass(frozen=True)
class TransposedDense:
    """An array of genes by samples in a file, as .loom has it."""

    values: Any
    columns: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and genes."""
        n_genes, n_samples = self.values.shape
        return n_samples, n_genes

    def reader(self, columns: np.ndarray | None) -> RowReader:
        """Choose columns."""
        return TransposedDense(self.values, columns)

    def rows(self, start: int, stop: int) -> Block:
        """Return these samples; few genes are read alone."""
        if self.columns is None:
            return np.ascontiguousarray(self.values[:, start:stop].T)
        if len(self.columns) > _SPARSE_SHARE * self.values.shape[0]:
            return np.ascontiguousarray(self.values[:, start:stop][self.columns].T)
        genes = [self.values[int(gene), start:stop] for gene in self.columns]
        if not genes:
            return np.zeros((stop - start, 0), dtype=self.values.dtype)
        return np.stack(genes, axis=1)


class CompressedRows:
    """A CSR matrix in three stored arrays: only the entries of the rows asked for
    are read.
    """

    def __init__(self, parts: Any, shape: tuple[int, int]) -> None:
        self.data = entries_of(parts["data"])
        self.indices = entries_of(parts["indices"])
        self.indptr = _pointers(parts, shape[0])
        self.stored_shape = shape
        self.shape = shape
        self.columns: np.ndarray | None = None
        self._wanted = np.zeros(0, dtype=bool)  # of each stored column: is it chosen?
        self._place = np.zeros(0, dtype=np.int32)  # and where it then is

    def reader(self, columns: np.ndarray | None) -> CompressedRows:
        """Choose columns."""
        if columns is None:
            return self
        if self.columns is not None:
            columns = self.columns[columns]
        chosen = copy.copy(self)
        chosen.columns = columns
        chosen.shape = self.stored_shape[0], len(columns)
        chosen._wanted = np.zeros(self.stored_shape[1], dtype=bool)
        chosen._wanted[columns] = True
        chosen._place = np.zeros(self.stored_shape[1], dtype=np.int32)
        chosen._place[columns] = np.arange(len(columns), dtype=np.int32)
        return chosen

    def rows(self, start: int, stop: int) -> csr_matrix:
        """Return these rows, with sorted columns."""
        pointers = self.indptr[start : stop + 1]
        entries = slice(int(pointers[0]), int(pointers[-1]))
        if self.columns is None:
            indices = np.asarray(self.indices[entries])
            self._check(indices)
            data = np.asarray(self.data[entries])
            pointers = pointers - entries.start
        else:
            data, indices, kept = self._chosen(entries)
            pointers = np.searchsorted(kept, pointers)
        if data.dtype == np.float16:  # which SciPy's sparse matrices do not add
            data = data.astype(np.float32)
        block = csr_matrix(
            (data, indices, pointers), shape=(len(pointers) - 1, self.shape[1])
        )
        block.sum_duplicates()
        return block

    def _chosen(self, entries: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values, columns and positions of the entries whose columns are chosen.

        The others leave by one look-up in a table of flags, a piece at a time: both
        then stay in the processor's cache.
        """
        pieces = []
        for span in self._spans(entries):
            span_indices = np.asarray(self.indices[span])
            span_data = np.asarray(self.data[span])
            self._check(span_indices)
            for first in range(0, max(1, len(span_indices)), _PIECE):
                indices = span_indices[first : first + _PIECE]
                kept = np.flatnonzero(self._wanted[indices]) + first
                columns = self._place[span_indices[kept]]
                pieces.append((span_data[kept], columns, kept + span.start))
        data, indices, kept = map(np.concatenate, zip(*pieces, strict=True))
        return data, indices, kept

    def _spans(self, entries: slice) -> Iterator[slice]:
        """Entries that are read together: whole chunks, where they are stored in such.

        There is at least one span, which may be empty.
        """
        length = getattr(self.indices, "chunk_length", 1)
        step = max(1, _SPAN // length) * length
        first = entries.start
        while first < entries.stop or first == entries.start:
            stop = min((first // step + 1) * step, entries.stop)
            yield slice(first, stop)
            first = max(stop, first + 1)

    def _check(self, indices: np.ndarray) -> None:
        if not indices.size:
            return
        # As unsigned numbers, negative ones are larger than all others
        unsigned = indices.view(f"u{indices.itemsize}")
        if unsigned.max() >= self.stored_shape[1]:
            raise ValueError("its sparse matrix has entries outside its shape")


@dataclass(frozen=True)
class CompressedColumns:
    """A CSC matrix in three stored arrays: the columns chosen are read once, kept as
    rows.

    Memory follows the number of entries in the columns chosen: little for the genes of
    a panel, the whole matrix when all columns are asked for, which the log then says.
    """

    parts: Any
    shape: tuple[int, int]
    source: str

    def reader(self, columns: np.ndarray | None) -> Sliceable:
        """Read the columns, which are the rows of the transposed matrix."""
        n_rows, n_columns = self.shape
        genes = CompressedRows(self.parts, (n_columns, n_rows))
        if columns is None:
            logger.warning(
                "%s stores its matrix by genes (CSC): it is read whole; write it as "
                "CSR to stream",
                self.source,
            )
            return Sliceable(genes.rows(0, self.shape[1]).T.tocsr())
        order = np.argsort(columns)
        chosen = csr_matrix(take_rows(genes, columns[order]))
        return Sliceable(chosen[np.argsort(order)].T.tocsr())


@dataclass(frozen=True)
class ChosenColumns:
    """Some columns of a stored matrix, in this order."""

    stored: StoredMatrix
    columns: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and genes."""
        return self.stored.shape[0], len(self.columns)

    def reader(self, columns: np.ndarray | None) -> RowReader:
        """Choose columns among those that are left."""
        chosen = self.columns if columns is None else self.columns[columns]
        return self.stored.reader(chosen)


@dataclass(frozen=True)
class SummedColumns:
    """A stored matrix in which groups of columns are added up to one each.

    ``group[j]`` is the column that column j is added to, -1 for none.
    """

    stored: StoredMatrix
    group: np.ndarray
    n_groups: int

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and genes."""
        return self.stored.shape[0], self.n_groups

    def reader(self, columns: np.ndarray | None) -> RowReader:
        """Choose columns, which are sums."""
        place = np.full(self.n_groups + 1, -1)  # the last is that of "none"
        chosen = np.arange(self.n_groups) if columns is None else columns
        place[chosen] = np.arange(len(chosen))
        target = place[self.group]
        members = np.flatnonzero(target >= 0)
        entries = (np.ones(len(members)), (np.arange(len(members)), target[members]))
        sums = csr_matrix(entries, shape=(len(members), len(chosen)))
        return Summed(self.stored.reader(members), sums)


@dataclass(frozen=True)
class Summed:
    """A reader whose columns are added up by a matrix of zeros and ones."""

    inner: RowReader
    sums: csr_matrix

    def rows(self, start: int, stop: int) -> Block:
        """Return these rows."""
        return self.of(self.inner.rows(start, stop))

    def of(self, block: Block) -> Block:
        """A block of the inner reader with its columns added up."""
        return block @ self.sums.astype(block.dtype)


def take_rows(reader: RowReader, rows: np.ndarray) -> Block:
    """Return the rows at sorted positions; those with few others between are read
    together.
    """
    if not len(rows):
        return reader.rows(0, 0)
    parts = []
    # Up to 16 rows between two wanted ones are cheaper to read than to leave out
    for span in np.split(rows, np.flatnonzero(np.diff(rows) > 16) + 1):
        first, last = int(span[0]), int(span[-1]) + 1
        block = reader.rows(first, last)
        parts.append(block if len(span) == last - first else block[span - first])
    return _stacked(parts)


def in_memory(X: Any) -> Any:
    """A matrix, or part of one, that may be on disk or lazy, in memory."""
    for way in ("to_memory", "compute"):
        if hasattr(X, way):
            return getattr(X, way)()
    return X if hasattr(X, "tocsr") else np.asarray(X)


def _by_rows(X: Any) -> Block:
    return csr_matrix(X) if issparse(X) else np.asarray(X)


def _stacked(parts: list[Any]) -> Block:
    """Rows below each other, in flat memory."""
    if any(issparse(part) for part in parts):
        return csr_matrix(parts[0] if len(parts) == 1 else vstack(parts, format="csr"))
    if len(parts) == 1:
        return np.ascontiguousarray(parts[0])
    return np.concatenate([np.asarray(part) for part in parts])


def _pointers(parts: Any, count: int) -> np.ndarray:
    """Return where rows (or columns) begin, after checking that they fit the
    entries.
    """
    data = parts["data"]
    pointers = np.asarray(parts["indptr"][:], dtype=np.int64)
    if np.dtype(data.dtype).kind not in "fiub":
        raise ValueError(f"its values are of type {data.dtype}, not numbers")
    if (
        len(pointers) != count + 1
        or pointers[0] != 0
        or (np.diff(pointers) < 0).any()
        or pointers[-1] != data.shape[0]
        or data.shape != parts["indices"].shape
    ):
        raise ValueError("the parts of its sparse matrix do not fit together")
    return pointers
