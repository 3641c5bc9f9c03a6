"""Matrix Market files, as 10x writes them; sizes are checked before memory is allocated."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from optirank.datasets.errors import DataError
from optirank.datasets.text_files import most_bytes, open_text

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_ENTRIES = 1 << 20  # read at a time
_SHORTEST = 4  # bytes of an entry: "1 1" and the end of the line
_VALUES = {"integer": np.int64, "real": np.float64, "pattern": None}


def read_matrix_market(path: Path, shape: tuple[int, int], whence: str) -> csr_matrix:
    """Read the transpose of a sparse matrix, plain or gzipped.

    Parameters
    ----------
    path : a coordinate file of general symmetry, with integer, real or pattern entries.
    shape : the rows and columns that it must have; it is checked before entries are read.
    whence : what says so, for the error where it has others.
    """
    from scipy.sparse import csr_matrix

    with open_text(path) as file:
        kind = _kind(file.readline(), path)
        n_rows, n_columns, n_entries = _sizes(file, path)
        if (n_rows, n_columns) != shape:
            raise DataError(f"{path} holds {n_rows} genes x {n_columns} cells, but {whence}")
        if n_entries > n_rows * n_columns or n_entries * _SHORTEST > most_bytes(path):
            raise DataError(
                f"{path} says it has {n_entries} entries, more than fit into it: it is damaged or "
                "truncated (fetch it again)"
            )
        rows, columns, values = _entries(file, n_entries, kind, path)
    for found, bound in ((rows, n_rows), (columns, n_columns)):
        if n_entries and (found.min() < 1 or found.max() > bound):
            raise DataError(f"{path} has entries outside of its {n_rows} x {n_columns} places")
    rows -= 1
    columns -= 1
    return csr_matrix((values, (columns, rows)), shape=(n_columns, n_rows))


def _kind(line: str, path: Path) -> str:
    words = line.lower().split()
    if words[:1] != ["%%matrixmarket"]:
        raise DataError(f"{path} is not a Matrix Market file: its first line does not say so")
    if len(words) != 5 or words[1:3] != ["matrix", "coordinate"] or words[3] not in _VALUES:
        raise DataError(
            f"{path} is a Matrix Market file of another kind ({' '.join(words[1:5])[:60]}): a "
            "sparse matrix (coordinate) of integer or real numbers is needed"
        )
    if words[4] != "general":
        raise DataError(f"{path} stores a matrix with a symmetry: a general one is needed")
    return words[3]


def _sizes(file: IO[str], path: Path) -> tuple[int, int, int]:
    line = file.readline()
    while line.startswith("%") or (line and not line.strip()):
        line = file.readline()
    words = line.split()
    if len(words) != 3 or not all(word.isdecimal() and len(word) < 18 for word in words):
        raise DataError(f"{path} has no line with its numbers of genes, cells and entries")
    n_rows, n_columns, n_entries = map(int, words)
    return n_rows, n_columns, n_entries


def _entries(
    file: IO[str], count: int, kind: str, path: Path
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows, columns (from 1) and values of the entries."""
    import pandas as pd

    dtype = _VALUES[kind]
    rows, columns = np.empty(count, np.int64), np.empty(count, np.int64)
    values = np.ones(count, dtype or np.float64)
    names = [0, 1] if dtype is None else [0, 1, 2]
    types = dict(zip(names, (np.int64, np.int64, dtype), strict=False))
    done = 0
    reading = {"header": None, "names": names, "dtype": types, "index_col": False}
    reading |= {"sep": r"\s+", "float_precision": "round_trip", "chunksize": _ENTRIES}
    if count:
        with pd.read_csv(file, quoting=3, na_filter=False, **reading) as chunks:
            for chunk in chunks:
                part = slice(done, done + len(chunk))
                done = part.stop
                if done > count:
                    break
                rows[part], columns[part] = chunk[0], chunk[1]
                if dtype is not None:
                    values[part] = chunk[2]
    elif file.read(1).strip():
        done = 1
    if done != count:
        many = "more" if done > count else f"{done}"
        raise DataError(f"{path} says it has {count} entries and has {many}: fetch it again")
    return rows, columns, values
