"""The parts of a fitted classifier that prediction needs, with the genes of its panel alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.ranks.relative import relative_ranks, weighted_ranks
from optirank.ranks.scoring import average_rows, needed_values, probabilities, worth_compiling

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import ArrayLike, NDArray

_BLOCK = 1 << 22  # ranks held at a time: 32 MiB
_KNOWN = (
    "PanelClassifier, OptirankClassifier, OptirankClassifierCV, RankLogisticRegression and "
    "AnovaRankLogisticRegression"
)


@dataclass(frozen=True)
class LinearParts:
    """A linear classifier on relative ranks, over the p genes of its panel.

    There is one score for two classes, one per class for more. A score has one row of weights; the
    paper's classifier cut down to two classes has two rows, whose scores are averaged. The rows of
    a panel model have the whole panel as their reference set.
    """

    classes: NDArray
    coef: NDArray  # (rows, p)
    reference_weights: NDArray  # (rows, p)
    intercept: NDArray  # (rows,)
    mean_ranks: NDArray | None  # (rows, p): mean scaled ranks in training, where they are stored
    ties: str
    positions: NDArray  # (p,): the columns of the panel's genes in the training data
    n_features: int
    names: NDArray | None  # (n_features,): all genes of the training data
    is_panel: bool  # one reference set, the panel; probabilities are the softmax of the scores

    @property
    def n_scores(self) -> int:
        """Number of scores per sample."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    @property
    def rows_per_score(self) -> int:
        """Rows whose scores are averaged."""
        return len(self.coef) // self.n_scores

    @property
    def score_classes(self) -> NDArray:
        """The class that each score speaks for."""
        return self.classes[1:] if self.n_scores == 1 else self.classes

    @cached_property
    def genes(self) -> NDArray:
        """Names of the panel's genes; ``x17`` for column 17 of nameless training data."""
        if self.names is None:
            return np.array([f"x{position}" for position in self.positions], dtype=object)
        return self.names[self.positions]

    def average(self, rows: NDArray) -> NDArray:
        """Mean over the rows of each score, along the last axis."""
        return average_rows(rows, self.n_scores)

    def probabilities(self, scores: NDArray) -> NDArray:
        """Probabilities of scores without a calibration, (n, classes).

        Softmax for a panel model; normalised logistic functions for one problem per class. Both are
        the logistic function for two classes.
        """
        softmax = self.is_panel and self.n_scores > 1
        return probabilities(scores, offset=-np.inf if softmax else 0.0)


def carried(model: Any, name: str) -> Any:
    """What a model stores beyond its fit, itself or as the best model of a search; else None."""
    best = getattr(model, "best_estimator_", None)
    return getattr(model, name, getattr(best, name, None))


def linear_model(model: Any) -> Any:
    """The linear classifier that predicts: the model itself, or the best one of a search."""
    found = getattr(model, "best_estimator_", model)
    if not hasattr(found, "panel_") and not hasattr(found, "reference_weights_"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(found)
        name = type(found).__name__
        raise TypeError(f"a {name} has no weights on ranks: this works for {_KNOWN}")
    return found


def linear_parts(model: Any) -> LinearParts:
    """The parts of a fitted model that prediction needs."""
    if isinstance(model, LinearParts):
        return model
    model = linear_model(model)
    coef = np.asarray(model.coef_)
    names = getattr(model, "feature_names_in_", None)
    is_panel = hasattr(model, "panel_")
    if is_panel:
        panel = np.asarray(model.panel_)
        gamma = np.ones((len(coef), len(panel)))
        means = np.tile(model.mean_ranks_, (len(coef), 1))
    else:
        gamma = np.asarray(model.reference_weights_)
        panel = np.flatnonzero(((gamma > 0) | (coef != 0)).any(axis=0))
        gamma = gamma[:, panel]
        means = getattr(model, "mean_ranks_", None)
        means = None if means is None else np.asarray(means)[:, panel]
    return LinearParts(
        classes=np.asarray(model.classes_),
        coef=coef[:, panel],
        reference_weights=gamma,
        intercept=np.asarray(model.intercept_),
        mean_ranks=means,
        ties=getattr(model, "ties", "average"),
        positions=panel,
        n_features=coef.shape[1],
        names=None if names is None else np.asarray(names, dtype=object),
        is_panel=is_panel,
    )


def panel_ranks(X: Any, columns: NDArray | None = None, compiled: bool | None = None) -> NDArray:
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
    from optirank._compiled.rank_loops import ranks_among_themselves

    X = X.toarray() if hasattr(X, "toarray") else X
    if X.dtype not in (np.float32, np.int64):  # three types to compile for
        X = X.astype(np.float64)
    ranks = np.empty(X.shape)
    ranks_among_themselves(np.ascontiguousarray(X), ranks)
    return ranks


def describe_training(
    model: Any, X: Any, y: ArrayLike, *, genes: Iterable[str] | None = None, **summary: Any
) -> Any:
    """Store in a fitted model what its training data looked like; the model file keeps it.

    Sets ``training_summary_``: numbers of samples and genes, ``class_counts``, ``values`` (see
    ``optirank.model.query``) and whatever is given. A classifier other than the panel model gets
    ``mean_ranks_`` too: the mean scaled rank of each gene with a weight, classes counted equally,
    which stands in for the gene where it is missing from a query.

    Parameters
    ----------
    model : a fitted linear classifier on ranks.
    X, y : the data it was fitted on.
    genes : the names of X's columns, where X has none: they become ``feature_names_in_``.
    summary : more to keep, of plain values (numbers, strings, lists, dictionaries, arrays).

    Returns
    -------
    The model.
    """
    from optirank.model.query import ValueSummary

    fitted = linear_model(model)
    X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    labels, codes, counts = np.unique(np.asarray(y), return_inverse=True, return_counts=True)
    if X.shape != (len(codes), fitted.n_features_in_):
        raise ValueError(
            f"X has shape {X.shape}, but there are {len(codes)} labels and the model was fitted on "
            f"{fitted.n_features_in_} genes: give the data of the fit"
        )
    if genes is not None:
        fitted.feature_names_in_ = np.array(list(genes), dtype=object)
        if len(fitted.feature_names_in_) != X.shape[1]:
            raise ValueError(f"{len(fitted.feature_names_in_)} gene names for {X.shape[1]} columns")
    if not hasattr(fitted, "panel_"):
        fitted.mean_ranks_ = _mean_ranks(fitted, X, 1.0 / (len(counts) * counts[codes]))
    values = ValueSummary()
    values.add(X[:, np.flatnonzero(fitted.genes_)])
    fitted.training_summary_ = {
        "n_samples": len(codes),
        "n_genes": int(fitted.n_features_in_),
        "n_panel": int(np.count_nonzero(fitted.genes_)),
        "class_counts": dict(zip(labels.tolist(), counts.tolist(), strict=True)),
        "values": values.to_plain(),
    } | summary
    return model


def _mean_ranks(model: Any, X: Any, weights: NDArray) -> NDArray:
    """Weighted means of the ranks of the genes with a weight, (rows, genes)."""
    means = np.zeros(np.shape(model.coef_))
    for row, (w, gamma) in enumerate(zip(model.coef_, model.reference_weights_, strict=True)):
        genes = np.flatnonzero(w)
        for block in blocks(len(weights), len(genes)):
            ranks = weighted_ranks(X[block], gamma, ties=model.ties, genes=genes)
            means[row, genes] += weights[block] @ ranks
    return means


def blocks(n_samples: int, n_genes: int) -> Iterator[slice]:
    """Blocks of samples whose ranks are held at a time."""
    step = max(1, _BLOCK // max(1, n_genes))
    for start in range(0, n_samples, step):
        yield slice(start, min(start + step, n_samples))
