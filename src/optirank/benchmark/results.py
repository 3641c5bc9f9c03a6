"""Results: stored one JSON file per finished unit, and read as one table of chosen settings."""

from __future__ import annotations

import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from optirank import __version__
from optirank._util.files import write_text
from optirank.benchmark.classifiers import CLASSIFIERS, ordered
from optirank.benchmark.designs import ALL, design_key
from optirank.tuning.selection import RULES, scored_folds, select

if TYPE_CHECKING:
    from optirank.benchmark.designs import Design, Profile

SCORES = [
    *("group", "task", "scenario", "title", "shift", "kind", "tissue", "problem", "classifier"),
    *("part", "split", "test", "validation", "n_genes", "n_features", "n_train", "n_test"),
    *("unlabelled", "cosine", "setting", "fit_seconds", "predict_seconds", "unit_seconds"),
    "version",
]
_GROUPS = {"": "", "single": ", one of two sources", "multi": ", two sources joined"}
_LOCK = ".lock"


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
            if others:
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
            for path in self.folder.rglob(".*.json.????????.tmp"):  # of a run that was killed
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
        same = {"experiment": self.experiment, "version": __version__, "seed": seed}
        return {**same, **profile.record()}


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


@dataclass
class Results:
    """What a report is made from.

    Attributes
    ----------
    scores : DataFrame
        The one record of all experiments: a row for each task, scenario, problem, classifier, part
        and split, at the setting chosen from the validation scores of the part's splits. ``group``
        says what is compared: each class against the rest, all classes at once, synthetic data.
    tasks : DataFrame
        One row for each task and scenario.
    gaps : DataFrame
        Classifiers without a result on a task, with the reason.
    run : dict
        How it was run.
    """

    scores: pd.DataFrame
    tasks: pd.DataFrame
    gaps: pd.DataFrame
    run: dict


def collect(storage: Storage, rule: str = "one_se") -> Results:
    """Read all results of a folder; a problem with a split missing is left out, and reported.

    The rule chooses the settings: "one_se" is the paper's, "best" takes the best validation score.
    """
    if rule not in RULES:
        raise ValueError(f"no rule is called {rule!r}: use {', '.join(RULES)}")
    record, lines = storage.record(), storage.log_lines()
    synthetic = record["experiment"] == "synthetic"
    rows, tasks, gaps, seconds = [], [], [], 0.0
    for key, design in storage.designs().items():
        units = storage.units(key)
        gaps += [
            {"task": key, "classifier": unit["classifier"], "reason": unit["failed"]}
            for unit in units
            if "failed" in unit
        ]
        seconds += sum(unit.get("unit_seconds", 0.0) for unit in units)
        groups = defaultdict(list)
        for unit in units:
            whole = unit["problem"] == ALL
            part = design["parts"][unit["split"]]
            # Whole tasks are not tuned: each split stands for itself.
            groups[unit["problem"], unit["classifier"], unit["split"] if whole else part].append(
                unit
            )
        splits = defaultdict(set)  # that any classifier has been run on
        for (problem, _, part), group in groups.items():
            splits[problem, part] |= {unit["split"] for unit in group}
        for (problem, name, part), group in groups.items():
            if lacking := len(splits[problem, part]) - len(group):
                reason = f"not run to the end: {problem} lacks {lacking} splits"
                gaps.append({"task": key, "classifier": name, "reason": reason})
                continue
            rows += _rows(design, group, "best" if synthetic else rule, synthetic=synthetic)
        tasks += [
            {
                "task": name,
                "scenario": design["scenario"],
                **about,
                "genes": design["n_genes"],
                "classes": ", ".join(design["classes"]),
                "notes": "; ".join(design["notes"]),
            }
            for name, about in design["tests"].items()
        ]
    last = lines[-1] if lines else {}
    gaps += [
        {"task": name, "classifier": "all", "reason": reason}
        for name, reason in last.get("problems", {}).items()
    ]
    scores = pd.DataFrame(rows, columns=SCORES)
    run = {
        "profile": record["profile"],
        "settings chosen by": rule,
        "seed": record["seed"],
        "classifiers": {name: CLASSIFIERS[name].words for name in ordered(scores["classifier"])
                        if name in CLASSIFIERS},
        "cpu_seconds": seconds,
        "python": last.get("python"),
        "platform": last.get("platform"),
        "version": record["version"],
        "missing": list(last.get("missing", {})),
    }  # fmt: skip
    frame = pd.DataFrame(gaps, columns=["task", "classifier", "reason"]).drop_duplicates()
    return Results(scores, pd.DataFrame(tasks), frame, run)


def _rows(design: dict, group: list[dict], rule: str, *, synthetic: bool) -> list[dict]:
    """The rows of one problem, classifier and part, one per split and test set."""
    if any("failed" in unit for unit in group):
        return []
    first = group[0]
    whole = first["problem"] == ALL
    folds = [unit for unit in group if np.isfinite(unit["validation"]).any()]
    best = 0
    if len(first["settings"]) > 1:
        best = choose(folds, rule, by_order=synthetic) if folds else None
        if best is None:
            return []
    finals = [unit for unit in group if unit["test"]]
    same = {
        "group": _group(design["scenario"], whole=whole, synthetic=synthetic),
        "scenario": design["scenario"],
        "problem": first["problem"],
        "classifier": first["classifier"],
        "validation": float(np.mean([unit["validation"][best] for unit in folds] or [np.nan])),
    }
    return [
        {
            **same,
            **{key: design["tests"][task][key] for key in ("title", "shift", "kind", "tissue")},
            "task": task,
            "part": design["parts"][unit["split"]],
            "split": unit["split"],
            "test": scores[best],
            "n_test": unit["n_test"][task],
            "cosine": unit.get("cosine", {best: None})[best],
            "setting": json.dumps(unit["settings"][best]),
            **{key: unit[key][best] for key in ("n_genes", "unlabelled", "fit_seconds",
                                                "predict_seconds")},
            **{key: unit[key] for key in ("n_features", "n_train", "unit_seconds", "version")},
        }
        for unit in finals
        for task, scores in unit["test"].items()
    ]  # fmt: skip


def _group(scenario: str, *, whole: bool, synthetic: bool) -> str:
    if synthetic:
        return "Synthetic data"
    return ("All classes at once" if whole else "Each class against the rest") + _GROUPS[scenario]


def choose(units: list[dict], rule: str, *, by_order: bool = False) -> int | None:
    """Position of the setting that a rule chooses from the units of the splits of one part.

    With ``by_order`` the order of the settings stands for their numbers of genes. None where no
    split has a score to choose by: a validation part may lack a class.
    """
    scores = np.array([unit["validation"] for unit in units], dtype=float).T
    costs = np.array([unit["n_genes"] for unit in units], dtype=float).T
    if by_order:
        costs = np.repeat(np.arange(len(costs), dtype=float)[:, None], len(units), axis=1)
    folds = scored_folds(scores)
    return select(scores[:, folds], costs[:, folds], rule) if folds.any() else None
