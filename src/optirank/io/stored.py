"""Matrices that stay on disk: rows of them, restricted to some columns, in flat memory."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, vstack

logger = logging.getLogger("optirank.datasets")

_PIECE = (
    1 << 17
)  # entries looked at together: 1 MB of values and columns fits a core's cache


@dataclass(frozen=True)
class Sliceable:
    """A matrix that gives slices of rows: array or sparse, in memory, in a file, or lazy (dask)."""

    values: Any
    columns: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and genes."""
        return tuple(self.values.shape)

    def reader(self, columns: np.ndarray | None) -> Sliceable:
        """Choose columns; a matrix stored by genes is cut to them before samples are read."""
        if getattr(self.values, "format", "") == "csc":
            chosen = self.values if columns is None else self.values[:, columns]
            return Sliceable(_in_memory(chosen).tocsr())
        return Sliceable(self.values, columns)

    def rows(self, start: int, stop: int) -> csr_matrix | np.ndarray:
        """Return these rows."""
        block = _in_memory(self.values[start:stop])
        if self.columns is not None:
            block = block[:, self.columns]
        return block if hasattr(block, "tocsr") else np.ascontiguousarray(block)


class CompressedRows:
    """A CSR matrix in three stored arrays: only the entries of the rows asked for are read."""

    def __init__(
        self, parts: Any, shape: tuple[int, int], columns: np.ndarray | None = None
    ) -> None:
        self.parts, self.columns, self.stored_shape = parts, columns, shape
        self.data, self.indices = parts["data"], parts["indices"]
        self.indptr = _pointers(parts, shape[0])
        self.shape = shape if columns is None else (shape[0], len(columns))
        if columns is not None:
            self._wanted = np.zeros(shape[1], dtype=bool)
            self._wanted[columns] = True
            self._place = np.zeros(shape[1], dtype=np.int32)
            self._place[columns] = np.arange(len(columns), dtype=np.int32)

    def reader(self, columns: np.ndarray | None) -> CompressedRows:
        """Choose columns."""
        if columns is None:
            return self
        if self.columns is not None:
            columns = self.columns[columns]
        return CompressedRows(self.parts, self.stored_shape, columns)

    def rows(self, start: int, stop: int) -> csr_matrix:
        """Return these rows, with sorted columns.

        Entries of columns that are not chosen leave by one look-up in a table of flags, a piece at
        a time: both then stay in the processor's cache.
        """
        pointers = self.indptr[start : stop + 1]
        first, last = int(pointers[0]), int(pointers[-1])
        step = max(last - first, 1) if self.columns is None else _PIECE
        found = []
        for begin in range(first, max(last, first + 1), step):
            piece = slice(begin, min(begin + step, last))
            indices = np.asarray(self.indices[piece])
            if indices.size and (
                indices.min() < 0 or indices.max() >= self.stored_shape[1]
            ):
                raise ValueError("its sparse matrix has entries outside its shape")
            data = np.asarray(self.data[piece])
            if self.columns is not None:
                kept = np.flatnonzero(self._wanted[indices])
                data, indices = data[kept], self._place[indices[kept]]
                found.append((data, indices, kept + begin))
        if self.columns is None:
            pointers = pointers - first
        else:
            data, indices, kept = map(np.concatenate, zip(*found, strict=True))
            pointers = np.searchsorted(kept, pointers)
        block = csr_matrix(
            (data, indices, pointers), shape=(len(pointers) - 1, self.shape[1])
        )
        block.sum_duplicates()
        return block


@dataclass(frozen=True)
class CompressedColumns:
    """A CSC matrix in three stored arrays: the columns chosen are read once and kept as rows.

    Memory follows the number of entries in the columns chosen: little for the genes of a panel,
    the whole matrix when all columns are asked for, which the log then says.
    """

    parts: Any
    shape: tuple[int, int]
    source: str

    def reader(self, columns: np.ndarray | None) -> Sliceable:
        """Read the columns, which are the rows of the transposed matrix, and hold them by rows."""
        genes = CompressedRows(self.parts, self.shape[::-1])
        if columns is None:
            logger.warning(
                "%s stores its matrix by genes (CSC): it is read whole; write it as CSR to stream",
                self.source,
            )
            return Sliceable(genes.rows(0, self.shape[1]).T.tocsr())
        order = np.argsort(columns)
        chosen = take_rows(genes, columns[order])
        return Sliceable(chosen[np.argsort(order)].T.tocsr())


StoredMatrix = Sliceable | CompressedRows | CompressedColumns


def take_rows(
    reader: Sliceable | CompressedRows, rows: np.ndarray
) -> csr_matrix | np.ndarray:
    """Return the rows at sorted positions; rows with few others between them are read together."""
    if not len(rows):
        return reader.rows(0, 0)
    parts = []
    # Up to 16 rows between two wanted ones are cheaper to read than to leave out
    for span in np.split(rows, np.flatnonzero(np.diff(rows) > 16) + 1):
        first, last = int(span[0]), int(span[-1]) + 1
        block = reader.rows(first, last)
        parts.append(block if len(span) == last - first else block[span - first])
    if len(parts) == 1:
        return parts[0]
    dense = isinstance(parts[0], np.ndarray)
    return np.concatenate(parts) if dense else vstack(parts, format="csr")


def _in_memory(X: Any) -> Any:
    """A matrix, or part of one, that may be on disk or lazy, in memory."""
    for way in ("to_memory", "compute"):
        if hasattr(X, way):
            return getattr(X, way)()
    return X if hasattr(X, "tocsr") else np.asarray(X)


def _pointers(parts: Any, count: int) -> np.ndarray:
    """Return where rows (or columns) begin, after checking that they fit the entries."""
    data, pointers = parts["data"], np.asarray(parts["indptr"][:], dtype=np.int64)
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
