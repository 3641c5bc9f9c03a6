"""Reading the data sets of a task, and what they have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from optirank._util.names import some
from optirank.datasets.catalogue import find_path
from optirank.datasets.errors import DataError
from optirank.datasets.labels import harmonise
from optirank.datasets.reading import read_expression

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from optirank.benchmark.tasks import Task
    from optirank.datasets.data import ExpressionData

SMALLEST_CLASS = 5  # training samples; smaller classes cannot be split


@dataclass(frozen=True)
class Loaded:
    """A data set as read, or several joined into one; labels are harmonised, none is missing."""

    names: list[str]
    parts: list[ExpressionData]
    labels: list[NDArray]

    @property
    def name(self) -> str:
        """The names, joined."""
        return "+".join(self.names)


def load(name: str, task: Task, data: Path | None) -> Loaded:
    """Read a data set, with the labels that a task asks for."""
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
    return Loaded([name], [part.select_samples(known)], [labels[known].astype(str)])


def join(sets: list[Loaded]) -> Loaded:
    """Several sets as one."""
    return Loaded(
        [name for one in sets for name in one.names],
        [part for one in sets for part in one.parts],
        [labels for one in sets for labels in one.labels],
    )


def common_genes(sets: list[Loaded]) -> NDArray:
    """Genes that all sets have, in the order of the first."""
    parts = [part for one in sets for part in one.parts]
    common = set.intersection(*(set(part.gene_names) for part in parts))
    if len(common) < 2:
        seen = "; ".join(f"{one.name} has {some(one.parts[0].gene_names, 3)}" for one in sets)
        raise DataError(
            f"{len(common)} common genes of {', '.join(one.name for one in sets)}: {seen}. Are "
            "they named alike (symbols, Ensembl ids)?"
        )
    return np.array([gene for gene in parts[0].gene_names if gene in common], dtype=object)


def common_classes(
    task: Task, source: Loaded, auxiliary: Loaded | None, test: Loaded | None
) -> tuple[list[str], list[str], list[str]]:
    """Classes that all sets have, those with a problem of their own, and what is to be said."""
    counts = class_counts(source)
    small = sorted(one for one, count in counts.items() if count < SMALLEST_CLASS)
    classes = {one for one in counts if one not in small}
    must_have = [] if test is None else [test]
    if auxiliary is not None and task.scheme == "cells":
        must_have.append(auxiliary)
    for one in must_have:
        classes &= class_counts(one).keys()
    kept = sorted(classes)
    if len(kept) < 2:
        seen = "; ".join(
            f"{one.name} has {some(class_counts(one), 10)}" for one in [source, *must_have]
        )
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
        there = class_counts(auxiliary)
        enough = {one for one in kept if there.get(one, 0) >= SMALLEST_CLASS}
        if len(kept) > 2 and (lacking := [one for one in positives if one not in enough]):
            notes.append(f"no problem of its own, the auxiliary set lacks it: {some(lacking, 20)}")
            positives = [one for one in positives if one in enough]
        if not positives or len(enough) < 2:
            raise DataError(f"{auxiliary.name} has {some(there, 10)}: too few of {some(kept, 10)}")
    return kept, positives, notes


def class_counts(one: Loaded) -> dict[str, int]:
    """Classes with their numbers of samples."""
    names, counts = np.unique(np.concatenate(one.labels), return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))
