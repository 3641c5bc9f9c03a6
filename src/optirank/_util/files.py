"""Files to write: whether they may be, written completely or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from optirank._util.words import valid_text

PathLike = str | os.PathLike[str]

_HASHED = 2 * 10**9  # bytes: more take too long to read for their name alone


def check_outputs(
    outputs: Mapping[str, PathLike | None],
    inputs: Iterable[PathLike | None],
    *,
    force: bool,
) -> None:
    """Refuse, before any work, files that cannot or must not be written.

    Refused are folders (but for a store .zarr, with ``force``), files in folders that
    do not exist or cannot be written to, inputs (also under another name or through a
    link), the same file twice, and, unless ``force`` is given, files that exist.

    Parameters
    ----------
    outputs : the files to write, by what they are called in messages; None where not
        asked for.
    inputs : the files and folders that are read, and names that may be of files.
    force : whether files that exist may be replaced. An input is never replaced.
    """
    sources = [Path(os.path.realpath(path)) for path in inputs if path is not None]
    purposes: dict[Path, str] = {}
    for what, name in outputs.items():
        if name is None:
            continue
        path = Path(name)
        target = Path(os.path.realpath(path))
        if path.is_dir() and not _is_store(path):
            raise ValueError(f"{path} is a folder: name a file for {what}")
        is_stream = _is_stream(path)
        if not is_stream and not path.parent.is_dir():
            raise ValueError(
                f"{path}: the folder {path.parent} does not exist: make it first"
            )
        if not is_stream and not os.access(path.parent, os.W_OK):
            raise ValueError(
                f"{path}: nothing can be written in the folder {path.parent}"
            )
        for source in filter(os.path.exists, sources):
            is_same = path.exists() and target.samefile(source)
            if is_same or source in target.parents:
                raise ValueError(
                    f"{path} is an input too: name another file for {what}"
                )
        if target in purposes:
            raise ValueError(
                f"{path} is named for {purposes[target]} and for {what}: name two"
            )
        purposes[target] = what
        if path.exists() and not force and not is_stream:
            raise ValueError(
                f"{path} exists: name another file for {what}, or replace it (--force)"
            )


def _is_store(path: Path) -> bool:
    """Whether a folder is a store of zarr, which may be replaced as a whole."""
    marks = ("zarr.json", ".zgroup")
    return path.suffix == ".zarr" and any((path / mark).is_file() for mark in marks)


def _is_stream(path: Path) -> bool:
    """Whether a path is a device or a pipe, which is written into and never
    replaced.
    """
    return path.is_char_device() or path.is_fifo()


@contextlib.contextmanager
def replacing(path: PathLike) -> Iterator[Path]:
    """A temporary name beside a file, renamed to it when the block ends without an
    error.

    The content is on disk before the file has its name. A link stays a link. Into a
    device or a pipe the content is written at once. An OSError that
    names no file, such as that of a full disk, gets the name of this one.
    """
    path = Path(path)
    if _is_stream(path):
        yield path
        return
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        yield temporary
        if temporary.is_file():
            with temporary.open("r+b") as file:
                os.fsync(file.fileno())
        replaced = temporary.with_suffix(".old")
        if _is_store(target):
            os.replace(target, replaced)  # a folder that is full cannot be renamed to
        os.replace(temporary, target)
        shutil.rmtree(replaced, ignore_errors=True)
    except OSError as error:
        unnamed = error.filename in (None, str(temporary), temporary)
        if error.errno is not None and unnamed:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary)
        temporary.unlink(missing_ok=True)


def write_text(path: PathLike, text: str) -> None:
    """Write a text file in one step."""
    with replacing(path) as temporary:
        temporary.write_text(text, "utf-8", newline="")


def file_digests(paths: Iterable[PathLike]) -> dict[str, str]:
    """What tells each of some files from others, by its name; names that several have
    begin at the folder that all files share.
    """
    files = dict.fromkeys(Path(os.path.abspath(path)) for path in paths)
    names = [file.name for file in files]
    if len(set(names)) < len(names):
        shared = os.path.commonpath([file.parent for file in files])
        names = [file.relative_to(shared).as_posix() for file in files]
    return dict(zip(map(valid_text, names), map(file_digest, files), strict=True))


def file_digest(path: PathLike) -> str:
    """What tells a file, or all files of a folder, from others: "SHA-256 ..."; of more
    than 2 GB the size and the date of the last change.
    """
    path = Path(path)
    files = [file for file in sorted([path, *path.rglob("*")]) if file.is_file()]
    about = [file.stat() for file in files]
    size = sum(one.st_size for one in about)
    if size > _HASHED:
        changed = datetime.fromtimestamp(max(one.st_mtime for one in about), UTC)
        return f"{size} bytes, {changed:%Y-%m-%d %H:%M:%S} UTC"
    whole = hashlib.sha256()
    for file in files:
        with file.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        if not path.is_dir():
            return f"SHA-256 {digest}"
        whole.update(f"{file.relative_to(path).as_posix()} {digest}\n".encode())
    return f"SHA-256 {whole.hexdigest()}"
