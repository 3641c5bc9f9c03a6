"""Cross-validation of the whole training, the choice of genes included, and the choice it makes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from optirank.tuning.deadline import Deadline
from optirank.tuning.result import UnitResult, gene_counts
from optirank.tuning.scoring import accuracy_table
from optirank.tuning.search import HELD_OUT, fold_units, search
from optirank.tuning.selection import optimism, select, settings_table
from optirank.workflow.grids import make_family
from optirank.workflow.planning import Clock, place

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from optirank.tuning.family import Family
    from optirank.tuning.folds import Fold
    from optirank.workflow.candidates import Candidates
    from optirank.workflow.preparation import Prepared
    from optirank.workflow.sorting import SortedSamples

_FEWEST_FOLDS = 2  # that are done even if time is up
_SLACK = 1.1  # what may take longer than the clock says

Progress = Callable[[int, int], None]  # parts done, of how many


@dataclass
class Searched:
    """What was found in every fold that was done."""

    level: int  # of the clock's grids
    folds: list[Fold] = field(default_factory=list)
    results: list[UnitResult] = field(default_factory=list)  # one per fold
    shortened: bool = False  # whether fewer settings than planned were tried
    n_skipped: int = 0  # folds for which there was no time

    def narrow(self, level: int) -> None:
        """Go on with a narrower grid."""
        self.shortened |= level > self.level
        self.level = level

    def keep(self, family: Family) -> None:
        """Keep the settings of a family, which were fitted in every fold."""
        self.results = [one.keeping(_positions(one, family)) for one in self.results]

    @property
    def params(self) -> list[dict]:
        """The settings."""
        return [setting.params for setting in self.results[0].settings]

    def scores(self, y: NDArray, classes: NDArray) -> NDArray:
        """Balanced accuracies, settings x folds."""
        truths = [y[test] for _, test in self.folds]
        return accuracy_table(self.results, truths, classes, HELD_OUT)


def cross_validate(
    prepared: Prepared,
    chooser: Candidates,
    samples: SortedSamples,
    folds: list[Fold],
    clock: Clock,
    level: int,
    left: float,
    progress: Progress | None = None,
) -> Searched:
    """Fit the grid in every fold, within the time left for this and the final fit.

    A fold that outlasts its share of the time goes on with the last grid, and narrows the grid of
    the next ones; where even the last grid takes too long, folds are left out.
    """
    found = Searched(level)
    classes, codes = np.unique(prepared.y, return_inverse=True)
    end = time.perf_counter() + left
    for k, fold in enumerate(folds):
        start = time.perf_counter()
        if k >= _FEWEST_FOLDS and _SLACK * clock.seconds(clock.grids[-1], 1) > end - start:
            found.n_skipped = len(folds) - k
            break
        if k:
            found.narrow(clock.level(len(folds) - k, end - start, found.level))
        share = (end - start - clock.final_seconds) / (len(folds) - k)
        genes = chooser(fold[0])
        part = samples.over(genes)
        reference = place(prepared.reference, genes)
        families = [make_family(grid, clock.sides, reference) for grid in clock.grids]
        (result,) = search(
            families[found.level],
            fold_units(part, codes, [fold], n_classes=len(classes)),
            n_jobs=clock.n_jobs,
            compact=True,
            deadline=Deadline(time.time() + share - (time.perf_counter() - start), families[-1:]),
            progress=_within(progress, k, len(folds)),
        )
        while not result.complete()[_positions(result, families[found.level])].all():
            found.narrow(found.level + 1)
        found.folds.append(fold)
        found.results.append(result)
        clock.learn(result.n_fits, time.perf_counter() - start)
    found.keep(families[found.level])
    return found


def _positions(result: UnitResult, family: Family) -> list[int]:
    """Positions of a family's settings in a result that has them among others."""
    known = {setting.values: k for k, setting in enumerate(result.settings)}
    return [known[values] for values in family.settings()]


def _within(progress: Progress | None, fold: int, n_folds: int) -> Progress | None:
    """Progress of one fold as that of all."""
    if progress is None:
        return None
    return lambda done, total: progress(fold * total + done, n_folds * total)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The setting chosen, and how all of them did."""

    index: int
    params: dict
    optimism: float  # score lost when the other folds choose a fold's setting
    table: pd.DataFrame  # n_genes, score, standard_error, selected, best and the parameters


def choose(found: Searched, y: NDArray, rule: str = "one_se") -> Choice:
    """The fewest genes within one standard error of the best score, or the best ("best")."""
    scores = found.scores(y, np.unique(y))
    genes = gene_counts(found.results)
    index = select(scores, genes, rule)
    return Choice(
        index=index,
        params=found.params[index],
        optimism=optimism(scores, genes, rule),
        table=settings_table(found.params, scores, genes, index),
    )
