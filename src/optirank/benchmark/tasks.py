"""The tasks of the benchmark, read from tasks.toml or a file of the user's."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from importlib.resources import files
from pathlib import Path

from optirank.datasets.labels import harmonise

SHIFTS = ("none", "batch", "platform", "technology", "biological")
KINDS = ("single-cell", "bulk")
SCHEMES = ("cells", "folds", "hold-out", "nested")
VALUES = ("counts", "linear", "log")


@dataclass(frozen=True)
class Task:
    """One row of the results: what is learned from, and what it is tested on."""

    name: str
    title: str
    shift: str
    kind: str
    train: tuple[str, ...] = ()
    test: str | None = None
    auxiliary: str | None = None
    models_of: str | None = None
    scheme: str = "folds"
    label: str = "cell_type"
    merge: dict[str, str] = field(default_factory=dict)
    paper: bool = False
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


@dataclass(frozen=True)
class TaskFile:
    """Tasks by name, and what is said of the values of data sets."""

    tasks: dict[str, Task]
    values: dict[str, str]

    def sets_of(self, task: Task) -> tuple[str, ...]:
        """The data sets a task needs."""
        base = self.tasks[task.models_of].sets if task.models_of else ()
        return tuple(dict.fromkeys((*base, *task.sets)))

    def choose(self, names: list[str]) -> list[Task]:
        """The tasks of these names, all where none is given."""
        for name in names:
            if name not in self.tasks:
                raise ValueError(
                    f"no task is called {name!r}: optirank benchmark list shows them all"
                )
        return [self.tasks[name] for name in dict.fromkeys(names or self.tasks)]


def load_tasks(extra: str | Path | None = None) -> TaskFile:
    """The built-in tasks and those of a file, which has the same form."""
    text = files("optirank.benchmark").joinpath("tasks.toml").read_text("utf-8")
    found = _parse(text, "tasks.toml")
    if extra is not None:
        try:
            text = Path(extra).read_text("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{extra} is not a text file: {error}") from None
        own = _parse(text, str(extra))
        known = {name.casefold() for name in found.tasks}
        if double := [name for name in own.tasks if name.casefold() in known]:
            raise ValueError(f"{extra}: {double[0]!r} is a built-in task: use another name")
        found = TaskFile(found.tasks | own.tasks, found.values | own.values)
    for task in found.tasks.values():
        _check_models_of(task, found.tasks)
    return found


def _parse(text: str, source: str) -> TaskFile:
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{source} is not valid TOML: {error}") from None
    if unknown := tables.keys() - {"task", "values"}:
        raise ValueError(f"{source}: {min(unknown)!r} is not known: use [[task]] and [values]")
    if not isinstance(tables.get("task", []), list):
        raise ValueError(f"{source}: a task begins with [[task]], in two brackets")
    tasks = [_task(table, source) for table in tables.get("task", [])]
    names = [task.name for task in tasks]
    if len({name.casefold() for name in names}) < len(names):
        raise ValueError(f"{source}: two tasks have the same name (upper and lower case are one)")
    values = tables.get("values", {})
    for name, kind in values.items():
        _check(f"{source}: values of {name}", kind, VALUES)
    return TaskFile({task.name: task for task in tasks}, values)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


_TYPES = {
    "train": lambda value: isinstance(value, list) and bool(value) and all(map(_is_text, value)),
    "paper": lambda value: isinstance(value, bool),
    "note": lambda value: isinstance(value, str),
    "merge": lambda value: (
        isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
    ),
}


def _task(table: dict, source: str) -> Task:
    where = f"{source}: task {table.get('name', '(without a name)')!r}"
    known = {one.name for one in fields(Task)}
    if unknown := table.keys() - known:
        raise ValueError(f"{where} has {min(unknown)!r}: known are {', '.join(sorted(known))}")
    if missing := {"name", "title", "shift", "kind"} - table.keys():
        raise ValueError(f"{where} lacks {min(missing)!r}")
    for key, value in table.items():
        if not _TYPES.get(key, _is_text)(value):
            raise ValueError(f"{where}: {key} = {value!r} is of a wrong kind")
    task = Task(**{**table, "train": tuple(table.get("train", ()))})
    if not task.name or any(sign in task.name for sign in "/\\:") or task.name.startswith("."):
        raise ValueError(f"{where}: the name becomes a folder, so it may not hold / \\ or :")
    _check(f"{where}: shift", task.shift, SHIFTS)
    _check(f"{where}: kind", task.kind, KINDS)
    _check(f"{where}: scheme", task.scheme, SCHEMES)
    if bool(task.train) == bool(task.models_of):
        raise ValueError(f"{where}: give it either train or models_of")
    inside = not task.models_of and task.scheme in ("hold-out", "nested")
    if inside == (task.test is not None):
        raise ValueError(
            f"{where}: the schemes hold-out and nested take the test samples from the training "
            "set, all others need a data set under test"
        )
    if task.auxiliary and (task.models_of or task.scheme not in ("cells", "folds")):
        raise ValueError(f"{where}: an auxiliary set goes with the schemes cells and folds")
    if len(set(task.sets)) < len(task.sets):
        raise ValueError(f"{where} names a data set twice, so it would test itself")
    odd = [label for label in task.merge if harmonise([label])[0] != label]
    if odd:
        raise ValueError(
            f"{where}: merge names {odd[0]!r}, but labels are looked up as {harmonise(odd)[0]!r}"
        )
    return task


def _check_models_of(task: Task, tasks: dict[str, Task]) -> None:
    if task.models_of is None:
        return
    base = tasks.get(task.models_of)
    if base is None or base.models_of or base.auxiliary or base.scheme == "nested":
        raise ValueError(
            f"task {task.name!r}: models_of = {task.models_of!r} must name a task that trains "
            "models of its own, without an auxiliary set and not nested"
        )


def _check(what: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{what} is {value!r}: use one of {', '.join(allowed)}")
