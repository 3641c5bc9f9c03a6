"""A classifier of fewer classes, made from one of more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from optirank.estimators.panel import panel_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.base import BaseEstimator

    from optirank.estimators._base import LinearClassifier
    from optirank.estimators.top_pairs import TopScoringPairsClassifier


def subset_classes(fitted: LinearClassifier, classes: Iterable) -> LinearClassifier:
    """See :meth:`LinearClassifier.subset`."""
    n_classes = len(fitted.classes_)
    kept = _positions(fitted.classes_, classes)
    rows = np.arange(len(fitted.intercept_)).reshape(n_classes, -1)[kept]
    per_class = rows.shape[1]
    rows, signs = rows.ravel(), np.ones(rows.size)
    if len(kept) == 2:  # the first class's rows count against
        rows = np.roll(rows, per_class)
        signs[per_class:] = -1.0

    panel, intercept = panel_arrays(fitted).take(rows, signs), fitted.intercept_[rows] * signs
    if len(kept) == 2 and getattr(fitted, "shared_reference", False):
        # Of a softmax the score of two classes is the whole difference, not half of it
        panel, intercept = replace(panel, coef=2.0 * panel.coef), 2.0 * intercept

    small = _restricted(fitted, kept)
    small._panel = panel
    small.intercept_ = intercept
    for name in ("objective_", "n_iter_"):
        if hasattr(fitted, name):
            setattr(small, name, getattr(fitted, name)[rows])
    if hasattr(fitted, "path_"):
        small.path_ = [fitted.path_[row] for row in rows] if fitted.path_ else []
    if len(kept) > 2:  # the single score of two classes is another one
        if hasattr(fitted, "calibration_"):
            small.calibration_ = fitted.calibration_
        if hasattr(fitted, "experience_"):
            small.experience_ = fitted.experience_.of_classes(kept)
    return small


def subset_votes(fitted: TopScoringPairsClassifier, classes: Iterable) -> TopScoringPairsClassifier:
    """See :meth:`TopScoringPairsClassifier.subset`."""
    kept = _positions(fitted.classes_, classes)
    ends = np.cumsum(fitted.k_)
    counts, signs = fitted.k_[kept], np.ones(len(kept))
    if len(kept) == 2:  # the first class's pairs vote against the second
        kept_pairs, counts = kept[::-1], np.full(2, counts.min())
        signs[1] = -1.0
    else:
        kept_pairs = kept
    starts = (ends - fitted.k_)[kept_pairs]
    rows = np.concatenate([np.arange(s, s + k) for s, k in zip(starts, counts, strict=True)])
    small = _restricted(fitted, kept)
    small.k_ = counts if len(kept) > 2 else np.array([counts.sum()])
    small.pairs_, small.scores_ = fitted.pairs_[rows], fitted.scores_[rows]
    small.signs_ = fitted.signs_[rows] * np.repeat(signs, counts)
    small.genes_ = np.zeros_like(fitted.genes_)
    small.genes_[small.pairs_] = True
    return small


def _restricted(fitted: BaseEstimator, kept: NDArray) -> BaseEstimator:
    """An estimator with the parameters, genes and summary of a fitted one, of some classes."""
    small = clone(fitted)
    small.n_features_in_ = fitted.n_features_in_
    if hasattr(fitted, "feature_names_in_"):
        small.feature_names_in_ = fitted.feature_names_in_
    small.classes_ = fitted.classes_[kept]
    if hasattr(fitted, "training_summary_"):
        small.training_summary_ = fitted.training_summary_ | {"subset_of": fitted.classes_.tolist()}
    return small


def _positions(known: NDArray, classes: Iterable) -> NDArray:
    """Where the classes asked for are among those known, in the model's order."""
    if len(known) == 2:
        one, other = known.tolist()
        raise ValueError(
            f"this model tells {one!r} from {other!r} by one score: it has no classes to leave "
            "out; only models of three classes or more have one score per class"
        )
    asked = list(classes) if not isinstance(classes, str) else [classes]
    if strange := [label for label in asked if label not in known.tolist()]:
        raise ValueError(f"the model has no class {strange[0]!r}: its classes are {known.tolist()}")
    if len(set(asked)) < max(2, len(asked)):
        raise ValueError(f"classes={asked!r}: give at least two different classes of the model")
    return np.array([k for k, label in enumerate(known.tolist()) if label in asked])
