"""The work of one unit: a classifier's whole grid on one split of one binary problem."""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from optirank._util.threads import one_blas_thread
from optirank.benchmark.classifiers import Classifier, get
from optirank.preprocessing import SingleCellNetGenes
from optirank.ranks.fitting import order_for_fitting
from optirank.tuning.family import Samples
from optirank.tuning.scoring import balanced_accuracy
from optirank.tuning.search import Unit, search

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.benchmark.preparation import Design, Set
    from optirank.benchmark.profiles import Profile
    from optirank.benchmark.splits import Split

_CLASSES = np.array([False, True])


@dataclass(frozen=True)
class Part:
    """Samples of one data set over the selected genes, with the label of the binary problem."""

    raw: sp.csr_array
    values: sp.csr_array
    positive: NDArray

    def join(self, other: Part) -> Part:
        """Both, one below the other."""
        return Part(
            sp.csr_array(sp.vstack([self.raw, other.raw])),
            sp.csr_array(sp.vstack([self.values, other.values])),
            np.concatenate([self.positive, other.positive]),
        )


@dataclass(frozen=True)
class Problem:
    """One split of one binary problem, over the genes selected from its training samples."""

    train: Part
    dataset: NDArray | None  # of the training samples, where they come from two sets
    validation: list[Part]  # one a data set
    tests: dict[str, Part]
    reference: Part | None  # auxiliary samples that only a choice of reference genes may look at
    genes: NDArray  # positions of the selected genes
    counts: bool
    seed: int


def make_problem(design: Design, split: Split, positive: str, profile: Profile) -> Problem:
    """Select the genes on the training samples alone and cut all parts to them."""
    source, auxiliary = design.source, design.auxiliary
    key = f"{design.key}/{split.index}/{positive}"
    seed = (design.seed + zlib.crc32(key.encode())) % 2**32
    genes = selected_genes(design, split, positive, profile.n_top, seed)

    def part(one: Set, rows: NDArray | slice) -> Part:
        return Part(
            sp.csr_array(one.raw[rows][:, genes]),
            sp.csr_array(one.values[rows][:, genes]),
            one.labels[rows] == positive,
        )

    train, dataset = part(source, split.train), None
    validation = [part(source, split.validation)]
    if len(split.auxiliary_train):
        more = part(auxiliary, split.auxiliary_train)
        dataset = np.repeat([0, 1], [len(train.positive), len(more.positive)])
        train = train.join(more)
        validation.append(part(auxiliary, split.auxiliary_validation))
    return Problem(
        train,
        dataset,
        validation,
        {
            name: part(source, split.test) if one is None else part(one, slice(None))
            for name, one in design.tests.items()
        },
        part(auxiliary, split.auxiliary_reference) if len(split.auxiliary_reference) else None,
        genes,
        source.counts and (not len(split.auxiliary_train) or auxiliary.counts),
        seed,
    )


def selected_genes(design: Design, split: Split, positive: str, n_top: int, seed: int) -> NDArray:
    """SingleCellNet's choice of genes, on the training samples of a split."""
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


def run_unit(
    design: Design, split: Split, positive: str, name: str, profile: Profile
) -> dict[str, object]:
    """Fit the whole grid; return scores, numbers of genes and times, a value a setting."""
    classifier = get(name)
    start = time.thread_time()
    problem = make_problem(design, split, positive, profile)
    with one_blas_thread():
        if classifier.family is not None:
            result = _run_family(classifier, problem, profile)
        else:
            result = _run_forest(classifier, problem, profile)
    sizes = {
        "n_features": len(problem.genes),
        "n_train": len(problem.train.positive),
        "n_validation": sum(len(part.positive) for part in problem.validation),
        "n_test": {key: len(part.positive) for key, part in problem.tests.items()},
    }
    return {**result, **sizes, "unit_seconds": time.thread_time() - start}


def _run_family(classifier: Classifier, problem: Problem, profile: Profile) -> dict[str, object]:
    """A classifier whose grid is fitted in chains."""
    grid = profile.grid(classifier)
    options = {}
    if classifier.name == "ANrank-lr" and problem.reference is not None:
        auxiliary = problem.reference
        options["auxiliary"] = (auxiliary.values, auxiliary.positive.astype(float))
    family = classifier.family(grid, **options)
    train, *others = (
        _samples(part, family)
        for part in (problem.train, *problem.validation, *problem.tests.values())
    )
    if problem.dataset is not None:
        train = Samples(train.X, train.orders, problem.dataset)
    unit = Unit(
        train=train,
        codes=problem.train.positive.astype(int),
        n_classes=2,
        views={str(k): one for k, one in enumerate(others)},
    )
    (found,) = search(family, [unit])
    columns: dict[str, list] = {"scores": [], "n_genes": [], "fit_seconds": [], "converged": []}
    for k in range(len(found.settings)):
        said = [found.decision(k, view)[:, 0] > 0 for view in unit.views]
        columns["scores"].append(_scores(problem, said))
        columns["n_genes"].append(int(found.genes(k).sum()))
        columns["fit_seconds"].append(found.fit_seconds(k))
        columns["converged"].append(found.converged(k))
    settings = [
        {name: value for name, value in setting.params.items() if name in grid}
        for setting in found.settings
    ]
    return _table(settings, columns)


def _samples(part: Part, family) -> Samples:
    return Samples(
        part.values if family.needs_values else None,
        order_for_fitting(part.raw, 1) if family.needs_ranks else None,
    )


def _run_forest(classifier: Classifier, problem: Problem, profile: Profile) -> dict[str, object]:
    """A classifier of one setting, fitted by scikit-learn's rules."""

    def view(part: Part) -> sp.csr_matrix:
        raw = classifier.name == "SCN" and problem.counts
        return sp.csr_matrix(part.raw if raw else part.values)

    model = classifier.make(
        random_state=problem.seed % 2**31, n_jobs=1, **profile.trees(classifier)
    )
    start = time.thread_time()
    model.fit(view(problem.train), problem.train.positive)
    seconds = time.thread_time() - start
    said = [model.predict(view(part)) for part in (*problem.validation, *problem.tests.values())]
    columns = {
        "scores": [_scores(problem, said)],
        "n_genes": [classifier.n_genes(model)],
        "fit_seconds": [seconds],
        "converged": [True],
    }
    return _table([{}], columns)


def _scores(problem: Problem, said: list[NDArray]) -> tuple[float, list[float]]:
    """Validation score, the mean over the data sets', and one test score a test set."""
    n = len(problem.validation)
    inside = [
        balanced_accuracy(part.positive, one, _CLASSES)
        for part, one in zip(problem.validation, said[:n], strict=True)
    ]
    outside = [
        balanced_accuracy(part.positive, one, _CLASSES)
        for part, one in zip(problem.tests.values(), said[n:], strict=True)
    ]
    known = [score for score in inside if score == score]
    return float(np.mean(known)) if known else float("nan"), outside


def _table(settings: list[dict], columns: dict[str, list]) -> dict[str, object]:
    scores = columns["scores"]
    return {
        "settings": settings,
        "validation": [validation for validation, _ in scores],
        "test": [list(tests) for _, tests in zip(*zip(*scores, strict=True), strict=True)],
        "n_genes": columns["n_genes"],
        "fit_seconds": [round(one, 6) for one in columns["fit_seconds"]],
        "converged": columns["converged"],
    }
