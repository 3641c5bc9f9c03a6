"""Results on disk: what was run, what each task is, and one JSON file per finished unit."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from optirank import __version__
from optirank._util.files import write_text
from optirank.benchmark.designs import ALL, design_key

if TYPE_CHECKING:
    from optirank.benchmark.designs import Design, Profile

_FORMAT = 3
_LOCK = ".lock"
_UNFINISHED = re.compile(r"\..+\.json\.[0-9a-f]{8}\.tmp")  # files that a killed run was writing


@dataclass(frozen=True)
class Unit:
    """A classifier's whole grid on one problem of one split of a task."""

    task: str
    scenario: str
    split: int
    problem: str  # the positive class, or all classes
    classifier: str
    weight: float = 1.0  # rough share of the work, for the time left

    @property
    def design(self) -> str:
        """Name of the design it belongs to."""
        return design_key(self.task, self.scenario)

    @property
    def path(self) -> str:
        """Its file, below the folder of units."""
        readable = re.sub(r"[^\w+-]", "_", self.problem)
        number = zlib.crc32(self.problem.encode())  # names that read alike must not share a file
        problem = "all" if self.problem == ALL else f"{readable}_{number:08x}"
        return f"{self.design}/{self.split:02d}-{problem}-{self.classifier}.json"


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
            others = sorted(path.name for path in self.folder.glob("*") if path.name != _LOCK)
            if others := [name for name in others if not _UNFINISHED.fullmatch(name)]:
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
            for path in [*self.folder.glob(".*.tmp"), *self.folder.glob("*/**/.*.tmp")]:
                if _UNFINISHED.fullmatch(path.name):  # of a run that was killed
                    path.unlink(missing_ok=True)
            if not (self.folder / "run.json").is_file():
                self._write("run.json", self._run_record(profile, seed), indent=1)
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
        """Store what a design is (see `Design.describe`)."""
        path = self.folder / "designs" / f"{key}.json"
        added = _read(path)["added"] if path.is_file() else datetime.now(UTC).isoformat()
        self._write(f"designs/{key}.json", {**record, "added": added}, indent=1)

    def designs(self) -> dict[str, dict]:
        """All designs of the folder, by name."""
        found = {path.stem: _read(path) for path in (self.folder / "designs").glob("*.json")}
        return dict(sorted(found.items(), key=lambda item: (item[1]["added"], item[0])))

    def has(self, unit: Unit) -> bool:
        """Whether the result of a unit is there and can be read; a gap is no result."""
        found = _read_unit(self.folder / "units" / unit.path)
        return found is not None and "failed" not in found

    def units(self, design: str) -> list[dict]:
        """The results of a design; gaps have ``failed``. Damaged files are left out."""
        paths = sorted((self.folder / "units" / design).glob("*.json"))
        return [found for path in paths if (found := _read_unit(path)) is not None]

    def save(self, unit: Unit, result: dict) -> None:
        """Store the result of a unit in one step."""
        same = {key: value for key, value in asdict(unit).items() if key != "weight"}
        self._write(f"units/{unit.path}", {**same, **result})

    def log(self, start: str, facts: dict) -> None:
        """Store facts about a run of the command; later facts of the same start replace earlier."""
        lines = {line["start"]: line for line in self.log_lines()}
        lines[start] = {"start": start, **facts}
        self._write("log.json", [*lines.values()], indent=1)

    def log_lines(self) -> list[dict]:
        """What is known of the runs so far."""
        path = self.folder / "log.json"
        return _read(path) if path.is_file() else []

    def _write(self, name: str, content: object, indent: int | None = None) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(content, indent=indent))

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


def _read_unit(path: Path) -> dict | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):  # of bytes that are no text, too
        return None
    return found if isinstance(found, dict) and "classifier" in found else None
