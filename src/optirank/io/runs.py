"""What a long run goes on from after an interruption: the results of finished tasks in
a folder, and signatures that tell whether a file has changed.

Each file of results is written whole or not at all. Results are arrays by name; nothing
else is read back. What they belong to (model, query, options) is written beside them:
results of another run are thrown away.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank import __version__
from optirank._util.files import replacing, write_text
from optirank.io.data import DataError

if TYPE_CHECKING:
    from optirank._util.passes import Accumulator
    from optirank.io.passes import Gathered, Group

_RUN = "run.json"


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
        self._prefix = ""
        text = json.dumps(run, indent=1, sort_keys=True) + "\n"
        if folder.is_dir() and not _is(folder / _RUN, text):
            shutil.rmtree(folder)
        folder.mkdir(exist_ok=True)
        write_text(folder / _RUN, text)
        self.stored = {path.stem for path in folder.glob("*.npz")}

    def of_file(self, number: int) -> Parts:
        """The results of one of several files of the run."""
        own = copy.copy(self)
        own._prefix = f"{number:04}-"
        return own

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
        return self.folder / f"{self._prefix}{number:08}.npz"


def _is(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False
