"""What a run will do: the tasks whose data are there, checked before anything is fitted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from optirank.benchmark.choice import Chosen
from optirank.benchmark.classifiers import get
from optirank.benchmark.designs import selected_genes
from optirank.benchmark.running.storage import Storage, Unit, WholeUnit

if TYPE_CHECKING:
    from collections.abc import Callable

    from optirank.benchmark.designs import Design
    from optirank.benchmark.profiles import Profile
    from optirank.benchmark.real import RealTasks
    from optirank.benchmark.tasks import Task

_START = 3.0  # seconds for writing the files of a whole unit and starting its process


@dataclass
class Plan:
    """Units to run; tasks whose data are not there, and those that cannot run, with the reason."""

    units: list[Unit | WholeUnit] = field(default_factory=list)
    designs: dict[str, dict] = field(default_factory=dict)  # what to note of each
    tasks: list[str] = field(default_factory=list)
    classifiers: list[str] = field(default_factory=list)  # of binary problems
    tools: list[str] = field(default_factory=list)  # of whole tasks
    missing: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


def plan_real(
    source: RealTasks,
    names: list[str],
    chosen: Chosen,
    profile: Profile,
    storage: Storage,
    *,
    tell: Callable[[str], None] = lambda text: None,
) -> Plan:
    """Read the data of every task, and list the units.

    Without names all tasks are meant, and one whose data are not there is no problem. A task that
    cannot run does not keep the others from running. ``tell`` is called with each name. Nothing is
    written.
    """
    plan = Plan(classifiers=chosen.binary, tools=chosen.whole)
    file = source.file()
    trained: dict[str, list[Task]] = {}
    for task in file.choose(names):
        lacking = source.missing(task, file)
        if lacking is None:
            trained.setdefault(task.models_of or task.name, []).append(task)
        elif names:
            plan.problems[task.name] = lacking
        else:
            plan.missing[task.name] = lacking
    for name, tasks in trained.items():
        tell(name)
        try:
            designs = source.designs(name)
            for design in designs:
                storage.check_design(design)
                if chosen.binary:  # data of which no gene passes are found here, before fitting
                    selected_genes(design, design.splits[0], design.positives[0], profile.n_top, 0)
        except (ValueError, OSError) as error:
            plan.problems.update({task.name: " ".join(str(error).split()) for task in tasks})
            continue
        refused = designs[0].refused
        wanted = [task.name for task in tasks]
        plan.problems |= {task: refused[task] for task in wanted if task in refused}
        plan.tasks += [task for task in wanted if task not in refused]
        for design in designs:
            plan.designs[design.key] = design.describe()
            plan.units += units_of(design, plan.classifiers, profile)
            plan.units += whole_units_of(design, plan.tools, profile)
    return plan


def units_of(design: Design, classifiers: list[str], profile: Profile) -> list[Unit]:
    """The units of a design, without classifiers that need what it lacks."""
    there = {None, "auxiliary"} if design.auxiliary is not None else {None}
    return [
        Unit(
            design.task.name,
            design.scenario,
            split.index,
            number,
            positive,
            name,
            profile.seconds(get(name), len(split.train) + len(split.auxiliary_train)),
        )
        for split in design.splits
        for number, positive in enumerate(design.positives)
        for name in classifiers
        if get(name).needs in there
    ]


def whole_units_of(design: Design, tools: list[str], profile: Profile) -> list[WholeUnit]:
    """The whole units of a design, one per tool."""
    split = design.splits[0]
    n_train = len(split.train) + len(split.auxiliary_train)
    n_splits = min(profile.whole_splits, len(design.splits))

    def weight(name: str) -> float:
        one = get(name)
        fixed, slope = one.cost  # of its whole grid
        return _START + n_splits * (fixed + slope * n_train) / one.n_settings

    return [WholeUnit(design.task.name, design.scenario, name, weight(name)) for name in tools]
