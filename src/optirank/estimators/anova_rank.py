"""AnovaRankLogisticRegression (ANrank-lr): the reference genes are the most stable ones."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import check_array, check_consistent_length

from optirank.estimators._base import RankLinearClassifier
from optirank.estimators._options import check_options
from optirank.estimators.rank_logistic import solve_at_reference
from optirank.preprocessing.anova import select_stable_genes
from optirank.ranks.definition import TIES
from optirank.ranks.transformer import reference_positions
from optirank.solver.sizes import resolve_n_reference

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from optirank.solver.problem import Problem, Solution


class AnovaRankLogisticRegression(RankLinearClassifier):
    """Logistic regression on ranks relative to the genes that differ least between data sets.

    The classifier called ANrank-lr in the paper. For each gene a two-way analysis of variance of
    label, data set and their interaction gives an F value of the data set; the `n_reference` genes
    of smallest F are the reference set. With more than two classes this is done for each class
    against the rest. A gene that is constant has no F and comes last.

    The data sets are told by ``fit(X, y, dataset=...)``, or by an auxiliary data set that serves
    the choice of the reference alone: ``fit(X, y, X_auxiliary=..., y_auxiliary=...)``. With
    neither, the reference is all genes, with a warning.

    Parameters
    ----------
    n_reference : float or int, default=0.2
        Size of the reference set: a float in (0, 1] is a fraction of the genes, an int a count.
    l1, l2 : float, default=1e-3
        Penalties, as in :class:`~optirank.OptirankClassifier`.
    reference : mask, positions or gene names, optional
        A fixed reference set, such as housekeeping genes, instead of the chosen one; `n_reference`
        and data sets are then not used.
    ties : {"average", "min", "max"}, default="average"
        The rank of tied values.
    tol : float, default=1e-5
        Of the proximal gradient, relative to the gradient at w = 0.
    max_iter : int, default=10000
        Steps at most.
    class_weight : "balanced", None or dict, default="balanced"
        Balanced: both classes of each problem weigh the same.
    n_jobs : int or None, default=None
        Threads: for sorting, and over the classes.
    random_state : int or None, default=None
        Nothing is random; accepted so that pipelines can set it on every step.
    verbose : int, default=0
        Log each problem.

    Attributes
    ----------
    classes_, coef_, intercept_, reference_, reference_weights_, objective_, n_iter_, genes_
        As in :class:`~optirank.OptirankClassifier`.
    """

    def __init__(
        self,
        n_reference: float = 0.2,
        l1: float = 1e-3,
        l2: float = 1e-3,
        *,
        reference: ArrayLike | None = None,
        ties: str = "average",
        tol: float = 1e-5,
        max_iter: int = 10_000,
        class_weight: str | dict | None = "balanced",
        n_jobs: int | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_reference = n_reference
        self.l1 = l1
        self.l2 = l2
        self.reference = reference
        self.ties = ties
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        dataset: ArrayLike | None = None,
        X_auxiliary: ArrayLike | None = None,
        y_auxiliary: ArrayLike | None = None,
    ) -> AnovaRankLogisticRegression:
        """Choose the reference genes and learn the weights.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, d)
            Expression values; the analysis of variance sees them as they are.
        y : array-like of shape (n_samples,)
            Labels of two classes or more.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples in the regression.
        dataset : array-like of shape (n_samples,), optional
            The data set (batch, platform) of each sample.
        X_auxiliary, y_auxiliary : optional
            Another data set with the same genes and labels, for the choice of the reference alone.
        """
        check_options(self, {"ties": tuple(TIES)})
        X, y, classes = self._checked(X, y)
        found = self._references(X, y, classes, dataset, X_auxiliary, y_auxiliary)
        references = dict(zip(classes.tolist(), found, strict=True))

        def solve(problem: Problem, positive: object, callback) -> list[Solution]:
            gamma = np.zeros(problem.n_genes)
            gamma[references[positive]] = 1.0
            return solve_at_reference(self, problem, gamma, callback)

        return self._fit_checked(X, y, sample_weight, len(found[0]), solve)

    def _references(
        self, X, y: NDArray, classes: NDArray, dataset, X_auxiliary, y_auxiliary
    ) -> list[NDArray]:
        """The reference set of each class, as positions."""
        d = X.shape[1]
        if self.reference is not None:
            names = getattr(self, "feature_names_in_", None)
            fixed = np.asarray(reference_positions(self.reference, d, names))
            if not fixed.size:
                raise ValueError("reference is empty: give at least one gene")
            return [fixed] * len(classes)
        size = resolve_n_reference(self.n_reference, d)
        names = getattr(self, "feature_names_in_", None)
        X, y, dataset = _with_auxiliary(X, y, dataset, X_auxiliary, y_auxiliary, names)
        if dataset is None or len(np.unique(dataset)) < 2:
            warnings.warn(
                "one data set only, so no gene can be told stable: the reference is all genes "
                "(rank-lr); give fit(..., dataset=...) or X_auxiliary and y_auxiliary",
                UserWarning,
                stacklevel=3,
            )
            return [np.arange(d)] * len(classes)
        if len(classes) == 2:
            return [select_stable_genes(X, y == classes[1], dataset, size)] * 2
        return [select_stable_genes(X, y == label, dataset, size) for label in classes]


def _with_auxiliary(X, y: NDArray, dataset, X_auxiliary, y_auxiliary, names: NDArray | None):
    """The samples the analysis of variance sees, with the data set of each."""
    if (X_auxiliary is None) != (y_auxiliary is None):
        raise ValueError("give both X_auxiliary and y_auxiliary, or neither")
    if dataset is not None:
        dataset = np.asarray(dataset)
        check_consistent_length(y, dataset)
        if n_missing := int(pd.isna(dataset).sum()):
            raise ValueError(
                f"dataset is missing for {n_missing} samples: drop these samples or give them a "
                "data set of their own"
            )
    if X_auxiliary is None:
        return X, y, dataset
    other_names = getattr(X_auxiliary, "columns", None)
    X_auxiliary = check_array(X_auxiliary, accept_sparse=("csr", "csc"))
    y_auxiliary = np.asarray(y_auxiliary)
    check_consistent_length(X_auxiliary, y_auxiliary)
    if X_auxiliary.shape[1] != X.shape[1]:
        raise ValueError(
            f"X_auxiliary has {X_auxiliary.shape[1]} genes but X has {X.shape[1]}: give the same "
            "genes in the same order"
        )
    if names is not None and other_names is not None and list(names) != list(other_names):
        raise ValueError(
            "the genes of X_auxiliary are not those of X, or in another order: give "
            "X_auxiliary[X.columns]"
        )
    own = ["own"] * len(y) if dataset is None else [f"own {name}" for name in dataset.tolist()]
    both = np.array([*own, *["auxiliary"] * len(y_auxiliary)])
    stack = (X, X_auxiliary)
    if any(map(sparse.issparse, stack)):
        joined = sparse.vstack([sparse.csr_array(part) for part in stack], format="csr")
    else:
        joined = np.vstack(stack)
    return joined, np.concatenate([y, y_auxiliary]), both
