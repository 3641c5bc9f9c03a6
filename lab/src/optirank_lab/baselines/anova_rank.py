"""ANrank-lr: logistic regression on ranks relative to genes that differ least between
data sets.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

from optirank.estimators.optirank import RankLogisticRegression, solver_at
from optirank.solver.constants import DEFAULTS
from optirank.solver.problem import resolve_n_reference
from optirank_lab.baselines.anova import select_stable_genes


class AnovaRankLogisticRegression(RankLogisticRegression):
    """Logistic regression on ranks relative to the genes that differ least between data
    sets.

    The classifier called ANrank-lr in the paper. For each gene a two-way analysis of
    variance of label, data set and their interaction gives an F value of the data set;
    the `n_reference` genes of smallest F are the reference set. With more than two
    classes this is done for each class against the rest. A gene that is constant has no
    F and comes last.

    The data sets are told by ``fit(X, y, dataset=...)``. Without, the reference is all
    genes, with a warning.

    Parameters
    ----------
    n_reference : float or int, default=0.2
        Size of the reference set: a float in (0, 1] is a fraction of the genes, an int
        a count.
    l1, l2, ties, tol, max_iter, class_weight, n_jobs, verbose
        As in :class:`~optirank.RankLogisticRegression`.

    Attributes
    ----------
    classes_, coef_, intercept_, reference_, reference_weights_, objective_, n_iter_,
    genes_
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
        given = {
            "ties": ties,
            "tol": tol,
            "max_iter": max_iter,
            "class_weight": class_weight,
        }
        super().__init__(l1, l2, **given, n_jobs=n_jobs, verbose=verbose)
        self.n_reference = n_reference

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        dataset: ArrayLike | None = None,
    ) -> AnovaRankLogisticRegression:
        """Choose the reference genes and learn the weights.

        ``dataset`` names the data set (batch, platform) of each sample. The analysis of
        variance sees the values of X as they are; sample weights act on the regression
        alone.
        """
        X, codes, weights = self._checked(X, y, sample_weight)
        references = self._references(X, codes, dataset)
        labels = self.classes_.tolist()
        solve = solver_at(self, dict(zip(labels, references, strict=True)))
        n_reference = len(references[0])
        return self._fit_orders(self._orders(X), codes, weights, n_reference, solve)

    def _references(
        self, X, codes: NDArray, dataset: ArrayLike | None
    ) -> list[NDArray]:
        """The reference set of each class, as positions."""
        size = resolve_n_reference(self.n_reference, X.shape[1])
        if dataset is not None:
            dataset = np.asarray(dataset)
            check_consistent_length(codes, dataset)
            if n_missing := int(pd.isna(dataset).sum()):
                raise ValueError(
                    f"dataset is missing for {n_missing} samples: drop these samples "
                    "or give them a data set of their own"
                )
        if dataset is None or len(np.unique(dataset)) < 2:
            warnings.warn(
                "one data set only, so no gene can be told stable: the reference is "
                "all genes (rank-lr); give fit(..., dataset=...) with two data sets or "
                "more",
                UserWarning,
                stacklevel=3,
            )
            return [np.arange(X.shape[1])] * len(self.classes_)
        if len(self.classes_) == 2:
            return [select_stable_genes(X, codes == 1, dataset, size)] * 2
        numbers = range(len(self.classes_))
        return [select_stable_genes(X, codes == k, dataset, size) for k in numbers]
