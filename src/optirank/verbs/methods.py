"""The methods of training: what chooses genes and weights, and scores held-out
samples.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.numbers import balanced_accuracy, standard_error
from optirank._util.words import note
from optirank._util.work import threads_in_use
from optirank.data.passes import run_pass
from optirank.model import Model
from optirank.model.panels import SizedPanel
from optirank.panel.elimination import is_learned, search_panels
from optirank.ranks.scoring import best_class, by_class, weighted_ranks
from optirank.verbs.training import Fitted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank._util.numbers import Progress
    from optirank.verbs.training_set import TrainingSet

_N_CANDIDATES = 1000  # genes: the paper's classifiers gained nothing from more
_GRID: Any = {"n_references": (0.05, 0.2), "l1s": (1e-3,), "l2s": (1e-3, 1e-2)}
"""Around the defaults: the wide grid of the class finds fewer genes, which did worse on
most other platforms, and takes ten times as long."""
_BLOCK = 1 << 22  # ranks held at a time: 32 MiB


def train_panel(training_set: TrainingSet, progress: Progress) -> Fitted:
    """The panel model: nested panels by elimination, a size by held-out accuracy."""
    tree = training_set.samples.tree
    path, n_genes, held_out = search_panels(
        training_set.sums,
        training_set.kept,
        training_set.X,
        training_set.fold_of,
        training_set.samples.codes,
        len(training_set.samples.classes),
        partial(run_pass, training_set.data, rows=training_set.samples.rows),
        sample_weight=training_set.samples.weights,
        n_genes=training_set.n_genes,
        include=training_set.include,
        allowed=training_set.allowed,
        per_class=training_set.per_class,
        contrasts=tree and tree.contrasts(training_set.samples.classes)[1],
        progress=progress,
    )
    genes = training_set.genes
    of_model = 0 if len(training_set.samples.classes) == 2 else slice(None)
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
        X=training_set.X,
        held_out=held_out.rows,
        scores={size: held_out.scores[size][:, of_model] for size in panels},
        curve=held_out.curve(),
        fold_panels={
            fold: panel
            for (size, fold), panel in held_out.panels.items()
            if size == n_genes
        },
    )


def train_optirank(training_set: TrainingSet, progress: Progress) -> Fitted:
    """The paper's classifier: `OptirankClassifierCV` with the folds of the training.

    It sees the genes that correlate most with the labels, and at most 500 samples per
    class. The samples of a fold are scored by the chosen setting on genes that were
    chosen without them.
    """
    from optirank.estimators.optirank import OptirankClassifier
    from optirank.estimators.optirank_cv import OptirankClassifierCV

    sums = training_set.sums
    rows = training_set.kept
    X = training_set.X.tocsr() if hasattr(training_set.X, "tocsr") else training_set.X
    y = training_set.samples.codes[rows]
    fold = training_set.fold_of[rows]
    weights = training_set.samples.weights[rows]
    n_jobs = threads_in_use()
    numbers = np.unique(fold[fold >= 0])
    folds = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in numbers]
    columns = sums.best_genes(_N_CANDIDATES)
    search = OptirankClassifierCV(**_GRID, cv=folds, n_jobs=n_jobs)
    search.fit(X[:, columns], y, weights)
    progress(1, 2)
    n_classes = len(training_set.samples.classes)
    scores = np.full((len(rows), n_classes), -np.inf)
    accuracies = []
    for number, (train, test) in zip(numbers, folds, strict=True):
        parts = np.arange(len(sums.sizes))
        genes = sums.best_genes(_N_CANDIDATES, parts[parts != number + 1])
        classifier = OptirankClassifier(**search.best_params_, n_jobs=n_jobs)
        classifier.fit(X[train][:, genes], y[train], weights[train])
        decision = by_class(classifier.decision_function(X[test][:, genes]))
        scores[np.ix_(test, classifier.classes_)] = decision
        fair = test[np.isin(y[test], classifier.classes_)]
        accuracies.append(balanced_accuracy(y[fair], best_class(scores[fair])))
    progress(2, 2)
    learned = (fold >= 0) & is_learned(scores, y)
    names = training_set.genes[columns]
    model = Model.from_estimator(search, names)
    chosen = ", ".join(f"{key} {value:g}" for key, value in search.best_params_.items())
    note(f"setting chosen among {len(search.cv_results_['params'])}: {chosen}")
    error = float(standard_error(np.array(accuracies)))
    return Fitted(
        panels={model.n_genes: _with_mean_ranks(model.panel, X[:, columns], y)},
        n_genes=model.n_genes,
        genes=names,
        X=X[:, columns],
        held_out=rows[learned],
        scores={model.n_genes: scores[learned, 1 if n_classes == 2 else slice(None)]},
        curve=[(model.n_genes, float("nan"), error)],
        fold_panels={},
    )


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
