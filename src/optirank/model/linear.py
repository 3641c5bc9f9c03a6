"""The arrays that prediction needs of a fitted classifier, with the genes of its panel alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.estimators.panel import panel_arrays
from optirank.estimators.votes import is_vote
from optirank.ranks.scoring import average_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class LinearParts:
    """A linear classifier on relative ranks, or on values, over the p genes of its panel.

    There is a row for each solution of each problem: one problem for two classes, one per class
    for more; the rows of a problem follow each other and their scores are averaged.
    """

    classes: NDArray
    coef: NDArray  # (rows, p)
    reference_weights: NDArray  # (rows, p)
    intercept: NDArray  # (rows,)
    mean_ranks: NDArray | None  # (rows, p): mean ranks or values in training, where remembered
    ties: str | None  # None for weights on values
    positions: NDArray  # (p,): the columns of the panel's genes in the training data
    n_features: int
    names: NDArray | None  # (n_features,): all genes of the training data
    target_sum: float | None = None  # of weights on logarithms of values relative to a total
    votes: bool = False  # each row is the vote of a pair of genes, see optirank.model.votes

    @property
    def n_problems(self) -> int:
        """Number of binary problems."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    @property
    def n_rows(self) -> int:
        """Number of solutions."""
        return len(self.coef)

    @property
    def rows_per_problem(self) -> int:
        """Solutions whose scores are averaged."""
        return self.n_rows // self.n_problems

    @property
    def problem_classes(self) -> NDArray:
        """The positive class of each problem."""
        return self.classes[1:] if self.n_problems == 1 else self.classes

    @cached_property
    def genes(self) -> NDArray:
        """Names of the panel's genes; ``x17`` for column 17 of nameless training data."""
        if self.names is None:
            return np.array([f"x{position}" for position in self.positions], dtype=object)
        return self.names[self.positions]

    def average(self, rows: NDArray) -> NDArray:
        """Mean over the rows of each problem, along the last axis."""
        return average_rows(rows, self.n_problems)


def linear_model(model: Any) -> Any:
    """The linear classifier that predicts: the model itself, or the best one of a search."""
    found = getattr(model, "best_estimator_", model)
    if hasattr(found, "fold_estimators_"):
        raise TypeError(
            f"this {type(found).__name__} keeps one model per fold: use one of its "
            "fold_estimators_, or fit it with refit=True"
        )
    if is_vote(found):
        return found
    if "_panel" not in vars(found) and not hasattr(found, "reference_weights_"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(found)
        raise TypeError(
            f"a {type(found).__name__} has no weights on genes: this works for "
            "OptirankClassifier, RankLogisticRegression, AnovaRankLogisticRegression, "
            "ElasticNetLogisticRegression and TopScoringPairsClassifier"
        )
    return found


def linear_parts(model: Any) -> LinearParts:
    """The parts of a fitted model that prediction needs."""
    if isinstance(model, LinearParts):
        return model
    model = linear_model(model)
    if is_vote(model):
        from optirank.model.votes import vote_parts

        return vote_parts(model)
    panel = panel_arrays(model)
    names = getattr(model, "feature_names_in_", None)
    return LinearParts(
        classes=np.asarray(model.classes_),
        coef=panel.coef,
        reference_weights=panel.reference_weights,
        intercept=np.asarray(model.intercept_),
        mean_ranks=panel.mean_ranks,
        ties=getattr(model, "ties", None),
        positions=panel.positions,
        n_features=panel.n_features,
        names=None if names is None else np.asarray(names, dtype=object),
        target_sum=getattr(model, "target_sum", None),
    )
