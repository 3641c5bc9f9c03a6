"""What changes when a file is written again, so that a change during reading
is seen.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from optirank.io.data import DataError

_METADATA = (
    "zarr.json",
    ".zgroup",
    ".zarray",
    ".zattrs",
    "matrix.mtx",
    "matrix.mtx.gz",
)
_DEEPEST = 3  # folders below a store that are looked at: those of its arrays' chunks
_MOST = 200  # entries that are looked at: a signature is made for every task


class ChangedFileError(DataError):
    """A file that has changed since it was opened."""


def signature(path: str | Path) -> tuple[int, ...]:
    """Times and sizes: of a file its own, of a folder those of its parts that tell
    most.

    A chunk of a zarr store that is written again changes the time of its folder.
    """
    path = Path(path)
    if not path.is_dir():
        status = path.stat()
        return status.st_mtime_ns, status.st_size
    latest = 0
    size = 0
    for part in itertools.islice(_telling(path, 0), _MOST):
        status = part.stat()
        latest = max(latest, status.st_mtime_ns)
        size += 0 if part.is_dir() else status.st_size
    return latest, size


def check_unchanged(path: str | Path, mark: tuple[int, ...]) -> None:
    """Refuse a file whose signature is another one now."""
    try:
        now = signature(path)
    except FileNotFoundError:
        raise ChangedFileError(
            f"{path} is not there any more: put it back, and start again"
        ) from None
    if now != mark:
        raise ChangedFileError(
            f"{path} has changed while it was being read: start again"
        )


def _telling(folder: Path, depth: int) -> Iterator[Path]:
    """A folder, the metadata in it, and the same of the folders inside."""
    yield folder
    yield from (folder / name for name in _METADATA if (folder / name).is_file())
    if depth < _DEEPEST:
        for name in _folders_in(folder):
            yield from _telling(folder / name, depth + 1)


def _folders_in(folder: Path) -> list[str]:
    """The folders inside, in order; none beside files of chunks, which are many."""
    names = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                names.append(entry.name)
            elif entry.name not in _METADATA and not entry.name.startswith("."):
                return []
    return sorted(names)
