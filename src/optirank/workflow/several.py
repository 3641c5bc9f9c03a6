"""Labels of several files in one table: each file is labelled as if it were alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from optirank._util.names import some
from optirank.io.data import DataError
from optirank.workflow.clusters import Clusters
from optirank.workflow.levels import LevelLabels

if TYPE_CHECKING:
    from optirank.workflow.labels import Labels


def names_of_files(paths: Sequence[Path]) -> list[str]:
    """Short names of files that differ: without folder and ending where that
    suffices.
    """
    for names in ([path.stem for path in paths], [path.name for path in paths]):
        if len(set(names)) == len(names):
            return names
    names = [str(path) for path in paths]
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise DataError(f"{some(repeated)} is named twice: name each file once")
    return names


def join_labels(parts: Sequence[Labels], names: Sequence[str]) -> Labels:
    """The labels of several files as one; ``names`` are those of the files."""
    first = parts[0]
    if len(parts) == 1:
        return first
    for part, name in zip(parts, names, strict=True):
        if list(part.classes) != list(first.classes):
            raise DataError(
                f"{name} lacks genes of other classes than {names[0]}, so that they "
                "cannot be in one table: label these files one by one"
            )
    thresholds = {part.threshold for part in parts}
    missing = dict.fromkeys(gene for part in parts for gene in part.missing)
    return replace(
        first,
        source=", ".join(names),
        names=np.concatenate([part.names for part in parts]),
        chosen=np.concatenate([part.chosen for part in parts]),
        reasons=np.concatenate([part.reasons for part in parts]),
        confidence=np.concatenate([part.confidence for part in parts]),
        probabilities=np.concatenate([part.probabilities for part in parts]),
        notes=_prefixed([part.notes for part in parts], names),
        warnings=_prefixed([part.warnings for part in parts], names),
        missing=tuple(missing),
        threshold=thresholds.pop() if len(thresholds) == 1 else None,
        clusters=_clusters(parts, names),
        record=_record(parts, names),
        explanation=None,
        alarms=np.concatenate([part.alarms for part in parts]),
        trust=None,
        levels=_levels(parts),
        files=np.repeat(
            np.array(names, dtype=object), [len(part.chosen) for part in parts]
        ),
    )


def _levels(parts: Sequence[Labels]) -> LevelLabels | None:
    """The labels of a tree of all files."""
    levels = [part.levels for part in parts if part.levels is not None]
    if not levels:
        return None
    names = [entry.name for entry in fields(LevelLabels)]
    joined = {
        name: np.concatenate([getattr(one, name) for one in levels]) for name in names
    }
    return LevelLabels(**joined)


def _prefixed(lines: Sequence[list[str]], names: Sequence[str]) -> list[str]:
    """Sentences about files; those that are the same for all are said once."""
    common = [line for line in lines[0] if all(line in other for other in lines[1:])]
    own = [
        f"{name}: {line}"
        for of_file, name in zip(lines, names, strict=True)
        for line in of_file
        if line not in common
    ]
    return [*common, *own]


def _clusters(parts: Sequence[Labels], names: Sequence[str]) -> Clusters | None:
    """Clusters of all files; those of two files are different ones."""
    tables = []
    columns = []
    for part, name in zip(parts, names, strict=True):
        clusters = part.clusters
        if clusters is None:
            return None
        own = [f"{name}: {cluster}" for cluster in clusters.table["cluster"]]
        tables.append(clusters.table.assign(cluster=own))
        columns.append((clusters.names, clusters.labels, clusters.shares))
    joined = [np.concatenate(of_files) for of_files in zip(*columns, strict=True)]
    return Clusters(pd.concat(tables, ignore_index=True), *joined)


def _record(parts: Sequence[Labels], names: Sequence[str]) -> dict[str, Any]:
    """What is the same for all files, and the record of each."""
    shared = ("model", "model_sha256", "optirank_version", "options", "classes")
    record = {key: parts[0].record[key] for key in (*shared, "withheld_label")}
    record["query"] = ", ".join(names)
    checksums = [str(part.record["query_checksum"]) for part in parts]
    record["query_checksum"] = ", ".join(checksums)
    record["files"] = {
        name: part.record for part, name in zip(parts, names, strict=True)
    }
    return record
