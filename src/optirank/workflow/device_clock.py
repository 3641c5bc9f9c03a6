"""How long a search takes on a GPU, where the fits of all classes run side by side."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from optirank.tuning.search import search
from optirank.workflow.grids import make_families
from optirank.workflow.planning import Clock, probed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optirank.tuning.folds import Fold
    from optirank.workflow.candidates import Candidates
    from optirank.workflow.grids import Grid
    from optirank.workflow.preparation import Prepared
    from optirank.workflow.sorting import SortedSamples

_COMPILED_ON = 200  # samples of the fit that loads or compiles the kernels
_PROBED = 10_000  # samples at most on which fits are timed


def time_on_device(
    prepared: Prepared,
    chooser: Candidates,
    samples: SortedSamples,
    fold: Fold,
    grids: Sequence[Grid],
) -> Clock:
    """Time the last grid on the first fold's training part, for all classes.

    The time of one fit is that of the batch over the number of its fits. Larger batches use the
    GPU better, so the search takes this long at most; its first fold corrects the clock.
    """
    train, _ = fold
    start = time.perf_counter()
    genes = chooser(train)
    chosen = time.perf_counter() - start
    families = make_families(grids[-1], None, prepared.candidate_mask(genes))
    classes, codes = np.unique(prepared.y, return_inverse=True)
    seconds, scale = 0.0, 1.0
    for most in (_COMPILED_ON, _PROBED):
        rows, scale = probed(prepared, train, most)
        begin = time.perf_counter()
        part = samples.part(rows)
        every = np.arange(len(rows))
        units = part.folds.units(
            part.over(genes), codes[rows], [(every, every[:1])], n_classes=len(classes)
        )
        search(families, units, compact=True)
        seconds = time.perf_counter() - begin
    clock = Clock(
        grids=grids,
        first_seconds=1.0,
        next_seconds=1.0,
        fold_seconds=0.0,
        n_problems=prepared.n_problems,
        n_genes=len(genes),
        n_jobs=1,
        reference=None,
    )
    clock.learn(grids[-1], scale * seconds)
    clock.fold_seconds = chosen
    return clock
