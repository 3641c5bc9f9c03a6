"""`PanelClassifier`: a small panel of genes, ranked among themselves, for all
classes.
"""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
)

from optirank._util.numbers import STANDARDISED, looks_standardised
from optirank._util.words import some
from optirank._util.work import using_threads
from optirank.estimators._base import (
    CLASS_WEIGHT,
    POSITIVE,
    RankClassifier,
    data_for_fitting,
    data_for_scoring,
    label_codes,
    weights_of_classes,
)
from optirank.estimators.selection import N_FOLDS
from optirank.panel.elimination import (
    L2,
    Panel,
    search_panels,
)
from optirank.panel.samples import DrawnSamples, fold_matrix, keys_of_matrix
from optirank.panel.votes import vote_scores
from optirank.ranks.transformer import reference_positions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class PanelClassifier(RankClassifier):
    """Softmax regression on the ranks of a panel of genes among themselves.

    One set S of k genes is the reference set and the support of the weights at once,
    for all classes. The scores are ``z = W c``, without intercept, where c are the
    ranks of the genes of S among themselves, centred: ``c = (r - (k - 1) / 2) / k``.
    Written out, every pair of genes votes:
    ``z = sum over pairs (j, l) of (w_j - w_l) sign(x_j - x_l) / (2 k)``. With two genes
    this is a top scoring pair.

    S is selected by recursive elimination: rank the genes that are left among
    themselves, fit, keep the half of largest weight, again. There is nothing to tune,
    and the same data give the same model, whatever the order of the columns.

    Parameters
    ----------
    n_genes : int or "auto", default="auto"
        Genes of the panel. "auto" is the smallest size on the path whose held-out
        balanced accuracy, in five folds, is within one standard error of the best. It
        has at least 100 genes where such a size is good enough, to be robust to missing
        genes.
    l2 : float, default=0.03
        The penalty ``l2 |W|^2`` against the mean loss, in the elimination and in the
        last fit.
    include : sequence of int, of bool or of str, optional
        Genes that must be in the panel: positions, a mask, or names where X has names.
    class_weight : "balanced", None or dict, default="balanced"
        "balanced": all classes count the same, whatever their sample weights. None:
        samples count by their weights. A dict: further weights of the classes' samples,
        1 where it has no entry.
    n_jobs : int, optional
        Threads; -1 for all processors. They change the time, not the model.
    verbose : int, default=0
        1 prints a line for each stage of the fit.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    panel_ : array of shape (k,)
        Positions of the panel's genes, rising.
    genes_ : boolean array of shape (n_features_in_,)
        The panel as a mask.
    coef_ : array of shape (1 or n_classes, n_features_in_)
        Weights on the centred ranks, zero outside the panel; one row for two classes.
    intercept_ : array of shape (1 or n_classes,)
        Zeros: the model has no intercept.
    path_ : dict of int to Panel
        The nested panels up to this one by size (10, 20, 30, 50, 70, 100, 200, 300,
        500, 1000), each with its own weights.
    held_out_ : HeldOut or None
        Scores of held-out samples by panels of each size, where these were measured
        ("auto").

    Examples
    --------
    >>> from optirank import PanelClassifier
    >>> from optirank.datasets import make_unstable_ranks
    >>> data = make_unstable_ranks(n_samples=300, random_state=0)
    >>> model = PanelClassifier(n_genes=20).fit(data.X, data.y)
    >>> int(model.genes_.sum()), sorted(model.path_)
    (20, [10, 20])
    """

    ties = "average"
    _softmax = True
    _parameter_constraints = {
        "n_genes": [StrOptions({"auto"}), Interval(Integral, 2, None, closed="left")],
        "l2": [POSITIVE],
        "class_weight": CLASS_WEIGHT,
    }

    def __init__(
        self,
        n_genes: int | str = "auto",
        *,
        l2: float = L2,
        include: Sequence | NDArray | None = None,
        class_weight: str | dict | None = "balanced",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_genes = n_genes
        self.l2 = l2
        self.include = include
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Find the panel and its weights.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_genes)
            Expression on any scale: counts, linear values or logarithms, but not values
            that were standardised per gene, whose order within a sample means little.
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,) or a number, optional
        """
        self._validate_params()
        X, y = data_for_fitting(self, X, y)
        weight = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
        kept = weight > 0
        if not kept.all():  # a sample of weight 0 is one that is not there
            X, y, weight = X[kept], y[kept], weight[kept]
        self.classes_, codes = label_codes(y)
        include = self._required_genes(X.shape[1])
        if isinstance(self.class_weight, dict):
            of_classes = weights_of_classes(self.class_weight, self.classes_)
            weight = weight * of_classes[codes]
        if looks_standardised(X):
            warnings.warn(STANDARDISED, UserWarning, stacklevel=2)
        run_pass = functools.partial(fold_matrix, X)
        looking = DrawnSamples(
            codes,
            keys_of_matrix(X, codes),
            len(self.classes_),
            n_folds=N_FOLDS if self.n_genes == "auto" else 0,
        )
        with using_threads(self.n_jobs):
            run_pass([looking])
            sums, rows, samples, fold_of, _ = looking.result()
            n_folds = int(fold_of.max()) + 1
            path, n_genes, held_out = search_panels(
                sums,
                rows,
                samples,
                fold_of,
                codes,
                len(self.classes_),
                run_pass,
                sample_weight=weight,
                balanced=self.class_weight == "balanced",
                n_genes=self.n_genes,
                include=include,
                l2=float(self.l2),
                progress=_print_stage if self.verbose else None,
            )
        self.held_out_ = held_out if n_folds else None
        self.path_ = {size: panel for size, panel in path.items() if size <= n_genes}
        return self._take(path[n_genes])

    def _take(self, panel: Panel) -> Self:
        """Make this panel the model's."""
        self.panel_ = panel.genes
        self.genes_ = np.zeros(self.n_features_in_, dtype=bool)
        self.genes_[panel.genes] = True
        self.coef_ = np.zeros((len(panel.coef), self.n_features_in_))
        self.coef_[:, panel.genes] = panel.coef
        self.intercept_ = np.zeros(len(panel.coef))
        return self

    def decision_function(self, X: Any) -> NDArray:
        """Scores: one per sample for two classes, one per sample and class for more.

        Only the genes of the panel are looked at.
        """
        check_is_fitted(self)
        coef = self.coef_[:, self.panel_]
        values, columns = data_for_scoring(self, X, self.panel_)
        scores = vote_scores(values, columns, coef)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def smaller(self, n_genes: int) -> PanelClassifier:
        """The model of a smaller panel of the path, without training."""
        check_is_fitted(self)
        if n_genes not in self.path_:
            raise ValueError(
                f"there is no panel of {n_genes} genes on the path: there are panels "
                f"of {some(sorted(self.path_), 20)} genes"
            )
        model = copy.copy(self)
        model.n_genes = n_genes
        model.path_ = {
            size: panel for size, panel in self.path_.items() if size <= n_genes
        }
        return model._take(self.path_[n_genes])

    @property
    def reference_weights_(self) -> NDArray:
        """The reference set of every class: the panel."""
        return np.tile(self.genes_.astype(float), (len(self.coef_), 1))

    def _required_genes(self, n_features: int) -> NDArray:
        """Positions of the genes that must be in the panel, which has room for them."""
        n_genes = self.n_genes
        if n_features < 2:
            raise ValueError(
                f"X has {n_features} feature(s): ranks among themselves need at least "
                "2 genes"
            )
        if not isinstance(n_genes, str) and n_genes > n_features:
            raise ValueError(
                f"n_genes={n_genes} is more than the {n_features} genes there are: use "
                f"at most {n_features}, or 'auto'"
            )
        if self.include is None or not len(self.include):
            return np.zeros(0, np.intp)
        names = getattr(self, "feature_names_in_", None)
        required = np.sort(
            reference_positions(self.include, n_features, names, "include")
        )
        if not isinstance(n_genes, str) and len(required) > n_genes:
            raise ValueError(
                f"include has {len(required)} genes, more than n_genes={n_genes}: ask "
                f"for at least {len(required)}"
            )
        return required


def _print_stage(done: int, total: int) -> None:
    """Say that a stage is done: candidates, each fold, elimination, weights."""
    print(f"[PanelClassifier] stage {done} of {total} is done")
