"""How samples are split: for training, for choosing a setting, for testing; see
tasks.toml.

The synthetic experiment holds out 30 % and chooses a setting by 5 folds of the rest. It
tests that setting fitted to all of the rest: a final split, which has no samples to
choose by.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, train_test_split

Positions = NDArray | Sequence[int]  # of samples
CELLS = 100  # of a type, for training: the paper's
FOLDS = 5  # and draws of cells: the paper's
MOST_OF_A_CLASS = 500  # more samples of a class add time, and little accuracy


@dataclass(frozen=True)
class Split:
    """Positions of samples in the source, and in the auxiliary set.

    ``part`` tells test samples apart: settings are chosen among the splits of one part.
    ``auxiliary_reference`` are samples that only a choice of reference genes may look
    at.
    """

    index: int
    train: NDArray
    validation: Positions = ()
    test: Positions = ()
    auxiliary_train: Positions = ()
    auxiliary_validation: Positions = ()
    auxiliary_reference: Positions = ()
    part: int = 0


def make_splits(
    scheme: str,
    y: NDArray,
    y_auxiliary: NDArray | None,
    scenario: str,
    *,
    name: str,
    seed: int,
) -> list[Split]:
    """The splits of a task. Both scenarios draw alike, so that they can be compared
    in pairs.
    """
    random = np.random.default_rng([seed, zlib.crc32(name.encode())])
    if scheme == "cells":
        return [_draw_cells(k, y, y_auxiliary, scenario, random) for k in range(FOLDS)]
    if scheme == "folds":
        return _folds(y, y_auxiliary, scenario, random)
    if scheme == "hold-out":
        return _hold_out(y, random)
    if scheme == "all":
        return [Split(0, at_most(y, MOST_OF_A_CLASS, random))]
    return _nested(y, random)


def at_most(y: NDArray, n: int, random: np.random.Generator) -> NDArray:
    """Positions of at most ``n`` samples of each class, in ascending order."""
    return np.sort(np.concatenate([rows[:n] for rows in _permuted(y, random).values()]))


def stratified(y: NDArray, n: int, fewest: int, random: np.random.Generator) -> NDArray:
    """Positions of about ``n`` samples in ascending order, classes in their shares.

    A class keeps at least ``fewest`` samples, or all that it has.
    """
    if len(y) <= n:
        return np.arange(len(y))
    chosen = []
    for rows in _permuted(y, random).values():
        share = round(n * len(rows) / len(y))
        chosen.append(rows[: max(share, fewest)])
    return np.sort(np.concatenate(chosen))


def _permuted(y: NDArray, random: np.random.Generator) -> dict[str, NDArray]:
    """Positions of the samples of each class in a random order."""
    return {
        name: random.permutation(np.flatnonzero(y == name)) for name in np.unique(y)
    }


def _draw_cells(k: int, y: NDArray, y_auxiliary, scenario: str, random) -> Split:
    taken = {
        name: rows[: _most(len(rows))] for name, rows in _permuted(y, random).items()
    }
    train = np.concatenate([*taken.values()])
    split = Split(k, np.sort(train), np.setdiff1d(np.arange(len(y)), train))
    if y_auxiliary is None:
        return split
    mixed = _permuted(y_auxiliary, random)
    if scenario == "single":
        # Nothing of the auxiliary set validates, so none of it is kept back
        reference = np.sort(np.concatenate([rows[:CELLS] for rows in mixed.values()]))
        return replace(split, auxiliary_reference=reference)
    others = {name: rows[: _most(len(rows))] for name, rows in mixed.items()}
    half = {name: rows[: max(1, len(rows) // 2)] for name, rows in taken.items()}
    added = {
        name: rows[: max(1, len(taken[name]) - len(half[name]))]
        for name, rows in others.items()
    }
    auxiliary_train = np.concatenate([*added.values()])
    return replace(
        split,
        train=np.sort(np.concatenate([*half.values()])),
        auxiliary_train=np.sort(auxiliary_train),
        auxiliary_validation=np.setdiff1d(np.arange(len(y_auxiliary)), auxiliary_train),
    )


def _most(n: int) -> int:
    """How many of a type's cells train: 100, and at least a fifth is left."""
    left = int(np.ceil(n / 5)) if n > 1 else 0
    return min(CELLS, n - left)


def _folds(y: NDArray, y_auxiliary, scenario: str, random) -> list[Split]:
    own = [Split(k, *parts) for k, parts in enumerate(_stratified(y, FOLDS, random))]
    if y_auxiliary is None:
        return own
    if scenario == "single":
        everything = np.arange(len(y_auxiliary))
        return [replace(split, auxiliary_reference=everything) for split in own]
    return [
        replace(split, auxiliary_train=more, auxiliary_validation=rest)
        for split, (more, rest) in zip(
            own, _stratified(y_auxiliary, FOLDS, random), strict=True
        )
    ]


def _hold_out(y: NDArray, random) -> list[Split]:
    rest, test = _held_out(y, 0.1, int(random.integers(2**31)))
    return [
        Split(k, rest[train], rest[validation], test)
        for k, (train, validation) in enumerate(_stratified(y[rest], FOLDS, random))
    ]


def folds_and_final(y: NDArray, random_state: int) -> list[Split]:
    """The splits of a synthetic task."""
    rest, test = _held_out(y, 0.3, random_state)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=random_state).split(
        rest, y[rest]
    )
    splits = [
        Split(k, rest[train], rest[validation])
        for k, (train, validation) in enumerate(folds)
    ]
    return [*splits, Split(FOLDS, rest, test=test)]


def _held_out(y: NDArray, share: float, random_state: int) -> list[NDArray]:
    """Positions of the samples that stay, and of the share that is held out."""
    parts = train_test_split(
        np.arange(len(y)), test_size=share, stratify=y, random_state=random_state
    )
    return [np.sort(part) for part in parts]


def _nested(y: NDArray, random) -> list[Split]:
    parts = dict(enumerate(test for _, test in _stratified(y, 4, random)))
    splits = []
    for index, (test, validation) in enumerate(permutations(parts, 2)):
        train = np.concatenate([parts[k] for k in parts if k not in (test, validation)])
        splits.append(
            Split(index, np.sort(train), parts[validation], parts[test], part=test)
        )
    return splits


def _stratified(y: NDArray, n: int, random) -> list[tuple[NDArray, NDArray]]:
    folds = StratifiedKFold(n, shuffle=True, random_state=int(random.integers(2**31)))
    with warnings.catch_warnings():
        # A class with fewer samples than folds is in some of them
        warnings.filterwarnings(
            "ignore", message="The least populated class", category=UserWarning
        )
        return list(folds.split(y, y))
