"""The parts of a fitted classifier that prediction needs, with the genes of its panel alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.ranks.relative import relative_ranks, weighted_ranks
from optirank.ranks.scoring import needed_values, probabilities, worth_compiling

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

_BLOCK = 1 << 22  # ranks held at a time: 32 MiB
_KNOWN = (
    "PanelClassifier, OptirankClassifier, OptirankClassifierCV, RankLogisticRegression and "
    "AnovaRankLogisticRegression"
)


@dataclass(frozen=True)
class LinearParts:
    """A linear classifier on relative ranks, over the p genes of its panel.

    There is one score, a row, for two classes, one per class for more; the paper's classifier cut
    down to two classes keeps the scores of both. The rows of a panel model have the whole panel as
    their reference set.
    """

    classes: NDArray
    coef: NDArray  # (rows, p)
    reference_weights: NDArray  # (rows, p)
    intercept: NDArray  # (rows,)
    mean_ranks: (
        NDArray | None
    )  # (rows, p): mean scaled ranks in training, where they are stored
    ties: str
    positions: NDArray  # (p,): the columns of the panel's genes in the training data
    n_features: int
    names: NDArray | None  # (n_features,): all genes of the training data
    is_panel: bool  # one reference set, the panel; probabilities are the softmax of the scores

    @property
    def score_classes(self) -> NDArray:
        """The class that each score speaks for."""
        return self.classes[-len(self.coef) :]

    @cached_property
    def genes(self) -> NDArray:
        """Names of the panel's genes; ``x17`` for column 17 of nameless training data."""
        if self.names is None:
            return np.array(
                [f"x{position}" for position in self.positions], dtype=object
            )
        return self.names[self.positions]

    def probabilities(self, scores: NDArray) -> NDArray:
        """Probabilities of scores without a calibration, (n, classes).

        Softmax for a panel model; normalised logistic functions for one problem per class. Both are
        the logistic function for two classes.
        """
        return probabilities(
            scores, offset=-np.inf if self.is_panel and scores.ndim == 2 else 0.0
        )


def carried(model: Any, name: str) -> Any:
    """What a model stores beyond its fit, itself or as the best model of a search; else None."""
    best = getattr(model, "best_estimator_", None)
    return getattr(model, name, getattr(best, name, None))


def class_codes(labels: ArrayLike, classes: NDArray) -> NDArray:
    """The position of each held-out sample's label among the classes of a model."""
    labels = np.asarray(labels)
    found = labels[:, None] == classes
    if not found.any(axis=1).all():
        strange = labels[~found.any(axis=1)][0]
        raise ValueError(
            f"a held-out sample is of class {strange!s}, which the model lacks"
        )
    return found.argmax(axis=1)


def linear_model(model: Any) -> Any:
    """The linear classifier that predicts: the model itself, or the best one of a search."""
    found = getattr(model, "best_estimator_", model)
    if not hasattr(found, "reference_weights_"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(found)
        name = type(found).__name__
        raise TypeError(f"a {name} has no weights on ranks: this works for {_KNOWN}")
    return found


def linear_parts(model: Any) -> LinearParts:
    """The parts of a fitted model that prediction needs."""
    model = linear_model(model)
    coef = np.asarray(model.coef_)
    names = getattr(model, "feature_names_in_", None)
    gamma, means = (
        np.asarray(model.reference_weights_),
        getattr(model, "mean_ranks_", None),
    )
    panel = np.flatnonzero(((gamma > 0) | (coef != 0)).any(axis=0))
    is_panel = hasattr(model, "panel_")
    if means is not None:
        means = (
            np.tile(means, (len(coef), 1)) if is_panel else np.asarray(means)[:, panel]
        )
    return LinearParts(
        classes=np.asarray(model.classes_),
        coef=coef[:, panel],
        reference_weights=gamma[:, panel],
        intercept=np.asarray(model.intercept_),
        mean_ranks=means,
        ties=model.ties,
        positions=panel,
        n_features=coef.shape[1],
        names=None if names is None else np.asarray(names, dtype=object),
        is_panel=is_panel,
    )


def panel_ranks(
    X: Any, columns: NDArray | None = None, compiled: bool | None = None
) -> NDArray:
    """Ranks of each sample's values among themselves, ``(average rank - 1) / genes``.

    Parameters
    ----------
    X : samples x genes, an array or CSR or CSC matrix.
    columns : the columns to rank among themselves; all by default.
    compiled : whether to use the compiled loop; None where there are samples enough. Both give the
        same.
    """
    columns = np.arange(X.shape[1]) if columns is None else columns
    X = needed_values(X, slice(None), columns)
    if not (worth_compiling(X.shape[0], 1) if compiled is None else compiled):
        return relative_ranks(X, np.ones(len(columns), dtype=bool))
    from optirank.ranks.orders import order_samples

    ranks = order_samples(X).ranks(np.ones(len(columns)), dtype=np.float64)
    return ranks.columns(np.arange(len(columns))) / len(columns)


def describe_training(
    model: Any, X: Any, y: ArrayLike, genes: Iterable[str], **summary: Any
) -> Any:
    """Store in a fitted model what it needs to know of its training; the model file keeps it.

    Sets ``feature_names_in_`` and ``training_summary_``: the numbers of genes, ``values`` (see
    ``optirank.model.query``) and whatever is given. A classifier other than the panel model gets
    ``mean_ranks_`` too: the mean scaled rank of each gene with a weight, classes counted equally,
    which stands in for the gene where it is missing from a query.

    Parameters
    ----------
    model : a fitted linear classifier on ranks.
    X, y : the data it was fitted on, or some of the samples.
    genes : the names of X's columns.
    summary : more to keep, of plain values (numbers, strings, lists, dictionaries, arrays).

    Returns
    -------
    The model.
    """
    from optirank.model.query import ValueSummary

    fitted = linear_model(model)
    X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    fitted.feature_names_in_ = np.array(list(genes), dtype=object)
    if not hasattr(fitted, "panel_"):
        _, codes, counts = np.unique(
            np.asarray(y), return_inverse=True, return_counts=True
        )
        fitted.mean_ranks_ = _mean_ranks(fitted, X, 1.0 / (len(counts) * counts[codes]))
    values = ValueSummary()
    values.add(X[:, np.flatnonzero(fitted.genes_)])
    sizes = {"n_genes": X.shape[1], "n_panel": int(np.count_nonzero(fitted.genes_))}
    fitted.training_summary_ = sizes | {"values": values.to_plain()} | summary
    return model


def _mean_ranks(model: Any, X: Any, weights: NDArray) -> NDArray:
    """Weighted means of the ranks of the genes with a weight, (rows, genes)."""
    means = np.zeros(np.shape(model.coef_))
    for row, (w, gamma) in enumerate(
        zip(model.coef_, model.reference_weights_, strict=True)
    ):
        genes = np.flatnonzero(w)
        step = max(1, _BLOCK // max(1, len(genes)))
        for block in (slice(at, at + step) for at in range(0, len(weights), step)):
            ranks = weighted_ranks(X[block], gamma, ties=model.ties, genes=genes)
            means[row, genes] += weights[block] @ ranks
    return means
