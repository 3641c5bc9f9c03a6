"""The methods of training: what chooses genes and weights, and scores held-out
samples.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.metrics import balanced_accuracy, standard_error
from optirank._util.workers import worker_count
from optirank.model import Model
from optirank.model.card import CurvePoint
from optirank.model.weights import SizedPanel
from optirank.panel.elimination import search_panels
from optirank.panel.platforms import VIEW_STRENGTHS, log_spread, simulate_platforms
from optirank.ranks.relative import weighted_ranks
from optirank.ranks.scoring import best_class, by_class
from optirank.solver.constants import DEFAULTS
from optirank.workflow.train import Fitted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.panel.candidates import ClassSums
    from optirank.workflow.options import TrainingOptions
    from optirank.workflow.preparation import FirstLook, Prepared
    from optirank.workflow.train import Progress

_N_CANDIDATES = 1000  # genes: the paper's classifiers gained nothing from more
_BLOCK = 1 << 22  # ranks held at a time: 32 MiB
SETTINGS: dict[str, list[dict[str, float]]] = {
    "optirank": [
        DEFAULTS | {"n_reference": share, "l2": l2}
        for share in (DEFAULTS["n_reference"], 0.05)
        for l2 in (DEFAULTS["l2"], 1e-2)
    ],
    "rank-lr": [{"l1": 0.0, "l2": l2} for l2 in (1e-3, 1e-2, 1e-1)],
}
"""Around the defaults of the estimators; the first is left only for a clearly better
one."""


def train_panel(
    prepared: Prepared,
    looked: FirstLook,
    options: TrainingOptions,
    progress: Progress,
) -> Fitted:
    """The panel model: nested panels by elimination, a size by held-out accuracy."""
    path, n_genes, held_out = search_panels(
        looked.sums,
        looked.rows,
        looked.X,
        prepared.codes,
        len(prepared.classes),
        prepared.run_pass,
        sample_weight=prepared.weights,
        n_genes=prepared.n_genes,
        include=prepared.include,
        allowed=prepared.allowed,
        per_class=prepared.per_class,
        fold_of=prepared.fold_of,
        n_threads=worker_count(options.n_jobs),
        progress=progress,
    )
    if held_out is None:
        raise RuntimeError("a training has folds")
    genes = prepared.genes
    panels = {
        size: SizedPanel(
            genes=genes[panel.genes],
            columns=panel.genes,
            coef=_single_precision(panel.coef),
            missing=tuple(held_out.with_missing(size)),
        )
        for size, panel in path.items()
    }
    return Fitted(
        panels=panels,
        n_genes=n_genes,
        genes=genes,
        X=looked.X,
        rows=looked.rows,
        held_out=held_out.rows,
        scores={size: held_out.scores[size] for size in panels},
        curve=[CurvePoint(*point) for point in held_out.curve()],
        fold_panels={
            fold: panel
            for (size, fold), panel in held_out.panels.items()
            if size == n_genes
        },
    )


def _single_precision(coef: NDArray) -> NDArray[np.float64]:
    """Weights rounded to single precision: a smaller file, and the same labels."""
    return coef.astype(np.float32).astype(np.float64)


def train_settings(
    prepared: Prepared,
    looked: FirstLook,
    options: TrainingOptions,
    progress: Progress,
) -> Fitted:
    """The paper's methods: a small fixed grid, judged on held-out samples.

    Every setting is fitted in every fold, on the genes that correlate most with the
    labels of its training part, and scored on its held-out samples as they are and on
    simulated platforms; the rule of ``selection="transfer"`` chooses. At most 500
    samples per class are used.
    """
    from optirank.tuning.selection import default_setting, select_for_transfer

    settings = SETTINGS[options.method]
    sums = looked.sums
    rows = looked.rows
    X = looked.X.tocsr() if hasattr(looked.X, "tocsr") else looked.X
    y = prepared.codes[rows]
    weights = np.ones(len(rows)) if prepared.weights is None else prepared.weights[rows]
    trials = _try_settings(
        prepared, options, settings, sums, X, rows, weights, progress
    )
    chosen = select_for_transfer(
        trials.plain,
        trials.shifted,
        trials.n_genes,
        default=default_setting(settings),
        real=prepared.sources is not None,
    )
    columns = sums.best_genes(_N_CANDIDATES)
    estimator = _make(options, settings[chosen])
    estimator.fit(X[:, columns], prepared.classes[y], weights)
    progress(trials.plain.size + 1, trials.plain.size + 1)
    genes = prepared.genes[columns]
    model = Model.from_estimator(estimator, genes)
    panel = _with_mean_ranks(model.panel, X[:, columns], y)
    out = prepared.fold_of[rows] >= 0
    accuracies = trials.plain[chosen]
    error = float(standard_error(accuracies[np.isfinite(accuracies)]))
    words = ", ".join(f"{name} {value:g}" for name, value in settings[chosen].items())
    return Fitted(
        panels={model.n_genes: panel},
        n_genes=model.n_genes,
        genes=genes,
        X=X[:, columns],
        rows=rows,
        held_out=rows[out],
        scores={model.n_genes: trials.scores[chosen][out]},
        curve=[CurvePoint(model.n_genes, float("nan"), error)],
        notes=(f"setting chosen among {len(settings)}: {words}",),
    )


class _Trials:
    """Scores of every setting in every fold."""

    def __init__(
        self, n_settings: int, n_folds: int, n_samples: int, width: int
    ) -> None:
        shape = (n_settings, n_folds)
        self.scores = np.full((n_settings, n_samples, width), np.nan)
        self.plain = np.full(shape, np.nan)
        self.shifted = np.full((*shape, len(VIEW_STRENGTHS)), np.nan)
        self.n_genes = np.zeros(shape)


def _try_settings(
    prepared: Prepared,
    options: TrainingOptions,
    settings: list[dict[str, float]],
    sums: ClassSums,
    X: Any,
    rows: NDArray,
    weights: NDArray,
    progress: Progress,
) -> _Trials:
    """Fit every setting in every fold, and score the held-out samples."""
    y = prepared.codes[rows]
    fold = prepared.fold_of[rows]
    folds = np.unique(fold[fold >= 0])
    parts = np.arange(sums.n_parts)
    width = 1 if len(prepared.classes) == 2 else len(prepared.classes)
    trials = _Trials(len(settings), len(folds), len(rows), width)
    for column, number in enumerate(folds):
        genes = sums.best_genes(_N_CANDIDATES, parts[parts != number + 1])
        train = np.flatnonzero(fold != number)
        test = np.flatnonzero(fold == number)
        fair = np.isin(y[test], y[train])
        seen = X[train][:, genes]
        views = [X[test][:, genes]]
        views += simulate_platforms(views[0], VIEW_STRENGTHS, spread=log_spread(seen))
        for row, setting in enumerate(settings):
            estimator = _make(options, setting)
            estimator.fit(seen, y[train], weights[train])
            trials.n_genes[row, column] = estimator.genes_.sum()
            scores = [_scores(estimator, view, width) for view in views]
            trials.scores[row, test] = scores[0]
            accuracies = [
                balanced_accuracy(y[test][fair], best_class(of_view)[fair])
                for of_view in scores
            ]
            trials.plain[row, column] = accuracies[0]
            trials.shifted[row, column] = accuracies[1:]
            done = column * len(settings) + row + 1
            progress(done, trials.plain.size + 1)
    return trials


def _make(options: TrainingOptions, setting: dict[str, float]) -> Any:
    from optirank.estimators.optirank import OptirankClassifier, RankLogisticRegression

    paper = options.method == "optirank"
    kind: Any = OptirankClassifier if paper else RankLogisticRegression
    return kind(**setting, n_jobs=worker_count(options.n_jobs))


def _scores(estimator: Any, X: Any, width: int) -> NDArray:
    """Decision values by class; -inf for classes that the estimator lacks."""
    values = estimator.decision_function(X)
    if width == 1:
        return values[:, None]
    scores = np.full((X.shape[0], width), -np.inf)
    scores[:, estimator.classes_] = by_class(values)
    return scores


def _with_mean_ranks(panel: SizedPanel, X: Any, codes: NDArray) -> SizedPanel:
    """Store the mean rank of each gene with a weight, classes counted equally."""
    references = panel.references
    if references is None:
        return panel
    counts = np.bincount(codes)
    weights = 1.0 / (np.count_nonzero(counts) * counts[codes])
    means = np.zeros(panel.coef.shape)
    values = X[:, panel.columns]
    for row, (coef, gamma) in enumerate(
        zip(panel.coef, references.weights, strict=True)
    ):
        genes = np.flatnonzero(coef)
        step = max(1, _BLOCK // max(1, len(genes)))
        for start in range(0, len(weights), step):
            block = slice(start, start + step)
            ranks = weighted_ranks(
                values[block], gamma, ties=references.ties, genes=genes
            )
            means[row, genes] += weights[block] @ ranks
    return replace(panel, references=replace(references, mean_ranks=means))
