"""What a model remembers of its training data, beyond its fit: mean ranks, and a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.estimators.summary import TrainingSummary
from optirank.estimators.value_rows import as_seen
from optirank.estimators.votes import is_vote
from optirank.model.linear import linear_model
from optirank.model.value_kinds import value_kinds
from optirank.ranks.relative import weighted_ranks
from optirank.solver.problem import sample_weights

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

_BLOCK = 1 << 22  # ranks held at a time


def remember_training(
    model: Any, X: Any, y: ArrayLike, *, genes: Iterable[str] | None = None, **summary: Any
) -> Any:
    """Let a fitted model carry what its training data looked like; the model file keeps it.

    Sets ``mean_ranks_``, the mean relative rank of each gene with a weight, which stands in for the
    gene where it is missing (each class of a problem counts the same if it did in training), and
    ``training_summary_``, counts, the kind of values (see ``optirank.model.value_kinds``) and
    whatever is given: a dictionary that prints as a summary.

    Parameters
    ----------
    model : a fitted linear classifier on ranks.
    X, y : the data it was fitted on.
    genes : the names of X's columns, where X is an array or sparse matrix: they become the model's
        ``feature_names_in_``, by which genes are found in new data.
    summary : more to keep, of plain values (numbers, strings, lists, dictionaries, arrays).

    Returns
    -------
    The model.
    """
    fitted = linear_model(model)
    y = np.asarray(y)
    if genes is not None:
        names = np.array(list(genes), dtype=object)
        if len(names) != fitted.n_features_in_:
            raise ValueError(f"{len(names)} gene names for {fitted.n_features_in_} columns")
        fitted.feature_names_in_ = names
    X = X if hasattr(X, "tocsr") else np.asarray(X)
    X = X.tocsr() if hasattr(X, "tocsr") else X
    if X.shape != (len(y), fitted.n_features_in_):
        raise ValueError(
            f"X has shape {X.shape}, but there are {len(y)} labels and the model was fitted on "
            f"{fitted.n_features_in_} genes"
        )
    labels, counts = np.unique(y, return_counts=True)
    if not is_vote(fitted):  # a pair that lacks a gene does not vote
        fitted.mean_ranks_ = _mean_ranks(fitted, X, y)
    counted = {
        "n_samples": len(y),
        "n_genes": int(fitted.n_features_in_),
        "n_panel": int(fitted.genes_.sum()),
        "class_counts": dict(zip(labels.tolist(), counts.tolist(), strict=True)),
        "values": value_kinds(X[:, np.flatnonzero(fitted.genes_)]).to_plain(),
    }
    fitted.training_summary_ = TrainingSummary(counted | summary)
    return model


def _mean_ranks(model: Any, X: Any, y: NDArray) -> NDArray:
    """Mean relative ranks (for a classifier on values: mean values) of the genes with a weight."""
    classes = model.classes_
    positives = classes[1:] if len(classes) == 2 else classes
    balanced = model.class_weight == "balanced"
    means = np.zeros(model.coef_.shape)
    per_problem = len(means) // len(positives)
    if not hasattr(model, "ties"):
        values = as_seen(X, model.target_sum)
        weights = [sample_weights(y == label, None, balanced) for label in positives]
        return np.where(model.coef_ != 0, np.array([w @ values for w in weights]), 0.0)
    for row, (w, gamma) in enumerate(zip(model.coef_, model.reference_weights_, strict=True)):
        genes = np.flatnonzero(w)
        if not genes.size:
            continue
        weights = sample_weights(y == positives[row // per_problem], None, balanced)
        step = max(1, _BLOCK // len(genes))
        for start in range(0, len(y), step):
            block = slice(start, start + step)
            ranks = weighted_ranks(X[block], gamma, ties=model.ties, genes=genes)
            means[row, genes] += weights[block] @ ranks
    return means
