"""Fetch the files of a registered data set and make the .h5ad of a catalogue from them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from optirank.datasets.building import build, conversion
from optirank.datasets.errors import DataError, need
from optirank.datasets.registry import Entry, RemoteFile
from optirank.datasets.writing import write_h5ad


class ByHandError(DataError):
    """The user has to take some steps; the message lists them, one per line."""


def fetch(
    entry: Entry,
    data: Path,
    *,
    label: str | None = None,
    say: Callable[[str], None] = lambda text: None,
    progressbar: Any = False,
) -> Path:
    """Download what is missing into ``data/NAME`` and write ``data/NAME.h5ad``; return its path.

    If files must be fetched by hand, or converted with R first, a ByHandError lists the steps.
    """
    target = data / f"{entry.name}.h5ad"
    if target.is_file():
        say(f"{target} is there already")
        return target
    home = data / entry.name
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"{home} cannot be made ({error.strerror}): choose another folder with --data"
        ) from None
    if not entry.files and not any(home.iterdir()):
        raise ByHandError(f"{entry.name} has to be fetched by hand:\n{instructions(entry, data)}")
    line = conversion(entry, data)
    for remote in entry.files:
        converted = "convert" in entry.read and line is None
        if not converted and not (home / remote.name).is_file():
            say(f"fetching {remote.url}")
            download(remote, home, progressbar)
    if line:
        raise ByHandError(
            f"{home / entry.read['convert']} is an R file. Convert it, then give the same command "
            f"again:\n{line}"
        )
    say(f"reading {home}")
    about = {
        "accession": entry.accession,
        "source": entry.source,
        "licence": entry.licence,
        "species": entry.organism,
        "modality": entry.modality,
        "note": entry.note,
    }
    return write_h5ad(build(entry, data, label), target, about)


def instructions(entry: Entry, data: Path) -> str:
    """Return the steps to take by hand, with the folder filled in."""
    return entry.by_hand.strip().replace("FOLDER", str(data / entry.name))


def download(remote: RemoteFile, folder: Path, progressbar: Any = False) -> Path:
    """Download one file with pooch, whole or not at all; check its hash where that is known."""
    pooch = need("pooch", "data", f"fetching {remote.url}")
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    try:
        return Path(
            pooch.retrieve(
                remote.url,
                known_hash=f"sha256:{remote.sha256}" if remote.sha256 else None,
                fname=remote.name,
                path=folder,
                downloader=pooch.HTTPDownloader(progressbar, 2**16, timeout=60),
            )
        )
    except (OSError, ValueError) as error:
        raise DataError(
            f"{remote.url} could not be fetched ({_short(error)}): try again, or get it by "
            f"hand and put it at {folder / remote.name}"
        ) from error
    finally:
        logger.setLevel(level)


def _short(error: Exception) -> str:
    """Say what requests found wrong, without the chain of its causes."""
    text = " ".join(str(error).split())
    if "resolve" in text or "Max retries" in text:
        return "no connection to its server"
    return text if len(text) < 200 else f"{text[:200]}..."
