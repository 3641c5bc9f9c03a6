"""What will be done and how long it takes: one small fit is timed, the grid made to fit."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from optirank._util.threads import one_blas_thread
from optirank.tuning.platforms import platforms_for
from optirank.workflow.grids import Grid, chains, make_families
from optirank.workflow.preparation import thin
from optirank.workflow.sorting import SortedSamples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from optirank.tuning.family import Chain
    from optirank.tuning.folds import Fold
    from optirank.workflow.candidates import Candidates
    from optirank.workflow.preparation import Prepared

BUDGET = 600.0  # seconds, where none is given
_EFFICIENCY = 0.8  # of each thread beyond the first
_PROBES = (
    Grid.of((0.2,), (1e-3,), (1e-3,), ("rising",)),
    Grid.of((0.2,), (1e-3, 3e-3), (1e-3,), ("rising",)),
)
_SHARED = 3  # fits of one class that one of all classes together takes, at most
_PROBED = 1500  # samples at most on which fits are timed
_COLD = 2.0  # a final fit, which starts from nothing and stops later, against one of a grid
_BEST = 1.6  # a fit that follows both sides until one is clearly better, against one of one side
_FULL = 0.3  # a fit on full ranks, which has no reference set to learn
_COMPILING = 20.0  # seconds, of all loops on one processor
_COMPILE_MATTERS = 3  # times this time is a budget in which it is noticed
_ROWS_COST = 1.5  # of a row on a simulated platform: mixed platforms take more steps


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is about to be done."""

    n_samples: int
    n_genes: int
    n_candidates: int | None  # genes chosen in each fold; None where all are used
    n_classes: int
    n_folds: int
    sources: int | None  # left out in turn; None for ordinary folds
    n_settings: int
    n_widest: int  # settings of the widest grid
    n_platforms: int  # simulated, to train on
    level: int  # of the grids, 0 being the widest
    seconds: float
    budget: float
    n_jobs: int
    device: str = "cpu"
    cluster: bool = False  # whether a dask cluster fits the settings
    large: bool = False  # one reference set from some samples, weights from all

    def lines(self) -> list[str]:
        """In words."""
        words = [
            f"{self.n_samples} samples, {self.n_genes} genes, {self.n_classes} classes",
        ]
        if self.n_candidates is not None:
            words.append(
                f"first {self.n_candidates} of the {self.n_genes} genes are selected by their "
                "correlation with the labels, anew in every fold"
            )
        if self.n_folds == 1:
            what = "one part" if self.sources is None else "one part of the sources"
            words.append(f"{what} of the samples is held out")
        elif self.sources is None:
            words.append(f"{self.n_folds} folds, stratified by class")
        else:
            words.append(f"{self.n_folds} folds that leave whole sources out ({self.sources})")
        if self.large:
            words.append(
                "the time allowed is short for so many samples and classes: one reference set for "
                "all classes is learned on some of the samples, the weights on all"
            )
        if self.n_platforms:
            copies = "copy" if self.n_platforms == 1 else "copies"
            words.append(
                f"the samples are joined by {self.n_platforms} {copies} of them on simulated "
                "platforms to train on"
            )
        one = self.n_settings == 1
        settings = "one setting is" if one else f"up to {self.n_settings} settings are"
        where = " in each fold" if self.n_folds > 1 else ""
        shrunk = "" if self.level == 0 else ", the grid being shortened to fit the time"
        words.append(f"{settings} tried{where}{shrunk}")
        where = "the GPU"
        if self.device == "cpu":
            where = f"{self.n_jobs} thread{'s' if self.n_jobs > 1 else ''}"
        if self.cluster:
            where += " of the cluster"
        lasts = f"{'at most' if self.large else 'about'} {duration(self.seconds)}"
        words.append(f"{lasts} on {where} (allowed: {duration(self.budget)})")
        return words


@dataclass(kw_only=True)
class Clock:
    """Predicts the time of a search from the seconds of a fit, learning as it goes."""

    grids: Sequence[Grid]  # nested, the widest first
    first_seconds: float  # of a chain's first fit, for one class in one fold, on one thread
    next_seconds: float  # of each further one
    fold_seconds: float  # of what is done once per fold: choosing genes, sorting
    n_problems: int
    n_genes: int
    n_jobs: int
    reference: NDArray | None
    n_platforms: int = 0
    n_final: int | None = None  # threads of the final fit, where a cluster does the search
    _spent: tuple[float, float] = (0.0, 0.0)  # seconds of what was done, predicted and measured

    def seconds(self, grid: Grid, n_folds: int) -> float:
        """Of a search over so many folds, and of the final fit."""
        return n_folds * (self.fold_seconds + self.fit_seconds(grid)) + self.final_seconds(grid)

    def final_seconds(self, grid: Grid) -> float:
        """Of the final fit, at most that of the grid's default."""
        default = (
            Grid((), grid.average) if grid.average else replace(grid, settings=grid.settings[:1])
        )
        return self.fold_seconds + self.final_factor * self.fit_seconds(default)

    @property
    def final_factor(self) -> float:
        """Time of a final fit against that of the same fits in a fold."""
        here = self.n_jobs if self.n_final is None else self.n_final
        return _COLD * _speed(self.n_jobs) / _speed(here)

    def learn(self, grid: Grid, seconds: float) -> None:
        """Correct the prediction by the time that the fits of a grid took in a fold."""
        predicted, measured = self._spent
        self._spent = predicted + self._predicted(grid), measured + seconds

    def fit_seconds(self, grid: Grid) -> float:
        """Of all fits of a grid in one fold."""
        predicted, measured = self._spent
        return self._predicted(grid) * (measured / predicted if predicted > 0 else 1.0)

    def task_seconds(self, grid: Grid) -> float:
        """Of the fits that one thread does in a row: those of one class, or of all together."""
        tasks = len(chains(grid, self.reference, self.n_genes))
        tasks *= 1 if grid.shared else self.n_problems
        return self.fit_seconds(grid) * min(1.0, _speed(self.n_jobs) / max(1, tasks))

    def _predicted(self, grid: Grid) -> float:
        costs = [self._chain(one) for one in chains(grid, self.reference, self.n_genes)]
        rows = 1 + _ROWS_COST * self.n_platforms
        n_problems = min(self.n_problems, _SHARED) if grid.shared else self.n_problems
        return n_problems * rows * sum(costs) / _speed(self.n_jobs)

    def _chain(self, chain: Chain) -> float:
        side = chain.head[-1] if chain.head else "fixed"
        factor = {"best": _BEST, None: _FULL}.get(side, 1.0)
        return factor * (self.first_seconds + (len(chain.penalties) - 1) * self.next_seconds)


def _speed(n_jobs: int) -> float:
    """Of some threads, against one."""
    return 1 + _EFFICIENCY * (n_jobs - 1)


def fit_into(
    clock: Clock, samples: SortedSamples, n_folds: int, room: float
) -> tuple[int, int] | None:
    """The level of the grids and the number of folds for the time there is; None if none fits.

    Folds are given up first, down to a single held-out part, then settings. An average of models is
    trained on simulated platforms too where there is time; without them it still is better than one
    model with them.
    """
    n_platforms = platforms_for(samples.X.shape[0]) if clock.reference is None else 0
    fewer = [k for k in dict.fromkeys((n_folds, 3, 2, 1)) if k <= n_folds]
    for level, grid in enumerate(clock.grids):
        for platforms in dict.fromkeys((n_platforms, 0)) if grid.on_platforms else (0,):
            clock.n_platforms = samples.n_platforms = platforms
            for k in fewer:
                if clock.seconds(grid, k) <= room:
                    return level, k
    return None


def time_one_fit(
    prepared: Prepared,
    chooser: Candidates,
    samples: SortedSamples,
    fold: Fold,
    grids: Sequence[Grid],
) -> Clock:
    """Time fits of one class on the first fold's training part, and what precedes them."""
    from optirank.solver.problem import sample_weights

    _compile()
    train, _ = fold
    start = time.perf_counter()
    genes = chooser(train)
    rows, scale = probed(prepared, train, _PROBED)
    if len(rows) < len(train):
        part = samples.part(rows).over(genes).take(np.arange(len(rows)))
    else:
        part = samples.over(genes).take(rows)
    ready = time.perf_counter()
    reference = place(prepared.reference, genes)
    labels, counts = np.unique(prepared.y[rows], return_counts=True)
    positive = prepared.y[rows] == labels[counts.argsort()[len(counts) // 2]]
    v = sample_weights(positive, np.ones(len(rows)), True)
    seconds = []
    for grid in _PROBES:
        (family,) = make_families(replace(grid, values=samples.values), reference)
        (chain,) = family.chains(len(genes))
        begin = time.perf_counter()
        with one_blas_thread():
            family.fit_chain(part, positive.astype(float), v, chain)
        seconds.append(scale * (time.perf_counter() - begin))
    return Clock(
        grids=grids,
        first_seconds=seconds[0],
        next_seconds=max(seconds[1] - seconds[0], 0.1 * seconds[0]),
        fold_seconds=scale * (ready - start),
        n_problems=prepared.n_problems,
        n_genes=len(genes),
        n_jobs=samples.n_jobs,
        reference=reference,
    )


def probed(prepared: Prepared, rows: NDArray, most: int) -> tuple[NDArray, float]:
    """About ``most`` of some samples to time a fit on, and how much longer one on all takes."""
    if len(rows) <= most:
        return rows, 1.0
    some = rows[thin(prepared.y[rows], most)[0]]
    return some, len(rows) / len(some)  # a fit grows with its samples


def place(reference: NDArray | None, genes: NDArray) -> NDArray | None:
    """Positions of reference genes among the chosen ones."""
    return None if reference is None else np.flatnonzero(np.isin(genes, reference))


def duration(seconds: float) -> str:
    """A time for people."""
    if seconds < 1.5:
        return "a second"
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    if seconds < 5400:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"


def compiling_note(budget: float) -> str | None:
    """What is said before the first fit of an installation, where its loops take long to compile.

    They are compiled once and kept on disk.
    """
    from optirank._compiled.jit import is_ready
    from optirank._compiled.solver_loops import exchange_in_ranks

    if budget > _COMPILE_MATTERS * _COMPILING or is_ready(exchange_in_ranks):
        return None
    return (
        f"loops are compiled first, which takes about {duration(_COMPILING)} and is done once: a "
        f"second training will keep better to the time allowed ({duration(budget)})"
    )


def _compile() -> None:
    """Load or compile the loops before the clock runs."""
    from optirank.estimators.optirank import OptirankClassifier

    X = np.arange(60.0).reshape(12, 5) % 7
    X[::2, 0] += 9
    OptirankClassifier(2, l2=1e-2, max_iter=200, tol=1e-2).fit(X, np.arange(12) % 2)
