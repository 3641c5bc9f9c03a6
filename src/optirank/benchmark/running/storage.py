"""Results on disk: what was run, what each task is, and one JSON file per finished unit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from optirank import __version__
from optirank._util.files import write_text
from optirank.benchmark.designs import design_key

if TYPE_CHECKING:
    from optirank.benchmark.designs import Design
    from optirank.benchmark.profiles import Profile

_FORMAT = 2
_LOCK = ".lock"
_WHOLE = "whole-"  # the files of whole units begin so


@dataclass(frozen=True)
class _OfDesign:
    task: str
    scenario: str

    @property
    def design(self) -> str:
        """Name of the design it belongs to."""
        return design_key(self.task, self.scenario)


@dataclass(frozen=True)
class Unit(_OfDesign):
    """A classifier's whole grid on one split of one binary problem of a task."""

    split: int
    number: int  # of the binary problem
    positive: str
    classifier: str
    weight: float = 1.0  # rough share of the work, for the time left

    @property
    def path(self) -> str:
        """Its file, below the folder of units."""
        readable = re.sub(r"\W+", "_", self.positive)
        name = f"{self.split:02d}-{self.number:02d}_{readable}-{self.classifier}.json"
        return f"{self.design}/{name}"


@dataclass(frozen=True)
class WholeUnit(_OfDesign):
    """A tool on all classes of a task at once, over the splits of a design."""

    classifier: str
    weight: float = 1.0  # rough share of the work, for the time left

    @property
    def path(self) -> str:
        """Its file, below the folder of units."""
        return f"{self.design}/{_WHOLE}{self.classifier}.json"


class Storage:
    """A folder of results of one experiment ("real" or "synthetic").

    What must not change within it stands in ``run.json``; a folder with other files and without
    that one is not touched.
    """

    def __init__(self, folder: str | Path, experiment: str = "real") -> None:
        self.folder = Path(folder)
        self.experiment = experiment

    def check(self, profile: Profile, seed: int) -> None:
        """Refuse a folder of other files or of other settings; nothing is written."""
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{self.folder} is a file: choose a folder for the results")
        if not (self.folder / "run.json").is_file():
            known = (_LOCK, self._temporary.name)
            if others := sorted({path.name for path in self.folder.glob("*")}.difference(known)):
                raise ValueError(
                    f"{self.folder} is not a folder of results, but has other files "
                    f"({others[0]!r}): choose a new or an empty folder"
                )
            return
        there = self.record()
        for name, value in self._run_record(profile, seed).items():
            if there.get(name) != value:
                raise ValueError(
                    f"{self.folder} holds results of other settings ({name} was "
                    f"{there.get(name)!r}, now it is {value!r}): choose another folder or the "
                    "same settings"
                )

    @contextmanager
    def open(self, profile: Profile, seed: int) -> Iterator[Storage]:
        """Make the folder and keep other runs out of it."""
        self.check(profile, seed)
        self.folder.mkdir(parents=True, exist_ok=True)
        with _lock(self.folder / _LOCK):
            self.check(profile, seed)
            if not (self.folder / "run.json").is_file():
                self._write("run.json", self._run_record(profile, seed), indent=1)
            self._temporary.unlink(missing_ok=True)  # of a run that was killed
            yield self

    def record(self) -> dict:
        """What was run. An error where the folder holds no results."""
        path = self.folder / "run.json"
        if not path.is_file():
            raise ValueError(
                f"{self.folder} holds no results: optirank benchmark run --out {self.folder} "
                "makes them"
            )
        return _read(path)

    def check_design(self, design: Design) -> None:
        """Refuse a design whose data are not those that results are stored of."""
        path = self.folder / "designs" / f"{design.key}.json"
        if path.is_file() and _read(path).get("fingerprint") != design.fingerprint():
            raise ValueError(
                f"the data of {design.key} are not those that {self.folder} holds results of: "
                f"choose another folder, or delete {path} and {self.folder / 'units' / design.key}"
            )

    def add_design(self, key: str, record: dict) -> None:
        """Note what a design is (see `Design.describe`)."""
        path = self.folder / "designs" / f"{key}.json"
        added = _read(path)["added"] if path.is_file() else datetime.now(UTC).isoformat()
        self._write(f"designs/{key}.json", {**record, "added": added}, indent=1)

    def designs(self) -> dict[str, dict]:
        """All designs of the folder, by name."""
        found = {path.stem: _read(path) for path in (self.folder / "designs").glob("*.json")}
        return dict(sorted(found.items(), key=lambda item: (item[1]["added"], item[0])))

    def load(self, unit: Unit | WholeUnit) -> dict | None:
        """The stored result of a unit, or None where there is none that can be read."""
        try:
            found = json.loads((self.folder / "units" / unit.path).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):  # of bytes that are no text, too
            return None
        return found if isinstance(found, dict) else None

    def has(self, unit: Unit | WholeUnit) -> bool:
        """Whether the result of a unit is there and can be read; a gap is no result."""
        found = self.load(unit)
        return found is not None and "failed" not in found

    def whole(self, design: str) -> dict[str, dict]:
        """The records of whole units of a design, by tool; gaps have ``failed`` and ``stage``."""
        found = {}
        for path in sorted((self.folder / "units" / design).glob(f"{_WHOLE}*.json")):
            try:
                record = json.loads(path.read_text(encoding="utf-8"))
                found[record["tool"]] = record
            except (ValueError, TypeError, KeyError):
                continue  # damaged: it will be run again
        return found

    def save(self, unit: Unit | WholeUnit, result: dict) -> None:
        """Store the result of a unit in one step."""
        self._write(f"units/{unit.path}", result)

    def log(self, start: str, facts: dict) -> None:
        """Note a run of the command, told by when it started; later facts replace earlier ones."""
        lines = {line["start"]: line for line in self.log_lines()}
        lines[start] = {"start": start, **facts}
        self._write("log.json", [*lines.values()], indent=1)

    def log_lines(self) -> list[dict]:
        """What is known of the runs so far."""
        path = self.folder / "log.json"
        return _read(path) if path.is_file() else []

    @property
    def _temporary(self) -> Path:
        """The one name under which files are written: a killed run leaves no other."""
        return self.folder / ".unfinished.tmp"

    def _write(self, name: str, content: object, indent: int | None = None) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(content, indent=indent), temporary=self._temporary)

    def _run_record(self, profile: Profile, seed: int) -> dict:
        same = {"format": _FORMAT, "experiment": self.experiment, "version": __version__}
        return {**same, "seed": seed, **profile.record()}


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Keep a second run out of the folder, where the system has locks for it."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(
                f"another run is using {path.parent}: wait for it, or choose another folder"
            ) from None
        yield


def _read(path: Path) -> dict | list:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} cannot be read ({error}): choose another folder") from error
