"""OptirankClassifierCV: tuned inside, the whole grid at the price of a few fits."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from joblib import parallel_config
from joblib.parallel import get_active_backend
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.metrics import check_scoring
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from optirank._util.numbers import balanced_accuracy, standard_error
from optirank._util.work import progress_bar
from optirank.estimators._base import RankClassifier, RankLinearClassifier
from optirank.estimators.optirank import OptirankClassifier, candidate_mask
from optirank.estimators.search import (
    HELD_OUT,
    Family,
    UnitResult,
    search,
    units_of_folds,
)
from optirank.estimators.selection import (
    RULES,
    edges_of_grid,
    make_folds,
    scored_folds,
    select,
)
from optirank.solver.problem import resolve_n_reference


class OptirankClassifierCV(RankLinearClassifier):
    """OptirankClassifier with its settings chosen by cross-validation.

    The whole grid of `n_references` x `l1s` x `l2s` is fitted in every fold, and the
    chosen setting on all samples. Samples are sorted once, folds and classes share the
    orders, and neighbouring settings start from each other's solutions, which makes the
    grid several times cheaper than its fits done one by one.

    Parameters
    ----------
    n_references : sequence of float or int
        Sizes of the reference set, see :class:`OptirankClassifier`.
    l1s, l2s : sequence of float
        Penalties. A warning says when the best one is the smallest or largest of three
        or more.
    cv : int, splitter or list of splits, default=5
        An int makes stratified folds (a class smaller than that is in some folds only),
        or with ``groups`` folds that leave whole groups out.
    scoring : str or callable, default="balanced_accuracy"
        Any scikit-learn scorer.
    selection : {"one_se", "best"}, default="one_se"
        The fewest genes within one standard error of the best score, or the best score.
    reference_candidates, ties, tol, max_iter, class_weight
        As in :class:`OptirankClassifier`.
    n_jobs : int or None, default=None
        Folds, classes and sizes in parallel: threads, or whatever joblib backend is
        active (with dask a cluster).
    verbose : int, default=0
        Show a progress bar with the time left.

    Attributes
    ----------
    best_estimator_ : OptirankClassifier
        Fitted on all samples.
    best_params_, best_index_, best_score_ : dict, int, float
        The chosen setting, its position, and its mean validation score.
    cv_results_ : dict of arrays
        As scikit-learn's, without times of scoring; and numbers of genes.
    folds_ : list of (train, validation) positions
    classes_, coef_, intercept_, reference_, reference_weights_, genes_, objective_,
    n_iter_
        As in :class:`OptirankClassifier`, of the final model.

    Examples
    --------
    >>> from optirank import OptirankClassifierCV
    >>> from optirank.datasets import make_unstable_ranks
    >>> data = make_unstable_ranks(300, random_state=0)
    >>> model = OptirankClassifierCV((0.2, 1.0), (0,), (1e-5, 1e-3)).fit(data.X, data.y)
    >>> sorted(model.best_params_)
    ['l1', 'l2', 'n_reference']
    """

    _parameter_constraints = {
        **RankLinearClassifier._parameter_constraints,
        "n_references": ["array-like"],
        "l1s": ["array-like"],
        "l2s": ["array-like"],
        "selection": [StrOptions(set(RULES))],
    }

    def __init__(
        self,
        n_references: tuple = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 1.0),
        l1s: tuple = (0, 1e-4, 1e-3),
        l2s: tuple = (1e-8, 1e-6, 1e-4, 1e-3, 1e-2),
        *,
        cv: object = 5,
        scoring: object = "balanced_accuracy",
        selection: str = "one_se",
        reference_candidates: ArrayLike | None = None,
        ties: str = "average",
        tol: float = 1e-5,
        max_iter: int = 10_000,
        class_weight: str | dict | None = "balanced",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            ties=ties,
            tol=tol,
            max_iter=max_iter,
            class_weight=class_weight,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.n_references = n_references
        self.l1s = l1s
        self.l2s = l2s
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.reference_candidates = reference_candidates

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> OptirankClassifierCV:
        """Fit the grid in every fold, choose a setting, fit it on all samples.

        ``groups`` are the donor, batch or data set of each sample: no group is in both
        parts of a fold. The other arguments are those of :class:`OptirankClassifier`;
        scores are not weighted.
        """
        X, codes, weights = self._checked(X, y, sample_weight)
        y = self.classes_[codes]
        candidates = candidate_mask(self, X.shape[1])
        for size in self.n_references:
            resolve_n_reference(size, X.shape[1], candidates)
        default = self.scoring == "balanced_accuracy"
        scorer = _balanced_accuracy if default else check_scoring(self, self.scoring)
        self.folds_ = make_folds(y, self.cv, groups)
        orders: Any = self._orders(X)
        units = units_of_folds(
            orders,
            codes,
            self.folds_,
            n_classes=len(self.classes_),
            weights=weights,
            balanced=self.class_weight == "balanced",
        )
        grid = {
            name: tuple(getattr(self, name)) for name in ("n_references", "l1s", "l2s")
        }
        options = {"tol": self.tol, "max_iter": int(self.max_iter), "ties": self.ties}
        family = Family(**grid, **options, candidates=candidates)
        with progress_bar("grid", shown=self.verbose > 0) as update:
            results = search(family, units, n_jobs=self.n_jobs, progress=update)
        self._choose(results, y, scorer)
        self._refit(orders, codes, weights, candidates)
        return self

    def _validate_params(self) -> None:
        super()._validate_params()
        for name in ("n_references", "l1s", "l2s"):
            if not len(getattr(self, name)):
                raise ValueError(
                    f"{name} is empty: use a sequence of at least one value"
                )
        for l1 in self.l1s:
            OptirankClassifier(l1=l1)._validate_params()
        for l2 in self.l2s:
            OptirankClassifier(l2=l2)._validate_params()

    def _choose(self, results: list[UnitResult], y: NDArray, scorer: Any) -> None:
        """Fill ``cv_results_`` and the like."""
        truths = [y[test] for _, test in self.folds_]
        table = score_table(results, truths, self.classes_, HELD_OUT, scorer)
        n_genes = np.array(
            [
                [result.genes(setting).sum() for result in results]
                for setting in range(len(results[0].params))
            ]
        )
        scored = scored_folds(table)
        if scored.any() and not scored.all():
            warnings.warn(
                f"{(~scored).sum()} of {len(scored)} folds have no score with "
                f"scoring={self.scoring!r} (their validation part lacks a class?) and "
                "are left out of the means",
                UserWarning,
                stacklevel=3,
            )
        self.cv_results_ = _results(results, table, n_genes)
        params = self.cv_results_["params"]
        index = select(table[:, scored], n_genes, self.selection)
        self.best_index_ = index
        self.best_params_ = params[index]
        for edge in edges_of_grid(params, table[:, scored].mean(axis=1)):
            warnings.warn(edge, UserWarning, stacklevel=3)
        self.best_score_ = float(table[index, scored].mean())

    def _refit(
        self, orders: Any, codes: NDArray, weights: NDArray, candidates: NDArray | None
    ) -> None:
        """Fit the chosen setting on all samples, and take over its attributes."""
        names = ("ties", "tol", "max_iter", "class_weight", "n_jobs")
        same = {name: getattr(self, name) for name in ("reference_candidates", *names)}
        model: Any = OptirankClassifier(**self.best_params_, **same)
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        size = resolve_n_reference(model.n_reference, orders.n_genes, candidates)
        # One fit per class is little beside the grid: it stays here, whatever the
        # search ran on
        n_jobs = get_active_backend(prefer="threads")[1]
        with parallel_config(backend="threading", n_jobs=n_jobs):
            model._fit_orders(orders, codes, weights, size, model._solve, candidates)
        self.best_estimator_ = model
        learned = ("coef_", "intercept_", "objective_", "n_iter_", "genes_")
        for name in (*learned, "reference_", "reference_weights_"):
            setattr(self, name, getattr(model, name))

    def one_se_path(self) -> pd.DataFrame:
        """Score against number of genes: the best setting at each number, with the
        chosen one.

        Columns ``n_genes``, ``score``, ``standard_error``, ``selected``, ``best`` and
        the setting's parameters, by number of genes; only settings that no sparser one
        beats, the best and the selected.
        """
        check_is_fitted(self)
        results = self.cv_results_
        scores = np.column_stack(
            [results[f"split{k}_test_score"] for k in range(len(self.folds_))]
        )
        scores = scores[:, scored_folds(scores)]
        n_genes = results["mean_n_genes"][:, None]
        numbers = np.arange(len(scores))
        several = scores.shape[1] > 1  # one fold has no standard error
        error = standard_error(scores) if several else np.nan
        columns = {
            "n_genes": results["mean_n_genes"],
            "score": scores.mean(axis=1),
            "standard_error": error,
            "selected": numbers == self.best_index_,
            "best": numbers == select(scores, n_genes, "best"),
        }
        table = pd.concat(
            [pd.DataFrame(columns), pd.DataFrame(results["params"])], axis=1
        )
        table = table.sort_values(
            ["n_genes", "score"], ascending=[True, False], kind="stable"
        )
        rising = table["score"] > table["score"].cummax().shift(fill_value=-np.inf)
        shown: Any = table[rising | table["selected"] | table["best"]]
        return shown.reset_index(drop=True)


class FixedScores(RankClassifier):
    """A classifier whose decision scores are known already, to be given to
    any scorer.
    """

    def __init__(self, classes_: NDArray, scores: NDArray) -> None:
        self.classes_ = classes_
        self.scores = scores  # samples x problems

    def decision_function(self, X: object) -> NDArray:
        """The known scores."""
        return self.scores[:, 0] if self.scores.shape[1] == 1 else self.scores


def _balanced_accuracy(model: FixedScores, X: object, truth: NDArray) -> float:
    """The default score, without scikit-learn's checks, which would take most of the
    time of a grid.
    """
    return balanced_accuracy(truth, model.predict(X))


def score_table(
    results: Sequence[UnitResult],
    truths: Sequence[NDArray],
    classes: NDArray,
    view: str,
    scorer,
) -> NDArray:
    """Scores of all settings by a scorer of scikit-learn, settings x units.

    Where a scorer cannot say, such as an area under a curve without one of the classes,
    the score is nan.
    """
    failure = None
    table = np.empty((len(results[0].params), len(results)))
    for k, (result, truth) in enumerate(zip(results, truths, strict=True)):
        for i in range(len(table)):
            model = FixedScores(classes, result.decision(i, view))
            with warnings.catch_warnings():  # a validation part may lack a class
                warnings.simplefilter("ignore", UserWarning)
                try:
                    table[i, k] = scorer(model, np.zeros((len(truth), 1)), truth)
                except ValueError as error:
                    table[i, k] = np.nan
                    failure = error
    if failure is not None and not np.isfinite(table).any():
        raise failure
    return table


def _results(fold_results: list[UnitResult], table: NDArray, n_genes: NDArray) -> dict:
    """``cv_results_`` in scikit-learn's shape, with numbers of genes."""
    params = fold_results[0].params
    times = np.array(
        [[fold.fit_seconds(k) for fold in fold_results] for k in range(len(params))]
    )
    results: dict = {
        "mean_fit_time": times.mean(axis=1),
        "std_fit_time": times.std(axis=1),
    }
    for name in params[0]:
        values = [setting[name] for setting in params]
        results[f"param_{name}"] = np.ma.masked_array(values, mask=False, dtype=object)
    results["params"] = params
    for k in range(table.shape[1]):
        results[f"split{k}_test_score"] = table[:, k]
        results[f"split{k}_n_genes"] = n_genes[:, k]
    table = table[:, scored_folds(table)]
    means = table.mean(axis=1)
    results["mean_test_score"] = means
    results["std_test_score"] = table.std(axis=1)
    means = np.where(np.isfinite(means), means, -np.inf)
    results["rank_test_score"] = rankdata(-means, method="min").astype(np.int32)
    results["mean_n_genes"] = n_genes.mean(axis=1)
    return results
