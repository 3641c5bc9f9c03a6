"""Training a vote of pairs of genes (k-TSP): numbers of pairs compared on held-out samples."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.estimators._pair_choice import mean_votes
from optirank.estimators._pairs import dense_columns
from optirank.estimators.votes import pair_votes
from optirank.model import remember_training
from optirank.model.value_kinds import value_kinds
from optirank.tuning.scoring import balanced_accuracy, predicted
from optirank.workflow.concluding import conclude
from optirank.workflow.finishing import gather_held_out
from optirank.workflow.planning import Plan
from optirank.workflow.searching import Choice, choose_by_scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.estimators.top_pairs import TopScoringPairsClassifier
    from optirank.tuning.folds import Fold
    from optirank.workflow.preparation import Prepared
    from optirank.workflow.result import TrainingResult

METHOD = "k-tsp"
# Pairs per class. The first carried over best to other platforms; fewer than 5 often failed there,
# however well they did on held-out samples.
SIZES = (13, 5, 7, 9, 17, 25)
_PART = 0.8  # of the time allowed that folds may take


def train_pairs(
    prepared: Prepared,
    begin: float,
    budget: float,
    prefer: str,
    *,
    calibrate: bool,
    target_error: float | None,
    seconds: float,
    say: Callable[[str], None] | None,
    progress: Callable[[int, int], None] | None,
) -> TrainingResult:
    """Train a TopScoringPairsClassifier; see `optirank.workflow.train.train`.

    The number of pairs is chosen as the settings of other methods are: it is the default, unless
    another one is clearly better on held-out samples or few genes are preferred. In a fold one
    model is fitted, of which the first pairs vote. There are as many folds as time allows, at least
    one.
    """
    start = time.perf_counter()
    decisions = [_fold_scores(prepared, prepared.folds[0])]
    each = time.perf_counter() - start
    room = begin + _PART * budget - time.perf_counter()
    n_folds = 1 + int(np.clip(room / each - 1, 0, len(prepared.folds) - 1))
    plan = Plan(
        n_samples=len(prepared.y),
        n_genes=prepared.n_genes,
        n_candidates=prepared.chooser.limit,
        n_classes=len(prepared.classes),
        n_folds=n_folds,
        sources=None if prepared.groups is None else len(np.unique(prepared.groups)),
        n_settings=len(SIZES),
        n_widest=len(SIZES),
        n_platforms=0,
        level=0,
        seconds=start - begin + (n_folds + 1) * each,
        budget=budget,
        n_jobs=1,
    )
    for line in (*prepared.notes, *plan.lines()) if say else ():
        say(line)
    planned = time.perf_counter()
    for k, fold in enumerate(prepared.folds[1:n_folds], start=2):
        decisions.append(_fold_scores(prepared, fold))
        if progress is not None:
            progress(k, n_folds)
    folds = prepared.folds[:n_folds]
    choice = _choose(prepared, folds, decisions, prefer)
    searched = time.perf_counter()
    columns = prepared.chooser()
    X, names = prepared.X[:, columns], prepared.genes[columns]
    model = _classifier(**choice.params).fit(X, prepared.y)
    remember_training(model, X, prepared.y, genes=names)
    later = value_kinds(X).own_notes()
    if n_folds < len(prepared.folds):
        later.insert(0, f"there was time for {n_folds} of {len(prepared.folds)} folds")
    return conclude(
        prepared,
        model,
        plan=plan,
        choice=choice,
        scored=gather_held_out(prepared, folds, [one[choice.index] for one, _ in decisions]),
        elsewhere=[],
        fold=folds[0],
        genes=names[model.genes_].tolist(),
        notes=(list(prepared.notes), later),
        calibrate=calibrate,
        target_error=target_error,
        seconds=seconds,
        times=(begin, planned, searched, time.perf_counter()),
    )


def _classifier(**params: Any) -> TopScoringPairsClassifier:
    from optirank.estimators.top_pairs import TopScoringPairsClassifier

    return TopScoringPairsClassifier(**params)


def _fold_scores(prepared: Prepared, fold: Fold) -> tuple[NDArray, NDArray]:
    """Held-out scores (sizes, samples, problems) and numbers of genes (sizes,) of a fold.

    The score of a class that the fold lacks is minus infinity.
    """
    train, test = fold
    columns = prepared.chooser(train)
    model = _classifier(k_max=max(SIZES)).fit(prepared.X[train][:, columns], prepared.y[train])
    X = prepared.X[test][:, columns]
    scores = np.full((len(SIZES), len(test), prepared.n_problems), -np.inf)
    genes = [np.zeros(len(columns), dtype=bool) for _ in SIZES]
    problems = np.searchsorted(prepared.classes, model.classes_)
    if len(model.k_) == 1:
        problems = problems[1:]
    for problem, k, end in zip(problems, model.k_, np.cumsum(model.k_), strict=True):
        mine = slice(end - k, end)
        pairs = model.pairs_[mine]
        values = dense_columns(X, pairs.ravel())
        votes = pair_votes(values[:, ::2], values[:, 1::2], model.signs_[mine], model.ties)
        sizes = np.minimum(SIZES, k)
        found = mean_votes(votes, model.scores_[mine], sizes).T
        if prepared.n_problems == 1:
            scores[:, :, 0] = found
        else:
            scores[:, :, problem] = found
            if len(model.k_) == 1:  # the fold has two of several classes
                scores[:, :, np.searchsorted(prepared.classes, model.classes_[0])] = -found
        for mask, size in zip(genes, sizes, strict=True):
            mask[pairs[:size]] = True
    return scores, np.array([mask.sum() for mask in genes])


def _choose(
    prepared: Prepared, folds: list[Fold], decisions: list[tuple[NDArray, NDArray]], prefer: str
) -> Choice:
    """The number of pairs; samples of a class that a fold lacked are not counted there."""
    truths = [prepared.y[test] for _, test in folds]
    fair = [np.isin(y, prepared.y[train]) for y, (train, _) in zip(truths, folds, strict=True)]
    scores = np.array(
        [
            [
                balanced_accuracy(y[ok], predicted(one[ok], prepared.classes))
                for (sizes, _), y, ok in zip(decisions, truths, fair, strict=True)
                for one in [sizes[j]]
            ]
            for j in range(len(SIZES))
        ]
    )
    genes = np.array([counts for _, counts in decisions]).T
    params = [{"k_max": k} for k in SIZES]
    tables = scores, np.zeros((*scores.shape, 0)), genes
    real = prepared.groups is not None
    return choose_by_scores(params, tables, truths, default=0, real=real, prefer=prefer)
