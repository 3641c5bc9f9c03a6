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

from optirank.benchmark.splits import Split, make_splits
from optirank.datasets.catalogue import find_path
from optirank.datasets.errors import DataError, some
from optirank.datasets.labels import harmonise
from optirank.datasets.reading import read_expression
from optirank.preprocessing import LogCPM
from optirank.preprocessing._statistics import is_counts

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from optirank.benchmark.tasks import Task, TaskFile
    from optirank.datasets.data import ExpressionData

SMALLEST_CLASS = 5  # training samples; smaller classes cannot be split
_LOG_BELOW = 50.0  # no logarithm of an expression value is above this


@dataclass(frozen=True)
class Set:
    """One data set of a task, over the task's genes and classes."""

    name: str
    raw: sp.csr_array  # as measured: what ranks and pairs see
    values: sp.csr_array  # log1p(CPM), or logarithms as they came: what lr, rf and the ANOVA see
    labels: NDArray
    counts: bool

    @property
    def selectable(self) -> sp.csr_array:
        """What SingleCellNet's selection of genes sees: counts, or logarithms."""
        return self.raw if self.counts else self.values


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
    notes: list[str] = field(default_factory=list)

    @property
    def key(self) -> str:
        """A name fit for a folder."""
        return design_key(self.task.name, self.scenario)

    def fingerprint(self) -> str:
        """A hash of all data and splits: results of other data must not mix with these."""
        digest = hashlib.sha256()
        for one in (self.source, self.auxiliary, *self.tests.values()):
            if one is not None:
                for array in (one.raw.data, one.raw.indices, one.raw.indptr):
                    digest.update(np.ascontiguousarray(array).tobytes())
                digest.update("\n".join(one.labels).encode())
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

    One design a scenario. Tasks that test the same models take part where their data are there, so
    that all are tested on the same genes.
    """
    task = file.tasks[name]
    tests = {task.name: task.test}
    for other in file.tasks.values():
        if other.models_of == name and _is_there(other.test, data):
            tests[other.name] = other.test
    source = _join([_load(one, task, data) for one in task.train])
    auxiliary = None if task.auxiliary is None else _load(task.auxiliary, task, data)
    read = {
        key: None if one is None else _load(one, file.tasks[key], data)
        for key, one in tests.items()
    }
    loaded = [one for one in (source, auxiliary, *read.values()) if one is not None]
    genes = _common_genes(loaded)
    classes, positives, notes = _common_classes(task, source, auxiliary, read)

    def reduced(one: _Loaded | None) -> Set | None:
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
        "notes": [note for note in (task.note, *notes) if note],
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


@dataclass(frozen=True)
class _Loaded:
    name: str
    parts: list[ExpressionData]
    labels: list[NDArray]


def _is_there(name: str, data: Path | None) -> bool:
    try:
        return find_path(name, data).is_file()
    except DataError:
        return False


def _load(name: str, task: Task, data: Path | None) -> _Loaded:
    part = read_expression(find_path(name, data), label=task.label)
    labels = harmonise(part.labels(task.label))
    if task.merge:
        renamed = [task.merge.get(one, one) or np.nan for one in labels]
        labels = np.array(renamed, dtype=object)
    known = np.array([isinstance(one, str) for one in labels], dtype=bool)
    if not known.any():
        raise DataError(f"{name}: no sample has a label in {task.label!r}")
    if part.duplicated_genes:
        part = part.merge_duplicates("first")
    values = part.X.data if sp.issparse(part.X) else part.X
    if not np.isfinite(values).all():
        raise DataError(f"{name}: some values are missing or infinite: ranks need numbers")
    return _Loaded(name, [part.select_samples(known)], [labels[known].astype(str)])


def _join(sets: list[_Loaded]) -> _Loaded:
    return _Loaded(
        "+".join(one.name for one in sets),
        [part for one in sets for part in one.parts],
        [labels for one in sets for labels in one.labels],
    )


def _common_genes(sets: list[_Loaded]) -> NDArray:
    parts = [part for one in sets for part in one.parts]
    common = set.intersection(*(set(part.gene_names) for part in parts))
    if len(common) < 2:
        seen = "; ".join(f"{one.name} has {some(one.parts[0].gene_names, 3)}" for one in sets)
        raise DataError(
            f"{len(common)} common genes of {', '.join(one.name for one in sets)}: {seen}. Are "
            "they named alike (symbols, Ensembl ids)?"
        )
    return np.array([gene for gene in parts[0].gene_names if gene in common], dtype=object)


def _common_classes(
    task: Task, source: _Loaded, auxiliary: _Loaded | None, tests: dict[str, _Loaded | None]
) -> tuple[list[str], list[str], list[str]]:
    """Classes that all sets have, those with a problem of their own, and what is to be said."""
    counts = _counts(source)
    small = sorted(one for one, count in counts.items() if count < SMALLEST_CLASS)
    classes = {one for one in counts if one not in small}
    must_have = [one for one in tests.values() if one is not None]
    if auxiliary is not None and task.scheme == "cells":
        must_have.append(auxiliary)
    for one in must_have:
        classes &= _counts(one).keys()
    kept = sorted(classes)
    if len(kept) < 2:
        seen = "; ".join(f"{one.name} has {some(_counts(one), 10)}" for one in [source, *must_have])
        raise DataError(
            f"{len(kept)} common classes, at least 2 are needed: {seen}. labels.toml and merge in "
            "the task bring names together"
        )
    positives = kept if len(kept) > 2 else kept[1:]
    notes = []
    if small:
        notes.append(f"fewer than {SMALLEST_CLASS} samples, left out: {some(small, 20)}")
    if lost := sorted(counts.keys() - classes - {*small}):
        notes.append(f"not in every set, left out: {some(lost, 20)}")
    if auxiliary is not None and task.scheme == "folds":
        there = _counts(auxiliary)
        if len(kept) > 2 and (lacking := [one for one in positives if one not in there]):
            notes.append(f"no problem of its own, the auxiliary set lacks it: {some(lacking, 20)}")
            positives = [one for one in positives if one in there]
        enough = {one for one in kept if there.get(one, 0) >= SMALLEST_CLASS}
        if not positives or len(enough) < 2:
            raise DataError(f"{auxiliary.name} has {some(there, 10)}: too few of {some(kept, 10)}")
    return kept, positives, notes


def _counts(one: _Loaded) -> dict[str, int]:
    names, counts = np.unique(np.concatenate(one.labels), return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


def _reduce(one: _Loaded, genes: NDArray, classes: list[str], said: dict[str, str]) -> Set:
    """Keep the common genes and classes; bring the values to logarithms."""
    parts = []
    for part, labels in zip(one.parts, one.labels, strict=True):
        kept = np.flatnonzero(np.isin(labels, classes))
        chosen = part.select_genes(genes).select_samples(kept)
        parts.append((sp.csr_array(chosen.X, dtype=np.float32), labels[kept]))
    names = one.name.split("+")
    raw = sp.csr_array(sp.vstack([X for X, _ in parts]))
    raw.sort_indices()
    kinds = [said.get(name) or kind_of_values(X) for name, (X, _) in zip(names, parts, strict=True)]
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
