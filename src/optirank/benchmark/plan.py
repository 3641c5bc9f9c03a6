"""What a run will do: the tasks whose data are there, checked before anything is fitted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from optirank.benchmark.classifiers import CLASSIFIERS, get
from optirank.benchmark.preparation import prepare
from optirank.benchmark.storage import Storage, Unit, describe
from optirank.benchmark.work import selected_genes
from optirank.datasets.catalogue import find_path
from optirank.datasets.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from optirank.benchmark.preparation import Design
    from optirank.benchmark.profiles import Profile
    from optirank.benchmark.tasks import Task, TaskFile

# CPU seconds of a unit, a + b n for n training samples and 1000 genes: for the time left alone.
_COSTS = {
    "ANrank-lr": (0.6, 0.010),
    "SCN": (1.5, 0.002),
    "lr": (0.25, 0.0005),
    "optirank": (4.0, 0.030),
    "rank-lr": (0.2, 0.0005),
    "rf": (0.6, 0.001),
}


@dataclass
class Plan:
    """Units to run; tasks whose data are not there, and those that cannot run, with the reason."""

    units: list[Unit] = field(default_factory=list)
    designs: dict[str, dict] = field(default_factory=dict)  # what to note of each
    tasks: list[str] = field(default_factory=list)
    classifiers: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


def missing_data(task: Task, file: TaskFile, data: Path | None) -> str | None:
    """Which data of a task are not there, and what to do; None where all are."""
    for name in file.sets_of(task):
        try:
            path = find_path(name, data)
        except DataError as error:
            return str(error)
        if not path.is_file():
            return f"{path} is not a file"
    return None


def make_plan(
    file: TaskFile,
    names: list[str],
    classifiers: list[str],
    profile: Profile,
    storage: Storage,
    *,
    data: Path | None = None,
    seed: int = 0,
    tell: Callable[[str], None] = lambda text: None,
) -> Plan:
    """Read the data of every task, and list the units.

    Without names all tasks are meant, and one whose data are not there is no problem. A task that
    cannot run does not keep the others from running. ``tell`` is called with each name. Nothing is
    written.
    """
    plan = Plan(classifiers=[get(name).name for name in classifiers] or list(CLASSIFIERS))
    trained: dict[str, list[Task]] = {}
    for task in file.choose(names):
        lacking = missing_data(task, file, data)
        if lacking is None:
            trained.setdefault(task.models_of or task.name, []).append(task)
        elif names:
            plan.problems[task.name] = lacking
        else:
            plan.missing[task.name] = lacking
    for name, tasks in trained.items():
        tell(name)
        try:
            designs = prepare(name, file, data, seed, profile.n_splits)
            for design in designs:
                storage.check_design(design)
                _try_selection(design, profile)
        except (ValueError, OSError) as error:
            plan.problems.update({task.name: " ".join(str(error).split()) for task in tasks})
            continue
        refused = designs[0].refused
        wanted = [task.name for task in tasks]
        plan.problems |= {task: refused[task] for task in wanted if task in refused}
        plan.tasks += [task for task in wanted if task not in refused]
        for design in designs:
            plan.designs[design.key] = describe(design)
            plan.units += units_of(design, plan.classifiers, profile)
    return plan


def _try_selection(design: Design, profile: Profile) -> None:
    """Select genes once, so that data of which none passes are found before any fitting."""
    selected_genes(design, design.splits[0], design.positives[0], profile.n_top, seed=0)


def units_of(design: Design, classifiers: list[str], profile: Profile) -> list[Unit]:
    """The units of a design. ANrank-lr needs a second data set to choose its reference genes by."""
    return [
        Unit(
            design.task.name,
            design.scenario,
            split.index,
            number,
            positive,
            classifier,
            _cost(classifier, len(split.train) + len(split.auxiliary_train), profile),
        )
        for split in design.splits
        for number, positive in enumerate(design.positives)
        for classifier in classifiers
        if classifier != "ANrank-lr" or design.auxiliary is not None
    ]


def _cost(name: str, n_train: int, profile: Profile) -> float:
    classifier = get(name)
    size = 1
    for values in profile.grid(classifier).values():
        size *= len(values)
    fixed, slope = _COSTS[name]
    return (fixed + slope * n_train) * size / classifier.n_settings
