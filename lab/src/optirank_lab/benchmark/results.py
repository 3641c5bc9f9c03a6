"""Results: stored one JSON file per finished unit, and read as one table of chosen
settings.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from optirank import __version__
from optirank._util.files import write_text
from optirank.estimators.selection import scored_folds, select
from optirank_lab.benchmark.classifiers import CLASSIFIERS, ordered
from optirank_lab.benchmark.designs import ALL, Design, Profile

SCORES = [
    "group",
    "task",
    "scenario",
    "title",
    "shift",
    "kind",
    "tissue",
    "problem",
    "classifier",
    "part",
    "split",
    "test",
    "validation",
    "n_genes",
    "n_features",
    "n_train",
    "n_test",
    "unlabelled",
    "cosine",
    "setting",
    "fit_seconds",
    "predict_seconds",
    "unit_seconds",
    "version",
]
_GROUPS = {"": "", "single": ", one of two sources", "multi": ", two sources joined"}
_LOCK = ".lock"


@dataclass(frozen=True)
class WorkUnit:
    """A classifier's whole grid on one problem of one split of a task."""

    task: str
    design: str  # the task in one scenario
    split: int
    problem: str  # the positive class, or all classes
    classifier: str
    weight: float = 1.0  # rough share of the work, for the time left

    @property
    def path(self) -> str:
        """Its file, below the folder of units."""
        readable = re.sub(r"[^\w+-]", "_", self.problem)
        # Names that read alike must not share a file
        number = zlib.crc32(self.problem.encode())
        problem = "all" if self.problem == ALL else f"{readable}_{number:08x}"
        return f"{self.design}/{self.split:02d}-{problem}-{self.classifier}.json"


class Storage:
    """A folder of results of one experiment ("real" or "synthetic").

    What must not change within it stands in ``run.json``; a folder with other files and
    without that one is not touched.
    """

    def __init__(self, folder: str | Path, experiment: str = "real") -> None:
        self.folder = Path(folder)
        self.experiment = experiment

    def check(self, profile: Profile, seed: int) -> None:
        """Refuse a folder of other files or of other settings; nothing is written."""
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(
                f"{self.folder} is a file: choose a folder for the results"
            )
        if not (self.folder / "run.json").is_file():
            others = sorted(
                path.name for path in self.folder.glob("*") if path.name != _LOCK
            )
            if others:
                raise ValueError(
                    f"{self.folder} is not a folder of results, but has other files "
                    f"({others[0]!r}): choose a new or an empty folder"
                )
            return
        stored = self.record()
        for name, value in self._run_record(profile, seed).items():
            if stored.get(name) != value:
                raise ValueError(
                    f"{self.folder} holds results of other settings ({name} was "
                    f"{stored.get(name)!r}, now it is {value!r}): choose another "
                    "folder or the same settings"
                )

    @contextmanager
    def open(self, profile: Profile, seed: int) -> Iterator[Storage]:
        """Make the folder and keep other runs out of it."""
        self.check(profile, seed)
        self.folder.mkdir(parents=True, exist_ok=True)
        with _lock(self.folder / _LOCK):
            # What a run that was killed left
            for path in self.folder.rglob(".????????????????.tmp"):
                path.unlink(missing_ok=True)
            if not (self.folder / "run.json").is_file():
                self._write("run.json", self._run_record(profile, seed), indent=1)
            yield self

    def record(self) -> dict:
        """What was run. An error where the folder holds no results."""
        path = self.folder / "run.json"
        if not path.is_file():
            raise ValueError(
                f"{self.folder} holds no results: optirank-lab benchmark run --out "
                f"{self.folder} makes them"
            )
        return _read(path)

    def check_design(self, design: Design) -> None:
        """Refuse a design whose data are not those that results are stored of."""
        path = self.folder / "designs" / f"{design.key}.json"
        if path.is_file() and _read(path).get("fingerprint") != design.fingerprint():
            raise ValueError(
                f"the data of {design.key} are not those that {self.folder} holds "
                f"results of: choose another folder, or delete {path} and "
                f"{self.folder / 'units' / design.key}"
            )

    def add_design(self, key: str, record: dict) -> None:
        """Store what a design is (see `Design.describe`)."""
        self._write(f"designs/{key}.json", record, indent=1)

    def designs(self) -> dict[str, dict]:
        """All designs of the folder, by name."""
        paths = sorted((self.folder / "designs").glob("*.json"))
        return {path.stem: _read(path) for path in paths}

    def has(self, unit: WorkUnit) -> bool:
        """Whether the result of a unit is there and can be read; a gap is no result."""
        result = _read_unit(self.folder / "units" / unit.path)
        return result is not None and "failed" not in result

    def units(self, design: str) -> list[dict]:
        """The results of a design; gaps have ``failed``. Damaged files are left out."""
        paths = sorted((self.folder / "units" / design).glob("*.json"))
        results = [_read_unit(path) for path in paths]
        return [result for result in results if result is not None]

    def save(self, unit: WorkUnit, result: dict) -> None:
        """Store the result of a unit in one step."""
        same = {key: value for key, value in asdict(unit).items() if key != "weight"}
        self._write(f"units/{unit.path}", {**same, **result})

    def note(self, facts: dict) -> None:
        """Store facts about the latest run of the command."""
        self._write("latest.json", facts, indent=1)

    def latest(self) -> dict:
        """What is known of the latest run of the command."""
        path = self.folder / "latest.json"
        return _read(path) if path.is_file() else {}

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
                f"another run is using {path.parent}: wait for it, or choose another "
                "folder"
            ) from None
        yield


def _read(path: Path) -> dict:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path} cannot be read ({error}): choose another folder"
        ) from error


def _read_unit(path: Path) -> dict | None:
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):  # of bytes that are no text, too
        return None
    return result if isinstance(result, dict) and "classifier" in result else None


@dataclass
class Results:
    """What a report is made from.

    ``scores`` is the one record of all experiments: a row for each task, scenario,
    problem, classifier, part and split, at the setting chosen from the validation
    scores of the part's splits. ``group`` says what is compared: each class against the
    rest, all classes at once, synthetic data.
    """

    scores: pd.DataFrame
    tasks: pd.DataFrame  # one row for each task and scenario
    gaps: pd.DataFrame  # classifiers without a result on a task, with the reason
    run: dict  # how it was run


def collect(storage: Storage, rule: str | None = None) -> Results:
    """Read all results of a folder; problems that lack a split are gaps.

    The rule chooses the settings: "one_se" is the paper's for real data, "best" takes
    the best validation score, which is the paper's for synthetic data.
    """
    record = storage.record()
    latest = storage.latest()
    synthetic = record["experiment"] == "synthetic"
    rule = rule or ("best" if synthetic else "one_se")
    rows: list[dict] = []
    tasks: list[dict] = []
    gaps: list[dict] = []
    seconds = 0.0
    for key, design in storage.designs().items():
        units = storage.units(key)
        seconds += sum(unit.get("unit_seconds", 0.0) for unit in units)
        complete, gaps_of_design = _complete_groups(key, design, units)
        gaps += gaps_of_design
        for group in complete:
            rows += _rows(design, group, rule, synthetic=synthetic)
        tasks += _tasks(design)
    for name, reason in latest.get("problems", {}).items():
        gaps.append(_gap(name, "all", reason))
    scores = pd.DataFrame(rows, columns=pd.Index(SCORES))
    shown = [name for name in ordered(scores["classifier"]) if name in CLASSIFIERS]
    run = {
        "profile": record["profile"],
        "settings chosen by": rule,
        "seed": record["seed"],
        "classifiers": {name: CLASSIFIERS[name].words for name in shown},
        "cpu_seconds": seconds,
        "python": latest.get("python"),
        "platform": latest.get("platform"),
        "version": record["version"],
        "missing": list(latest.get("missing", {})),
    }
    columns = pd.Index(["task", "classifier", "reason"])
    frame = pd.DataFrame(gaps, columns=columns).drop_duplicates()
    return Results(scores, pd.DataFrame(tasks), frame, run)


def _complete_groups(
    key: str, design: dict, units: list[dict]
) -> tuple[list[list[dict]], list[dict]]:
    """The units of each problem, classifier and part; and what is missing.

    A group that lacks a split which any classifier has been run on is a gap.
    """
    gaps = [
        _gap(key, unit["classifier"], unit["failed"])
        for unit in units
        if "failed" in unit
    ]
    groups = defaultdict(list)
    splits = defaultdict(set)
    for unit in units:
        part = design["parts"][unit["split"]]
        if unit["problem"] == ALL:
            part = unit["split"]  # whole tasks are not tuned
        groups[unit["problem"], unit["classifier"], part].append(unit)
        splits[unit["problem"], part].add(unit["split"])
    complete = []
    for (problem, classifier, part), group in groups.items():
        n_lacking = len(splits[problem, part]) - len(group)
        if n_lacking:
            reason = f"not run to the end: {problem} lacks {n_lacking} splits"
            gaps.append(_gap(key, classifier, reason))
        else:
            complete.append(group)
    return complete, gaps


def _gap(task: str, classifier: str, reason: str) -> dict[str, str]:
    return {"task": task, "classifier": classifier, "reason": reason}


def _tasks(design: dict) -> list[dict]:
    """What is known of the tasks that a design tests."""
    same = {
        "genes": design["n_genes"],
        "classes": ", ".join(design["classes"]),
        "notes": "; ".join(design["notes"]),
    }
    return [
        {"task": name, "scenario": design["scenario"], **about, **same}
        for name, about in design["tests"].items()
    ]


def _rows(design: dict, group: list[dict], rule: str, *, synthetic: bool) -> list[dict]:
    """The rows of one problem, classifier and part, one per split and test set."""
    if any("failed" in unit for unit in group):
        return []
    first = group[0]
    folds = [unit for unit in group if np.isfinite(unit["validation"]).any()]
    best = 0
    if len(first["settings"]) > 1:
        scores = np.array([unit["validation"] for unit in folds], dtype=float).T
        costs = np.array([unit["n_genes"] for unit in folds], dtype=float).T
        if synthetic:  # the order of the settings stands for their numbers of genes
            costs = np.broadcast_to(
                np.arange(len(costs), dtype=float)[:, None], costs.shape
            )
        known = scored_folds(scores) if folds else np.zeros(0, dtype=bool)
        if not known.any():  # validation parts that lack a class
            return []
        best = select(scores[:, known], costs[:, known], rule)
    kind = (
        "All classes at once"
        if first["problem"] == ALL
        else "Each class against the rest"
    )
    same = {
        "group": "Synthetic data" if synthetic else kind + _GROUPS[design["scenario"]],
        "scenario": design["scenario"],
        "validation": float(
            np.mean([unit["validation"][best] for unit in folds] or [np.nan])
        ),
    }
    chosen = ("n_genes", "unlabelled", "fit_seconds", "predict_seconds")
    return [
        {
            **unit,
            **design["tests"][task],
            **same,
            **{key: unit[key][best] for key in chosen},
            "task": task,
            "part": design["parts"][unit["split"]],
            "test": scores[best],
            "n_test": unit["n_test"][task],
            "cosine": unit["cosine"][best] if "cosine" in unit else None,
            "setting": json.dumps(unit["settings"][best]),
        }
        for unit in group
        for task, scores in unit["test"].items()
    ]
