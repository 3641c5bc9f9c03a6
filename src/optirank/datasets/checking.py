"""Check a data set: is it readable, and are its numbers, genes and labels fit for use?"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from optirank._util.names import some
from optirank.datasets.catalogue import LABEL
from optirank.datasets.data import duplicates
from optirank.datasets.errors import DataError
from optirank.datasets.reading import OpenExpression, open_expression

BLOCK = 2048


@dataclass
class Check:
    """What was found: ``errors`` make a set unusable, ``notes`` are good to know."""

    path: Path
    n_samples: int = 0
    n_genes: int = 0
    n_classes: int = 0
    values: str = ""
    errors: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing makes the set unusable."""
        return not self.errors


def check(path: str | Path, **options) -> Check:
    """Read a file in blocks and check it; options as for `read_expression`."""
    result = Check(Path(path))
    try:
        with open_expression(path, **options) as opened:
            result.n_samples, result.n_genes = opened.matrix.shape
            _check_names(opened, result)
            _check_labels(opened, result, options.get("label") or LABEL)
            _check_values(opened, result)
    except (DataError, OSError) as error:
        result.errors.append(str(error))
    return result


def _check_names(opened: OpenExpression, result: Check) -> None:
    if not opened.n_samples or not len(opened.gene_names):
        result.errors.append(f"{opened.n_samples} samples and {len(opened.gene_names)} genes")
    twice = duplicates(opened.gene_names)
    if twice:
        result.notes.append(f"{len(twice)} gene names occur more than once: {some(twice)}")
    if opened.obs.index.has_duplicates:
        result.notes.append("some sample names occur more than once")
    for column in ("dataset", "platform"):
        if column not in opened.obs.columns:
            result.notes.append(f"no column {column!r}")


def _check_labels(opened: OpenExpression, result: Check, label: str) -> None:
    if label not in opened.obs.columns:
        result.errors.append(f"no column {label!r}: there are {some(opened.obs.columns, 20)}")
        return
    labels = opened.obs[label]
    if labels.isna().any():
        result.notes.append(f"{int(labels.isna().sum())} samples have no label")
    counts = labels.value_counts()
    counts = counts[counts > 0]
    result.n_classes = len(counts)
    if len(counts) < 2:
        result.notes.append(f"one class only: {some(counts.index)}")
    small = counts[counts < 5]
    if len(small):
        names = [f"{name} ({count})" for name, count in small.items()]
        result.notes.append(f"classes of fewer than 5 samples: {some(names)}")


def _check_values(opened: OpenExpression, result: Check) -> None:
    whole, negative, empty = True, False, 0
    for block in opened.blocks(block_size=BLOCK):
        values = block.X if isinstance(block.X, np.ndarray) else block.X.data
        if not np.isfinite(values).all():
            result.errors.append("some values are missing or infinite: ranks need numbers")
            return
        whole = whole and bool((values == np.rint(values)).all())
        negative = negative or bool((values < 0).any())
        empty += int((np.asarray(abs(block.X).sum(axis=1)).ravel() == 0).sum())
    result.values = "whole numbers" if whole else "real numbers"
    if negative:
        result.values += ", some negative"
    if empty:
        result.notes.append(f"{empty} samples without any expression")
