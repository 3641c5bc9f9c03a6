"""The tasks of the benchmark: the built-in ones of tasks.toml, and pairs found in a folder."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import permutations
from pathlib import Path

from optirank.io.data import DataError, MissingExtraError
from optirank.io.reading import open_expression
from optirank_lab.data.registry import LABEL, harmonise, local_paths

SMALLEST_CLASS = (
    8  # samples in each set of a found pair: fewer say little about a class
)
FEWEST_GENES = (
    100  # common genes of a found pair: fewer are no longer a comparison of panels
)


@dataclass(frozen=True)
class Task:
    """What is learned from, and what it is tested on; tasks.toml explains the fields."""

    name: str
    title: str
    shift: str = "unknown"
    kind: str = "unknown"
    tissue: str = ""
    train: tuple[str, ...] = ()
    test: str | None = None
    auxiliary: str | None = None
    models_of: str | None = None
    scheme: str = "folds"
    label: str = LABEL
    merge: tuple[tuple[str, str], ...] = ()
    paper: bool = False
    quick: bool = False
    note: str = ""

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Single- and multi-source where there is an auxiliary set, else one without a name."""
        return ("single", "multi") if self.auxiliary else ("",)

    @property
    def sets(self) -> tuple[str, ...]:
        """All data sets it names, those of the models it tests not included."""
        named = (*self.train, self.auxiliary, self.test)
        return tuple(name for name in named if name is not None)


@cache
def _file() -> dict:
    return tomllib.loads(
        files("optirank_lab.benchmark").joinpath("tasks.toml").read_text("utf-8")
    )


def built_in() -> tuple[Task, ...]:
    """The tasks of tasks.toml: the paper's, then those on public stand-ins."""
    found = []
    for table in _file()["task"]:
        train, merge = (
            tuple(table.get("train", ())),
            tuple(table.get("merge", {}).items()),
        )
        found.append(Task(**{**table, "train": train, "merge": merge}))
    return tuple(found)


def value_kind(name: str) -> str | None:
    """What tasks.toml says of the values of a set: "counts", "linear" or "log"; mostly nothing."""
    return _file()["values"].get(name)


def choose(tasks: tuple[Task, ...], names: list[str]) -> tuple[Task, ...]:
    """The tasks of these names, all where none is given."""
    known = {task.name: task for task in tasks}
    for name in names:
        if name not in known:
            raise ValueError(
                f"no task is called {name!r}: optirank benchmark list shows them all"
            )
    return tuple(known[name] for name in dict.fromkeys(names or known))


@dataclass(frozen=True)
class _Seen:
    """What is known of a set of a folder before its values are read."""

    name: str
    classes: frozenset[str]
    genes: frozenset[str]
    dataset: str
    tissue: str


def find_pairs(folder: Path) -> tuple[tuple[Task, ...], dict[str, str]]:
    """Every ordered pair of sets of a folder that can be a task; and why sets cannot be read.

    Two sets are a pair where they share at least two classes of at least 8 samples in each, by the
    column ``cell_type``, and at least 100 genes. Sets with the same ``dataset`` in their obs are
    parts of one study, maybe with the same samples, and are not paired; neither are sets of two
    known tissues. The tissue of a set is its column ``tissue`` or stands in tasks.toml; sets
    without one belong to the tissue of the sets that they are paired with.
    """
    seen, problems = [], {}
    for name, path in local_paths(folder).items():
        try:
            seen.append(_look(name, path))
        except (DataError, MissingExtraError, OSError) as error:
            problems[name] = " ".join(str(error).split())
    pairs = [(one, other) for one, other in permutations(seen, 2) if _fit(one, other)]
    groups = {one.name: one.tissue or f"like {one.name}" for one in seen}
    for _ in seen:  # a set without a known tissue takes that of a set it is paired with
        for one, other in pairs:
            if not one.tissue:
                groups[one.name] = min(
                    groups[one.name], groups[other.name], key=_unknown_last
                )
    found = tuple(
        Task(
            name=f"{one.name} to {other.name}",
            title=f"{one.name} to {other.name}",
            tissue=min(groups[one.name], groups[other.name], key=_unknown_last),
            train=(one.name,),
            test=other.name,
            scheme="all",
        )
        for one, other in pairs
    )
    return found, problems


def _unknown_last(tissue: str) -> tuple[bool, str]:
    return tissue.startswith("like "), tissue


def _look(name: str, path: Path) -> _Seen:
    with open_expression(path) as opened:
        obs = opened.obs
        if LABEL not in obs.columns:
            raise DataError(f"no column {LABEL!r}: a task needs labels there")
        counts = {}
        for label, count in obs[LABEL].value_counts().items():
            for one in harmonise([label]):
                counts[one] = counts.get(one, 0) + int(count)
        classes = frozenset(
            str(one) for one, count in counts.items() if count >= SMALLEST_CLASS
        )
        own = {}
        for key in ("dataset", "tissue"):
            values = (
                obs[key].dropna().astype(str).unique() if key in obs.columns else ()
            )
            own[key] = values[0] if len(values) == 1 else ""
        tissue = own["tissue"] or _file()["tissues"].get(name, "")
        return _Seen(
            name,
            classes,
            frozenset(map(str, opened.gene_names)),
            own["dataset"],
            tissue,
        )


def _fit(one: _Seen, other: _Seen) -> bool:
    same_study = one.dataset and one.dataset == other.dataset
    apart = one.tissue and other.tissue and one.tissue != other.tissue
    return (
        not same_study
        and not apart
        and len(one.classes & other.classes) >= 2
        and len(one.genes & other.genes) >= FEWEST_GENES
    )
