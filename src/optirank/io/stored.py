"""Rows and columns of a matrix, wherever it is: in memory, in a store, or lazy.

A reader gives rows of the columns that were chosen, as an array or a CSR matrix.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_matrix, issparse, vstack

logger = logging.getLogger("optirank.datasets")

# Values of whole rows read together, of which some columns are kept: at most 160 MB
_WHOLE_VALUES = 20_000_000
# Up to so many rows between two wanted ones are cheaper to read than to leave out
_GAP = 16

Block = csr_matrix | np.ndarray


class RowReader(Protocol):
    """What reads rows of the columns that were chosen."""

    def rows(self, start: int, stop: int) -> Block:
        """Return these rows."""
        ...


class StoredMatrix(Protocol):
    """Numbers that no AnnData can hold before they are read."""

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and genes."""
        ...

    def reader(self, columns: np.ndarray | None) -> RowReader:
        """Choose columns (None: all)."""
        ...


class Sliceable(NamedTuple):
    """A matrix that gives slices of rows: array or sparse, in memory or in a store."""

    values: Any
    columns: np.ndarray | None = None

    def rows(self, start: int, stop: int) -> Block:
        """Return these rows."""
        columns = self.columns
        if columns is None or is_sparse(self.values):
            return _chosen(in_memory(self.values[start:stop]), columns)
        if hasattr(self.values, "get_orthogonal_selection"):
            # zarr then reads only the chunks with these columns
            selection = (slice(start, stop), columns)
            return np.asarray(self.values.get_orthogonal_selection(selection))
        # Whole rows are read, so few at a time: the columns chosen are few of them
        step = max(1, _WHOLE_VALUES // max(1, self.values.shape[1]))
        parts = [
            _chosen(in_memory(self.values[first : min(first + step, stop)]), columns)
            for first in range(start, max(stop, start + 1), step)
        ]
        return _stacked(parts)


def reader_of(X: Any, columns: np.ndarray | None, source: str) -> RowReader:
    """Choose columns of a matrix (None: all).

    Of one that is stored by genes (CSC), they are read once and kept as rows; the log
    says so where these are all.
    """
    if hasattr(X, "reader"):
        return X.reader(columns)
    if getattr(X, "format", "") == "csc" or _dask_format(X) == "csc":
        if columns is None and not issparse(X):
            logger.warning(
                "%s stores its matrix by genes (CSC): it is read whole; write it as "
                "CSR to stream",
                source,
            )
        return Sliceable(_columns_as_rows(X, columns))
    if is_dask(X) and columns is not None:
        return Sliceable(X[:, columns])
    return Sliceable(X, columns)


def take_rows(reader: RowReader, rows: np.ndarray | range) -> Block:
    """Return the rows at sorted positions; those with few others between are read
    together.
    """
    rows = np.asarray(rows)
    if not len(rows):
        return reader.rows(0, 0)
    parts = []
    for span in np.split(rows, np.flatnonzero(np.diff(rows) > _GAP) + 1):
        first, last = int(span[0]), int(span[-1]) + 1
        block = reader.rows(first, last)
        parts.append(block if len(span) == last - first else block[span - first])
    return _stacked(parts)


def is_dask(X: Any) -> bool:
    """Whether this is a dask array, without importing dask."""
    return hasattr(X, "dask") and hasattr(X, "chunks")


def is_sparse(X: Any) -> bool:
    """Whether blocks of a matrix are sparse."""
    return getattr(X, "format", _dask_format(X)) in ("csr", "csc")


def is_lazy(X: Any) -> bool:
    """Whether this is a dask array that can be cut by rows: CSC ones cannot."""
    return is_dask(X) and _dask_format(X) != "csc"


def streams(X: Any) -> bool:
    """Whether some rows can be read without all others."""
    if hasattr(X, "reader"):
        return getattr(X, "streams", False)
    in_process = issparse(X) or isinstance(X, np.ndarray) or is_dask(X)
    return not in_process and getattr(X, "format", "csr") == "csr"


def in_memory(X: Any) -> Any:
    """A matrix, or part of one, that may be on disk or lazy, in memory."""
    for way in ("to_memory", "compute"):
        if hasattr(X, way):
            return getattr(X, way)()
    return X if hasattr(X, "tocsr") else np.asarray(X)


def _dask_format(X: Any) -> str:
    return getattr(X._meta, "format", "") if is_dask(X) else ""


def _chosen(block: Any, columns: np.ndarray | None) -> Block:
    """A block in memory with some of its columns."""
    if not issparse(block):
        return np.ascontiguousarray(block if columns is None else block[:, columns])
    _check_places(block.indices, block.shape[1])
    block = csr_matrix(block if columns is None else block[:, columns])
    block.sum_duplicates()
    return block


def _columns_as_rows(X: Any, columns: np.ndarray | None) -> csr_matrix:
    """Columns of a matrix that is stored by genes, in rows.

    Memory follows the number of entries in the columns chosen: little for the genes of
    a panel, the whole matrix when all columns are asked for.
    """
    if columns is None:
        chosen = in_memory(X)
    else:
        order = np.argsort(columns)
        chosen = in_memory(X[:, columns[order]])
    _check_places(chosen.indices, chosen.shape[0])
    by_rows = csr_matrix(chosen if columns is None else chosen[:, np.argsort(order)])
    by_rows.sum_duplicates()
    return by_rows


def _check_places(indices: np.ndarray, count: int) -> None:
    """Refuse entries outside of a matrix, before anything follows them into memory."""
    if not indices.size:
        return
    # As unsigned numbers, negative ones are larger than all others
    if indices.view(f"u{indices.itemsize}").max() >= count:
        raise ValueError("its sparse matrix has entries outside its shape")


def _stacked(parts: list[Any]) -> Block:
    """Rows below each other, in flat memory."""
    if len(parts) == 1:
        return parts[0]
    if any(issparse(part) for part in parts):
        return csr_matrix(vstack(parts, format="csr"))
    return np.concatenate(parts)
