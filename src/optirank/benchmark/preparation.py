"""The data of a task: its sets over their common genes and classes, as counts and as log values.

Nothing here is fitted: which genes and classes the sets share is read from their names and labels,
and a sample's log values depend on that sample alone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from optirank._util.names import some
from optirank.benchmark.loading import (
    Loaded,
    class_counts,
    common_classes,
    common_genes,
    join,
    load,
)
from optirank.benchmark.splits import Split, make_splits
from optirank.datasets.catalogue import find_path
from optirank.datasets.errors import DataError
from optirank.preprocessing import LogCPM
from optirank.preprocessing._statistics import is_counts

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from optirank.benchmark.tasks import Task, TaskFile

_LOG_BELOW = 50.0  # no logarithm of an expression value is above this


@dataclass(frozen=True)
class Set:
    """One data set of a task, over the task's genes and classes."""

    name: str
    raw: sp.csr_array  # as measured: what ranks and pairs see
    values: sp.csr_array  # log1p(CPM), or logarithms as they came: what lr, rf and the ANOVA see
    labels: NDArray
    counts: bool  # whether raw holds counts, which SingleCellNet then takes instead of values


@dataclass(frozen=True)
class Design:
    """All that is fitted for a task in one scenario."""

    task: Task
    scenario: str
    source: Set
    auxiliary: Set | None
    tests: dict[str, Set | None]  # by name of the task; None: held-out samples of the source
    tested: list[Task]  # the tasks tested, in the same order
    genes: NDArray
    classes: list[str]
    positives: list[str]  # one binary problem each
    splits: list[Split]
    seed: int = 0
    notes: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)  # tasks that cannot test these models

    @property
    def key(self) -> str:
        """A name fit for a folder."""
        return design_key(self.task.name, self.scenario)

    def fingerprint(self) -> str:
        """A hash of all data and splits: results of other data must not mix with these."""
        digest = hashlib.sha256()
        for one in (self.source, self.auxiliary, *self.tests.values()):
            if one is not None:
                for array in (one.raw.data, one.raw.indices, one.raw.indptr, one.values.data):
                    digest.update(np.ascontiguousarray(array).tobytes())
                digest.update("\n".join([str(one.counts), *one.labels]).encode())
        digest.update("\n".join([*self.genes, *self.tests, *self.positives]).encode())
        for split in self.splits:
            for rows in split.rows():
                digest.update(rows.astype(np.int64).tobytes())
        return digest.hexdigest()


def design_key(task: str, scenario: str) -> str:
    """Name of the folder of a task's results in one scenario."""
    return f"{task}.{scenario}" if scenario else task


def prepare(
    name: str, file: TaskFile, data: Path | None, seed: int = 0, n_splits: int | None = None
) -> list[Design]:
    """Read the data of a task that trains, with those of the tasks that test its models.

    One design a scenario. Tasks that test the same models take part where their data are there and
    can be used, so that all are tested on the same genes; which classes there are depends on the
    task itself alone.
    """
    task = file.tasks[name]
    _refuse_same_files(task, data)
    source = join([load(one, task, data) for one in task.train])
    auxiliary = None if task.auxiliary is None else load(task.auxiliary, task, data)
    read = {name: None if task.test is None else load(task.test, task, data)}
    own = [one for one in (source, auxiliary, read[name]) if one is not None]
    classes, positives, notes = common_classes(task, source, auxiliary, read[name])
    others, refused = _load_others(name, file, data, own, classes)
    read |= others
    genes = common_genes([*own, *others.values()])

    def reduced(one: Loaded | None) -> Set | None:
        return None if one is None else _reduce(one, genes, classes, file.values)

    design = {
        "task": task,
        "source": reduced(source),
        "auxiliary": reduced(auxiliary),
        "tests": {key: reduced(one) for key, one in read.items()},
        "tested": [file.tasks[key] for key in read],
        "genes": genes,
        "classes": classes,
        "positives": positives,
        "seed": seed,
        "notes": [note for note in (task.note, *notes) if note],
        "refused": refused,
    }
    return [
        Design(
            scenario=scenario,
            splits=make_splits(
                task.scheme,
                design["source"].labels,
                None if auxiliary is None else design["auxiliary"].labels,
                scenario,
                name=task.name,
                seed=seed,
            )[:n_splits],
            **design,
        )
        for scenario in task.scenarios
    ]


def _refuse_same_files(task: Task, data: Path | None) -> None:
    paths = [find_path(name, data).resolve() for name in task.sets]
    if len(set(paths)) < len(paths):
        raise DataError(
            f"{', '.join(task.sets)}: a data set is named twice, so it would test itself"
        )


def _load_others(
    name: str, file: TaskFile, data: Path | None, own: list[Loaded], classes: list[str]
) -> tuple[dict[str, Loaded], dict[str, str]]:
    """Data of the tasks that test the models of a task, and why some of them cannot."""
    found, refused = {}, {}
    for other in file.tasks.values():
        if other.models_of != name or not _is_there(other.test, data):
            continue
        try:
            loaded = load(other.test, other, data)
            common_genes([*own, *found.values(), loaded])
            shared = [one for one in classes if one in class_counts(loaded)]
            if len(shared) < 2:
                raise DataError(
                    f"{len(shared)} common classes, at least 2 are needed: {name} has "
                    f"{some(classes, 10)}; {loaded.name} has {some(class_counts(loaded), 10)}"
                )
            found[other.name] = loaded
        except (ValueError, OSError) as error:
            refused[other.name] = " ".join(str(error).split())
    return found, refused


def _is_there(name: str, data: Path | None) -> bool:
    try:
        return find_path(name, data).is_file()
    except DataError:
        return False


def _reduce(one: Loaded, genes: NDArray, classes: list[str], said: dict[str, str]) -> Set:
    """Keep the common genes and classes; bring the values to logarithms."""
    parts = []
    for part, labels in zip(one.parts, one.labels, strict=True):
        kept = np.flatnonzero(np.isin(labels, classes))
        chosen = part.select_genes(genes).select_samples(kept)
        parts.append((sp.csr_array(chosen.X, dtype=np.float32), labels[kept]))
    raw = sp.csr_array(sp.vstack([X for X, _ in parts]))
    raw.sort_indices()
    kinds = [
        said.get(name) or kind_of_values(X) for name, (X, _) in zip(one.names, parts, strict=True)
    ]
    kind = kinds[0] if len(set(kinds)) == 1 else "linear"
    if "log" in kinds and kind != "log":
        raise DataError(f"{one.name} joins logarithms with linear values: convert one of them")
    return Set(
        one.name,
        raw,
        log_values(raw, kind),
        np.concatenate([y for _, y in parts]),
        kind == "counts",
    )


def kind_of_values(X: sp.csr_array) -> str:
    """What values are: whole numbers are counts, small ones logarithms, all others linear."""
    largest = X.data.max(initial=0.0)
    if is_counts(X):
        return "counts"
    return "log" if largest < _LOG_BELOW else "linear"


def log_values(X: sp.csr_array, kind: str) -> sp.csr_array:
    """log1p(CPM) of counts and linear values, negative intensities as 0; logarithms as they are."""
    if kind == "log":
        return X
    positive = X.copy()
    np.maximum(positive.data, 0.0, out=positive.data)
    return sp.csr_array(LogCPM().transform(positive))
