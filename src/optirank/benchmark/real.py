"""Real data as a source of tasks: the sets of a task over their common genes and classes.

Nothing here is fitted: which genes and classes the sets share is read from their names and labels,
and a sample's log values depend on that sample alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from optirank._util.names import some
from optirank.benchmark.designs import Design
from optirank.benchmark.sets import Set, class_counts, common_classes, common_genes, load, reduce
from optirank.benchmark.splits import make_splits
from optirank.benchmark.tasks import Task
from optirank.datasets.data import DataError
from optirank.datasets.registry import find_path


@dataclass(frozen=True)
class RealTasks:
    """Tasks on the sets of a folder."""

    data: Path
    tasks: tuple[Task, ...]
    seed: int = 0

    def task(self, name: str) -> Task:
        """The task of a name."""
        return next(task for task in self.tasks if task.name == name)

    def designs(self, name: str) -> list[Design]:
        """Read the data of a task that trains, with those of the tasks that test its models.

        One design per scenario. Tasks that test the same models take part where their data are
        there and can be used, so that all are tested on the same genes; which classes there are
        depends on the task itself alone.
        """
        task = self.task(name)
        self._refuse_same_files(task)
        source = [load(one, task, self.data) for one in task.train]
        auxiliary = None if task.auxiliary is None else load(task.auxiliary, task, self.data)
        read = {name: None if task.test is None else load(task.test, task, self.data)}
        own = [*source, *(one for one in (auxiliary, read[name]) if one is not None)]
        classes, positives, notes = common_classes(task, source, auxiliary, read[name])
        others, refused = self._load_others(name, own, classes)
        read |= others
        genes = common_genes([*own, *others.values()])

        def reduced(*sets: Set | None) -> Set | None:
            return None if None in sets else reduce([*sets], genes, classes)

        joined, second = reduced(*source), reduced(auxiliary)
        tests = {key: reduced(one) for key, one in read.items()}
        more = None if second is None else second.labels
        return [
            Design(
                task=task,
                scenario=scenario,
                source=joined,
                auxiliary=second,
                tests=tests,
                tested=[self.task(key) for key in read],
                classes=classes,
                positives=positives,
                splits=make_splits(
                    task.scheme, joined.labels, more, scenario, name=task.name, seed=self.seed
                ),
                seed=self.seed,
                notes=[note for note in (task.note, *notes) if note],
                refused=refused,
            )
            for scenario in task.scenarios
        ]

    def missing(self, task: Task) -> str | None:
        """Which data of a task are not there, and what to do; None where all are."""
        base = self.task(task.models_of).sets if task.models_of else ()
        for name in dict.fromkeys((*base, *task.sets)):
            try:
                path = find_path(name, self.data)
            except DataError as error:
                return str(error)
            if not path.is_file():
                return f"{path} is not a file"
        return None

    def _refuse_same_files(self, task: Task) -> None:
        paths = [find_path(name, self.data).resolve() for name in task.sets]
        if len(set(paths)) < len(paths):
            raise DataError(
                f"{', '.join(task.sets)}: a data set is named twice, so it would test itself"
            )

    def _load_others(
        self, name: str, own: list[Set], classes: list[str]
    ) -> tuple[dict[str, Set], dict[str, str]]:
        """Data of the tasks that test the models of a task, and why some of them cannot."""
        found, refused = {}, {}
        for other in self.tasks:
            if other.models_of != name or self.missing(other):
                continue
            try:
                loaded = load(other.test, other, self.data)
                common_genes([*own, *found.values(), loaded])
                there = class_counts(loaded)
                shared = [one for one in classes if one in there]
                if len(shared) < 2:
                    raise DataError(
                        f"{len(shared)} common classes, at least 2 are needed: {name} has "
                        f"{some(classes, 10)}; {loaded.name} has {some(there, 10)}"
                    )
                found[other.name] = loaded
            except (ValueError, OSError) as error:
                refused[other.name] = " ".join(str(error).split())
        return found, refused
