"""What is fitted: the data of a task with their splits, and the binary problem of one unit."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
import scipy.sparse as sp

from optirank.benchmark.sets import Set, stack
from optirank.preprocessing import SingleCellNetGenes
from optirank.tuning.shifts import log_spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.benchmark.splits import Split
    from optirank.benchmark.tasks import Task


@dataclass(frozen=True, kw_only=True)
class Design:
    """All that is fitted for a task in one scenario."""

    task: Task
    scenario: str = ""
    source: Set
    auxiliary: Set | None = None
    tests: dict[str, Set | None]  # by name of the task; None: held-out samples of the source
    tested: list[Task] = field(default_factory=list)  # the tasks tested, in the same order
    classes: list[str]
    positives: list[str]  # one binary problem each
    splits: list[Split]
    seed: int = 0
    truth: NDArray | None = None  # mask of the true reference set, where it is known
    notes: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)  # tasks that cannot test these models

    @property
    def key(self) -> str:
        """A name fit for a folder."""
        return design_key(self.task.name, self.scenario)

    @property
    def genes(self) -> NDArray:
        """Names of the genes."""
        return self.source.genes

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

    def describe(self) -> dict:
        """What a report needs to know of it, without its data."""
        task, splits, auxiliary = self.task, self.splits, self.auxiliary
        both = auxiliary is not None and self.scenario == "multi"
        return {
            "fingerprint": self.fingerprint(),
            "task": task.name,
            "scenario": self.scenario,
            "kind": task.kind,
            "sources": f"{self.source.name} + {auxiliary.name}" if both else self.source.name,
            "tests": list(self.tests),
            "titles": [one.title for one in self.tested],
            "shifts": [one.shift for one in self.tested],
            "targets": [
                "held-out samples" if one is None else one.name for one in self.tests.values()
            ],
            "n_genes": len(self.genes),
            "classes": self.classes,
            "positives": self.positives,
            "parts": [split.part for split in splits],
            "n_train": [len(split.train) + len(split.auxiliary_train) for split in splits],
            "n_validation": [
                len(split.validation) + len(split.auxiliary_validation) for split in splits
            ],
            "n_test": [
                [len(split.test) if one is None else len(one.labels) for split in splits]
                for one in self.tests.values()
            ],
            "notes": self.notes,
        }


def design_key(task: str, scenario: str) -> str:
    """Name of the folder of a task's results in one scenario."""
    return f"{task}.{scenario}" if scenario else task


class TaskSource(Protocol):
    """Where designs come from. It travels to worker processes and is a key of their memory."""

    def designs(self, name: str) -> list[Design]:
        """The designs of a task that trains, one per scenario."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One split of one binary problem, over the genes selected from its training samples."""

    train: Set
    dataset: NDArray | None  # of the training samples, where they come from two sets
    validation: list[Set]  # one per data set
    platforms: list[list[Set]]  # the same samples on simulated platforms
    tests: dict[str, Set]
    auxiliary: Set | None  # samples that only a choice of reference genes may look at
    selected: NDArray  # positions of the genes
    truth: NDArray | None
    seed: int


def make_problem(
    design: Design,
    split: Split,
    positive: str,
    n_top: int | None,
    platforms: Sequence[float] = (),
) -> Problem:
    """Select the genes on the training samples alone and cut all parts to them.

    ``platforms`` are the strengths of the simulated platforms on which the validation samples are
    scored too (see `optirank.tuning.shifts`).
    """
    source, auxiliary = design.source, design.auxiliary
    key = f"{design.key}/{split.index}/{positive}"
    seed = (design.seed + zlib.crc32(key.encode())) % 2**32
    genes = selected_genes(design, split, positive, n_top, seed)

    def part(one: Set, rows: NDArray | slice) -> Set:
        return one.take(rows, genes).against(positive)

    train, dataset = [part(source, split.train)], None
    validation = [source.take(split.validation)] if len(split.validation) else []
    if len(split.auxiliary_train):
        train.append(part(auxiliary, split.auxiliary_train))
        dataset = np.repeat([0, 1], [len(one.labels) for one in train])
        validation.append(auxiliary.take(split.auxiliary_validation))
    spread = log_spread(source.raw[split.train]) if platforms else 0.0
    seeds = range(seed, seed + len(platforms))
    return Problem(
        train=stack(train),
        dataset=dataset,
        validation=[part(one, slice(None)) for one in validation],
        platforms=[
            [part(one.on_platform(strength, k, spread), slice(None)) for one in validation]
            for k, strength in zip(seeds, platforms, strict=True)
        ],
        tests={
            name: part(source, split.test) if one is None else part(one, slice(None))
            for name, one in design.tests.items()
            if one is not None or len(split.test)
        },
        auxiliary=part(auxiliary, rows) if len(rows := split.auxiliary_reference) else None,
        selected=genes,
        truth=None if design.truth is None else design.truth[genes],
        seed=seed,
    )


def selected_genes(
    design: Design, split: Split, positive: str, n_top: int | None, seed: int
) -> NDArray:
    """SingleCellNet's choice of genes, on the training samples of a split; None takes all."""
    if n_top is None:
        return np.arange(len(design.genes))
    parts = [(design.source, split.train)]
    if len(split.auxiliary_train):
        parts.append((design.auxiliary, split.auxiliary_train))
    if all(one.counts for one, _ in parts):
        X = sp.vstack([one.raw[rows] for one, rows in parts])
    else:
        X = sp.vstack([one.values[rows] for one, rows in parts])
    y = np.concatenate([one.labels[rows] == positive for one, rows in parts])
    selector = SingleCellNetGenes(n_top, random_state=seed).fit(sp.csr_matrix(X), y)
    return selector.get_support(indices=True)
