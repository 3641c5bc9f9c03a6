"""Cross-validation in rounds: the default in every fold, then other settings while there is time.

A round is a few settings whose fits start from each other. It is fitted in all folds before the
next one starts, so a search can end at any time: the settings of the finished rounds are compared,
and those of a round that was cut off are dropped. If all rounds are done early, they are repeated
on further folds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from optirank.tuning.average import AverageFamily
from optirank.tuning.result import UnitResult, join_settings
from optirank.tuning.search import search
from optirank.workflow.grids import Grid, make_families
from optirank.workflow.planning import Clock, place

if TYPE_CHECKING:
    from optirank._util.cluster import Cluster
    from optirank.tuning.search import Unit
    from optirank.workflow.candidates import Candidates
    from optirank.workflow.preparation import Prepared
    from optirank.workflow.sorting import SortedSamples

_SLACK = 1.15  # what may take longer than the clock says
_HELD = 100_000_000  # samples x genes of all folds up to which their orders are held
_STEPS = 100  # of the progress of one round in one fold

Progress = Callable[[int, int], None]  # parts done, of how many


def make_rounds(grids: Sequence[Grid], level: int) -> list[Grid]:
    """Parts of the widest grid, in the order in which they are fitted.

    From the narrowest grid, which holds what helps most, to the widest; settings of one size of the
    reference set are fitted together. The average of the planned grid is its default, and so first.
    """
    rounds: list[Grid] = []
    known: set[tuple] = set()
    averaged = False
    for grid in reversed(grids):
        sizes: dict[float, list] = {}
        for setting in grid.settings:
            if setting not in known:
                sizes.setdefault(setting[0], []).append(setting)
        known.update(grid.settings)
        if grid.average is not None and not averaged:
            averaged = True
            alone = replace(grid, settings=())
            first = grids[level].average is not None
            rounds.insert(0 if first else len(rounds), alone)
        rounds += [replace(grid, settings=tuple(one), average=None) for one in sizes.values()]
    return rounds


@dataclass
class CrossValidation:
    """Rounds in folds, within a given time."""

    prepared: Prepared
    chooser: Candidates
    samples: SortedSamples
    clock: Clock
    end: float  # of time.perf_counter; the final fit is done by then
    progress: Progress | None = None
    cluster: Cluster | None = None
    rounds: list[Grid] = field(default_factory=list, init=False)  # that were finished
    final_seconds: float = field(default=0.0, init=False)  # of the final fit, at most
    _units: dict[int, Unit] = field(default_factory=dict, init=False)
    _parts: tuple[int, int] = field(default=(0, 1), init=False)  # of the progress

    def run(
        self, rounds: Sequence[Grid], n_folds: int, may_give_up: bool = False
    ) -> list[UnitResult]:
        """Fit the rounds in ``n_folds`` folds, in more if time is left; one result per fold.

        The first round is fitted in one fold at least, whatever time that takes; or there is no
        result where that is allowed (``may_give_up``) and time is up before.
        """
        first, *others = rounds
        self._parts = 0, len(rounds) * n_folds
        self.final_seconds = self.clock.final_seconds(first)
        found: list[list[UnitResult]] = []  # per fold, one result per finished round
        while len(found) < n_folds:
            more = [(first, 1), *((one, len(found) + 1) for one in others)]
            if found and not self._fits(more):  # fewer folds rather than fewer settings
                break
            (result,) = self._fit(first, [len(found)], cut=may_give_up or bool(found))
            if not result.complete().all():
                break
            found.append([result])
        if not found:
            return []
        self.rounds = [first]
        for one in others:
            if not self._fits([(one, len(found))]):
                continue  # a later one may be cheaper
            results = self._fit(one, range(len(found)))
            if all(result.complete().all() for result in results):
                self.rounds.append(one)
                for known, result in zip(found, results, strict=True):
                    known.append(result)
        self._add_folds(found)
        self._advance(self._parts[1] - self._parts[0])
        return [_joined(one) for one in found]

    def _add_folds(self, found: list[list[UnitResult]]) -> None:
        """Fit the finished rounds in further folds while there is time."""
        while len(found) < len(self.prepared.folds):
            if not self._fits([(one, 1) for one in self.rounds]):
                return
            fold: list[UnitResult] = []
            for one in self.rounds:
                fold += self._fit(one, [len(found)])
                if not fold[-1].complete().all():
                    return
            found.append(fold)

    def _fits(self, work: Sequence[tuple[Grid, int]]) -> bool:
        """Whether there is time for rounds, each in so many folds, and for the final fit."""
        clock, seconds, final = self.clock, 0.0, self.final_seconds
        for one, n_folds in work:
            each = clock.fit_seconds(one)
            seconds += n_folds * each
            final = max(final, clock.final_factor * each / max(1, len(one)))
        return _SLACK * seconds + clock.fold_seconds <= self.end - time.perf_counter() - final

    def _fit(self, one: Grid, folds: Sequence[int], *, cut: bool = True) -> list[UnitResult]:
        """A round in some folds; with ``cut``, no fit starts that would end too late."""
        start = time.perf_counter()
        together = self._same_families and self._holds(len(folds))
        batches = [list(folds)] if together else [[k] for k in folds]
        results: list[UnitResult] = []
        for k, batch in enumerate(batches):
            units = [self._unit(fold) for fold in batch]
            genes = self.chooser(self.prepared.folds[batch[0]][0])
            reference = place(self.prepared.reference, genes)
            left = self.end - self.final_seconds - time.perf_counter()
            until = time.time() + left - self.clock.task_seconds(one)
            results += search(
                make_families(one, reference, self.prepared.candidate_mask(genes)),
                units,
                n_jobs=self.clock.n_jobs,
                compact=True,
                until=until if cut else float("inf"),
                cluster=self.cluster,
                progress=self._within(k, len(batches), len(folds)),
            )
        self._advance(len(folds))
        seconds = (time.perf_counter() - start) / len(folds)
        if all(result.complete().all() for result in results):
            self.clock.learn(one, seconds)
            spent = [[r.fit_seconds(k) for k in range(len(r.settings))] for r in results]
            share = np.max(spent) / max(np.sum(spent, axis=1).max(), 1e-9)
            final = self.clock.final_factor * seconds * share
            self.final_seconds = max(self.final_seconds, final)
        return results

    def _unit(self, fold: int) -> Unit:
        """The samples of a fold, sorted over its genes."""
        if fold in self._units:
            return self._units[fold]
        prepared, samples = self.prepared, self.samples
        parts = prepared.folds[fold]
        classes, codes = np.unique(prepared.y, return_inverse=True)
        stack = samples.over(self.chooser(parts[0]))
        (unit,) = samples.folds.units(stack, codes, [parts], n_classes=len(classes))
        if self._holds(len(prepared.folds)):
            self._units[fold] = unit
        return unit

    @property
    def _same_families(self) -> bool:
        """Whether genes that the user named have the same positions in all folds."""
        named = self.prepared.reference is not None or self.prepared.candidates is not None
        return self.chooser.limit is None or not named

    def _holds(self, n_folds: int) -> bool:
        """Whether the samples of so many folds are held at a time."""
        rows = len(self.prepared.y) * (1 + self.samples.n_platforms)
        return n_folds * rows * self.clock.n_genes <= _HELD

    def _advance(self, n: int) -> None:
        done, total = self._parts
        self._parts = min(done + n, total), total
        if n and self.progress is not None:
            self.progress(self._parts[0] * _STEPS, total * _STEPS)

    def _within(self, batch: int, n_batches: int, n_parts: int) -> Progress | None:
        """Progress of one search as that of all."""
        if self.progress is None:
            return None
        progress, (before, total) = self.progress, self._parts

        def tell(done: int, tasks: int) -> None:
            share = (batch + done / tasks) / n_batches
            steps = int(_STEPS * min(before + n_parts * share, total))
            progress(min(steps, total * _STEPS - 1), total * _STEPS)

        return tell


def _joined(results: Sequence[UnitResult]) -> UnitResult:
    """The rounds of a fold as one result, an average last."""
    return join_settings(sorted(results, key=_is_average))


def _is_average(result: UnitResult) -> bool:
    return isinstance(result.settings[-1].family, AverageFamily)
