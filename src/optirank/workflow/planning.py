"""What will be done and how long it takes: one small fit is timed, the grid made to fit."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optirank.estimators._base import one_blas_thread, order_for_fitting
from optirank.estimators._families import Samples
from optirank.estimators._options import resolve_n_reference
from optirank.workflow import grids
from optirank.workflow.grids import Grid, make_family, n_chains

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.estimators._folds import Fold
    from optirank.workflow.candidates import Candidates
    from optirank.workflow.preparation import Prepared

BUDGET = 600.0  # seconds, where none is given
_EFFICIENCY = 0.8  # of each thread beyond the first
_PROBE = Grid((0.1,), (0.0, 1e-3), (1e-3,))


@dataclass(frozen=True)
class Plan:
    """What is about to be done."""

    n_samples: int
    n_genes: int
    n_candidates: int | None  # genes chosen in each fold; None where all are used
    n_classes: int
    n_folds: int
    sources: int | None  # left out in turn; None for ordinary folds
    n_settings: int
    level: int  # of grids.GRIDS
    seconds: float
    budget: float
    n_jobs: int

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
        if self.sources is None:
            words.append(f"{self.n_folds} folds, stratified by class")
        else:
            words.append(f"{self.n_folds} folds that leave whole sources out ({self.sources})")
        one = self.n_settings == 1
        settings = "one setting is" if one else f"{self.n_settings} settings are"
        shrunk = "" if self.level == 0 else ", the grid being shortened to fit the time"
        words.append(f"{settings} tried in each fold{shrunk}")
        threads = f"{self.n_jobs} thread{'s' if self.n_jobs > 1 else ''}"
        words.append(
            f"about {duration(self.seconds)} on {threads} (allowed: {duration(self.budget)})"
        )
        return words


@dataclass
class Clock:
    """Predicts the time of a search from the seconds of a fit, learning as it goes."""

    fit_seconds: float  # of one penalty of one chain, one class, one fold, on one thread
    fold_seconds: float  # of what is done once a fold: choosing genes, sorting
    n_problems: int
    n_genes: int
    n_jobs: int
    sides: tuple[str, ...]
    fixed: bool

    def fits(self, grid: Grid) -> int:
        """Fits of a fold."""
        return self.chains(grid) * grid.n_penalties

    def chains(self, grid: Grid) -> int:
        """Parts of a fold that are done one by one."""
        return self.n_problems * n_chains(grid, self.sides, self.fixed, self.n_genes)

    def seconds(self, grid: Grid, n_folds: int) -> float:
        """Of a search over so many folds, and of the final fit."""
        threads = 1 + _EFFICIENCY * (self.n_jobs - 1)
        fits = n_folds * self.fits(grid) + 4 * self.n_problems
        return (n_folds + 1) * self.fold_seconds + fits * self.fit_seconds / threads

    def learn(self, grid: Grid, seconds: float) -> None:
        """Correct the prediction by the time a fold took."""
        threads = 1 + _EFFICIENCY * (self.n_jobs - 1)
        rest = max(seconds - self.fold_seconds, 0.1 * seconds)
        self.fit_seconds = rest * threads / self.fits(grid)

    def level(self, n_folds: int, left: float, start: int = 0) -> int:
        """The widest grid that fits into the time left, or the last one."""
        for level, grid in enumerate(grids.GRIDS):
            if level >= start and self.seconds(grid, n_folds) <= left:
                return level
        return len(grids.GRIDS) - 1


def time_one_fit(
    prepared: Prepared, chooser: Candidates, fold: Fold, sides: tuple[str, ...], n_jobs: int
) -> Clock:
    """Time two fits of one class on the first fold's training part, and what precedes them."""
    from optirank.solver.problem import sample_weights

    _compile()
    train, _ = fold
    start = time.perf_counter()
    genes = chooser(train)
    orders = order_for_fitting(prepared.X[:, genes], n_jobs).take(train)
    ready = time.perf_counter()
    reference = place(prepared.reference, genes)
    family = make_family(_PROBE, ("rising",), reference)
    labels, counts = np.unique(prepared.y[train], return_counts=True)
    positive = prepared.y[train] == labels[counts.argsort()[len(counts) // 2]]
    v = sample_weights(positive, np.ones(len(train)), True)
    size = resolve_n_reference(_PROBE.n_references[0], len(genes))
    chain = None if prepared.reference is not None else (size, "rising")
    with one_blas_thread():
        family.fit_chain(Samples(orders=orders), positive.astype(float), v, chain)
    done = time.perf_counter()
    return Clock(
        (done - ready) / _PROBE.n_penalties,
        ready - start,
        prepared.n_problems,
        len(genes),
        n_jobs,
        sides,
        prepared.reference is not None,
    )


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


def _compile() -> None:
    """Load or compile the loops before the clock runs."""
    from optirank.estimators.optirank import OptirankClassifier

    X = np.arange(60.0).reshape(12, 5) % 7
    X[::2, 0] += 9
    OptirankClassifier(2, l2=1e-2, max_iter=200, tol=1e-2).fit(X, np.arange(12) % 2)
