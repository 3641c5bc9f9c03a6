"""Folds of internal cross-validation, which cope with small classes and with groups."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import (
    LeaveOneGroupOut,
    StratifiedGroupKFold,
    StratifiedKFold,
    check_cv,
)

from optirank.tuning.families import Samples
from optirank.tuning.search import HELD_OUT, Unit

Fold = tuple[NDArray, NDArray]  # positions of training and of validation samples


def make_folds(y: NDArray, cv: Any, groups: ArrayLike | None) -> list[Fold]:
    """Folds from an int, a splitter or ready splits.

    An int makes stratified folds; a class of fewer samples than folds is in some of
    them only. With groups no group is in both parts of a fold: each group is left out
    once where there are no more groups than folds, else groups are shared out over the
    folds. Folds whose training part has fewer than two classes are left out, with a
    warning.
    """
    groups = None if groups is None else np.asarray(groups)
    if groups is not None and groups.shape != y.shape:
        raise ValueError(
            f"groups has shape {groups.shape}, y has {y.shape}: give one per sample"
        )
    if isinstance(cv, bool) or (isinstance(cv, int | np.integer) and cv < 2):
        raise ValueError(
            f"cv={cv!r}: use at least 2 folds, a splitter or a list of splits"
        )
    if isinstance(cv, int | np.integer):
        splits = _int_folds(y, int(cv), groups)
    else:
        splitter: Any = check_cv(cv, y, classifier=True)
        splits = splitter.split(np.zeros((len(y), 1)), y, groups)
    folds = [(np.asarray(train), np.asarray(test)) for train, test in splits]
    usable = [
        (train, test)
        for train, test in folds
        if len(np.unique(y[train])) > 1 and len(test)
    ]
    if not usable:
        raise ValueError(
            "no fold has two classes to train on: use fewer folds, other groups, or "
            "more samples"
        )
    if len(usable) < len(folds):
        warnings.warn(
            f"{len(folds) - len(usable)} of {len(folds)} folds are left out: their "
            "training part has one class only, or nothing is left to validate on",
            UserWarning,
            stacklevel=3,
        )
    return usable


def units_of_folds(
    samples: Samples,
    codes: NDArray,
    folds: Sequence[Fold],
    *,
    n_classes: int,
    weights: NDArray | None = None,
    balanced: bool = True,
    platforms: Sequence[str] = (),
) -> list[Unit]:
    """One unit per fold, which scores its held-out samples (the view ``HELD_OUT``).

    It scores them too on ``platforms``, whose copies of all samples follow below in
    ``samples``.
    """
    views = [HELD_OUT, *platforms]
    return [
        Unit(
            train=samples.take(train),
            codes=codes[train],
            n_classes=n_classes,
            views={
                name: samples.take(test + k * len(codes))
                for k, name in enumerate(views)
            },
            weights=None if weights is None else weights[train],
            balanced=balanced,
        )
        for train, test in folds
    ]


def _int_folds(y: NDArray, n_folds: int, groups: NDArray | None):
    anything = np.zeros((len(y), 1))
    if groups is not None:
        n_groups = len(np.unique(groups))
        if n_groups < 2:
            raise ValueError(
                f"groups has one value only ({groups.tolist()[0]!r}): leave it out, or "
                "give several"
            )
        if n_groups <= n_folds:
            return LeaveOneGroupOut().split(anything, y, groups)
        return StratifiedGroupKFold(n_folds).split(anything, y, groups)
    largest = int(np.unique(y, return_counts=True)[1].max())
    if largest < 2:
        raise ValueError(
            "every class has a single sample: cross-validation needs at least two"
        )
    n_folds = min(n_folds, largest)
    with (
        warnings.catch_warnings()
    ):  # a class with fewer samples than folds is what we allow
        warnings.filterwarnings(
            "ignore", message="The least populated class", category=UserWarning
        )
        return list(StratifiedKFold(n_folds).split(anything, y))
