"""What is fitted: the data of a task with their splits, and one problem of a split.

A design is one task in one scenario; a problem is one class against the rest, or all
classes at once (``ALL``).
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from optirank._util.names import some
from optirank.io.data import DataError
from optirank_lab.baselines.transformers import SingleCellNetGenes
from optirank_lab.benchmark import sets
from optirank_lab.benchmark.sets import Set
from optirank_lab.benchmark.splits import Split, make_splits
from optirank_lab.benchmark.tasks import BenchmarkTask
from optirank_lab.data.registry import find_path

ALL = "all classes"  # the problem of telling all classes apart at once


@dataclass(frozen=True)
class Profile:
    """How thoroughly an experiment is run. What ``grids`` does not name stays as it is."""

    name: str
    n_top: int | None = 500  # genes at each end of the correlation, binary: the paper's
    n_genes: int = 3000  # of best t statistic, for whole tasks
    n_splits: int | None = None  # of binary problems; None: all
    n_whole: int = 5  # splits of whole tasks, at most
    peer_seconds: float = 900.0  # limit of one tool of others on one split
    grids: dict[str, tuple] = field(default_factory=dict, hash=False)

    def record(self) -> dict[str, object]:
        """What must not change between runs into the same folder."""
        grids = {key: list(values) for key, values in self.grids.items()}
        return {
            "profile": self.name,
            "n_top": self.n_top,
            "n_genes": self.n_genes,
            "grids": grids,
        }


PAPER = Profile("paper")
QUICK = Profile(
    "quick",
    n_top=100,
    n_genes=1000,
    n_splits=3,
    n_whole=1,
    peer_seconds=180.0,
    grids={
        "n_reference": (0.05, 0.2, 1.0),
        "l1": (0.0, 1e-3),
        "l2": (1e-3, 1e-1),
        "n_trees": (100,),
        "n_estimators": (100,),
    },
)


@dataclass(frozen=True, kw_only=True)
class Design:
    """All that is fitted for a task in one scenario."""

    task: BenchmarkTask
    scenario: str = ""
    source: Set
    auxiliary: Set | None = None
    tests: dict[
        str, Set | None
    ]  # by name of the task; None: held-out samples of the source
    tested: list[BenchmarkTask] = field(
        default_factory=list
    )  # the tasks tested, in the same order
    classes: list[str]
    positives: list[str]  # one binary problem each
    splits: list[Split]
    seed: int = 0
    truth: NDArray | None = None  # mask of the true reference set, where it is known
    notes: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(
        default_factory=dict
    )  # tasks that cannot test these models

    @property
    def key(self) -> str:
        """A name fit for a folder."""
        return f"{self.task.name}.{self.scenario}" if self.scenario else self.task.name

    def whole_splits(self, most: int) -> list[Split]:
        """The splits for all classes at once: of several test parts, one split per part."""
        parts: dict[int, Split] = {}
        for split in self.splits:
            parts.setdefault(split.part, split)
        return (list(parts.values()) if len(parts) > 1 else self.splits)[:most]

    def fingerprint(self) -> str:
        """A hash of all data and splits: results of other data must not mix with these."""
        digest = hashlib.sha256()
        for one in (self.source, self.auxiliary, *self.tests.values()):
            if one is not None:
                for matrix in (sp.csr_array(one.raw), sp.csr_array(one.values)):
                    for array in (matrix.data, matrix.indices, matrix.indptr):
                        digest.update(np.ascontiguousarray(array).tobytes())
                digest.update("\n".join([str(one.counts), *one.labels]).encode())
        digest.update(
            "\n".join([*self.source.genes, *self.tests, *self.positives]).encode()
        )
        for split in self.splits:
            for rows in vars(split).values():
                digest.update(np.asarray(rows, dtype=np.int64).tobytes())
        return digest.hexdigest()

    def describe(self) -> dict:
        """What a report needs to know of it, without its data."""
        both = self.auxiliary is not None and self.scenario == "multi"
        source = (
            f"{self.source.name} + {self.auxiliary.name}" if both else self.source.name
        )
        tests = {
            task.name: {
                **{
                    key: getattr(task, key)
                    for key in ("title", "shift", "kind", "tissue")
                },
                "train": source,
                "test": "held-out samples" if one is None else one.name,
            }
            for task, one in zip(self.tested, self.tests.values(), strict=True)
        }
        return {
            "fingerprint": self.fingerprint(),
            "task": self.task.name,
            "scenario": self.scenario,
            "tests": tests,
            "n_genes": len(self.source.genes),
            "classes": self.classes,
            "positives": self.positives,
            "parts": [split.part for split in self.splits],
            "notes": self.notes,
        }


@dataclass(frozen=True)
class RealTasks:
    """Real data as a source of tasks: the sets of a folder.

    Nothing is fitted: which genes and classes the sets share is read from their names
    and labels, and a sample's log values depend on that sample alone.
    """

    data: Path
    tasks: tuple[BenchmarkTask, ...]
    seed: int = 0

    def task(self, name: str) -> BenchmarkTask:
        """The task of a name."""
        return next(task for task in self.tasks if task.name == name)

    def designs(self, name: str) -> list[Design]:
        """Read the data of a task that trains, with those of the tasks that test its models.

        One design per scenario. Tasks that test the same models take part where their
        data are there and can be used, so that all are tested on the same genes; which
        classes there are depends on the task itself alone.
        """
        task = self.task(name)
        paths = [find_path(one, self.data).resolve() for one in task.sets]
        if len(set(paths)) < len(paths):
            twice = ", ".join(task.sets)
            raise DataError(
                f"{twice}: a data set is named twice, so it would test itself"
            )
        source = [sets.load(one, task, self.data) for one in task.train]
        auxiliary = (
            None
            if task.auxiliary is None
            else sets.load(task.auxiliary, task, self.data)
        )
        read = {
            name: None if task.test is None else sets.load(task.test, task, self.data)
        }
        own = [*source, *(one for one in (auxiliary, read[name]) if one is not None)]
        classes, positives, notes = sets.common_classes(
            task, source, auxiliary, read[name]
        )
        others, refused = self._load_others(name, own, classes)
        read |= others
        genes = sets.common_genes([*own, *others.values()])

        def reduced(*parts: Set | None) -> Set | None:
            return None if None in parts else sets.reduce([*parts], genes, classes)

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
                    task.scheme,
                    joined.labels,
                    more,
                    scenario,
                    name=task.name,
                    seed=self.seed,
                ),
                seed=self.seed,
                notes=[note for note in (task.note, *notes) if note],
                refused=refused,
            )
            for scenario in task.scenarios
        ]

    def missing(self, task: BenchmarkTask) -> str | None:
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

    def _load_others(
        self, name: str, own: list[Set], classes: list[str]
    ) -> tuple[dict[str, Set], dict[str, str]]:
        """Data of the tasks that test the models of a task, and why some of them cannot."""
        found, refused = {}, {}
        for other in self.tasks:
            if other.models_of != name or self.missing(other):
                continue
            try:
                loaded = sets.load(other.test, other, self.data)
                sets.common_genes([*own, *found.values(), loaded])
                there = sets.class_counts(loaded)
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


@dataclass(frozen=True, kw_only=True)
class SplitProblem:
    """One problem of one split, over the genes selected from its training samples."""

    train: Set
    dataset: NDArray | None  # of the training samples, where they come from two sets
    validation: list[Set]  # one per data set
    tests: dict[str, Set]
    auxiliary: Set | None  # samples that only a choice of reference genes may look at
    truth: NDArray | None
    seed: int
    whole: bool


def make_problem(
    design: Design, split: Split, name: str, profile: Profile
) -> SplitProblem:
    """Select the genes on the training samples alone and cut all parts to them.

    All classifiers of the problem get these genes. ``name`` is the positive class, or
    ``ALL``.
    """
    source, auxiliary, whole = design.source, design.auxiliary, name == ALL
    key = f"{design.key}/{split.index}/{name}"
    seed = (design.seed + zlib.crc32(key.encode())) % 2**32
    train = [source.take(split.train)]
    if len(split.auxiliary_train):
        train.append(auxiliary.take(split.auxiliary_train))
        if (
            len({one.kind == "log" for one in train}) > 1
        ):  # where one set holds logarithms only
            train = [replace(one, raw=one.values, kind="log") for one in train]
    dataset = (
        np.repeat([0, 1], [len(one.labels) for one in train])
        if len(train) > 1
        else None
    )
    joined = sets.stack(train)
    genes = select_genes(joined, name, profile, seed)

    def part(one: Set, rows: NDArray | slice = slice(None)) -> Set:
        cut = one.take(rows, genes)
        return cut if whole else replace(cut, labels=cut.labels == name)

    validation = [part(source, split.validation)] if len(split.validation) else []
    if len(split.auxiliary_validation):
        validation.append(part(auxiliary, split.auxiliary_validation))
    return SplitProblem(
        train=part(joined),
        dataset=dataset,
        validation=validation,
        tests={
            task: part(source, split.test) if one is None else part(one)
            for task, one in design.tests.items()
            if one is not None or len(split.test)
        },
        auxiliary=part(auxiliary, rows)
        if len(rows := split.auxiliary_reference)
        else None,
        truth=None if design.truth is None else design.truth[genes],
        seed=seed,
        whole=whole,
    )


def select_genes(train: Set, name: str, profile: Profile, seed: int) -> NDArray:
    """Positions of the genes of a problem: SingleCellNet's choice, or for ``ALL`` t statistics."""
    if name == ALL:
        return best_genes(train, profile.n_genes)
    if profile.n_top is None:
        return np.arange(len(train.genes))
    X = sp.csr_matrix(train.raw if train.counts else train.values)
    selector = SingleCellNetGenes(profile.n_top, random_state=seed).fit(
        X, train.labels == name
    )
    return selector.get_support(indices=True)


def best_genes(train: Set, n: int) -> NDArray:
    """Positions of the ``n`` genes of the largest t statistic of any class against the rest.

    The best gene of each class comes first, then the second of each, and so on.
    """
    X, places = train.values, []
    for one in np.unique(train.labels):
        mean, variance = zip(
            *(_moments(X[rows]) for rows in (train.labels == one, train.labels != one)),
            strict=True,
        )
        # The small number keeps genes that never vary from the top.
        t = np.abs(mean[0] - mean[1]) / np.sqrt(variance[0] + variance[1] + 1e-6)
        places.append(np.argsort(np.argsort(-t, kind="stable"), kind="stable"))
    return np.argsort(np.min(places, axis=0), kind="stable")[:n]


def _moments(X: NDArray | sp.csr_array) -> tuple[NDArray, NDArray]:
    """Means of the columns, and the squares of the standard errors of these."""
    n = X.shape[0]
    mean = np.asarray(X.mean(axis=0)).ravel().astype(float)
    square = X.multiply(X) if sp.issparse(X) else X * X
    variance = np.asarray(square.mean(axis=0)).ravel() - mean**2
    return mean, np.maximum(variance, 0.0) / n
