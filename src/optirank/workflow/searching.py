"""Cross-validation of the whole training, the choice of genes included, and the choice it makes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from optirank.tuning.average import AverageFamily
from optirank.tuning.result import UnitResult, gene_counts
from optirank.tuning.scoring import accuracy_table
from optirank.tuning.search import HELD_OUT
from optirank.tuning.selection import (
    clear_margin,
    select_for_transfer,
    settings_table,
    transfer_scores,
)
from optirank.workflow.rounds import CrossValidation, make_rounds

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from optirank._util.cluster import Cluster
    from optirank.tuning.folds import Fold
    from optirank.workflow.candidates import Candidates
    from optirank.workflow.planning import Clock
    from optirank.workflow.preparation import Prepared
    from optirank.workflow.rounds import Progress
    from optirank.workflow.sorting import SortedSamples


@dataclass
class Searched:
    """What was found in every fold that was done."""

    folds: list[Fold] = field(default_factory=list)
    results: list[UnitResult] = field(default_factory=list)  # one per fold

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
    n_folds: int,
    clock: Clock,
    level: int,
    end: float,
    progress: Progress | None = None,
    cluster: Cluster | None = None,
    may_give_up: bool = False,
) -> Searched:
    """Compare the settings of the grids by cross-validation; the final fit is done by ``end``.

    ``level`` and ``n_folds`` are what is planned; see :class:`CrossValidation`. With
    ``may_give_up`` there are no results where even the default takes too long in one fold.
    """
    validation = CrossValidation(prepared, chooser, samples, clock, end, progress, cluster)
    results = validation.run(make_rounds(clock.grids, level), n_folds, may_give_up)
    return Searched(prepared.folds[: len(results)], results)


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
    averaged = isinstance(found.results[0].settings[-1].family, AverageFamily)
    return choose_by_scores(
        found.params,
        (found.scores(y), found.shifted_scores(y), gene_counts(found.results)),
        [y[test] for _, test in found.folds],
        default=len(found.params) - 1 if averaged else 0,
        real=real,
        prefer=prefer,
    )


def choose_by_scores(
    params: list[dict],
    tables: tuple[NDArray, NDArray, NDArray],
    truths: list[NDArray],
    *,
    default: int,
    real: bool,
    prefer: str,
) -> Choice:
    """The same from tables: scores (settings x folds), those on platforms, and numbers of genes.

    ``truths`` are the labels of the held-out samples of each fold.
    """
    scores, shifted, genes = tables

    def chosen(folds: NDArray) -> int:
        margin = clear_margin([truths[k] for k in folds])
        rule = {"default": default, "real": real, "prefer": prefer, "margin": margin}
        return select_for_transfer(*(one[:, folds] for one in tables), **rule)

    every = np.arange(scores.shape[1])
    index = chosen(every)
    others = [np.delete(every, k) for k in every] if len(every) > 1 else [every]
    checked = [scores[chosen(rest), k] for k, rest in enumerate(others)]
    table = settings_table(params, scores, genes, index)
    table.insert(3, "transfer_score", transfer_scores(scores, shifted, real=real))
    return Choice(
        index=index,
        params=params[index],
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
