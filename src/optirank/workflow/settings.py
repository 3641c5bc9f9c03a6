"""The paper's methods in a training: a small fixed grid, judged on held-out samples.

Every setting is fitted in every fold, on the genes that correlate most with the labels of its
training part, and scored on its held-out samples as they are and on simulated platforms; the rule
of ``selection="transfer"`` chooses. At most 500 samples per class are used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from optirank._util.workers import worker_count
from optirank.estimators.elimination import best_codes, first_pass, some_rows
from optirank.solver.constants import DEFAULTS
from optirank.tuning.platforms import VIEW_STRENGTHS, log_spread, simulate_platforms
from optirank.tuning.scoring import balanced_accuracy
from optirank.tuning.selection import default_setting, select_for_transfer, standard_error

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.workflow.preparation import Prepared, TrainingOptions

Progress = Callable[[int, int, str], None]
_N_CANDIDATES = 1000  # genes: the paper's classifiers gained nothing from more
_SEED = 1  # of the simulated platforms: results are the same every time
SETTINGS: dict[str, list[dict[str, float]]] = {
    "optirank": [
        DEFAULTS | {"n_reference": share, "l2": l2}
        for share in (DEFAULTS["n_reference"], 0.05)
        for l2 in (DEFAULTS["l2"], 1e-2)
    ],
    "rank-lr": [{"l1": 0.0, "l2": l2} for l2 in (1e-3, 1e-2, 1e-1)],
}
"""Around the defaults of the estimators; the first is left only for a clearly better one."""


@dataclass(frozen=True)
class Fitted:
    """What a method of training gives back.

    ``scores`` are decision values (n, 1 or classes) of the samples ``held_out``, by number of genes
    of the models, which were fitted without them; -inf for a class that a fold could not learn. The
    largest number is that of the model itself.
    """

    model: Any
    genes: NDArray  # names of the model's columns
    X: Any  # samples at ``rows``, with these genes
    rows: NDArray
    held_out: NDArray  # rows that were held out, all among ``rows``
    scores: dict[int, NDArray]
    curve: pd.DataFrame
    notes: tuple[str, ...] = ()


def train_settings(
    prepared: Prepared, options: TrainingOptions, progress: Progress | None
) -> Fitted:
    """Choose a setting of ``options.method`` and fit it."""
    settings = SETTINGS[options.method]
    codes, classes, fold_of = prepared.codes, prepared.classes, prepared.fold_of
    rows = some_rows(codes)
    sums, X = first_pass(prepared.source, codes, len(classes), fold_of + 1, rows)
    X = X.tocsr() if hasattr(X, "tocsr") else X
    y, fold = codes[rows], fold_of[rows]
    folds, every = np.unique(fold[fold >= 0]), np.arange(sums.n_parts)
    width = 1 if len(classes) == 2 else len(classes)
    scores = np.full((len(settings), len(rows), width), np.nan)
    plain = np.full((len(settings), len(folds)), np.nan)
    shifted = np.full((*plain.shape, len(VIEW_STRENGTHS)), np.nan)
    n_genes = np.zeros(plain.shape)
    for k, number in enumerate(folds):
        columns = sums.best_genes(_N_CANDIDATES, every[every != number + 1])
        train, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        fair = np.isin(y[test], y[train])
        seen = X[train][:, columns]
        views = [X[test][:, columns]]
        views += simulate_platforms(
            views[0], len(VIEW_STRENGTHS), VIEW_STRENGTHS, _SEED, spread=log_spread(seen)
        )
        for i, setting in enumerate(settings):
            model = _make(options, setting).fit(seen, y[train])
            n_genes[i, k] = model.genes_.sum()
            found = [_scores(model, view, width) for view in views]
            scores[i, test] = found[0]
            accuracies = [balanced_accuracy(y[test][fair], best_codes(one)[fair]) for one in found]
            plain[i, k], shifted[i, k] = accuracies[0], accuracies[1:]
            if progress is not None:
                progress(k * len(settings) + i + 1, plain.size + 1, "cross-validation")
    real = prepared.sources is not None
    default = default_setting(settings)
    best = select_for_transfer(plain, shifted, n_genes, default=default, real=real)
    columns = sums.best_genes(_N_CANDIDATES)
    model = _make(options, settings[best]).fit(X[:, columns], classes[y])
    model.set_params(n_jobs=None)
    if progress is not None:
        progress(plain.size + 1, plain.size + 1, "final fit")
    out = fold >= 0
    there = np.isfinite(plain[best])
    curve = pd.DataFrame(
        {
            "n_genes": [int(model.genes_.sum())],
            "balanced_accuracy": [_pooled(y, scores[best])],
            "standard_error": [float(standard_error(plain[best][there]))],
            "chosen": [True],
        }
    )
    words = ", ".join(f"{name} {value:g}" for name, value in settings[best].items())
    return Fitted(
        model,
        prepared.source.genes[columns],
        X[:, columns],
        rows,
        rows[out],
        {int(model.genes_.sum()): scores[best][out]},
        curve,
        (f"setting chosen among {len(settings)}: {words}",),
    )


def _pooled(y: NDArray, scores: NDArray) -> float:
    """Balanced accuracy of all held-out samples of classes that their fold could learn."""
    own = scores[np.arange(len(y)), y if scores.shape[1] > 1 else 0]
    known = np.isfinite(own)
    return balanced_accuracy(y[known], best_codes(scores[known]))


def _make(options: TrainingOptions, setting: dict[str, float]) -> Any:
    from optirank import OptirankClassifier, RankLogisticRegression

    kind = OptirankClassifier if options.method == "optirank" else RankLogisticRegression
    return kind(**setting, n_jobs=worker_count(options.n_jobs))


def _scores(model: Any, X: Any, width: int) -> NDArray:
    """Decision values by class; -inf for classes that the model lacks."""
    found = model.decision_function(X)
    if width == 1:
        return found[:, None]
    scores = np.full((X.shape[0], width), -np.inf)
    if len(model.classes_) == 2:
        found = np.column_stack([-found, found])
    scores[:, model.classes_] = found
    return scores
