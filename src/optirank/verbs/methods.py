"""The methods of training: what chooses genes and weights, and scores held-out
samples.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.metrics import balanced_accuracy, standard_error
from optirank.model import Model
from optirank.model.card import CurvePoint
from optirank.model.predictor import SizedPanel
from optirank.panel.drills import VIEW_STRENGTHS, log_spread, simulate_platforms
from optirank.panel.elimination import is_learned, search_panels
from optirank.ranks.scoring import best_class, by_class, weighted_ranks
from optirank.solver.constants import DEFAULTS
from optirank.verbs.train import Fitted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank._util.matrices import Progress
    from optirank.verbs.options import TrainingOptions
    from optirank.verbs.preparation import Prepared

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
    prepared: Prepared, options: TrainingOptions, progress: Progress
) -> Fitted:
    """The panel model: nested panels by elimination, a size by held-out accuracy."""
    tree = prepared.tree
    path, n_genes, held_out = search_panels(
        prepared.sums,
        prepared.kept,
        prepared.X,
        prepared.fold_of,
        prepared.codes,
        len(prepared.classes),
        prepared.run_pass,
        sample_weight=prepared.weights,
        n_genes=prepared.n_genes,
        include=prepared.include,
        allowed=prepared.allowed,
        per_class=prepared.per_class,
        contrasts=tree and tree.contrasts(prepared.classes)[1],
        n_threads=prepared.n_threads,
        progress=progress,
    )
    genes = prepared.genes
    of_model = 0 if len(prepared.classes) == 2 else slice(None)
    panels = {
        size: SizedPanel(
            genes=genes[panel.genes],
            columns=panel.genes,
            # Of single precision: a smaller file, and the same labels
            coef=panel.coef.astype(np.float32).astype(np.float64),
            missing=tuple(held_out.with_missing(size)),
        )
        for size, panel in path.items()
    }
    return Fitted(
        panels=panels,
        n_genes=n_genes,
        genes=genes,
        X=prepared.X,
        held_out=held_out.rows,
        scores={size: held_out.scores[size][:, of_model] for size in panels},
        curve=[CurvePoint(*point) for point in held_out.curve()],
        fold_panels={
            fold: panel
            for (size, fold), panel in held_out.panels.items()
            if size == n_genes
        },
    )


def train_settings(
    prepared: Prepared, options: TrainingOptions, progress: Progress
) -> Fitted:
    """The paper's methods: a small fixed grid, judged on held-out samples.

    Every setting is fitted in every fold, on the genes that correlate most with the
    labels of its training part, and scored on its held-out samples as they are and on
    simulated platforms; the rule of ``selection="transfer"`` chooses. At most 500
    samples per class are used.
    """
    from optirank.tuning.selection import (
        default_setting,
        select_for_transfer,
        transfer_scores,
    )

    settings = SETTINGS[options.method]
    sums = prepared.sums
    rows = prepared.kept
    X = prepared.X.tocsr() if hasattr(prepared.X, "tocsr") else prepared.X
    y = prepared.codes[rows]
    fold = prepared.fold_of[rows]
    weights = prepared.weights[rows]
    n_classes = len(prepared.classes)
    all_scores = np.full((len(settings), len(rows), n_classes), np.nan)
    shape = (len(settings), prepared.n_folds)
    n_genes = np.zeros(shape)
    accuracies = np.full((*shape, 1 + len(VIEW_STRENGTHS)), np.nan)
    n_fits = n_genes.size + 1
    for column, number in enumerate(np.unique(fold[fold >= 0])):
        parts = np.arange(len(sums.sizes))
        genes = sums.best_genes(_N_CANDIDATES, parts[parts != number + 1])
        train = np.flatnonzero(fold != number)
        test = np.flatnonzero(fold == number)
        fair = np.isin(y[test], y[train])
        seen = X[train][:, genes]
        views = [X[test][:, genes]]
        views += simulate_platforms(views[0], VIEW_STRENGTHS, spread=log_spread(seen))
        for row, setting in enumerate(settings):
            estimator = _make(options.method, setting, prepared.n_threads)
            estimator.fit(seen, y[train], weights[train])
            n_genes[row, column] = estimator.genes_.sum()
            scores = [_scores(estimator, view, n_classes) for view in views]
            all_scores[row, test] = scores[0]
            accuracies[row, column] = [
                balanced_accuracy(y[test][fair], best_class(of_view)[fair])
                for of_view in scores
            ]
            progress(column * len(settings) + row + 1, n_fits)
    plain = accuracies[:, :, 0]
    has_sources = prepared.sources is not None
    of_settings = transfer_scores(plain, accuracies[:, :, 1:], real=has_sources)
    chosen = select_for_transfer(of_settings, n_genes, default_setting(settings))
    columns = sums.best_genes(_N_CANDIDATES)
    estimator = _make(options.method, settings[chosen], prepared.n_threads)
    estimator.fit(X[:, columns], prepared.classes[y], weights)
    progress(n_fits, n_fits)
    names = prepared.genes[columns]
    model = Model.from_estimator(estimator, names)
    panel = _with_mean_ranks(model.panel, X[:, columns], y)
    scores = all_scores[chosen]
    learned = (fold >= 0) & is_learned(scores, y)
    scores = scores[learned]
    of_folds = plain[chosen]
    error = float(standard_error(of_folds[np.isfinite(of_folds)]))
    words = ", ".join(f"{name} {value:g}" for name, value in settings[chosen].items())
    return Fitted(
        panels={model.n_genes: panel},
        n_genes=model.n_genes,
        genes=names,
        X=X[:, columns],
        held_out=rows[learned],
        scores={model.n_genes: scores[:, 1 if n_classes == 2 else slice(None)]},
        curve=[CurvePoint(model.n_genes, float("nan"), error)],
        notes=(f"setting chosen among {len(settings)}: {words}",),
    )


def _make(method: str, setting: dict[str, float], n_jobs: int) -> Any:
    from optirank.estimators.optirank import OptirankClassifier, RankLogisticRegression

    paper = method == "optirank"
    kind: Any = OptirankClassifier if paper else RankLogisticRegression
    return kind(**setting, n_jobs=n_jobs)


def _scores(estimator: Any, X: Any, n_classes: int) -> NDArray:
    """Decision values by class; -inf for classes that the estimator lacks."""
    scores = np.full((X.shape[0], n_classes), -np.inf)
    scores[:, estimator.classes_] = by_class(estimator.decision_function(X))
    return scores


def _with_mean_ranks(panel: SizedPanel, X: Any, codes: NDArray) -> SizedPanel:
    """Store the mean rank of each gene with a weight, classes counted equally."""
    references = panel.references
    assert references is not None
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
