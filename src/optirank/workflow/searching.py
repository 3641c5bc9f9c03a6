"""Cross-validation of the whole training, the choice of genes included, and the choice it makes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from optirank.tuning.average import AverageFamily
from optirank.tuning.deadline import Deadline
from optirank.tuning.result import UnitResult, gene_counts
from optirank.tuning.scoring import accuracy_table
from optirank.tuning.search import HELD_OUT, search
from optirank.tuning.selection import select_for_transfer, settings_table, transfer_scores
from optirank.workflow.grids import make_families
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

    def keep(self, families: Sequence[Family]) -> None:
        """Keep the settings of some families, which were fitted in every fold."""
        self.results = [one.keeping(_positions(one, families)) for one in self.results]

    @property
    def params(self) -> list[dict]:
        """The settings."""
        return [setting.params for setting in self.results[0].settings]

    def scores(self, y: NDArray, view: str = HELD_OUT) -> NDArray:
        """Balanced accuracies on a view of the held-out samples, settings x folds."""
        truths = [y[test] for _, test in self.folds]
        return accuracy_table(self.results, truths, np.unique(y), view)

    def shifted_scores(self, y: NDArray) -> NDArray:
        """Balanced accuracies on simulated platforms, settings x folds x platforms."""
        views = [name for name in self.results[0].n_scored if name != HELD_OUT]
        tables = [self.scores(y, view) for view in views]
        empty = np.zeros((len(self.params), len(self.folds), 0))
        return np.stack(tables, axis=2) if tables else empty


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
        share = (end - start - clock.final_seconds(clock.grids[found.level])) / (len(folds) - k)
        genes = chooser(fold[0])
        units = samples.folds.units(samples.over(genes), codes, [fold], n_classes=len(classes))
        reference = place(prepared.reference, genes)
        candidates = prepared.candidate_mask(genes)
        ladder = [make_families(grid, reference, candidates) for grid in clock.grids]
        families = ladder[found.level]
        until = time.time() + share - (time.perf_counter() - start)
        (result,) = search(
            families,
            units,
            n_jobs=clock.n_jobs,
            compact=True,
            deadline=Deadline(until, _least(families, ladder[-1])),
            progress=_within(progress, k, len(folds)),
        )
        level = found.level
        while not result.complete()[_positions(result, ladder[found.level])].all():
            found.narrow(found.level + 1)
        found.folds.append(fold)
        found.results.append(result)
        if found.level == level:
            clock.learn(clock.grids[level], time.perf_counter() - start)
    found.keep(ladder[found.level])
    return found


def _least(families: Sequence[Family], last: Sequence[Family]) -> list[Family]:
    """What is fitted of each family once time is up: the settings of the last grid."""
    return [last[k] if k < len(last) else one.keeping(()) for k, one in enumerate(families)]


def _positions(result: UnitResult, families: Sequence[Family]) -> list[int]:
    """Positions of some families' settings in a result that has them among others."""
    known = {(one.number, one.values): k for k, one in enumerate(result.settings)}
    return [
        known[number, values]
        for number, family in enumerate(families)
        for values in family.settings()
    ]


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
    table: pd.DataFrame  # see `settings_table`, and what the choice is made by


def choose(found: Searched, y: NDArray, *, real: bool, prefer: str = "accuracy") -> Choice:
    """The setting that should carry over best to other platforms; see `select_for_transfer`.

    The default is the average, which stands last, or else the first setting. ``real`` says that
    folds leave whole sources out.
    """
    scores, shifted = found.scores(y), found.shifted_scores(y)
    genes = gene_counts(found.results)
    averaged = isinstance(found.results[0].settings[-1].family, AverageFamily)
    default = len(scores) - 1 if averaged else 0

    def chosen(folds: NDArray) -> int:
        tables = scores[:, folds], shifted[:, folds], genes[:, folds]
        return select_for_transfer(*tables, default=default, real=real, prefer=prefer)

    every = np.arange(scores.shape[1])
    index = chosen(every)
    others = [np.delete(every, k) for k in every] if len(every) > 1 else [every]
    checked = [scores[chosen(rest), k] for k, rest in enumerate(others)]
    table = settings_table(found.params, scores, genes, index)
    table.insert(3, "transfer_score", transfer_scores(scores, shifted, real=real))
    return Choice(
        index=index,
        params=found.params[index],
        optimism=float(scores[index].mean() - np.mean(checked)),
        table=table,
    )


def choose_panel(found: Searched, y: NDArray, panel_size: int) -> Choice:
    """The best setting of at most so many genes (mean over folds), or that of fewest genes."""
    scores = found.scores(y)
    genes = gene_counts(found.results)

    def chosen(folds: NDArray) -> int:
        needed = genes[:, folds].mean(axis=1)
        means = np.where(needed <= panel_size, scores[:, folds].mean(axis=1), -np.inf)
        return int(np.argmax(means) if np.isfinite(means).any() else np.argmin(needed))

    every = np.arange(scores.shape[1])
    index = chosen(every)
    others = [np.delete(every, k) for k in every] if len(every) > 1 else [every]
    checked = [scores[chosen(rest), k] for k, rest in enumerate(others)]
    return Choice(
        index=index,
        params=found.params[index],
        optimism=float(scores[index].mean() - np.mean(checked)),
        table=settings_table(found.params, scores, genes, index),
    )
