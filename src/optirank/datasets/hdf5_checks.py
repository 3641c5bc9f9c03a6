"""What is checked of an HDF5 file before the HDF5 library reads from it.

The library trusts some numbers of a file: a text that says it is 4 GB long gets 4 GB, and an empty
entry in a heap of texts is read for ever. These numbers are compared with the size of the file.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Any

import numpy as np

from optirank.datasets.errors import DataError

_SCANNED = 1 << 28  # bytes of a file whose heaps are looked for; larger ones would take too long
_EXPANSION = 1100  # deflate makes at most 1032 bytes of one
_SMALL = 1 << 26  # bytes that any array may have, such as one that was never written
_COLLECTION = b"GCOL\x01\x00\x00\x00"
_HEAP = struct.Struct("<8sQ")
_OBJECT = struct.Struct("<HHLQ")


def check_heaps(path: Path) -> None:
    """Refuse a file with a damaged heap of texts.

    A heap is a chain of objects, each with its length. An object of length 0 that is not at the end
    would be read again and again.
    """
    size = path.stat().st_size
    if not 0 < size <= _SCANNED:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        at = content.find(_COLLECTION)
        while at >= 0:
            if not _is_chain(content, at):
                raise DataError(
                    f"{path} cannot be read, the texts stored at byte {at} are damaged (copy or "
                    "fetch it again)"
                )
            at = content.find(_COLLECTION, at + len(_COLLECTION))


def _is_chain(content: mmap.mmap, start: int) -> bool:
    """Whether the objects of a heap follow each other to its end."""
    if start + _HEAP.size > len(content):
        return False
    _, length = _HEAP.unpack_from(content, start)
    end = start + length
    if end > len(content):
        return False
    at = start + _HEAP.size
    while at + _OBJECT.size <= end:
        index, _, _, size = _OBJECT.unpack_from(content, at)
        step = _OBJECT.size + -(-size // 8) * 8 if index else size
        if step < _OBJECT.size or at + step > end:
            return False
        at += step
    return True


def check_array(array: Any, path: Path) -> None:
    """Refuse a stored array that says it is larger than what the file can hold.

    Arrays of other stores than HDF5 pass.
    """
    low = getattr(array, "id", None)
    if not hasattr(low, "get_storage_size") or array.shape is None:
        return
    in_file = path.stat().st_size
    stored = min(low.get_storage_size(), in_file)
    cells = int(np.prod(array.chunks or (1,), dtype=object))
    entries = int(np.prod(array.shape, dtype=object))
    width = array.dtype.itemsize
    if entries * width > max(_SMALL, _EXPANSION * stored):
        raise DataError(
            f"{path} cannot be read, {array.name} says it has {entries} values, more than fit into "
            "the file: it may be damaged (copy or fetch it again)"
        )
    if cells * width > max(_SMALL, _EXPANSION * in_file):
        raise DataError(
            f"{path} cannot be read, {array.name} says it is stored in pieces of {cells} values, "
            "more than fit into the file: it may be damaged (copy or fetch it again)"
        )
    if array.dtype.kind == "O" and array.chunks is None and entries:
        _check_texts(array, path, in_file)


def check_group(group: Any, path: Path) -> None:
    """Refuse a group with an array that says it is larger than what the file can hold."""
    if hasattr(group, "visititems") and hasattr(getattr(group, "id", None), "links"):
        group.visititems(
            lambda _, found: None if hasattr(found, "keys") else check_array(found, path)
        )


def _check_texts(array: Any, path: Path, in_file: int) -> None:
    """Refuse texts that are longer than the file; each is stored as its length and place."""
    start, stored = array.id.get_offset(), array.id.get_storage_size()
    if start is None or stored % 16:
        return
    with path.open("rb") as file:
        file.seek(start)
        places = np.frombuffer(file.read(stored), dtype="<u4")
    lengths = places.reshape(-1, 4)[:, 0] if len(places) % 4 == 0 else places[:0]
    if lengths.size and int(lengths.max()) > in_file:
        raise DataError(
            f"{path} cannot be read, {array.name} has a text of {int(lengths.max())} characters, "
            "more than fit into the file: it may be damaged (copy or fetch it again)"
        )
