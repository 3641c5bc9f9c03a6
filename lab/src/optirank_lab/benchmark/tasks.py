"""The tasks of the benchmark: the built-in ones of tasks.toml, and pairs found in
a folder.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import permutations
from pathlib import Path
from typing import Any

import pandas as pd

from optirank.data.opening import open_profiles
from optirank.data.profiles import DataError, MissingExtraError
from optirank_lab.data.registry import LABEL, harmonise, local_paths, registry

# Samples in each set of a found pair: fewer say little about a class.
SMALLEST_CLASS = 8
# Common genes of a found pair: fewer are no longer a comparison of panels.
FEWEST_GENES = 100
SAME_PLATFORM = "same platform"
OTHER_PLATFORM = "platform"
SCALED_REFERENCE = "trained on standardised values"
UNKNOWN_PLATFORM = "unknown"


@dataclass(frozen=True)
class BenchmarkTask:
    """What is learned from, and what it is tested on; tasks.toml explains
    the fields.
    """

    name: str
    title: str
    shift: str = UNKNOWN_PLATFORM
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
    stands_for: str = ""
    quick: bool = False
    note: str = ""

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Single- and multi-source where there is an auxiliary set, else one
        without a name.
        """
        return ("single", "multi") if self.auxiliary else ("",)

    @property
    def across_platforms(self) -> bool:
        """Whether it counts as a test on another platform; unknown ones do, and those
        trained on values standardised per gene do not.
        """
        return self.shift not in (SAME_PLATFORM, SCALED_REFERENCE)

    @property
    def sets(self) -> tuple[str, ...]:
        """All data sets it names, those of the models it tests not included."""
        named = (*self.train, self.auxiliary, self.test)
        return tuple(name for name in named if name is not None)


@cache
def _file() -> dict:
    text = files("optirank_lab.benchmark").joinpath("tasks.toml").read_text("utf-8")
    return tomllib.loads(text)


def built_in() -> tuple[BenchmarkTask, ...]:
    """The tasks of tasks.toml: the paper's, then those on public stand-ins."""
    return tuple(
        BenchmarkTask(
            **{
                **table,
                "train": tuple(table.get("train", ())),
                "merge": tuple(table.get("merge", {}).items()),
            }
        )
        for table in _file()["task"]
    )


def paper_tasks() -> tuple[BenchmarkTask, ...]:
    """The tasks of the paper, and those that stand for one of them."""
    return tuple(task for task in built_in() if task.paper or task.stands_for)


def value_kind(name: str) -> str | None:
    """What tasks.toml says of the values of a set: "counts", "linear" or "log"; mostly
    nothing.
    """
    return _file()["values"].get(name)


def choose(
    tasks: tuple[BenchmarkTask, ...], names: list[str]
) -> tuple[BenchmarkTask, ...]:
    """The tasks of these names, all where none is given."""
    known = {task.name: task for task in tasks}
    for name in names:
        if name not in known:
            raise ValueError(
                f"no task is called {name!r}: optirank-lab benchmark list shows all"
            )
    return tuple(known[name] for name in dict.fromkeys(names or known))


@dataclass(frozen=True)
class _SetSummary:
    """What is known of a set of a folder before its values are read."""

    name: str
    classes: frozenset[str]
    genes: frozenset[str]
    dataset: str
    tissue: str
    platform: str


def find_pairs(
    folder: Path, label: str = LABEL
) -> tuple[tuple[BenchmarkTask, ...], dict[str, str]]:
    """Every ordered pair of sets of a folder that can be a task; and why sets cannot be
    read.

    Two sets are a pair where they share at least two classes of at least 8 samples in
    each, by the column ``label``, and at least 100 genes. Sets with the same
    ``dataset`` in their obs are parts of one study, maybe with the same samples, and
    are not paired; neither are sets of two known tissues. The tissue of a set is its
    column ``tissue`` or stands in tasks.toml; sets without one belong to the tissue of
    the sets that they are paired with. Where both platforms are known, by the column
    ``platform`` or the registry, the ``shift`` of a pair says whether they are the
    same.
    """
    summaries: list[_SetSummary] = []
    problems: dict[str, str] = {}
    for name, path in local_paths(folder).items():
        try:
            summaries.append(_summarise(name, path, label))
        except (DataError, MissingExtraError, OSError) as error:
            problems[name] = " ".join(str(error).split())
    pairs = [
        (reference, query)
        for reference, query in permutations(summaries, 2)
        if _can_be_paired(reference, query)
    ]
    tissues = _shared_tissues(summaries, pairs)
    tasks = tuple(
        BenchmarkTask(
            name=f"{reference.name} to {query.name}",
            title=f"{reference.name} to {query.name}",
            tissue=min(tissues[reference.name], tissues[query.name], key=_unknown_last),
            shift=shift_between(reference.platform, query.platform),
            train=(reference.name,),
            test=query.name,
            scheme="all",
            label=label,
        )
        for reference, query in pairs
    )
    return tasks, problems


def _shared_tissues(
    summaries: list[_SetSummary], pairs: list[tuple[_SetSummary, _SetSummary]]
) -> dict[str, str]:
    """The tissue of each set; a set without one takes that of a set it is
    paired with.
    """
    tissues = {
        summary.name: summary.tissue or f"like {summary.name}" for summary in summaries
    }
    for _ in summaries:  # a tissue may pass through a chain of pairs
        for reference, query in pairs:
            if not reference.tissue:
                tissues[reference.name] = min(
                    tissues[reference.name], tissues[query.name], key=_unknown_last
                )
    return tissues


def _unknown_last(tissue: str) -> tuple[bool, str]:
    return tissue.startswith("like "), tissue


def shift_between(reference: str, query: str) -> str:
    """What differs between the platforms of two sets."""
    if not reference or not query:
        return UNKNOWN_PLATFORM
    return SAME_PLATFORM if reference == query else OTHER_PLATFORM


def _summarise(name: str, path: Path, label: str) -> _SetSummary:
    with open_profiles(path) as opened:
        obs = opened.obs
        if label not in obs.columns:
            raise DataError(f"no column {label!r}: a task needs labels there")
        tables = _file()
        return _SetSummary(
            name=name,
            classes=_large_classes(obs[label]),
            genes=frozenset(map(str, opened.genes)),
            dataset=_single_value(obs, "dataset"),
            tissue=_single_value(obs, "tissue") or tables["tissues"].get(name, ""),
            platform=platform_of(name, obs),
        )


def platform_of(name: str, obs: pd.DataFrame) -> str:
    """The platform of a set: its column ``platform``, else what the registry says;
    "" where nothing is known.
    """
    return _single_value(obs, "platform") or _registered_platform(name)


def _registered_platform(name: str) -> str:
    """The platform of a set whose file names none, empty where nothing is known."""
    entry = registry().get(name)
    return entry.technology if entry is not None else ""


def _large_classes(labels: Any) -> frozenset[str]:
    """Classes with enough samples, by their common names."""
    counts: dict[str, int] = {}
    for original, count in labels.value_counts().items():
        for class_name in harmonise([original]):
            counts[class_name] = counts.get(class_name, 0) + int(count)
    return frozenset(
        str(class_name) for class_name, n in counts.items() if n >= SMALLEST_CLASS
    )


def _single_value(obs: pd.DataFrame, column: str) -> str:
    """The value of a column in which all samples agree; "" where there is none."""
    if column not in obs.columns:
        return ""
    values = obs[column].dropna().astype(str).unique()
    return str(values[0]) if len(values) == 1 else ""


def _can_be_paired(reference: _SetSummary, query: _SetSummary) -> bool:
    same_study = reference.dataset and reference.dataset == query.dataset
    other_tissue = (
        reference.tissue and query.tissue and reference.tissue != query.tissue
    )
    return (
        not same_study
        and not other_tissue
        and len(reference.classes & query.classes) >= 2
        and len(reference.genes & query.genes) >= FEWEST_GENES
    )
