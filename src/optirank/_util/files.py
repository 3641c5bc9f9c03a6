"""Files to write: whether they may be, claimed first, written completely or not at
all, those of one command together.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path

from optirank._util.work import uninterrupted

PathLike = str | os.PathLike[str]

_HASHED = 2 * 10**9  # bytes: more take too long to read for their name alone
_ROOM = 1 << 16  # bytes on the disk, for a small model or table
_LONGEST_NAME = 255  # bytes of a file name on all common file systems
# Outputs that are claimed, and where the content of each lies until all are moved
_claims: ContextVar[dict[Path, Path]] = ContextVar("claims")


def check_outputs(
    outputs: Mapping[str, PathLike | None],
    inputs: Iterable[PathLike | None],
    *,
    force: bool,
) -> None:
    """Refuse, before any work, files that cannot or must not be written.

    Refused are folders, disks and sockets, files in folders that do not exist or cannot
    be written to, inputs (also under another name or through a link), the same file
    twice, and, unless ``force`` is given, files that exist.

    Parameters
    ----------
    outputs : the files to write, by what they are called in messages; None where not
        asked for.
    inputs : the files and folders that are read.
    force : whether files that exist may be replaced. An input is never replaced.
    """
    wanted = {what: Path(path) for what, path in outputs.items() if path is not None}
    read = [Path(path) for path in inputs if path is not None]
    purposes: dict[Path, str] = {}
    for what, path in wanted.items():
        _check_place(path, what)
        target = _real(path)
        for source in map(_real, read):
            is_input = target == source
            if target.exists() and source.exists():
                is_input = target.samefile(source) or source in target.parents
            if is_input:
                raise ValueError(
                    f"{path} is an input too: name another file for {what}"
                )
        if target in purposes:
            raise ValueError(
                f"{path} is named for {purposes[target]} and for {what}: name two"
            )
        purposes[target] = what
        if path.exists() and not force:
            raise ValueError(
                f"{path} exists: name another file for {what}, or replace it "
                "(force=True)"
            )


def _check_place(path: Path, what: str) -> None:
    """Refuse a name that no file can be written to."""
    mode = 0
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        pass  # as it should be
    except OSError as error:
        problem = path_problem(error)
        raise ValueError(f"{path} {problem}: name another file for {what}") from error
    kinds = {stat.S_IFDIR: "folder", stat.S_IFBLK: "disk", stat.S_IFSOCK: "socket"}
    if (kind := stat.S_IFMT(mode)) in kinds:
        raise ValueError(f"{path} is a {kinds[kind]}: name a file for {what}")
    if _is_stream(path):
        if not os.access(path, os.W_OK):
            raise ValueError(f"{path}: nothing can be written to it")
        return
    if not path.parent.is_dir():
        raise ValueError(
            f"{path}: the folder {path.parent} does not exist: make it first"
        )
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"{path}: nothing can be written in the folder {path.parent}")


def path_problem(error: OSError) -> str:
    """What is wrong with a path that the system cannot look up."""
    problems = {
        errno.ELOOP: "is a link that leads back to itself",
        errno.ENAMETOOLONG: "has a name that is too long for a file",
        errno.EACCES: "may not be read by this user",
        errno.ENOTDIR: "is inside of something that is no folder",
    }
    return problems.get(error.errno or 0, f"cannot be opened ({error.strerror})")


def _is_stream(path: Path) -> bool:
    """Whether a path is a device or a pipe, which is written into and never
    replaced.
    """
    return path.is_char_device() or path.is_fifo()


def _real(path: Path) -> Path:
    """The file that a name stands for; also of a link that leads to itself."""
    return Path(os.path.realpath(path))


@contextlib.contextmanager
def claimed_outputs(
    outputs: Mapping[str, PathLike | None],
    inputs: Iterable[PathLike | None],
    *,
    force: bool,
) -> Iterator[None]:
    """Check outputs as `check_outputs` does, keep other processes from writing them,
    and move them into place together.

    While the block runs, a small hidden file beside each output is locked. A second
    process that asks for the same name is refused; the system frees the lock of a
    process that dies. What `replacing` writes to these names in the block gets its name
    when the block ends without an error: after an error, or an interrupt, all files are
    as they were.
    """
    check_outputs(outputs, inputs, force=force)
    named = [Path(path) for path in outputs.values() if path is not None]
    targets = [_real(path) for path in named if not _is_stream(path)]
    claims = {path: _beside(path, f"{secrets.token_hex(4)}.tmp") for path in targets}
    with contextlib.ExitStack() as stack:
        for path, written in claims.items():
            stack.enter_context(_claimed(path))
            stack.callback(_remove, written)
        stack.callback(_claims.reset, _claims.set(claims))
        yield
        with uninterrupted():
            for path, written in claims.items():
                if written.exists():
                    os.replace(written, path)


@contextlib.contextmanager
def _claimed(path: Path) -> Iterator[None]:
    """Lock a file beside another, after a look whether the disk has room for it."""
    from filelock import FileLock, Timeout

    room = _beside(path, "room")
    try:
        room.write_bytes(bytes(_ROOM))
        _to_disk(room)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        room.unlink(missing_ok=True)
    claim = _beside(path, "claim")
    try:
        lock = FileLock(claim).acquire(timeout=0)
    except Timeout:
        raise ValueError(
            f"{path} is being written by another process: name another file, or wait"
        ) from None
    with lock:
        try:
            yield
        finally:
            with contextlib.suppress(PermissionError):  # Windows: it is locked
                claim.unlink(missing_ok=True)


def _beside(path: Path, ending: str) -> Path:
    """A hidden name in the same folder, cut so that it is not too long for a file."""
    room = _LONGEST_NAME - len(ending) - 2
    stem = os.fsdecode(os.fsencode(path.name)[:room])
    return path.with_name(f".{stem}.{ending}")


@contextlib.contextmanager
def replacing(path: PathLike) -> Iterator[Path]:
    """A temporary name beside a file, renamed to it when the block ends without an
    error; where the file is claimed, together with the other outputs.

    The content is on disk before the file has its name. A link stays a link. The
    content is copied into a device or a pipe, which stays what it is. An OSError that
    names no file, such as that of a full disk, gets the name of this one.
    """
    path = Path(path)
    if _is_stream(path):
        with tempfile.TemporaryDirectory() as folder:
            temporary = Path(folder) / "content"
            yield temporary
            with temporary.open("rb") as content, path.open("wb") as file:
                shutil.copyfileobj(content, file)
        return
    target = _real(path)
    temporary = _beside(target, f"{secrets.token_hex(4)}.tmp")
    try:
        yield temporary
        _to_disk(temporary)
        os.replace(temporary, _claims.get({}).get(target, target))
    except OSError as error:
        unnamed = error.filename in (None, str(temporary), temporary)
        if error.errno is not None and unnamed:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        _remove(temporary)


def _remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def write_text(path: PathLike, text: str) -> None:
    """Write a text file in one step."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: PathLike, content: bytes) -> None:
    """Write a file in one step."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def _to_disk(path: Path) -> None:
    """Have the system write what it holds of a file; of a folder, when it likes."""
    if not path.is_dir():
        with path.open("r+b") as file:
            os.fsync(file.fileno())


def file_digest(path: PathLike) -> str:
    """What tells a file, or all files of a folder, from others: "SHA-256 ..."; of more
    than 2 GB the size and the date of the last change.
    """
    path = Path(path)
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    files = [file for file in files if file.is_file()]
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
