"""Entries of compressed arrays: each chunk is unpacked once, gzip by several threads.

The HDF5 library unpacks one chunk at a time and holds a lock meanwhile; zlib alone does
not hold Python's lock. Chunks are therefore read as they are stored, and unpacked here.
zarr unpacks a chunk again for every slice that touches it, so the last one is kept.
"""

from __future__ import annotations

import functools
import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

_DEFLATE = 1  # numbers of HDF5's filters
_SHUFFLE = 2
_MOST_THREADS = 8  # reading the file is then slower than unpacking it


def entries_of(dataset: Any) -> Any:
    """An array of entries as it is, or one that unpacks its chunks once."""
    if type(dataset).__module__.startswith("zarr"):
        return ZarrEntries(dataset)
    if not type(dataset).__module__.startswith("h5py"):
        return dataset
    if len(dataset.shape) != 1 or dataset.chunks is None:
        return dataset
    settings = dataset.id.get_create_plist()
    filters = [settings.get_filter(k)[0] for k in range(settings.get_nfilters())]
    known = filters in ([_DEFLATE], [_SHUFFLE, _DEFLATE])
    if not known or dataset.dtype.kind not in "fiu" or _n_threads() == 1:
        return dataset
    return GzipEntries(dataset, shuffled=_SHUFFLE in filters)


class GzipEntries:
    """A one-dimensional gzip-compressed array of an HDF5 file; slices of it
    are read.
    """

    def __init__(self, dataset: Any, *, shuffled: bool) -> None:
        self._dataset = dataset
        self._shuffled = shuffled
        self.chunk_length = int(dataset.chunks[0])
        self._kept: dict[int, np.ndarray] = {}
        self.dtype = dataset.dtype
        self.shape = dataset.shape

    def __getitem__(self, entries: slice) -> np.ndarray:
        start, stop, _ = entries.indices(self.shape[0])
        if stop <= start:
            return np.zeros(0, dtype=self.dtype)
        numbers = range(start // self.chunk_length, (stop - 1) // self.chunk_length + 1)
        kept = self._kept  # as it is now: another thread may read too
        new = [number for number in numbers if number not in kept]
        packed = [self._packed(number) for number in new]
        unpacked = dict(zip(new, _threads().map(self._unpacked, packed), strict=True))
        known = kept | unpacked
        chunks = [known[number] for number in numbers]
        # A slice often ends within a chunk, with which the next slice begins
        self._kept = {numbers[-1]: chunks[-1]}
        offset = numbers[0] * self.chunk_length
        return np.concatenate(chunks)[start - offset : stop - offset]

    def _packed(self, number: int) -> tuple[int, bytes] | np.ndarray:
        first = number * self.chunk_length
        try:
            return self._dataset.id.read_direct_chunk((first,))
        except (OSError, RuntimeError):  # a chunk that was never written
            return self._dataset[first : first + self.chunk_length]

    def _unpacked(self, packed: tuple[int, bytes] | np.ndarray) -> np.ndarray:
        if isinstance(packed, np.ndarray):
            return packed
        skipped, content = packed
        size = self.dtype.itemsize
        if not skipped & (2 if self._shuffled else 1):
            unpacker = zlib.decompressobj()
            # A damaged chunk may say that it is far larger than chunks are
            content = unpacker.decompress(content, self.chunk_length * size + 1)
        if len(content) != self.chunk_length * size:
            raise OSError("a chunk of compressed values is damaged")
        if self._shuffled and not skipped & 1 and size > 1:
            planes = np.frombuffer(content, np.uint8).reshape(size, self.chunk_length)
            return np.ascontiguousarray(planes.T).view(self.dtype).ravel()
        return np.frombuffer(content, self.dtype)


class ZarrEntries:
    """A one-dimensional zarr array; slices of it are read by whole chunks."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self.chunk_length = max(1, int(array.chunks[0]))
        self._kept: tuple[int, np.ndarray] = (0, np.zeros(0, dtype=array.dtype))
        self.dtype = array.dtype
        self.shape = array.shape

    def __getitem__(self, entries: slice) -> np.ndarray:
        start, stop, _ = entries.indices(self.shape[0])
        if stop <= start:
            return np.zeros(0, dtype=self.dtype)
        kept_start, kept = self._kept  # as it is now: another thread may read too
        kept_stop = kept_start + len(kept)
        if kept_start <= start and stop <= kept_stop:
            return kept[start - kept_start : stop - kept_start]
        first = start // self.chunk_length * self.chunk_length
        last = min(self.shape[0], -(-stop // self.chunk_length) * self.chunk_length)
        parts = []
        if kept_start <= first < kept_stop:
            parts.append(kept[first - kept_start :])
            first = kept_stop
        parts.append(np.asarray(self._array[first:last]))
        # A slice often ends within a chunk, with which the next slice begins
        offset = max(first, (last - 1) // self.chunk_length * self.chunk_length)
        kept = parts[-1][offset - first :]
        self._kept = offset, kept if offset == first else kept.copy()
        values = parts[0] if len(parts) == 1 else np.concatenate(parts)
        whole_start = last - len(values)
        return values[start - whole_start : stop - whole_start]


def _n_threads() -> int:
    if hasattr(os, "sched_getaffinity"):
        return min(_MOST_THREADS, len(os.sched_getaffinity(0)))
    return min(_MOST_THREADS, os.cpu_count() or 1)


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_n_threads(), thread_name_prefix="unpack")
