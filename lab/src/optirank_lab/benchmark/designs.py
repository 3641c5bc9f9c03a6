"""What is fitted: the data of a task with their splits, and one problem of a split.

A design is one task in one scenario; a problem is one class against the rest, or all
classes at once (``ALL``).
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from optirank._util.words import some
from optirank.data.profiles import DataError
from optirank_lab.baselines.transformers import SingleCellNetGenes
from optirank_lab.benchmark import sets
from optirank_lab.benchmark.sets import Set
from optirank_lab.benchmark.splits import Split, at_most, make_splits, stratified
from optirank_lab.benchmark.tasks import SMALLEST_CLASS, BenchmarkTask
from optirank_lab.data.registry import find_path

ALL = "all classes"  # the problem of telling all classes apart at once
Rows = NDArray | slice  # positions of samples
MOST_PER_CLASS = 200  # training samples of a drawn pair: many pairs in little time
MOST_OF_QUERY = 300  # its samples: a balanced accuracy to a few points
_SMALL_VARIANCE = 1e-6  # keeps genes that never vary from the top


@dataclass(frozen=True)
class Profile:
    """How thoroughly an experiment is run. What ``grids`` does not name stays
    as it is.
    """

    name: str
    n_top: int | None = 500  # genes at each end of the correlation, binary: the paper's
    n_genes: int = 3000  # of best t statistic, for whole tasks
    n_splits: int | None = None  # of binary problems; None: all
    n_whole: int = 5  # splits of whole tasks, at most
    peer_seconds: float = 900.0  # limit of one tool of others on one split
    drawn: bool = False  # whether a pair's samples are drawn and sizes are compared
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
CURVE = Profile("curve", n_whole=1, drawn=True)
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
    # By name of the task; None: held-out samples of the source
    tests: dict[str, Set | None]
    # The tasks tested, in the same order
    tested: list[BenchmarkTask] = field(default_factory=list)
    classes: list[str]
    positives: list[str]  # one binary problem each
    splits: list[Split]
    seed: int = 0
    truth: NDArray | None = None  # mask of the true reference set, where it is known
    notes: list[str] = field(default_factory=list)
    # Tasks that cannot test these models, with the reason
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """A name fit for a folder."""
        return f"{self.task.name}.{self.scenario}" if self.scenario else self.task.name

    def whole_splits(self, most: int) -> list[Split]:
        """The splits for all classes at once: of several test parts, one split
        per part.
        """
        parts: dict[int, Split] = {}
        for split in self.splits:
            parts.setdefault(split.part, split)
        return (list(parts.values()) if len(parts) > 1 else self.splits)[:most]

    @cached_property
    def pair(self) -> SplitProblem:
        """Samples and candidate genes of a pair, the same for all classifiers."""
        ((task, query),) = self.tests.items()
        if query is None:
            raise ValueError(f"{self.task.name} has no query: name a pair of sets")
        train, query, order = drawn_samples(self.source, query)
        return SplitProblem(
            train=train.take(slice(None), order),
            dataset=None,
            validation=[],
            tests={task: query.take(slice(None), order)},
            auxiliary=None,
            truth=None,
            seed=0,
            whole=True,
        )

    def fingerprint(self) -> str:
        """A hash of all data and splits: results of other data must not mix
        with these.
        """
        digest = hashlib.sha256()
        for part in (self.source, self.auxiliary, *self.tests.values()):
            if part is not None:
                for matrix in (sp.csr_array(part.raw), sp.csr_array(part.values)):
                    for array in (matrix.data, matrix.indices, matrix.indptr):
                        digest.update(np.ascontiguousarray(array).tobytes())
                digest.update("\n".join([str(part.counts), *part.labels]).encode())
        names = [*self.source.genes, *self.tests, *self.positives]
        digest.update("\n".join(names).encode())
        for split in self.splits:
            for rows in vars(split).values():
                digest.update(np.asarray(rows, dtype=np.int64).tobytes())
        return digest.hexdigest()

    def describe(self) -> dict:
        """What a report needs to know of it, without its data."""
        train = self.source.name
        if self.auxiliary is not None and self.scenario == "multi":
            train = f"{train} + {self.auxiliary.name}"
        tests = {}
        for task, part in zip(self.tested, self.tests.values(), strict=True):
            tests[task.name] = {
                "title": task.title,
                "shift": task.shift,
                "kind": task.kind,
                "tissue": task.tissue,
                "train": train,
                "test": "held-out samples" if part is None else part.name,
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
        """Read the data of a task that trains, with those of the tasks that test its
        models.

        One design per scenario. Tasks that test the same models take part where their
        data are there and can be used, so that all are tested on the same genes; which
        classes there are depends on the task itself alone.
        """
        task = self.task(name)
        paths = [find_path(set_name, self.data).resolve() for set_name in task.sets]
        if len(set(paths)) < len(paths):
            twice = ", ".join(task.sets)
            raise DataError(
                f"{twice}: a data set is named twice, so it would test itself"
            )
        source = [sets.load(set_name, task, self.data) for set_name in task.train]
        auxiliary = self._load(task.auxiliary, task)
        test = self._load(task.test, task)
        own = [part for part in (*source, auxiliary, test) if part is not None]
        common = sets.common_classes(task, source, auxiliary, test)
        others, refused = self._load_others(name, own, common.kept)
        genes = sets.common_genes([*own, *others.values()])

        def reduced(part: Set | None) -> Set | None:
            return None if part is None else sets.reduce([part], genes, common.kept)

        joined = sets.reduce(source, genes, common.kept)
        second = reduced(auxiliary)
        tests = {name: reduced(test)}
        tests |= {key: reduced(part) for key, part in others.items()}
        labels = None if second is None else second.labels
        return [
            Design(
                task=task,
                scenario=scenario,
                source=joined,
                auxiliary=second,
                tests=tests,
                tested=[self.task(key) for key in tests],
                classes=common.kept,
                positives=common.positives,
                splits=make_splits(
                    task.scheme,
                    joined.labels,
                    labels,
                    scenario,
                    name=task.name,
                    seed=self.seed,
                ),
                seed=self.seed,
                notes=[note for note in (task.note, *common.notes) if note],
                refused=refused,
            )
            for scenario in task.scenarios
        ]

    def _load(self, name: str | None, task: BenchmarkTask) -> Set | None:
        return None if name is None else sets.load(name, task, self.data)

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
        """Data of the tasks that test the models of a task, and why some of
        them cannot.
        """
        loaded: dict[str, Set] = {}
        refused: dict[str, str] = {}
        for task in self.tasks:
            if task.models_of != name or task.test is None or self.missing(task):
                continue
            try:
                test = sets.load(task.test, task, self.data)
                sets.common_genes([*own, *loaded.values(), test])
                counts = sets.class_counts(test)
                shared = [label for label in classes if label in counts]
                if len(shared) < 2:
                    raise DataError(
                        f"{len(shared)} common classes, at least 2 are needed: {name} "
                        f"has {some(classes, 10)}; {test.name} has {some(counts, 10)}"
                    )
                loaded[task.name] = test
            except (ValueError, OSError) as error:
                refused[task.name] = " ".join(str(error).split())
        return loaded, refused


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
    if profile.drawn:
        return design.pair
    whole = name == ALL
    key = f"{design.key}/{split.index}/{name}"
    seed = (design.seed + zlib.crc32(key.encode())) % 2**32
    training = _training_parts(design, split)
    dataset = None
    if len(training) > 1:
        dataset = np.repeat([0, 1], [len(part.labels) for part in training])
    joined = sets.stack(training)
    genes = select_genes(joined, name, profile, seed)

    def cut(part: Set, rows: Rows = slice(None)) -> Set:
        taken = part.take(rows, genes)
        return taken if whole else replace(taken, labels=taken.labels == name)

    validation = []
    if len(split.validation):
        validation.append(cut(design.source, np.asarray(split.validation)))
    reference = None
    if design.auxiliary is not None:
        if len(split.auxiliary_validation):
            rows = np.asarray(split.auxiliary_validation)
            validation.append(cut(design.auxiliary, rows))
        if len(split.auxiliary_reference):
            reference = cut(design.auxiliary, np.asarray(split.auxiliary_reference))
    tests = {}
    for task, part in design.tests.items():
        if part is not None:
            tests[task] = cut(part)
        elif len(split.test):
            tests[task] = cut(design.source, np.asarray(split.test))
    return SplitProblem(
        train=cut(joined),
        dataset=dataset,
        validation=validation,
        tests=tests,
        auxiliary=reference,
        truth=None if design.truth is None else design.truth[genes],
        seed=seed,
        whole=whole,
    )


def _training_parts(design: Design, split: Split) -> list[Set]:
    """The training samples, of one set or of two.

    Where one of two sets holds logarithms only, log values of both are taken.
    """
    parts = [design.source.take(split.train)]
    if design.auxiliary is None or not len(split.auxiliary_train):
        return parts
    parts.append(design.auxiliary.take(np.asarray(split.auxiliary_train)))
    if len({part.kind == "log" for part in parts}) > 1:
        return [replace(part, raw=part.values, kind="log") for part in parts]
    return parts


def select_genes(train: Set, name: str, profile: Profile, seed: int) -> NDArray:
    """Positions of the genes of a problem.

    They are SingleCellNet's choice; for ``ALL`` those of the best t statistics.
    """
    if name == ALL:
        return genes_of_best_t(train, profile.n_genes)
    if profile.n_top is None:
        return np.arange(len(train.genes))
    X = sp.csr_matrix(train.raw if train.counts else train.values)
    selector = SingleCellNetGenes(profile.n_top, random_state=seed)
    selector.fit(X, train.labels == name)
    support: Any = selector.get_support()
    return np.flatnonzero(support)


def drawn_samples(reference: Set, query: Set) -> tuple[Set, Set, NDArray]:
    """Training samples of each class, samples of the query, and the candidate genes.

    Samples have all genes; the candidates are positions, best t statistic first.
    """
    random = np.random.default_rng(0)
    train = reference.take(at_most(reference.labels, MOST_PER_CLASS, random))
    rows = stratified(query.labels, MOST_OF_QUERY, SMALLEST_CLASS, random)
    return train, query.take(rows), genes_of_best_t(train, CURVE.n_genes)


def genes_of_best_t(train: Set, n: int) -> NDArray:
    """Positions of the ``n`` genes of the largest t statistic of any class.

    The best gene of each class against the rest comes first, then the second of each,
    and so on.
    """
    X = sp.csr_array(train.values)
    places = []
    for label in np.unique(train.labels):
        inside = train.labels == label
        mean, variance = _moments(X[inside])
        mean_of_rest, variance_of_rest = _moments(X[~inside])
        spread = np.sqrt(variance + variance_of_rest + _SMALL_VARIANCE)
        t = np.abs(mean - mean_of_rest) / spread
        places.append(np.argsort(np.argsort(-t, kind="stable"), kind="stable"))
    return np.argsort(np.min(places, axis=0), kind="stable")[:n]


def _moments(X: sp.csr_array) -> tuple[NDArray, NDArray]:
    """Means of the columns, and the squares of the standard errors of these."""
    mean = np.asarray(X.mean(axis=0)).ravel().astype(float)
    mean_square = np.asarray(X.multiply(X).mean(axis=0)).ravel()
    variance = np.maximum(mean_square - mean**2, 0.0)
    return mean, variance / len(X.indptr[1:])
