"""Files to write: whether they may be, and written completely or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PathLike = str | os.PathLike[str]


def check_outputs(
    outputs: Mapping[str, PathLike | None],
    inputs: Iterable[PathLike | None],
    *,
    force: bool,
) -> None:
    """Refuse, before any work, files that cannot or must not be written.

    Refused are folders, files in folders that do not exist or cannot be written to, inputs (also
    under another name or through a link), the same file twice, and, unless ``force`` is given,
    files that exist.

    Parameters
    ----------
    outputs : the files to write, by what they are called in messages; None where not asked for.
    inputs : the files and folders that are read.
    force : whether files that exist may be replaced. An input is never replaced.
    """
    wanted = {what: Path(path) for what, path in outputs.items() if path is not None}
    read = [Path(path) for path in inputs if path is not None]
    seen: dict[Path, str] = {}
    for what, path in wanted.items():
        if path.is_dir():
            raise ValueError(f"{path} is a folder: name a file for {what}")
        if not path.parent.is_dir():
            raise ValueError(
                f"{path}: the folder {path.parent} does not exist: make it first"
            )
        if not os.access(path.parent, os.W_OK):
            raise ValueError(
                f"{path}: nothing can be written in the folder {path.parent}"
            )
        if any(_part_of(path, one) for one in read):
            raise ValueError(f"{path} is an input too: name another file for {what}")
        if path.resolve() in seen:
            raise ValueError(
                f"{path} is named for {seen[path.resolve()]} and for {what}: name two"
            )
        seen[path.resolve()] = what
        if path.exists() and not force:
            raise ValueError(
                f"{path} exists: name another file for {what}, or add --force"
            )


def _part_of(path: Path, one: Path) -> bool:
    """Whether a file is this input, or a file inside of it."""
    if not path.exists() or not one.exists():
        return path.resolve() == one.resolve()
    return path.samefile(one) or (
        one.is_dir() and one.resolve() in path.resolve().parents
    )


@contextmanager
def replacing(path: PathLike) -> Iterator[Path]:
    """A temporary name beside a file, renamed to it when the block ends without an error.

    The content is on disk before the file has its name. A link stays a link. An OSError that names
    no file, such as that of a full disk, gets the name of this one.
    """
    path = Path(path)
    target = path.resolve() if path.is_symlink() else path
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield temporary
        _to_disk(temporary)
        os.replace(temporary, target)
    except OSError as error:
        if error.errno is not None and error.filename in (
            None,
            str(temporary),
            temporary,
        ):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: PathLike, text: str) -> None:
    """Write a text file in one step."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: PathLike, content: bytes) -> None:
    """Write a file in one step."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def _to_disk(path: Path) -> None:
    """Have the system write what it holds of a file."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
