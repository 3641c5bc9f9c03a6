"""Results on disk: what was run, what each task is, and one JSON file a finished unit."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from optirank import __version__
from optirank.benchmark.preparation import design_key
from optirank.benchmark.writing import write_text

if TYPE_CHECKING:
    from optirank.benchmark.preparation import Design
    from optirank.benchmark.profiles import Profile

_FORMAT = 1


@dataclass(frozen=True)
class Unit:
    """A classifier's whole grid on one split of one binary problem of a task."""

    task: str
    scenario: str
    split: int
    number: int  # of the binary problem
    positive: str
    classifier: str
    weight: float = 1.0  # rough share of the work, for the time left

    @property
    def design(self) -> str:
        """Name of the design it belongs to."""
        return design_key(self.task, self.scenario)

    @property
    def path(self) -> str:
        """Its file, below the folder of units."""
        readable = re.sub(r"\W+", "_", self.positive)
        name = f"{self.split:02d}-{self.number:02d}_{readable}-{self.classifier}.json"
        return f"{self.design}/{name}"


class Storage:
    """A folder of results. What must not change within it stands in ``run.json``."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def open(self, profile: Profile, seed: int) -> Storage:
        """Make the folder, or check that it holds results of the same settings."""
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{self.folder} is a file: choose a folder for the results")
        record = {"format": _FORMAT, "version": __version__, "seed": seed, **profile.record()}
        if (self.folder / "run.json").is_file():
            there = self.record()
            for name, value in record.items():
                if there.get(name) != value:
                    raise ValueError(
                        f"{self.folder} holds results of other settings ({name} was "
                        f"{there.get(name)!r}, now it is {value!r}): choose another folder or the "
                        "same settings"
                    )
        else:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_text(self.folder / "run.json", json.dumps(record, indent=1))
        return self

    def record(self) -> dict:
        """What was run. An error where the folder holds no results."""
        path = self.folder / "run.json"
        if not path.is_file():
            raise ValueError(
                f"{self.folder} holds no results: optirank benchmark run --out {self.folder} "
                "makes them"
            )
        return _read(path)

    def add_design(self, design: Design) -> None:
        """Note what a design is, or check that it is still the same."""
        record = _describe(design)
        path = self.folder / "designs" / f"{design.key}.json"
        if path.is_file():
            if _read(path).get("fingerprint") != record["fingerprint"]:
                raise ValueError(
                    f"the data of {design.key} are not those that {self.folder} holds results of: "
                    f"choose another folder, or delete {path} and {self._units / design.key}"
                )
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(record, indent=1))

    def designs(self) -> dict[str, dict]:
        """All designs of the folder, by name."""
        found = {path.stem: _read(path) for path in (self.folder / "designs").glob("*.json")}
        return dict(sorted(found.items(), key=lambda item: (item[1]["added"], item[0])))

    def load(self, unit: Unit) -> dict | None:
        """The stored result of a unit, or None where there is none that can be read."""
        try:
            return json.loads((self._units / unit.path).read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def has(self, unit: Unit) -> bool:
        """Whether the result of a unit is there; files come into being whole."""
        return (self._units / unit.path).is_file()

    def save(self, unit: Unit, result: dict) -> None:
        """Store the result of a unit in one step."""
        path = self._units / unit.path
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(result))

    def log(self, **facts: object) -> None:
        """Add a line about one run of the command."""
        lines = [
            *self.log_lines(),
            {"at": datetime.now(UTC).isoformat(timespec="seconds"), **facts},
        ]
        write_text(self.folder / "log.json", json.dumps(lines, indent=1))

    def log_lines(self) -> list[dict]:
        """What is known of the runs so far."""
        path = self.folder / "log.json"
        return _read(path) if path.is_file() else []

    @property
    def _units(self) -> Path:
        return self.folder / "units"


def _describe(design: Design) -> dict:
    """What a report needs to know of a design, without its data."""
    task, splits = design.task, design.splits
    auxiliary = design.auxiliary
    return {
        "fingerprint": design.fingerprint(),
        "added": datetime.now(UTC).isoformat(),
        "task": task.name,
        "scenario": design.scenario,
        "kind": task.kind,
        "sources": design.source.name
        + (f" + {auxiliary.name}" if auxiliary is not None and design.scenario == "multi" else ""),
        "tests": list(design.tests),
        "titles": [one.title for one in design.tested],
        "shifts": [one.shift for one in design.tested],
        "targets": [
            "held-out samples" if one is None else one.name for one in design.tests.values()
        ],
        "n_genes": len(design.genes),
        "classes": design.classes,
        "positives": design.positives,
        "parts": [split.part for split in splits],
        "n_train": [len(split.train) + len(split.auxiliary_train) for split in splits],
        "n_validation": [
            len(split.validation) + len(split.auxiliary_validation) for split in splits
        ],
        "n_test": [
            [len(split.test) if one is None else len(one.labels) for split in splits]
            for one in design.tests.values()
        ],
        "notes": design.notes,
    }


def _read(path: Path) -> dict | list:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} cannot be read ({error}): choose another folder") from error
