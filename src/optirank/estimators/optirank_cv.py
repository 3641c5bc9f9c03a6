"""OptirankClassifierCV: tuned inside, the whole grid at the price of a few fits."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from joblib import parallel_config
from joblib.parallel import get_active_backend
from scipy.stats import rankdata
from sklearn.metrics import check_scoring
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from optirank._util.progress import progress_bar
from optirank.estimators._base import RankLinearClassifier
from optirank.estimators._options import (
    candidate_mask,
    check_options,
    check_shared_reference,
    check_whole_panel,
)
from optirank.estimators.optirank import OptirankClassifier
from optirank.estimators.panel import forget_training
from optirank.ranks.definition import TIES
from optirank.solver.device.backend import check_device
from optirank.solver.sizes import resolve_n_candidates
from optirank.tuning.families import JointFamily, OptirankFamily
from optirank.tuning.family import Samples
from optirank.tuning.folds import make_folds
from optirank.tuning.platforms import PlatformFolds, stack_platforms
from optirank.tuning.result import gene_counts
from optirank.tuning.scoring import score_table
from optirank.tuning.search import HELD_OUT, search
from optirank.tuning.selection import (
    RULES,
    TRANSFER,
    clear_margin,
    scored_folds,
    select,
    select_for_transfer,
    settings_table,
    transfer_scores,
    untuned,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

    from optirank.ranks.orders import SampleOrders
    from optirank.solver.problem import Solution
    from optirank.tuning.family import Model
    from optirank.tuning.result import UnitResult

SIDES = ("best", "rising", "falling", "both")


class OptirankClassifierCV(RankLinearClassifier):
    """OptirankClassifier with its settings chosen by cross-validation.

    The whole grid of `n_references` x `l1s` x `l2s` x `sides` is fitted in every fold. Samples
    are sorted once, folds and classes share the orders, and neighbouring settings start from each
    other's solutions, which makes the grid several times cheaper than its fits done one by one.

    Parameters
    ----------
    n_references : sequence of float or int
        Sizes of the reference set, see :class:`OptirankClassifier`.
    l1s, l2s : sequence of float
        Penalties.
    sides : sequence of {"best", "rising", "falling", "both"}, default=("best",)
        Which of the two minima; "best" follows both until one is clearly better.
    cv : int, splitter or list of splits, default=5
        An int makes stratified folds (a class smaller than that is in some folds only), or with
        ``groups`` folds that leave whole groups out.
    scoring : str or callable, default="balanced_accuracy"
        Any scikit-learn scorer.
    selection : {"one_se", "best", "transfer"}, default="one_se"
        The fewest genes within one standard error of the best score, the best score, or the setting
        that should carry over best to other platforms: validation samples are scored as they are
        and on simulated platforms (``mean_transfer_score`` of ``cv_results_``), and the setting
        ``n_reference=0.2, l1=1e-3, l2=1e-3``, where the grid has it, is left only for one that is
        better by more than 0.02, and by more than a single sample of a rare class makes. With
        ``groups`` the shifts between them are real, and plain scores decide.
    per_class : bool, default=False
        With more than two classes, whether each class has settings of its own, chosen by its score
        against the rest; otherwise one setting is chosen by the score of the whole classifier.
    refit : True or "folds", default=True
        Fit the chosen setting on all samples, or keep the models of the folds
        (``fold_estimators_``) and predict with the mean of their scores. The score of a class is
        the mean over the folds whose training part has it.
    warm_start : bool, default=True
        Whether neighbouring settings start from each other; without, each is fitted as
        OptirankClassifier fits it.
    shared_reference : bool, default=False
        With more than two classes, whether all share one reference set; then ``sides`` must be
        ``("best",)`` and settings are common to all classes.
    reference_candidates, whole_panel, ties, tol, max_iter, path_step, class_weight
        As in :class:`OptirankClassifier`.
    device : {"cpu", "cuda"}, default="cpu"
        Where to fit: "cuda" is an NVIDIA GPU, and needs CuPy (``pip install 'optirank[gpu]'``). A
        CuPy array given as X stays on the GPU.
    n_jobs : int or None, default=None
        Folds, classes and sizes in parallel: threads, or whatever joblib backend is active (with
        dask a cluster).
    random_state : int or None, default=None
        Seed of the simulated platforms of ``selection="transfer"``; nothing else is random.
    verbose : int, default=0
        Show a progress bar with the time left.

    Attributes
    ----------
    best_estimator_ : OptirankClassifier
        Fitted on all samples (``refit=True``).
    fold_estimators_ : list of OptirankClassifier
        Of the chosen setting, one per fold (``refit="folds"``).
    best_params_ : dict
        The chosen setting, or one for each class with ``per_class=True``.
    best_index_ : int, or dict of class to int
    best_score_ : float
        Mean validation score of the chosen setting (mean over classes with ``per_class=True``).
    cv_results_ : dict of arrays
        As scikit-learn's, and numbers of genes; with ``per_class=True`` a dict of class to these.
    folds_ : list of (train, validation) positions
    classes_, coef_, intercept_, reference_, reference_weights_, genes_, objective_, n_iter_
        As in :class:`OptirankClassifier`, of the final model (rows of all folds one after the other
        with ``refit="folds"``).

    Examples
    --------
    >>> from optirank import OptirankClassifierCV
    >>> from optirank.datasets import make_unstable_ranks
    >>> data = make_unstable_ranks(300, random_state=0)
    >>> model = OptirankClassifierCV((0.2, 1.0), (0,), (1e-5, 1e-3)).fit(data.X, data.y)
    >>> sorted(model.best_params_)
    ['l1', 'l2', 'n_reference', 'side']
    """

    def __init__(
        self,
        n_references: tuple = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 1.0),
        l1s: tuple = (0, 1e-4, 1e-3),
        l2s: tuple = (1e-4, 1e-3, 1e-2),
        sides: tuple = ("best",),
        *,
        cv: object = 5,
        scoring: object = "balanced_accuracy",
        selection: str = "one_se",
        per_class: bool = False,
        refit: bool | str = True,
        warm_start: bool = True,
        shared_reference: bool = False,
        reference_candidates: ArrayLike | None = None,
        whole_panel: bool = False,
        ties: str = "average",
        tol: float = 1e-5,
        max_iter: int = 10_000,
        path_step: float = 100,
        class_weight: str | dict | None = "balanced",
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_references = n_references
        self.l1s = l1s
        self.l2s = l2s
        self.sides = sides
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.per_class = per_class
        self.refit = refit
        self.warm_start = warm_start
        self.shared_reference = shared_reference
        self.reference_candidates = reference_candidates
        self.whole_panel = whole_panel
        self.ties = ties
        self.tol = tol
        self.max_iter = max_iter
        self.path_step = path_step
        self.class_weight = class_weight
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> OptirankClassifierCV:
        """Fit the grid in every fold, choose a setting, fit it on all samples.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, d)
            Expression values on any scale; finite.
        y : array-like of shape (n_samples,)
            Labels of two classes or more.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples in the fits (scores are not weighted).
        groups : array-like of shape (n_samples,), optional
            Donor, batch or data set of each sample: no group is in both parts of a fold.
        """
        self._check_grid()
        X, y, classes = self._checked(X, y)
        candidates = candidate_mask(self, X.shape[1])
        for size in self.n_references:
            resolve_n_candidates(size, X.shape[1], candidates)
        family = self._family(candidates)
        weights = self._sample_weights(X, y, sample_weight)
        scorer = check_scoring(self, self.scoring)
        self.folds_ = make_folds(y, self.cv, groups)
        platforms = PlatformFolds(X.shape[0], with_views=self.selection == TRANSFER)
        orders = self._orders(stack_platforms(X, platforms, self.random_state or 0))
        units = platforms.units(
            Samples(orders=orders),
            np.searchsorted(classes, y),
            self.folds_,
            n_classes=len(classes),
            weights=weights,
            balanced=self.class_weight == "balanced",
        )
        with progress_bar("grid", shown=None if self.verbose else False) as bar:
            found = search(family, units, n_jobs=self.n_jobs, progress=bar.update)
        self.classes_ = classes
        chosen = self._choose(found, y, scorer, platforms.views, real=groups is not None)
        params = {k: found[0].settings[index].params for k, index in chosen.items()}
        if self.refit == "folds":
            self._keep_folds(found, chosen, params)
        else:
            plain = orders.take(np.arange(X.shape[0])) if platforms.views else orders
            self._refit(plain, y, weights, params)
        return self

    def _check_grid(self) -> None:
        """Refuse grids and options that make no sense."""
        for name in ("n_references", "l1s", "l2s", "sides"):
            values = getattr(self, name)
            if isinstance(values, str) or not hasattr(values, "__len__") or not len(values):
                raise ValueError(f"{name}={values!r}: give a sequence of at least one value")
        rules = (*RULES, TRANSFER)
        check_options(self, {"ties": tuple(TIES), "selection": rules, "refit": (True, "folds")})
        check_device(self.device)
        for side in self.sides:
            if side not in SIDES:
                raise ValueError(f"sides has {side!r}: use some of {', '.join(map(repr, SIDES))}")
        check_shared_reference(self, tuple(self.sides))
        check_whole_panel(self)
        if self.shared_reference and self.per_class:
            raise ValueError(
                "per_class=True with shared_reference=True: one reference set for all classes has "
                "one setting, use per_class=False or shared_reference=False"
            )

    def _family(self, candidates: NDArray | None) -> OptirankFamily:
        """The grid."""
        kind = JointFamily if self.shared_reference else OptirankFamily
        return kind(
            tuple(self.l1s),
            tuple(self.l2s),
            tol=self.tol,
            max_iter=int(self.max_iter),
            ties=self.ties,
            warm_start=self.warm_start,
            n_references=tuple(self.n_references),
            sides=tuple(self.sides),
            path_step=self.path_step,
            candidates=candidates,
            whole_panel=bool(self.whole_panel),
        )

    def _choose(
        self, found: list[UnitResult], y: NDArray, scorer, views: list[str], *, real: bool
    ) -> dict[int, int]:
        """Fill ``cv_results_`` and the like; the chosen setting of each problem."""
        truths = [y[test] for _, test in self.folds_]
        n_problems = found[0].n_problems
        per_class = self.per_class and n_problems > 1
        results, chosen, scores = {}, {}, []
        for problem in range(n_problems) if per_class else [None]:
            table = score_table(found, truths, self.classes_, HELD_OUT, scorer, problem)
            group = range(n_problems) if problem is None else [problem]
            n_genes = gene_counts(found, group)
            scored = scored_folds(table)
            if scored.any() and not scored.all():
                warnings.warn(
                    f"{(~scored).sum()} of {len(scored)} folds have no score with scoring="
                    f"{self.scoring!r} (their validation part lacks a class?) and are left out of "
                    "the means",
                    UserWarning,
                    stacklevel=3,
                )
            results[problem] = _results(found, table, n_genes)
            if views:
                tables = [
                    score_table(found, truths, self.classes_, view, scorer, problem)
                    for view in views
                ]
                shifted = np.stack(tables, axis=2)
                results[problem]["mean_transfer_score"] = transfer_scores(table, shifted, real=real)
                default = untuned(results[problem]["params"])
                labels = truths
                if problem is not None:
                    labels = [one == self.classes_[problem] for one in truths]
                rule = {"default": default, "real": real, "margin": clear_margin(labels)}
                index = select_for_transfer(table, shifted, n_genes, **rule)
            else:
                index = select(table[:, scored], n_genes, self.selection)
            chosen.update(dict.fromkeys(group, index))
            scores.append(table[index, scored].mean())
        self.best_score_ = float(np.mean(scores))
        params = found[0].settings
        if per_class:
            labels = self.classes_.tolist()
            self.cv_results_ = {labels[k]: results[k] for k in chosen}
            self.best_index_ = {labels[k]: index for k, index in chosen.items()}
            self.best_params_ = {labels[k]: params[index].params for k, index in chosen.items()}
        else:
            self.cv_results_ = results[None]
            self.best_index_ = chosen[0]
            self.best_params_ = params[chosen[0]].params
        return chosen

    def _refit(
        self, orders: SampleOrders, y: NDArray, weights: NDArray, params: dict[int, dict]
    ) -> None:
        """Fit the chosen settings on all samples."""
        model = self._estimator(params)
        if hasattr(self, "feature_names_in_"):  # by which candidates may be named
            model.feature_names_in_ = self.feature_names_in_
        positives = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        by_label = {label: params[k] for k, label in enumerate(positives.tolist())}
        # One fit per class is little beside the grid: it stays here, whatever the search ran on
        n_jobs = get_active_backend(prefer="threads")[1]
        with parallel_config(backend="threading", n_jobs=n_jobs):
            model._fit_with_settings(orders, y, weights, by_label, stacklevel=4)
        self.best_estimator_ = model
        self._adopt([model])

    def _keep_folds(
        self, found: list[UnitResult], chosen: dict[int, int], params: dict[int, dict]
    ) -> None:
        """Estimators of the chosen setting, one per fold."""
        self.fold_estimators_ = []
        for fold in found:
            model = self._estimator(params)
            model.classes_ = self.classes_
            model.n_features_in_ = fold.n_genes
            rows = [_solutions(fold.models(index, k), fold.n_genes) for k, index in chosen.items()]
            model._keep(rows, stacklevel=4)
            self.fold_estimators_.append(model)
        self._adopt(self.fold_estimators_)

    def _estimator(self, params: dict[int, dict]) -> OptirankClassifier:
        """An estimator with the chosen settings, or with those of the first class."""
        model = OptirankClassifier(
            ties=self.ties,
            tol=self.tol,
            max_iter=self.max_iter,
            path_step=self.path_step,
            shared_reference=self.shared_reference,
            reference_candidates=self.reference_candidates,
            whole_panel=self.whole_panel,
            class_weight=self.class_weight,
            device=self.device,
            n_jobs=self.n_jobs,
        )
        return model.set_params(**next(iter(params.values())))

    def _adopt(self, models: list[OptirankClassifier]) -> None:
        """Attributes of the final model or models, which get the names of the genes."""
        forget_training(self)
        if hasattr(self, "feature_names_in_"):
            for model in models:
                model.feature_names_in_ = self.feature_names_in_
        names = ("coef_", "intercept_", "reference_", "reference_weights_", "objective_", "n_iter_")
        for name in names:
            setattr(self, name, np.concatenate([getattr(model, name) for model in models]))
        self.genes_ = np.any([model.genes_ for model in models], axis=0)

    def decision_function(self, X: ArrayLike) -> NDArray:
        """Scores of the final model, or the mean of the folds' scores."""
        check_is_fitted(self)
        models = self.fold_estimators_ if self.refit == "folds" else [self.best_estimator_]
        scores = np.array([model.decision_function(X) for model in models])
        # A fold that lacked a class gives it minus infinity: the others speak for it
        known = scores > -np.inf
        total = np.where(known, scores, 0.0).sum(axis=0)
        n_known = known.sum(axis=0)
        return np.divide(total, n_known, out=np.full_like(total, -np.inf), where=n_known > 0)

    def subset(self, classes: Iterable) -> RankLinearClassifier:
        """The final model restricted to two or more of its classes; see OptirankClassifier."""
        check_is_fitted(self)
        if self.refit == "folds":
            raise ValueError("a search with refit='folds' keeps one model per fold: use refit=True")
        return self.best_estimator_.subset(classes)

    @available_if(lambda self: hasattr(self, "cv_results_"))
    def one_se_path(self, label: object = None) -> pd.DataFrame:
        """Score against number of genes: the best setting at each number, with the chosen one.

        Columns ``n_genes``, ``score``, ``standard_error``, ``selected``, ``best`` and the setting's
        parameters, by number of genes; only settings that no sparser one beats, the best and the
        selected. ``label`` names the class with ``per_class=True``.
        """
        results, index = self.cv_results_, self.best_index_
        if isinstance(index, dict):
            if label not in index:
                raise ValueError(f"label={label!r}: name one of {list(index)}")
            results, index = results[label], index[label]
        folds = [key for key in results if key.startswith("split") and key.endswith("_test_score")]
        scores = np.column_stack([results[key] for key in folds])
        scores = scores[:, scored_folds(scores)]
        table = settings_table(results["params"], scores, results["mean_n_genes"][:, None], index)
        table = table.sort_values(["n_genes", "score"], ascending=[True, False], kind="stable")
        rising = table["score"] > table["score"].cummax().shift(fill_value=-np.inf)
        return table[rising | table["selected"] | table["best"]].reset_index(drop=True)


def _solutions(models: list[Model], n_genes: int) -> list[Solution]:
    """A fold's models as solutions; without models, of a class that the fold lacked, -inf."""
    from optirank.solver.problem import Solution

    if not models:
        return [Solution(np.zeros(n_genes), -np.inf, np.zeros(n_genes), np.nan)]
    return [
        Solution(model.w, model.b, model.gamma, model.objective, model.n_iter, model.converged)
        for model in models
    ]


def _results(found: list[UnitResult], table: NDArray, n_genes: NDArray) -> dict:
    """``cv_results_`` in scikit-learn's shape, with numbers of genes."""
    params = [setting.params for setting in found[0].settings]
    times = np.array([[fold.fit_seconds(k) for fold in found] for k in range(len(params))])
    score_times = np.array([[fold.score_seconds / len(params) for fold in found]] * len(params))
    results: dict = {
        "mean_fit_time": times.mean(axis=1),
        "std_fit_time": times.std(axis=1),
        "mean_score_time": score_times.mean(axis=1),
        "std_score_time": score_times.std(axis=1),
    }
    for name in params[0]:
        values = [one[name] for one in params]
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
