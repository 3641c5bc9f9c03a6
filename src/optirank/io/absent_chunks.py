"""Chunks that a zarr folder lacks: they read as zeros, as if nothing were expressed.

zarr leaves out chunks of zeros, so that a chunk that is not there may be right. It
cannot be right among the positions of a sparse matrix, save where every row in it has a
single entry, in the first column.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optirank.io.data import DataError


def absent_notes(element: Any) -> list[str]:
    """Notes on chunks of a matrix in zarr that are not there.

    ``element`` is an array, or the group of a sparse matrix. A DataError names a sparse
    matrix whose positions (``indices``) have lost a chunk.
    """
    if not hasattr(element, "keys"):
        return _notes_of_values(element)
    _refuse_lost_positions(element)
    return _notes_of_values(element["data"])


def _n_absent(array: Any) -> int:
    return int(array.nchunks) - int(array.nchunks_initialized)


def _notes_of_values(array: Any) -> list[str]:
    n_absent = _n_absent(array)
    if not 0 < n_absent < int(array.nchunks):
        return []
    return [
        f"{n_absent} of the {array.nchunks} chunks of {array.name} are not stored and "
        "are read as zeros: right if all their values are zero, else copy or fetch "
        "the folder again"
    ]


def _refuse_lost_positions(group: Any) -> None:
    indices = group["indices"]
    if not _n_absent(indices):
        return
    indptr = np.asarray(group["indptr"][...])
    length = int(indices.chunks[0])
    n_lost = 0
    for first in range(0, int(indices.shape[0]), length):
        positions = np.asarray(indices[first : first + length])
        entries = np.arange(first, first + len(positions))
        lines = np.searchsorted(indptr, entries, side="right")
        # Two entries of one line are never in the same column
        n_lost += not positions.any() and len(np.unique(lines)) < len(lines)
    if n_lost:
        raise DataError(
            f"{n_lost} of the {indices.nchunks} chunks of {indices.name} are not "
            "there: the folder is not complete, copy or fetch it again"
        )
