"""The work of one unit: a classifier's whole grid on one problem of one split."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.model_selection import ParameterGrid

from optirank._util.numbers import balanced_accuracy
from optirank._util.work import one_blas_thread
from optirank.estimators.search import Family, Unit
from optirank_lab.baselines.peers import PeerFailedError, run_peer
from optirank_lab.benchmark.classifiers import (
    COUNTS,
    MEASURED,
    Z_SCORES,
    Classifier,
    get,
)
from optirank_lab.benchmark.designs import Design, Profile, SplitProblem, make_problem
from optirank_lab.benchmark.families import RankFamily, Samples
from optirank_lab.benchmark.rivals import ALL, z_scored
from optirank_lab.benchmark.sets import Set, dense
from optirank_lab.benchmark.splits import Split
from optirank_lab.device.backend import orders_for
from optirank_lab.device.search import search

_CLASSES = np.array([False, True])


@dataclass(frozen=True, kw_only=True)
class FittedSetting:
    """One setting of a classifier, fitted; or a tool of others."""

    setting: dict[str, object]
    labels: list[NDArray]  # given to the samples of each part
    n_genes: int
    fit_seconds: float
    predict_seconds: float = np.nan
    reference: NDArray | None = None  # mask of the reference set, if there is one
    version: str | None = None  # of a tool of others


def run_unit(
    design: Design,
    split: Split,
    name: str,
    classifier: str,
    profile: Profile,
    *,
    device: str = "cpu",
    peers: Mapping[str, str] | None = None,
) -> dict[str, object]:
    """Fit the whole grid; return scores, numbers of genes and times, one value per
    setting.

    ``name`` is the positive class, or all classes. Validation scores are the mean over
    the data sets; test scores are by task. Where the true reference set is known, the
    cosine similarity to it is stored too. Seconds are CPU time, and wall time where a
    GPU is used.
    """
    entry = get(classifier)
    clock = time.thread_time if device == "cpu" else time.perf_counter
    start = clock()
    problem = make_problem(design, split, name, profile)
    grid = entry.grid_of(profile, whole=problem.whole)
    parts = [*problem.validation, *problem.tests.values()]
    if entry.peer is not None:
        try:
            result = run_peer(
                entry.peer,
                problem.train,
                parts,
                seed=problem.seed,
                limit=profile.peer_seconds,
                pythons=peers or {},
            )
        except PeerFailedError as error:
            return {"failed": str(error)}
        setting: dict[str, object] = {"k": ALL} if profile.drawn else {}
        fits = [FittedSetting(setting=setting, **vars(result))]
    else:
        with one_blas_thread():
            if profile.drawn:
                fits = fit_sizes(entry, problem, parts)
            else:
                final = len(split.validation) == 0  # other splits choose the setting
                fits = fit_grid(entry, problem, grid, parts, cold=final, device=device)
    classes = None if problem.whole else _CLASSES
    scores = np.array([_scores(fit, parts, classes) for fit in fits])
    n = len(problem.validation)
    result = {
        "settings": [fit.setting for fit in fits],
        "validation": [_mean(row[:n]) for row in scores],
        "test": {
            task: scores[:, n + k].tolist() for k, task in enumerate(problem.tests)
        },
        "unlabelled": [_unlabelled(fit.labels[n:]) for fit in fits],
        "n_genes": [fit.n_genes for fit in fits],
        "fit_seconds": [round(fit.fit_seconds, 6) for fit in fits],
        "predict_seconds": [round(fit.predict_seconds, 6) for fit in fits],
        "n_features": len(problem.train.genes),
        "n_train": len(problem.train.labels),
        "n_test": {task: len(part.labels) for task, part in problem.tests.items()},
        "version": fits[0].version,
    }
    if problem.truth is not None:
        result["cosine"] = [_cosine(fit.reference, problem.truth) for fit in fits]
    return {**result, "unit_seconds": clock() - start}


def _scores(
    fit: FittedSetting, parts: list[Set], classes: NDArray | None
) -> list[float]:
    """Balanced accuracy of a setting on each part."""
    return [
        balanced_accuracy(part.labels, given, classes)
        for part, given in zip(parts, fit.labels, strict=True)
    ]


def fit_grid(
    classifier: Classifier,
    problem: SplitProblem,
    grid: dict[str, tuple],
    parts: list[Set],
    *,
    cold: bool = False,
    device: str = "cpu",
) -> list[FittedSetting]:
    """Fit every setting to the training samples and label the samples of each part.

    ``cold`` fits each setting on its own, as the estimator does, instead of in chains.
    Classifiers that cannot be fitted on a GPU are fitted on the CPU, whatever the
    ``device``.
    """
    if classifier.family is None or problem.whole:
        return _fit_estimators(classifier, problem, grid, parts)
    options: dict[str, object] = {"warm_start": not cold}
    if classifier.needs == "auxiliary" and (second := problem.auxiliary) is not None:
        options["auxiliary"] = (second.values, second.labels.astype(float))
    elif classifier.needs == "truth" and problem.truth is not None:
        options["reference"] = tuple(np.flatnonzero(problem.truth).tolist())
    family = classifier.make_family(grid, **options)
    if device != "cpu" and type(family) in (Family, RankFamily):
        train, *views = [
            orders_for(part.raw, device) for part in (problem.train, *parts)
        ]
    else:
        device = "cpu"
        train = _samples(problem.train, family, problem.dataset)
        views = [_samples(part, family) for part in parts]
    views = {str(k): view for k, view in enumerate(views)}
    unit = Unit(
        train=train, codes=problem.train.labels.astype(int), n_classes=2, views=views
    )
    (result,) = search(family, [unit], device=device)
    gammas = [result.models(k)[0].gamma for k in range(len(result.params))]
    return [
        FittedSetting(
            setting={name: params[name] for name in grid},
            labels=[result.decision(k, view)[:, 0] > 0 for view in views],
            n_genes=int(result.genes(k).sum()),
            reference=None if gammas[k] is None else gammas[k] > 0,
            fit_seconds=result.fit_seconds(k),
        )
        for k, params in enumerate(result.params)
    ]


def fit_sizes(
    classifier: Classifier, problem: SplitProblem, parts: list[Set]
) -> list[FittedSetting]:
    """Fit a classifier at each number of genes and label the samples of each part."""
    views = [dense(_view(part, classifier, counts=False)) for part in parts]
    X = dense(_view(problem.train, classifier, counts=False))
    fits = []
    start = time.thread_time()
    for k, model, genes in classifier.at_sizes(X, problem.train.labels, problem.seed):
        fitted = time.thread_time()
        labels = [model.predict(view[:, genes]) for view in views]
        predicted = time.thread_time()
        fits.append(
            FittedSetting(
                setting={"k": k},
                labels=labels,
                n_genes=classifier.n_genes(model),
                fit_seconds=fitted - start,
                predict_seconds=predicted - fitted,
            )
        )
        start = time.thread_time()
    return fits


def _view(part: Set, classifier: Classifier, *, counts: bool) -> Any:
    """The values that a classifier is given; ``counts``: all data are counts."""
    if classifier.sees == Z_SCORES:
        return z_scored(dense(part.values))
    raw = classifier.sees == MEASURED or (classifier.sees == COUNTS and counts)
    X = part.raw if raw else part.values
    return sp.csr_matrix(X) if sp.issparse(X) else X


def _samples(part: Set, family: Any, dataset: NDArray | None = None) -> Any:
    from optirank.ranks.orders import order_for_fitting  # numba loads with a fit

    if type(family) is Family:
        return order_for_fitting(part.raw, 1)
    return Samples(
        part.values if family.needs_values else None,
        order_for_fitting(part.raw, 1) if family.needs_ranks else None,
        dataset,
    )


def _fit_estimators(
    classifier: Classifier,
    problem: SplitProblem,
    grid: dict[str, tuple],
    parts: list[Set],
) -> list[FittedSetting]:
    """A classifier with scikit-learn's interface, one setting at a time."""

    def view(part: Set) -> Any:
        return _view(part, classifier, counts=problem.train.counts)

    X = view(problem.train)
    fits = []
    for setting in ParameterGrid(grid):
        model = classifier.make(problem.seed, **setting)
        start = time.thread_time()
        model.fit(X, problem.train.labels)
        fitted = time.thread_time()
        labels = [model.predict(view(part)) for part in parts]
        predicted = time.thread_time()
        fits.append(
            FittedSetting(
                setting=setting,
                labels=labels,
                n_genes=classifier.n_genes(model),
                fit_seconds=fitted - start,
                predict_seconds=predicted - fitted,
            )
        )
    return fits


def _mean(scores: NDArray) -> float:
    """Mean without what is missing; NaN where all is."""
    known = scores[np.isfinite(scores)]
    return float(known.mean()) if len(known) else float("nan")


def _unlabelled(labels: list[NDArray]) -> float:
    """The share of test samples to which a tool gave no label."""
    given = [label for of_part in labels for label in of_part]
    return sum(label is None for label in given) / max(1, len(given))


def _cosine(reference: NDArray | None, truth: NDArray) -> float | None:
    """Cosine similarity between two reference sets given as masks."""
    if reference is None:
        return None
    return float((reference & truth).sum() / np.sqrt(reference.sum() * truth.sum()))
