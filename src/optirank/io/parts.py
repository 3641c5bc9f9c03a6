"""Results of finished blocks in a folder, from which an interrupted run goes on.

Each file is written whole or not at all. Results are arrays by name; nothing else is
read back. What the results belong to (model, query, options) is written beside them:
results of another run are thrown away.
"""

from __future__ import annotations

import copy
import json
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.files import replacing, write_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

_RUN = "run.json"


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

    def load(self, number: int) -> list[dict[str, NDArray]] | None:
        """The results of a task, one per block; None where they are not there."""
        if self._path(number).stem not in self.stored:
            return None
        try:
            with np.load(self._path(number), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile):
            return None  # damaged: it is done again
        blocks: dict[str, dict[str, NDArray]] = {}
        for key, array in arrays.items():
            block, _, name = key.partition(".")
            blocks.setdefault(block, {})[name] = array
        return [blocks[block] for block in sorted(blocks)]

    def save(self, number: int, results: list[dict[str, NDArray]]) -> None:
        """Write the results of a task."""
        arrays = {
            f"{block:04}.{name}": array
            for block, result in enumerate(results)
            for name, array in result.items()
        }
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
