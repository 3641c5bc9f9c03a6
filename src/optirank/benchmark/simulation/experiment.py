"""The work of one unit: draw the data, fit the folds, choose the settings, test the choice."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold, train_test_split

from optirank.benchmark.simulation.classifiers import CLASSIFIERS, Fit, Problem, Setting
from optirank.benchmark.simulation.settings import FOLDS, TEST_SHARE, Grid, Unit
from optirank.datasets import make_unstable_ranks


def unit_seed(seed: int, repeat: int) -> int:
    """Return the seed of a repeat. All points share it, so that they differ by what they name."""
    return int(np.random.SeedSequence([seed, repeat]).generate_state(1)[0])


def draw(unit: Unit, seed: int) -> tuple[Problem, np.ndarray, np.ndarray]:
    """Draw the data of a unit and return them with the training and the test samples."""
    point, random_state = unit.point, unit_seed(seed, unit.repeat)
    data = make_unstable_ranks(
        point.n_samples,
        point.n_genes,
        point.n_perturbed,
        tau=point.tau,
        sigma=point.sigma,
        random_state=random_state,
    )
    train, test = train_test_split(
        np.arange(point.n_samples), test_size=TEST_SHARE, stratify=data.y, random_state=random_state
    )
    return Problem(data.X, data.y, data.reference), np.sort(train), np.sort(test)


def fit_fold(unit: Unit, seed: int, grid: Grid, fold: int) -> list[dict]:
    """Fit every classifier and setting to one fold's training part; return one record a fit."""
    problem, train, _ = draw(unit, seed)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=unit_seed(seed, unit.repeat))
    inner, validation = list(folds.split(train, problem.y[train]))[fold]
    return [
        {"classifier": name, "fold": fold, **_record(fit, problem, train[validation])}
        for name, classifier in CLASSIFIERS.items()
        for fit in classifier.fit(
            problem, train[inner], train[validation], classifier.settings(grid)
        )
    ]


def finish(unit: Unit, seed: int, grids: list[Grid], fits: list[dict]) -> dict:
    """Choose each classifier's best setting, refit it on the training set and test it."""
    problem, train, test = draw(unit, seed)
    selected = []
    for name, classifier in CLASSIFIERS.items():
        tested: dict[Setting, dict] = {}
        for grid in grids:
            setting, validation = select(fits, name, grid)
            if setting not in tested:
                (fit,) = classifier.fit(problem, train, test, [setting])
                tested[setting] = _record(fit, problem, test)
            record = tested[setting]
            selected.append(
                {
                    "grid": grid.name,
                    "classifier": name,
                    **record,
                    "validation": validation,
                    "positives": float(problem.y.mean()),
                }
            )
    return {"fits": fits, "selected": selected}


def select(fits: list[dict], classifier: str, grid: Grid) -> tuple[Setting, float]:
    """Return the setting of best mean validation score within a grid, and that score.

    Equal scores go to the smaller reference set, then to the stronger regularisation.
    """
    scores = defaultdict(list)
    for fit in fits:
        if fit["classifier"] == classifier and fit["l2"] in grid.l2:
            scores[Setting(fit["l2"], fit["n_reference"])].append(fit["balanced_accuracy"])
    means = {setting: float(np.mean(values)) for setting, values in scores.items()}
    best = max(means, key=lambda s: (round(means[s], 12), -(s.n_reference or 0.0), s.l2))
    return best, means[best]


def cosine(reference: np.ndarray, truth: np.ndarray) -> float:
    """Return the cosine similarity between two reference sets given as masks."""
    a, b = reference.astype(float), truth.astype(float)
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def _record(fit: Fit, problem: Problem, samples: np.ndarray) -> dict:
    """Return what is stored of a fit, scored on the samples it has not seen."""
    return {
        "l2": fit.setting.l2,
        "n_reference": fit.setting.n_reference,
        "balanced_accuracy": float(balanced_accuracy_score(problem.y[samples], fit.scores > 0)),
        "cosine": None if fit.reference is None else cosine(fit.reference, problem.stable),
        "seconds": round(fit.seconds, 6),
        "converged": fit.converged,
    }
