"""Cross-validation of the whole training, the choice of genes included, and the choice it makes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from optirank.estimators._base import order_for_fitting
from optirank.estimators._families import Samples
from optirank.estimators._search import search
from optirank.estimators._selection import select, standard_error
from optirank.workflow import grids
from optirank.workflow.grids import make_family
from optirank.workflow.planning import Clock, place

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.estimators._folds import Fold
    from optirank.estimators._search import Search
    from optirank.workflow.candidates import Candidates
    from optirank.workflow.preparation import Prepared

_FEWEST_FOLDS = 2  # that are done even if time is up
_SLACK = 1.1  # what may take longer than the clock says

Progress = Callable[[int, int], None]  # parts done, of how many


@dataclass
class Searched:
    """Scores of every setting on the held-out part of every fold."""

    folds: list[Fold]
    names: tuple[str, ...] = ()
    settings: list[tuple] = field(default_factory=list)
    decisions: list[dict[tuple, NDArray]] = field(default_factory=list)  # a fold each
    n_genes: list[dict[tuple, int]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    level: int = 0
    shortened: bool = False  # whether fewer settings than planned were tried
    n_skipped: int = 0  # folds for which there was no time

    def narrow(self, level: int) -> None:
        """Go on with a narrower grid."""
        self.shortened |= level > self.level
        self.level = level

    def scores(self, y: NDArray, classes: NDArray) -> NDArray:
        """Balanced accuracies, settings x folds."""
        table = np.empty((len(self.settings), len(self.folds)))
        for k, (train, test) in enumerate(self.folds):
            fair = np.isin(y[test], y[train])  # nobody knows a class that was not in training
            truth = y[test][fair]
            for i, setting in enumerate(self.settings):
                chosen = predicted(self.decisions[k][setting][fair], classes)
                table[i, k] = balanced_accuracy(truth, chosen)
        return table

    def gene_counts(self) -> NDArray:
        """Numbers of genes, settings x folds."""
        return np.array([[fold[s] for fold in self.n_genes] for s in self.settings], dtype=float)


def cross_validate(
    prepared: Prepared,
    chooser: Candidates,
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
    found = Searched([], level=level)
    classes, codes = np.unique(prepared.y, return_inverse=True)
    weights = np.ones(len(codes))
    end = time.perf_counter() + left
    orders = None
    for k, fold in enumerate(folds):
        start = time.perf_counter()
        if k >= _FEWEST_FOLDS and _SLACK * clock.seconds(grids.GRIDS[-1], 1) > end - start:
            found.n_skipped = len(folds) - k
            break
        if k:
            found.narrow(clock.level(len(folds) - k, end - start, found.level))
        grid = grids.GRIDS[found.level]
        share = (end - start - clock.final_seconds) / (len(folds) - k)
        genes = chooser(fold[0])
        if orders is None or chooser.limit is not None:
            orders = order_for_fitting(prepared.X[:, genes], clock.n_jobs)
        steps = clock.chains(grid)
        tell = _Counter(progress, k * steps, len(folds) * steps)
        reference = place(prepared.reference, genes)
        family = make_family(grid, clock.sides, reference, tell=tell, until=start + share)
        result = search(
            family, Samples(orders=orders), codes, classes, weights, [fold], n_jobs=clock.n_jobs
        )
        if progress is not None:  # a class that the fold lacks is done too
            progress((k + 1) * steps, len(folds) * steps)
        while not _complete(result, family):
            found.narrow(found.level + 1)
            family = make_family(grids.GRIDS[found.level], clock.sides, reference)
        found.folds.append(fold)
        found.names, found.settings = family.names, family.settings()
        found.decisions.append(
            {
                setting: np.column_stack(
                    [result.decision(setting, 0, one) for one in result.positives]
                ).astype(np.float32)
                for setting in found.settings
            }
        )
        found.n_genes.append({s: int(result.genes(s, 0).sum()) for s in found.settings})
        found.seconds.append(time.perf_counter() - start)
        clock.learn(tell.fits, found.seconds[-1])
    return found


def _complete(result: Search, family: Any) -> bool:
    """Whether all settings of a family were fitted, for every class that was there to learn."""
    try:
        for models in result.models.values():
            for setting in family.settings():
                family.models_of(setting, models, result.n_genes)
    except KeyError:
        return False
    return True


@dataclass(frozen=True)
class Choice:
    """The setting chosen, and how all of them did."""

    setting: tuple
    params: dict
    optimism: float  # score lost when the other folds choose a fold's setting
    table: pd.DataFrame  # n_genes, score, standard_error, selected, best and the parameters


def choose(found: Searched, y: NDArray, rule: str = "one_se") -> Choice:
    """The fewest genes within one standard error of the best score, or the best ("best")."""
    classes = np.unique(y)
    scores, genes = found.scores(y, classes), found.gene_counts()
    index, best = (select(scores, genes, one) for one in (rule, "best"))
    every = np.arange(scores.shape[1])
    others = [np.delete(every, k) for k in every] if len(every) > 1 else [every]
    checked = [
        scores[select(scores[:, rest], genes[:, rest], rule), k] for k, rest in enumerate(others)
    ]
    error = standard_error(scores)
    table = pd.DataFrame(found.settings, columns=list(found.names))
    table.insert(0, "n_genes", genes.mean(axis=1))
    table.insert(1, "score", scores.mean(axis=1))
    table.insert(2, "standard_error", error)
    table.insert(3, "selected", np.arange(len(table)) == index)
    table.insert(4, "best", np.arange(len(table)) == best)
    return Choice(
        found.settings[index],
        dict(zip(found.names, found.settings[index], strict=True)),
        float(scores[index].mean() - np.mean(checked)),
        table,
    )


def predicted(decisions: NDArray, classes: NDArray) -> NDArray:
    """Labels of decision scores, one column for two classes and one a class for more."""
    if decisions.shape[1] == 1:
        return classes[(decisions[:, 0] > 0).astype(int)]
    return classes[decisions.argmax(axis=1)]


def balanced_accuracy(truth: NDArray, labels: NDArray) -> float:
    """Mean over the classes that are there of the share that got its label; NaN of nothing."""
    present = np.unique(truth)
    if not len(present):
        return float("nan")
    return float(np.mean([(labels[truth == one] == one).mean() for one in present]))


@dataclass
class _Counter:
    """Counts chains as they end and passes that on."""

    progress: Progress | None
    done: int
    total: int
    fits: list[int] = field(default_factory=list)  # of each chain

    def __call__(self, n_fits: int) -> None:
        self.done += 1
        self.fits.append(n_fits)
        if self.progress is not None:
            self.progress(self.done, self.total)
