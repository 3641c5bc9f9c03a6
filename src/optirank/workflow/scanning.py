"""One pass over the samples, block by block: checks, and the sums by which genes are chosen."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from optirank.datasets.errors import DataError
from optirank.datasets.profiles import block_rows
from optirank.preprocessing import LogCPM
from optirank.preprocessing._statistics import is_counts
from optirank.preprocessing.class_sums import ClassSums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.datasets.profiles import Profiles

_TOTAL = 1e4  # to which counts are scaled before genes are compared
_PROBE = 256  # samples that are read to know how long reading takes


@dataclass(frozen=True)
class Scan:
    """What a pass found."""

    sums: ClassSums
    empty: NDArray  # mask of the samples whose genes cannot be ordered


def scan(profiles: Profiles, genes: NDArray, rows: NDArray, codes: NDArray, parts: NDArray) -> Scan:
    """Read some genes of some rows once; ``codes`` and ``parts`` belong to these rows.

    Genes are compared by the logarithms of scaled counts, or by the values as they are where these
    are not counts. That shows in the values, and a block of other values starts the pass again.
    """
    for counts in (True, False):
        found = _scan(profiles, genes, rows, codes, parts, counts)
        if found is not None:
            return found
    raise AssertionError("values as they are need no second look")


def _scan(
    profiles: Profiles,
    genes: NDArray,
    rows: NDArray,
    codes: NDArray,
    parts: NDArray,
    counts: bool,
) -> Scan | None:
    sums = ClassSums(len(genes), int(codes.max()) + 1, int(parts.max()) + 1)
    empty = np.zeros(len(rows), dtype=bool)
    start = 0
    for block in profiles.blocks(genes, block_rows(len(genes)), rows):
        X = block.X
        here = slice(start, start + X.shape[0])
        empty[here] = unordered(X, profiles.source)
        if counts and not is_counts(X):
            return None
        sums.add(LogCPM(_TOTAL).transform(X) if counts else X, codes[here], parts[here])
        start = here.stop
    return Scan(sums, empty)


def seconds_per_sample(profiles: Profiles, genes: NDArray, rows: NDArray) -> float:
    """Time of reading a sample and adding it to the sums, from a few of them.

    The first ones, which open the file and load what is needed, are not counted.
    """
    begin, read = 0.0, rows[:0]
    for read in (rows[:_PROBE], rows[_PROBE : 4 * _PROBE]):
        begin = time.perf_counter()
        scan(profiles, genes, read, np.zeros(len(read), int), np.zeros(len(read), int))
    return (time.perf_counter() - begin) / len(read)


def unordered(X: Any, source: str) -> NDArray:
    """Mask of samples whose genes cannot be ordered; values that are no numbers are refused."""
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind not in "buif":
        raise DataError(f"{source}: the matrix holds {values.dtype}, not numbers")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        n = int((~np.isfinite(values)).sum())
        what = "1 value is" if n == 1 else f"{n} values are"
        raise DataError(
            f"{source}: {what} missing or infinite (NaN, inf): fill in what is missing, or "
            "leave these genes or samples out"
        )
    if sparse.issparse(X):
        X = X.tocsr()
        low, high = (np.ravel(extreme(axis=1).toarray()) for extreme in (X.min, X.max))
        return low == high
    return X.min(axis=1) == X.max(axis=1)
