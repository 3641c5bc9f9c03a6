"""Data sets of the experiments: read, cut to common genes and classes, with
log values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from optirank._util.numbers import value_scale
from optirank._util.words import some
from optirank.data.profiles import DataError, duplicates
from optirank_lab.baselines.transformers import LogCPM
from optirank_lab.benchmark import tasks
from optirank_lab.benchmark.tasks import BenchmarkTask, value_kind
from optirank_lab.data.conversion import read_expression
from optirank_lab.data.profiles import labels_of, merged_genes, take_samples
from optirank_lab.data.registry import find_path, harmonise, in_memory

Matrix = NDArray | sp.csr_matrix | sp.csr_array
SMALLEST_CLASS = 5  # training samples: as many as folds
_FEWEST_CLASSES = 2
_FEWEST_GENES = 2


@dataclass(frozen=True)
class Set:
    """Samples x genes with labels: a whole data set, or a part of it."""

    name: str
    raw: Matrix  # as measured: what ranks and pairs see
    values: Matrix  # log1p(CPM), or logarithms as they came: what lr, rf and ANOVA see
    labels: NDArray  # of the classes; True and False for one class against the rest
    genes: NDArray
    kind: str = "log"  # what raw holds: "counts" (SingleCellNet's), "linear" or "log"

    @property
    def counts(self) -> bool:
        """Whether the values as measured are counts."""
        return self.kind == "counts"

    def take(self, rows: NDArray | slice, genes: NDArray | slice = slice(None)) -> Set:
        """Some samples and genes, by position."""
        return replace(
            self,
            raw=self.raw[rows][:, genes],
            values=self.values[rows][:, genes],
            labels=self.labels[rows],
            genes=self.genes[genes],
        )


def stack(sets: Sequence[Set]) -> Set:
    """Sets over the same genes, one below the other."""
    if len(sets) == 1:
        return sets[0]
    kinds = {part.kind for part in sets}
    return Set(
        name="+".join(part.name for part in sets),
        raw=sp.csr_array(sp.vstack([part.raw for part in sets])),
        values=sp.csr_array(sp.vstack([part.values for part in sets])),
        labels=np.concatenate([part.labels for part in sets]),
        genes=sets[0].genes,
        kind=sets[0].kind if len(kinds) == 1 else "linear",
    )


def load(name: str, task: BenchmarkTask, data: Path | None) -> Set:
    """Read a data set with the labels that a task asks for, values as measured."""
    profiles = read_expression(find_path(name, data), label=task.label)
    labels = harmonise(labels_of(profiles, task.label))
    if task.merge:
        merged = dict(task.merge)
        labels = np.array(
            [merged.get(label, label) or np.nan for label in labels], dtype=object
        )
    known = np.array([isinstance(label, str) for label in labels], dtype=bool)
    if not known.any():
        raise DataError(f"{name}: no sample has a label in {task.label!r}")
    if duplicates(profiles.var_names):
        profiles = merged_genes(profiles, "first")
    whole = in_memory(profiles)
    values = whole if isinstance(whole, np.ndarray) else whole.data
    if not np.isfinite(values).all():
        raise DataError(
            f"{name}: some values are missing or infinite, and ranks need numbers: "
            "fill them, or leave their genes or samples out"
        )
    X = in_memory(take_samples(profiles, known))
    return Set(name, X, X, labels[known].astype(str), np.asarray(profiles.var_names))


def common_genes(sets: Sequence[Set]) -> NDArray:
    """Genes that all sets have, in the order of the first."""
    common = set.intersection(*(set(part.genes) for part in sets))
    if len(common) < _FEWEST_GENES:
        names = ", ".join(part.name for part in sets)
        genes = "; ".join(f"{part.name} has {some(part.genes, 3)}" for part in sets)
        raise DataError(
            f"{len(common)} common genes of {names}: {genes}. Are they named alike "
            "(symbols, Ensembl ids)?"
        )
    return np.array([gene for gene in sets[0].genes if gene in common], dtype=object)


class CommonClasses(NamedTuple):
    """The classes of a task."""

    kept: list[str]  # that all sets have
    positives: list[str]  # with a problem of their own, against the rest
    notes: list[str]  # on classes that are left out


def common_classes(
    task: BenchmarkTask, source: Sequence[Set], auxiliary: Set | None, test: Set | None
) -> CommonClasses:
    """The classes that a task is about: large enough, and in all of its sets.

    Every class is told from the rest, of two only the second. Where an auxiliary set
    is split into folds, only classes that it has enough samples of are.
    """
    counts = class_counts(*source)
    in_a_pair = task.scheme == "all"
    smallest = tasks.SMALLEST_CLASS if in_a_pair else SMALLEST_CLASS
    small = sorted(name for name, count in counts.items() if count < smallest)
    must_have = [] if test is None else [test]
    if auxiliary is not None and task.scheme == "cells":
        must_have.append(auxiliary)
    classes = set(counts) - set(small)
    for part in must_have:
        needed = smallest if in_a_pair else 1
        classes &= {name for name, n in class_counts(part).items() if n >= needed}
    kept = sorted(classes)
    if len(kept) < _FEWEST_CLASSES:
        raise _too_few_classes(kept, smallest, source, must_have)
    notes = []
    if small:
        notes.append(f"fewer than {smallest} samples, left out: {some(small, 20)}")
    lost = sorted(counts.keys() - classes - set(small))
    if lost:
        notes.append(f"not in every set, left out: {some(lost, 20)}")
    positives = kept if len(kept) > _FEWEST_CLASSES else kept[1:]
    if auxiliary is not None and task.scheme == "folds":
        lacking = _lacking(auxiliary, kept, positives)
        if lacking:
            notes.append(
                "no problem of its own, the auxiliary set lacks it: "
                f"{some(lacking, 20)}"
            )
            positives = [name for name in positives if name not in lacking]
    return CommonClasses(kept, positives, notes)


def _too_few_classes(
    kept: list[str], smallest: int, source: Sequence[Set], must_have: Sequence[Set]
) -> DataError:
    """What is wrong where sets share too few classes."""
    joined = "+".join(part.name for part in source)
    contents = [f"{joined} has {_with_counts(class_counts(*source))}"]
    contents += [
        f"{part.name} has {_with_counts(class_counts(part))}" for part in must_have
    ]
    return DataError(
        f"{len(kept)} common classes with {smallest} samples or more, at least "
        f"{_FEWEST_CLASSES} are needed: {'; '.join(contents)}. Classes are matched by "
        "name: labels.toml brings different names together"
    )


def _with_counts(counts: Mapping[str, int]) -> str:
    return some([f"{name} ({count})" for name, count in counts.items()], 10)


def _lacking(auxiliary: Set, kept: list[str], positives: list[str]) -> list[str]:
    """The positive classes that an auxiliary set has too few samples of."""
    counts = class_counts(auxiliary)
    enough = [name for name in kept if counts.get(name, 0) >= SMALLEST_CLASS]
    left = [name for name in positives if name in enough]
    if len(kept) == _FEWEST_CLASSES:  # both classes are of one problem
        left = positives
    if len(enough) < _FEWEST_CLASSES or not left:
        raise DataError(
            f"{auxiliary.name} has {some(counts, 10)}: too few of {some(kept, 10)}"
        )
    return [name for name in positives if name not in left]


def class_counts(*sets: Set) -> dict[str, int]:
    """Classes with their numbers of samples."""
    labels = np.concatenate([part.labels for part in sets])
    names, counts = np.unique(labels, return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


def reduce(sets: Sequence[Set], genes: NDArray, classes: Sequence[str]) -> Set:
    """Sets as one, over the common genes and classes, with log values."""
    parts = []
    for part in sets:
        rows = np.flatnonzero(np.isin(part.labels, list(classes)))
        positions = pd.Index(part.genes).get_indexer(genes)
        raw = sp.csr_array(part.raw[rows][:, positions], dtype=np.float32)
        raw.sort_indices()
        kind = value_kind(part.name) or value_scale(raw)
        parts.append(Set(part.name, raw, raw, part.labels[rows], genes, kind))
    joined = stack(parts)
    if joined.kind != "log" and any(part.kind == "log" for part in parts):
        raise DataError(
            f"{joined.name} joins logarithms with linear values: convert one of them"
        )
    return replace(joined, values=log_values(joined.raw, joined.kind))


def log_values(X: Matrix, kind: str) -> Matrix:
    """log1p(CPM) of counts and linear values; logarithms as they are.

    Negative intensities become 0.
    """
    if kind == "log":
        return X
    positive = sp.csr_array(X, copy=True)
    np.maximum(positive.data, 0.0, out=positive.data)
    return sp.csr_array(LogCPM().transform(positive))


def dense(X: Matrix) -> NDArray[np.float32]:
    """A matrix as an array of numbers in single precision."""
    values = X if isinstance(X, np.ndarray) else X.toarray()
    return np.asarray(values, dtype=np.float32)
