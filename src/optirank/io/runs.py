"""What a long run goes on from after an interruption: the results of finished tasks in
a folder, and signatures that tell whether a file has changed.

Each file of results is written whole or not at all. Results are arrays by name; nothing
else is read back. What they belong to (model, query, options) is written beside them:
results of another run are thrown away.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank import __version__
from optirank._util.files import replacing, write_text
from optirank.io.data import DataError

if TYPE_CHECKING:
    from optirank._util.matrices import Accumulator
    from optirank.io.passes import Gathered, Group

_RUN = "run.json"


class ChangedFileError(DataError):
    """A file that has changed since it was opened."""


def signature(path: str | Path) -> tuple[int, ...]:
    """The last change and the size; of a folder the last change of all folders and of
    the files right in it, and the size of these.

    A chunk of a zarr store that is written again changes the time of its folder.
    """
    path = Path(path)
    files = [path]
    folders: list[str] = []
    if path.is_dir():
        files = [part for part in path.iterdir() if part.is_file()]
        folders = [folder for folder, _, _ in os.walk(path)]
    of_files = [file.stat() for file in files]
    times = [status.st_mtime_ns for status in (*of_files, *map(os.stat, folders))]
    return max(times), sum(status.st_size for status in of_files)


def check_unchanged(path: str | Path, mark: tuple[int, ...]) -> None:
    """Refuse a file whose signature is another one now, or here."""
    host = socket.gethostname()
    try:
        now = signature(path)
    except OSError as error:
        raise ChangedFileError(
            f"{path} cannot be read on {host} ({error.strerror}): put it where all "
            "workers see it under this name, and start again"
        ) from None
    if now != mark:
        raise ChangedFileError(
            f"{path} has changed while it was being read, or is another file on "
            f"{host}: put one file where all workers see it, and start again"
        )


def run_of(
    model_digest: str,
    files: Sequence[str | Path],
    options: Mapping[str, Any],
    reading: Mapping[str, Any],
) -> dict[str, Any]:
    """What finished blocks belong to: model, files as they are now, and options."""
    asked = {"options": options, "reading": reading}
    texts = json.dumps(asked, sort_keys=True, default=str)
    return {
        "optirank": __version__,
        "model": model_digest,
        "files": {str(Path(file).resolve()): [*signature(file)] for file in files},
        "options": hashlib.sha256(texts.encode()).hexdigest(),
    }


def parts_folder(out: Path) -> Path:
    """Where finished blocks of the labels in a file are kept until it is written."""
    return out.with_name(f"{out.name}.parts")


class Parts:
    """The folder of a run.

    Parameters
    ----------
    folder : made where it does not exist.
    run : what the results belong to, in the types that JSON has.

    Attributes
    ----------
    stored : the names of the files that were there at the start.
    """

    def __init__(self, folder: Path, run: Mapping[str, Any]) -> None:
        self.folder = folder
        text = json.dumps(run, indent=1, sort_keys=True) + "\n"
        if folder.is_dir() and not _is(folder / _RUN, text):
            shutil.rmtree(folder)
        folder.mkdir(exist_ok=True)
        write_text(folder / _RUN, text)
        self.stored = {path.stem for path in folder.glob("*.npz")}

    def load(self, number: int, empty: Sequence[Accumulator]) -> list[Group] | None:
        """What a task gave for each group; None where it is not there.

        What is a list, a number or a text is seen from the empty accumulators.
        """
        if self._path(number).stem not in self.stored:
            return None
        try:
            with np.load(self._path(number), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile):
            return None  # damaged: it is done again
        gathered: list[Gathered] = [[{} for _ in empty] for _ in arrays["stops"]]
        for key, array in arrays.items():
            if key == "stops":
                continue
            group, place, name, _ = key.split(".")
            values = gathered[int(group)][int(place)]
            entry = array if array.ndim else array.item()
            if isinstance(vars(empty[int(place)])[name], list):
                values.setdefault(name, []).append(entry)
            else:
                values[name] = entry
        return list(zip(arrays["stops"].tolist(), gathered, strict=True))

    def save(self, number: int, groups: list[Group]) -> None:
        """Write what a task gave for each group."""
        arrays = {"stops": np.array([stop for stop, _ in groups])}
        for group, (_, gathered) in enumerate(groups):
            for place, values in enumerate(gathered):
                for name, value in values.items():
                    entries = value if isinstance(value, list) else [value]
                    for k, entry in enumerate(entries):
                        arrays[f"{group}.{place}.{name}.{k}"] = np.asarray(entry)
        with replacing(self._path(number)) as temporary, open(temporary, "xb") as file:
            np.savez(file, allow_pickle=False, **arrays)

    def remove(self) -> None:
        """Remove the folder, when the run is finished."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08}.npz"


def _is(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False
