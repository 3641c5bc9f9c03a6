"""Results on disk: one JSON file a finished unit, written whole or not at all."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from optirank import __version__
from optirank._util.files import write_text
from optirank.benchmark.simulation.settings import Settings, Unit

_FORMAT = 1


class Storage:
    """The results of one experiment in one folder.

    The name of a unit's file holds its point and its repeat. What the name does not hold (seed,
    grid, version of the package) stands in ``experiment.json`` and must not change.
    """

    def __init__(self, folder: str | Path, settings: Settings) -> None:
        self.folder = Path(folder)
        self._record = {
            "format": _FORMAT,
            "version": __version__,
            "seed": settings.seed,
            "grid": asdict(settings.grid),
        }

    def open(self) -> Storage:
        """Make the folder, or check that it holds results of the same settings."""
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{self.folder} is a file: choose a folder for the results")
        record = self.folder / "experiment.json"
        if record.is_file():
            self._check_same(record)
        else:
            self._units.mkdir(parents=True, exist_ok=True)
            write_text(record, json.dumps(self._record, indent=1))
        return self

    def load(self, unit: Unit) -> dict | None:
        """Return the stored result of a unit, or None where there is none that can be read."""
        try:
            return json.loads(self._path(unit).read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def save(self, unit: Unit, result: dict) -> None:
        """Store the result of a unit under its final name in one step."""
        self._units.mkdir(parents=True, exist_ok=True)
        write_text(self._path(unit), json.dumps(result))

    @property
    def _units(self) -> Path:
        return self.folder / "units"

    def _path(self, unit: Unit) -> Path:
        return self._units / f"{unit.key}.json"

    def _check_same(self, record: Path) -> None:
        try:
            there = json.loads(record.read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise ValueError(f"{record} cannot be read ({error}): choose another folder") from error
        here = json.loads(json.dumps(self._record))
        for name, value in here.items():
            if there.get(name) != value:
                raise ValueError(
                    f"{self.folder} holds results of other settings ({name} was "
                    f"{_short(there.get(name))}, now it is {_short(value)}): choose another folder "
                    "or the same settings"
                )


def _short(value: object) -> object:
    return value.get("name") if isinstance(value, dict) else value
