"""Sorting the values of each sample: the tie group of each value, at the speed of a plain sort.

The keys that are sorted are described in ``optirank._compiled.sort_loops``.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from optirank._compiled import sort_loops
from optirank._util.workers import worker_count

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK_ENTRIES = 1 << 17  # sorted at a time: their keys stay in a core's own cache


def number_values(values: NDArray, indptr: NDArray, groups: NDArray, n_groups: NDArray) -> None:
    """Write the tie group of each value within its sample, and each sample's number of groups.

    The samples follow each other in ``values``; sample i is at ``indptr[i]:indptr[i + 1]``.
    """
    longest = int(np.diff(indptr).max(initial=0))
    keys, place_bits, whole = _packed(values, indptr, longest)
    _sort_samples(keys, indptr, longest)
    if whole:
        sort_loops.number_whole_keys(keys, place_bits, indptr, groups, n_groups)
        return
    sort_loops.number_short_keys(values, keys, place_bits, indptr, groups, n_groups)
    for i in np.flatnonzero(n_groups < 0):  # values too close to each other for their keys
        sample = slice(indptr[i], indptr[i + 1])
        keys[sample] = np.argsort(values[sample])
        sort_loops.number_short_keys(
            values, keys, place_bits, indptr[i : i + 2], groups, n_groups[i : i + 1]
        )


def sortable(values: NDArray) -> NDArray:
    """The values in a type that the compiled loops take and that compares as theirs does."""
    dtype = values.dtype
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise ValueError(
            f"X has dtype {dtype}: booleans, integers or floats of at most 64 bits are needed"
        )
    if dtype.kind == "b":
        return values.astype(np.uint8)
    if dtype == np.float16:
        return values.astype(np.float32)
    return values.astype(dtype.newbyteorder("="), copy=False)


def check_finite(values: NDArray, X: NDArray) -> None:
    """Refuse NaN and infinite values; the error counts all that X has."""
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        bad = np.count_nonzero(~np.isfinite(X))
        raise ValueError(
            f"X has {bad} values that are NaN or infinite: ranks need finite values; "
            "drop or impute them first"
        )


def in_blocks(
    work: Callable[[slice], None], n_samples: int, sample_size: int, n_jobs: int | None
) -> None:
    """Call ``work`` on blocks of samples that cover them all, in ``n_jobs`` threads."""
    rows = max(1, _BLOCK_ENTRIES // max(1, sample_size))
    blocks = [slice(at, min(n_samples, at + rows)) for at in range(0, n_samples, rows)]
    threads = min(worker_count(n_jobs), len(blocks))
    if threads <= 1:
        for block in blocks:
            work(block)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, blocks))


def _packed(values: NDArray, indptr: NDArray, longest: int) -> tuple[NDArray, int, bool]:
    """Keys of the values, the number of bits for the place, whether all bits were kept."""
    place_bits = max(0, longest - 1).bit_length()
    if values.dtype == np.float32:
        keys = np.empty(values.size, np.uint64)
        sort_loops.pack_floats_32(values.view(np.int32), place_bits, indptr, keys)
        return keys, place_bits, True
    if values.dtype == np.float64:
        keys = np.empty(values.size, np.uint64)
        sort_loops.pack_floats_64(values.view(np.int64), place_bits, indptr, keys)
        return keys, place_bits, False
    low = values.min() if values.size else values.dtype.type(0)
    value_bits = (int(values.max(initial=low)) - int(low)).bit_length()
    lost_bits = max(0, value_bits + place_bits - 64)
    keys = np.empty(values.size, np.uint32 if value_bits + place_bits <= 32 else np.uint64)
    sort_loops.pack_integers(values, low, lost_bits, place_bits, indptr, keys)
    return keys, place_bits, lost_bits == 0


def _sort_samples(keys: NDArray, indptr: NDArray, longest: int) -> None:
    n_samples = len(indptr) - 1
    if n_samples * longest == keys.size:  # all of one length
        keys.reshape(n_samples, longest).sort(axis=1)
        return
    for begin, end in zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True):
        keys[begin:end].sort()
