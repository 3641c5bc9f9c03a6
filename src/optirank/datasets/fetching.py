"""Fetch the raw files of registered data sets and make the .h5ad files of a catalogue from them."""

from __future__ import annotations

import hashlib
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from optirank._util.files import replacing
from optirank._util.progress import Bar, progress_bar
from optirank.datasets.building import build
from optirank.datasets.errors import DataError
from optirank.datasets.registry import Entry, RemoteFile
from optirank.datasets.writing import write_h5ad

_PIECE = 1 << 18  # bytes between two steps of the progress bar
_TIMEOUT = 60  # seconds of silence after which a server counts as gone


class ByHandError(DataError):
    """The user has to take some steps; the message lists them, one per line."""


def fetch(
    entry: Entry,
    data: Path,
    *,
    given: Path | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Path:
    """Get the raw files that are missing and write ``data/NAME.h5ad``; return its path.

    Raw files are kept in ``data/raw`` (stand-ins, which share some) or ``data/NAME``, so that an
    interrupted call goes on where it was. Files in the folder ``given``, under the name of the
    registry or their own, are taken from there. Known checksums are compared.
    """
    target = data / f"{entry.name}.h5ad"
    if target.is_file():
        say(f"{target} is there already")
        return target
    home = data / ("raw" if entry.stand_in else entry.name)
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"{home} cannot be made ({error.strerror}): choose another folder with --data"
        ) from None
    if not entry.files and not any(home.iterdir()):
        raise ByHandError(f"{entry.name} has to be fetched by hand:\n{instructions(entry, data)}")
    for remote in entry.files:
        if not (home / remote.name).is_file():
            _get(remote, home, given, say)
    say(f"building {entry.name}")
    about = {
        "accession": entry.accession,
        "paper": entry.paper,
        "source": entry.source,
        "licence": entry.licence,
        "species": entry.organism,
        "modality": entry.modality,
        "platform": entry.technology,
        "note": entry.note,
    }
    return write_h5ad(build(entry, home, data), target, about)


def fetch_all(
    entries: list[Entry],
    data: Path,
    *,
    given: Path | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, str]:
    """Fetch several sets; a set that cannot be had does not stop the others.

    Returns
    -------
    dict of the sets that are not there, with what went wrong.
    """
    problems = {}
    with progress_bar("data sets", len(entries)) as bar:
        for entry in entries:
            bar.update(bar.done, text=entry.name)
            try:
                fetch(entry, data, given=given)
            except (DataError, OSError) as error:
                problems[entry.name] = str(error)
                say(f"{entry.name}: {error}")
            bar.advance()
    return problems


def instructions(entry: Entry, data: Path) -> str:
    """Return the steps to take by hand, with the folder filled in."""
    return entry.by_hand.strip().replace("FOLDER", str(data / entry.name))


def download(remote: RemoteFile, path: Path, opener: Callable = urllib.request.urlopen) -> Path:
    """Download one file; a part that an earlier call left is completed, the checksum compared."""
    part = path.with_name(f"{path.name}.part")
    done = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(remote.url, headers={"User-Agent": "optirank"})
    if done:
        request.add_header("Range", f"bytes={done}-")
    try:
        with opener(request, timeout=_TIMEOUT) as answer:
            if done and answer.status != 206:  # the server sends the whole file again
                done = 0
            total = int(answer.headers.get("Content-Length") or 0) + done
            with progress_bar(remote.name, total or None) as bar:
                _write(answer, part, done, bar)
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        gone = isinstance(error, urllib.error.HTTPError) and error.code in (404, 410)
        remedy = "the source is gone" if gone else "try again"
        raise DataError(
            f"{remote.url} could not be fetched ({why}): {remedy}, or get it by other means, put "
            f"it in a folder and give that with --from"
        ) from error
    try:
        _check(part, remote)
    except DataError:
        part.unlink()
        raise
    part.replace(path)
    return path


def _get(remote: RemoteFile, home: Path, given: Path | None, say: Callable[[str], None]) -> None:
    """Copy a raw file from the folder given, or else download it."""
    target, bare = home / remote.name, remote.name.partition("__")[2] or remote.name
    for name in (remote.name, bare) if given is not None else ():
        if (given / name).is_file():
            _check(given / name, remote)
            with replacing(target) as temporary:
                shutil.copyfile(given / name, temporary)
            return
    if given is not None and not given.is_dir():
        raise DataError(f"{given} is not a folder of raw files")
    say(f"fetching {remote.url}")
    download(remote, target)


def _write(answer: object, part: Path, done: int, bar: Bar) -> None:
    bar.advance(done, stored=True)
    with part.open("ab" if done else "wb") as file:
        while piece := answer.read(_PIECE):
            file.write(piece)
            bar.advance(len(piece))


def _check(path: Path, remote: RemoteFile) -> None:
    """Refuse a file whose checksum is known and another one."""
    if remote.sha256 is None:
        return
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != remote.sha256:
        raise DataError(
            f"{path} is not the file that is registered: its sha256 is {found}, not "
            f"{remote.sha256}; fetch it again from {remote.url}"
        )
