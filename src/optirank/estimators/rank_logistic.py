"""rank-lr and ANrank-lr: logistic regression on ranks relative to all genes, or to stable ones."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_consistent_length

from optirank.estimators._base import RankLinearClassifier
from optirank.solver.constants import DEFAULTS
from optirank.solver.sizes import resolve_n_reference

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from optirank.solver.problem import Problem, Solution


class RankLogisticRegression(RankLinearClassifier):
    """Elastic-net logistic regression on the ranks of each sample's genes among all of them.

    The classifier called rank-lr in the paper. Ranks (average ones by default, lowest 0) are
    divided by the number of genes d, so that penalties compare with
    :class:`~optirank.OptirankClassifier`'s at ``n_reference=1.0``.

    Parameters
    ----------
    l1, l2 : float, default=1e-3
        Penalties: ``sum_i v_i logloss(y_i, z_i) + l1 |w|_1 + l2 |w|_2^2``. With both 0 a floor of
        l2 = 1e-7 stands in.
    tol : float, default=1e-5
        Of the proximal gradient, relative to the gradient at w = 0.
    ties, max_iter, class_weight, device, n_jobs, verbose
        As in :class:`~optirank.OptirankClassifier`.

    Attributes
    ----------
    classes_, coef_, intercept_, reference_, reference_weights_, objective_, n_iter_, genes_
        As in :class:`~optirank.OptirankClassifier`; all genes are in the reference set.
    """

    def __init__(
        self,
        l1: float = DEFAULTS["l1"],
        l2: float = DEFAULTS["l2"],
        *,
        ties: str = "average",
        tol: float = 1e-5,
        max_iter: int = 10_000,
        class_weight: str | dict | None = "balanced",
        device: str = "cpu",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.l1 = l1
        self.l2 = l2
        self.ties = ties
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> RankLogisticRegression:
        """Learn the weights; the arguments are those of :class:`~optirank.OptirankClassifier`."""
        self._check_options()
        X, y, _ = self._checked(X, y)

        def solve(problem: Problem, positive: object, callback) -> Solution:
            return _solve_at(self, problem, np.arange(problem.n_genes), callback)

        return self._fit_checked(X, y, sample_weight, X.shape[1], solve)


class AnovaRankLogisticRegression(RankLinearClassifier):
    """Logistic regression on ranks relative to the genes that differ least between data sets.

    The classifier called ANrank-lr in the paper. For each gene a two-way analysis of variance of
    label, data set and their interaction gives an F value of the data set; the `n_reference` genes
    of smallest F are the reference set. With more than two classes this is done for each class
    against the rest. A gene that is constant has no F and comes last.

    The data sets are told by ``fit(X, y, dataset=...)``. Without, the reference is all genes, with
    a warning.

    Parameters
    ----------
    n_reference : float or int, default=0.2
        Size of the reference set: a float in (0, 1] is a fraction of the genes, an int a count.
    l1, l2, ties, tol, max_iter, class_weight, n_jobs, verbose
        As in :class:`RankLogisticRegression`.

    Attributes
    ----------
    classes_, coef_, intercept_, reference_, reference_weights_, objective_, n_iter_, genes_
        As in :class:`~optirank.OptirankClassifier`.
    """

    def __init__(
        self,
        n_reference: float = DEFAULTS["n_reference"],
        l1: float = DEFAULTS["l1"],
        l2: float = DEFAULTS["l2"],
        *,
        ties: str = "average",
        tol: float = 1e-5,
        max_iter: int = 10_000,
        class_weight: str | dict | None = "balanced",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_reference = n_reference
        self.l1 = l1
        self.l2 = l2
        self.ties = ties
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        dataset: ArrayLike | None = None,
    ) -> AnovaRankLogisticRegression:
        """Choose the reference genes and learn the weights.

        ``dataset`` names the data set (batch, platform) of each sample. The analysis of variance
        sees the values of X as they are; sample weights act on the regression alone.
        """
        self._check_options()
        X, y, classes = self._checked(X, y)
        found = self._references(X, y, classes, dataset)
        references = dict(zip(classes.tolist(), found, strict=True))

        def solve(problem: Problem, positive: object, callback) -> Solution:
            return _solve_at(self, problem, references[positive], callback)

        return self._fit_checked(X, y, sample_weight, len(found[0]), solve)

    def _references(
        self, X, y: NDArray, classes: NDArray, dataset: ArrayLike | None
    ) -> list[NDArray]:
        """The reference set of each class, as positions."""
        from optirank.preprocessing.anova import select_stable_genes

        size = resolve_n_reference(self.n_reference, X.shape[1])
        if dataset is not None:
            dataset = np.asarray(dataset)
            check_consistent_length(y, dataset)
            if n_missing := int(pd.isna(dataset).sum()):
                raise ValueError(
                    f"dataset is missing for {n_missing} samples: drop these samples or give them "
                    "a data set of their own"
                )
        if dataset is None or len(np.unique(dataset)) < 2:
            warnings.warn(
                "one data set only, so no gene can be told stable: the reference is all genes "
                "(rank-lr); give fit(..., dataset=...) with two data sets or more",
                UserWarning,
                stacklevel=3,
            )
            return [np.arange(X.shape[1])] * len(classes)
        if len(classes) == 2:
            return [select_stable_genes(X, y == classes[1], dataset, size)] * 2
        return [select_stable_genes(X, y == label, dataset, size) for label in classes]


def _solve_at(
    estimator: RankLinearClassifier, problem: Problem, reference: NDArray, callback
) -> Solution:
    """Fit the weights to convergence at a given reference set."""
    from optirank.solver.convex import solve_at

    gamma = np.zeros(problem.n_genes)
    gamma[reference] = 1.0
    solution = solve_at(problem, gamma, tol=estimator.tol, max_iter=int(estimator.max_iter))
    if callback is not None:
        callback({"stage": "fitted", "objective": solution.objective})
    return solution
