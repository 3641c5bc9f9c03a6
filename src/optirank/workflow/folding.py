"""Folds of a training: stratified, or leaving whole sources out."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from optirank._util.names import some
from optirank.datasets.errors import DataError
from optirank.tuning.folds import make_folds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.tuning.folds import Fold

N_FOLDS = 5


def fold_samples(
    y: NDArray, groups: NDArray | None, batch: str | None, source: str, n_folds: int = N_FOLDS
) -> tuple[list[Fold], list[str]]:
    """Folds, and what there is to say about them; a DataError where there are none."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            folds = make_folds(y, n_folds, groups)
        except ValueError:
            folds = []
    notes = [str(warning.message) for warning in told]
    lost = {one for train, test in folds for one in np.setdiff1d(y[test], y[train]).tolist()}
    folds = [(train, test) for train, test in folds if np.isin(y[test], y[train]).any()]
    if not folds:
        raise DataError(
            f"{source}: no class is in two sources of column {batch!r}, so none that is learned "
            "from some can be tested on another: leave the column out, or name another (batch=, "
            "--batch)"
        )
    if lost:
        notes.append(
            "where its only source is left out a class cannot be learned, and its samples there "
            f"are not counted: {some(sorted(lost))}"
        )
    return folds, notes
