"""Data sets of the experiments: read, cut to common genes and classes, as counts and log values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from optirank._util.names import some
from optirank._util.scales import value_scale
from optirank.io.data import DataError
from optirank.io.reading import read_expression
from optirank_lab.baselines.transformers import LogCPM
from optirank_lab.benchmark.tasks import SMALLEST_CLASS as SMALLEST_OF_PAIR
from optirank_lab.benchmark.tasks import BenchmarkTask, value_kind
from optirank_lab.data.registry import find_path, harmonise

Matrix = NDArray | sp.csr_array
SMALLEST_CLASS = 5  # training samples: as many as folds


@dataclass(frozen=True)
class Set:
    """Samples x genes with labels: a whole data set, or some samples and genes of it."""

    name: str
    raw: Matrix  # as measured: what ranks and pairs see
    values: (
        Matrix  # log1p(CPM), or logarithms as they came: what lr, rf and the ANOVA see
    )
    labels: NDArray  # of the classes; True and False for one class against the rest
    genes: NDArray
    kind: str = "log"  # what raw holds: "counts", which SingleCellNet then takes, "linear" or "log"

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


def stack(sets: list[Set]) -> Set:
    """Sets over the same genes, one below the other."""
    if len(sets) == 1:
        return sets[0]
    return Set(
        "+".join(one.name for one in sets),
        sp.csr_array(sp.vstack([one.raw for one in sets])),
        sp.csr_array(sp.vstack([one.values for one in sets])),
        np.concatenate([one.labels for one in sets]),
        sets[0].genes,
        sets[0].kind if len({one.kind for one in sets}) == 1 else "linear",
    )


def load(name: str, task: BenchmarkTask, data: Path | None) -> Set:
    """Read a data set, with the labels that a task asks for; its values are as measured."""
    found = read_expression(find_path(name, data), label=task.label)
    labels = harmonise(found.labels(task.label))
    if task.merge:
        merge = dict(task.merge)
        labels = np.array(
            [merge.get(one, one) or np.nan for one in labels], dtype=object
        )
    known = np.array([isinstance(one, str) for one in labels], dtype=bool)
    if not known.any():
        raise DataError(f"{name}: no sample has a label in {task.label!r}")
    if found.duplicated_genes:
        found = found.merge_duplicates("first")
    values = found.X.data if sp.issparse(found.X) else found.X
    if not np.isfinite(values).all():
        raise DataError(
            f"{name}: some values are missing or infinite: ranks need numbers"
        )
    X = found.select_samples(known).X
    return Set(name, X, X, labels[known].astype(str), np.asarray(found.gene_names))


def common_genes(sets: list[Set]) -> NDArray:
    """Genes that all sets have, in the order of the first."""
    common = set.intersection(*(set(one.genes) for one in sets))
    if len(common) < 2:
        seen = "; ".join(f"{one.name} has {some(one.genes, 3)}" for one in sets)
        raise DataError(
            f"{len(common)} common genes of {', '.join(one.name for one in sets)}: {seen}. Are "
            "they named alike (symbols, Ensembl ids)?"
        )
    return np.array([gene for gene in sets[0].genes if gene in common], dtype=object)


def common_classes(
    task: BenchmarkTask, source: list[Set], auxiliary: Set | None, test: Set | None
) -> tuple[list[str], list[str], list[str]]:
    """Classes that all sets have, those with a problem of their own, and notes on the others."""
    counts, found = class_counts(*source), task.scheme == "all"
    least = SMALLEST_OF_PAIR if found else SMALLEST_CLASS
    small = sorted(one for one, count in counts.items() if count < least)
    classes = {one for one in counts if one not in small}
    must_have = [] if test is None else [test]
    if auxiliary is not None and task.scheme == "cells":
        must_have.append(auxiliary)
    for one in must_have:
        classes &= {
            key for key, n in class_counts(one).items() if n >= (least if found else 1)
        }
    kept = sorted(classes)
    if len(kept) < 2:
        joined = "+".join(one.name for one in source)
        seen = [f"{joined} has {some(counts, 10)}"]
        seen += [f"{one.name} has {some(class_counts(one), 10)}" for one in must_have]
        raise DataError(
            f"{len(kept)} common classes, at least 2 are needed: {'; '.join(seen)}. labels.toml "
            "brings names together"
        )
    positives = kept if len(kept) > 2 else kept[1:]
    notes = []
    if small:
        notes.append(f"fewer than {least} samples, left out: {some(small, 20)}")
    if lost := sorted(counts.keys() - classes - {*small}):
        notes.append(f"not in every set, left out: {some(lost, 20)}")
    if auxiliary is not None and task.scheme == "folds":
        there = class_counts(auxiliary)
        enough = {one for one in kept if there.get(one, 0) >= SMALLEST_CLASS}
        if len(kept) > 2 and (
            lacking := [one for one in positives if one not in enough]
        ):
            notes.append(
                f"no problem of its own, the auxiliary set lacks it: {some(lacking, 20)}"
            )
            positives = [one for one in positives if one in enough]
        if not positives or len(enough) < 2:
            raise DataError(
                f"{auxiliary.name} has {some(there, 10)}: too few of {some(kept, 10)}"
            )
    return kept, positives, notes


def class_counts(*sets: Set) -> dict[str, int]:
    """Classes with their numbers of samples."""
    labels = np.concatenate([one.labels for one in sets])
    names, counts = np.unique(labels, return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


def reduce(sets: list[Set], genes: NDArray, classes: list[str]) -> Set:
    """Sets as one, over the common genes and classes, with log values."""
    parts = []
    for one in sets:
        rows = np.flatnonzero(np.isin(one.labels, classes))
        positions = pd.Index(one.genes).get_indexer(genes)
        raw = sp.csr_array(one.raw[rows][:, positions], dtype=np.float32)
        raw.sort_indices()
        kind = value_kind(one.name) or value_scale(raw)
        parts.append(Set(one.name, raw, raw, one.labels[rows], genes, kind))
    joined = stack(parts)
    if joined.kind != "log" and any(part.kind == "log" for part in parts):
        raise DataError(
            f"{joined.name} joins logarithms with linear values: convert one of them"
        )
    return replace(joined, values=log_values(joined.raw, joined.kind))


def log_values(X: sp.csr_array, kind: str) -> sp.csr_array:
    """log1p(CPM) of counts and linear values, negative intensities as 0; logarithms as they are."""
    if kind == "log":
        return X
    positive = X.copy()
    np.maximum(positive.data, 0.0, out=positive.data)
    return sp.csr_array(LogCPM().transform(positive))


def dense(X: Matrix) -> NDArray[np.float32]:
    """A matrix as an array of numbers in single precision."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float32)
