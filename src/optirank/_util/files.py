"""Files that are complete or absent: written under a temporary name and renamed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(
    path: str | os.PathLike[str], temporary: str | os.PathLike[str] | None = None
) -> Iterator[Path]:
    """A temporary name beside a file, renamed to it when the block ends without an error.

    The content is on disk before the file has its name. A link is followed, so that it stays a
    link. A caller that wants to remove what a killed process left gives the ``temporary`` name, on
    the same disk. An OSError that names no file, such as that of a full disk, gets the name of this
    one.
    """
    path = Path(path)
    target = path.resolve() if path.is_symlink() else path
    made_up = f".{target.name}.{secrets.token_hex(4)}.tmp"
    temporary = target.with_name(made_up) if temporary is None else Path(temporary)
    try:
        yield temporary
        _to_disk(temporary)
        os.replace(temporary, target)
    except OSError as error:
        if error.errno is not None and error.filename in (None, str(temporary), temporary):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str, **options) -> None:
    """Write a text file in one step; options are those of `replacing`."""
    write_bytes(path, text.encode("utf-8"), **options)


def write_bytes(path: str | os.PathLike[str], content: bytes, **options) -> None:
    """Write a file in one step; options are those of `replacing`."""
    with replacing(path, **options) as temporary:
        temporary.write_bytes(content)


def _to_disk(path: Path) -> None:
    """Have the system write what it holds of a file."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
