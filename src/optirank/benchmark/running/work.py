"""The work of one unit: a classifier's whole grid on one split of one binary problem."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import ParameterGrid

from optirank._util.threads import one_blas_thread
from optirank.benchmark.classifiers import COUNTS, MEASURED, Classifier, get
from optirank.benchmark.designs import Problem, make_problem
from optirank.ranks.fitting import order_for_fitting
from optirank.tuning.family import Samples
from optirank.tuning.scoring import balanced_accuracy
from optirank.tuning.search import Unit, search

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.benchmark.designs import Design
    from optirank.benchmark.profiles import Profile
    from optirank.benchmark.sets import Set
    from optirank.benchmark.splits import Split
    from optirank.tuning.family import Family

_CLASSES = np.array([False, True])


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """One setting of a classifier, fitted."""

    setting: dict[str, object]
    scores: list[NDArray]  # of each part; positive ones mean the positive class
    n_genes: int
    reference: NDArray | None  # mask of the reference set, where the model has one
    seconds: float
    converged: bool


def run_unit(
    design: Design,
    split: Split,
    positive: str,
    name: str,
    profile: Profile,
    *,
    device: str = "cpu",
) -> dict[str, object]:
    """Fit the whole grid; return scores, numbers of genes and times, one value per setting.

    Validation scores are the mean over the data sets, on the samples as measured and on simulated
    platforms (one score per platform, for other rules of choosing a setting); test scores are one
    per test set. Where the true reference set is known, the cosine similarity to it is stored too.
    The unit's seconds are CPU time on the CPU, and wall time where a GPU is used.
    """
    classifier = get(name)
    grid = profile.grid(classifier)
    clock = time.thread_time if device == "cpu" else time.perf_counter
    start = clock()
    tuned = prod(map(len, grid.values())) > 1 and not split.final
    platforms = profile.platforms if tuned else ()
    problem = make_problem(design, split, positive, profile.n_top, platforms)
    validation, tests = problem.validation, list(problem.tests.values())
    shifted = [part for sets in problem.platforms for part in sets]
    parts = [*validation, *tests, *shifted]
    with one_blas_thread():
        fits = fit_grid(classifier, problem, grid, parts, cold=split.final, device=device)
    scores = np.array([_balanced_accuracies(parts, fit.scores) for fit in fits])
    inside, outside, elsewhere = np.split(
        scores, [len(validation), len(validation) + len(tests)], axis=1
    )
    result = {
        "settings": [fit.setting for fit in fits],
        "validation": _means(inside),
        "platforms": [_means(one) for one in np.split(elsewhere, max(1, len(platforms)), axis=1)],
        "test": outside.tolist(),
        "n_genes": [fit.n_genes for fit in fits],
        "fit_seconds": [round(fit.seconds, 6) for fit in fits],
        "converged": [fit.converged for fit in fits],
        "n_features": len(problem.selected),
        "n_train": len(problem.train.labels),
        "n_validation": sum(len(part.labels) for part in validation),
        "n_test": {key: len(part.labels) for key, part in problem.tests.items()},
    }
    if problem.truth is not None:
        result["cosine"] = [_cosine(fit.reference, problem.truth) for fit in fits]
    return {**result, "unit_seconds": clock() - start}


def fit_grid(
    classifier: Classifier,
    problem: Problem,
    grid: dict[str, tuple],
    parts: list[Set],
    *,
    cold: bool = False,
    device: str = "cpu",
) -> list[Fitted]:
    """Fit every setting to the training samples and score the samples of each part.

    ``cold`` fits each setting on its own, as the estimator does, instead of in chains. Classifiers
    that cannot be fitted on a GPU are fitted on the CPU, whatever the ``device``.
    """
    if classifier.family is None:
        return _fit_estimators(classifier, problem, grid, parts)
    return _fit_family(classifier, problem, grid, parts, cold=cold, device=device)


def _fit_family(
    classifier: Classifier,
    problem: Problem,
    grid: dict[str, tuple],
    parts: list[Set],
    *,
    cold: bool,
    device: str,
) -> list[Fitted]:
    """A classifier whose grid is fitted in chains."""
    options: dict[str, object] = {"warm_start": not cold}
    if classifier.needs == "auxiliary" and problem.auxiliary is not None:
        auxiliary = problem.auxiliary
        options["auxiliary"] = (auxiliary.values, auxiliary.labels.astype(float))
    elif classifier.needs == "truth":
        options["reference"] = tuple(np.flatnonzero(problem.truth).tolist())
    family = classifier.make_family(grid, **options)
    if device != "cpu" and family.on_device:
        train, *views = _samples_on_device([problem.train, *parts], device)
    else:
        train = _samples(problem.train, family, problem.dataset)
        views = [_samples(part, family) for part in parts]
    unit = Unit(
        train=train,
        codes=problem.train.labels.astype(int),
        n_classes=2,
        views={str(k): view for k, view in enumerate(views)},
    )
    (found,) = search(family, [unit])
    fits = []
    for k, setting in enumerate(found.settings):
        gamma = found.models(k, 0)[0].gamma
        fits.append(
            Fitted(
                setting={name: setting.params[name] for name in grid},
                scores=[found.decision(k, view)[:, 0] for view in unit.views],
                n_genes=int(found.genes(k).sum()),
                reference=None if gamma is None else gamma > 0,
                seconds=found.fit_seconds(k),
                converged=found.converged(k),
            )
        )
    return fits


def _samples(part: Set, family: Family, dataset: NDArray | None = None) -> Samples:
    return Samples(
        part.values if family.needs_values else None,
        order_for_fitting(part.raw, 1) if family.needs_ranks else None,
        dataset,
    )


def _samples_on_device(parts: list[Set], device: str) -> list[Samples]:
    """The training part in an order of its own on a device, all others in a second one.

    Fits then carry the training samples alone.
    """
    from optirank.solver.device.problems import orders_for  # a GPU is asked for

    train, *others = parts
    raw = [part.raw for part in others]
    stack = sp.vstack(raw, format="csr") if any(map(sp.issparse, raw)) else np.vstack(raw)
    orders = orders_for(stack, device)
    ends = np.cumsum([part.shape[0] for part in raw])
    views = [
        Samples(orders=orders.take(np.arange(end - part.shape[0], end)))
        for part, end in zip(raw, ends, strict=True)
    ]
    return [Samples(orders=orders_for(train.raw, device).take(slice(None))), *views]


def _fit_estimators(
    classifier: Classifier, problem: Problem, grid: dict[str, tuple], parts: list[Set]
) -> list[Fitted]:
    """A classifier that scikit-learn's rules fit, one setting at a time."""
    raw = classifier.sees == MEASURED or (classifier.sees == COUNTS and problem.train.counts)

    def view(part: Set) -> NDArray | sp.csr_matrix:
        X = part.raw if raw else part.values
        return sp.csr_matrix(X) if sp.issparse(X) else X

    X, found = view(problem.train), []
    for setting in ParameterGrid(grid):
        model = classifier.make(**setting)
        if "random_state" in model.get_params():
            model.set_params(random_state=problem.seed % 2**31)
        start = time.thread_time()
        model.fit(X, problem.train.labels)
        seconds = time.thread_time() - start
        found.append(
            Fitted(
                setting=setting,
                scores=[np.where(model.predict(view(part)), 1.0, -1.0) for part in parts],
                n_genes=classifier.n_genes(model),
                reference=None,
                seconds=seconds,
                converged=True,
            )
        )
    return found


def _balanced_accuracies(parts: list[Set], scores: list[NDArray]) -> list[float]:
    """NaN where a part lacks one of the two classes."""
    return [
        balanced_accuracy(part.labels, one > 0, _CLASSES)
        for part, one in zip(parts, scores, strict=True)
    ]


def _means(scores: NDArray) -> list[float]:
    """Means of the rows, without what is missing; NaN where all is."""
    known = [row[np.isfinite(row)] for row in scores]
    return [float(row.mean()) if len(row) else np.nan for row in known]


def _cosine(reference: NDArray | None, truth: NDArray) -> float | None:
    """Cosine similarity between two reference sets given as masks."""
    if reference is None:
        return None
    return float((reference & truth).sum() / np.sqrt(reference.sum() * truth.sum()))
