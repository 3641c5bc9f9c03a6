"""Folds of internal cross-validation, and the choice of a setting from scores in them.

Folds cope with small classes and with groups.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optirank._util.numbers import standard_error

N_FOLDS = 5  # in which "auto" measures held-out accuracy, as is usual

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
        if groups is None:
            splits = _stratified(y, int(cv))
        else:
            splits = _group_folds(y, int(cv), groups)
    else:
        from sklearn.model_selection import check_cv

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


def _group_folds(y: NDArray, n_folds: int, groups: NDArray) -> list[Fold]:
    """Folds that keep the samples of a group together."""
    names, group_codes = np.unique(groups, return_inverse=True)
    if len(names) < 2:
        raise ValueError(
            f"groups has one value only ({groups.tolist()[0]!r}): leave it out, or "
            "give several"
        )
    if len(names) <= n_folds:
        return [
            (np.flatnonzero(group_codes != k), np.flatnonzero(group_codes == k))
            for k in range(len(names))
        ]
    from sklearn.model_selection import StratifiedGroupKFold

    # In one order, so that the order of the samples changes no fold
    order = np.lexsort([y, group_codes])
    splitter = StratifiedGroupKFold(n_folds)
    splits = splitter.split(np.zeros((len(y), 1)), y[order], group_codes[order])
    return [(np.sort(order[train]), np.sort(order[test])) for train, test in splits]


def _stratified(y: NDArray, n_folds: int) -> list[Fold]:
    """Stratified folds; fewer where all classes are small.

    A class may have fewer samples than there are folds.
    """
    from sklearn.model_selection import StratifiedKFold

    largest = int(np.unique(y, return_counts=True)[1].max())
    if largest < 2:
        raise ValueError(
            "every class has a single sample: cross-validation needs at least two"
        )
    splitter = StratifiedKFold(min(n_folds, largest))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # says that a class is small
        return [*splitter.split(np.zeros((len(y), 1)), y)]


RULES = ("one_se", "best")
_LIMITS = (("l1", 0), ("l2", 0), ("n_reference", 1))  # nothing is beyond these
DIGITS = 12  # to which scores are equal: the order of the folds must not decide


def scored_folds(scores: NDArray) -> NDArray:
    """Mask of the folds in which some setting has a score; an area needs both
    classes in one.
    """
    return np.asarray(np.isfinite(scores).any(axis=0))


def select(scores: NDArray, n_genes: NDArray, rule: str = "one_se") -> int:
    """The setting chosen from scores and numbers of genes, both settings x folds.

    "best" takes the highest mean score, of equal ones that with the fewest genes.
    "one_se", the one-standard-error rule, takes among the settings whose mean is at
    least the best mean minus its standard error the one with the fewest genes (mean
    over folds); of equal ones the highest score, then the lowest standard error, then
    the first.
    """
    error, genes = standard_error(scores), n_genes.mean(axis=1)
    mean = scores.mean(axis=1)
    if not np.isfinite(mean).any():
        raise ValueError(
            "no setting has a finite mean score: check the scorer and the folds"
        )
    mean = np.where(np.isfinite(mean), mean.round(DIGITS), -np.inf)
    best = np.lexsort((error, genes, -mean))[0]
    if rule == "best":
        return int(best)
    allowed = np.flatnonzero(mean >= np.round(mean[best] - error[best], DIGITS))
    order = np.lexsort((error[allowed], -mean[allowed], genes[allowed]))
    return int(allowed[order[0]])


def edges_of_grid(params: Sequence[dict], scores: NDArray) -> list[str]:
    """What to say of the best setting where a value of it ends its part of the grid.

    A part of fewer than three values, and a limit that cannot be passed (l1 = 0, all
    genes or one gene), are left out, and so is a value whose score another value
    reaches too.
    """
    finite = np.where(np.isfinite(scores), scores, -np.inf).round(DIGITS)
    best = params[int(np.argmax(finite))]
    notes = []
    for name, value in best.items():
        values = sorted({setting[name] for setting in params})
        limit = (name, value) in _LIMITS
        if len(values) < 3 or limit or value not in (values[0], values[-1]):
            continue
        elsewhere = [
            score
            for setting, score in zip(params, finite, strict=True)
            if setting[name] != value
        ]
        if max(elsewhere) < finite.max():
            which = "smallest" if value == values[0] else "largest"
            notes.append(
                f"the best setting has {name}={value:g}, the {which} of the grid: "
                f"{'smaller' if which == 'smallest' else 'larger'} values may be "
                f"better, give them in {name}s"
            )
    return notes
