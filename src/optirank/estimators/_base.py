"""What every classifier on relative ranks shares: what it takes as X and as weights of
classes, one problem per class, prediction.
"""

from __future__ import annotations

import logging
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from optirank._util.words import some
from optirank._util.work import one_blas_thread
from optirank.ranks.scoring import (
    TIES,
    best_class,
    probabilities,
    score_rows,
)
from optirank.solver.problem import Problem, Solution, sample_weights

if TYPE_CHECKING:
    from optirank.ranks.orders import SampleOrders

BinarySolver = Callable[[Problem, object], Solution]  # of the class that is given

logger = logging.getLogger("optirank")

POSITIVE = Interval(Real, 0, None, closed="neither")
CLASS_WEIGHT = [StrOptions({"balanced"}), dict, None]
_SPARSE: Any = ("csr", "csc")


class RankClassifier(ClassifierMixin, BaseEstimator):
    """What all classifiers on the order of genes share: checks of parameters, labels
    and probabilities from scores.
    """

    classes_: NDArray
    n_features_in_: int
    feature_names_in_: NDArray
    decision_function: Callable[[Any], NDArray]
    # Probabilities of several classes: softmax of the scores, or logistic functions
    _softmax = False

    def predict(self, X: Any) -> NDArray:
        """The class of the highest score."""
        chosen = best_class(self.decision_function(X))
        return self.classes_[chosen]

    def predict_proba(self, X: Any) -> NDArray:
        """Probabilities that suppose equally frequent classes; the label is the most
        probable one.

        They are the logistic function of the score for two classes. For more they are
        the softmax of the scores (panel model), or logistic functions divided by their
        sum (one problem per class). Calibrated ones are those of ``optirank.Model``.
        """
        scores = self.decision_function(X)
        softmax = self._softmax and scores.ndim == 2
        return probabilities(scores, offset=-np.inf if softmax else 0.0)

    def predict_log_proba(self, X: Any) -> NDArray:
        """Logarithms of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # Ranks within a sample see the order of its features alone: two-dimensional
        # blobs, on which scikit-learn's checks ask for a high score, differ by position
        # and not by order.
        tags.classifier_tags.poor_score = True
        return tags


def label_codes(y: NDArray) -> tuple[NDArray, NDArray]:
    """The classes of y, at least two, and the position of each sample's class
    among them.
    """
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"y has one class only ({classes.tolist()[0]!r}): a classifier needs "
            "samples of at least 2 classes"
        )
    return classes, codes


def weights_of_classes(given: dict, classes: NDArray) -> NDArray:
    """The weight of each class, 1 where the dict has no entry."""
    labels = classes.tolist()
    if unknown := [label for label in given if label not in labels]:
        raise ValueError(
            f"class_weight names {unknown[0]!r}, which is not a class of y: the "
            f"classes are {some(labels, 20)}"
        )
    positive = {label: [POSITIVE] for label in given}
    validate_parameter_constraints(positive, given, "class_weight")
    return np.array([float(given.get(label, 1.0)) for label in labels])


def data_for_fitting(estimator: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """X and y as arrays, with scikit-learn's checks; sets ``n_features_in_`` and
    the names.
    """
    refuse_anndata(X)
    checked: Any = validate_data(estimator, X, y, accept_sparse=_SPARSE)
    return checked


def data_for_scoring(
    estimator: Any, X: Any, needed: NDArray
) -> tuple[Any, NDArray[np.intp]]:
    """The values to score, and the columns among them that hold the needed genes
    (positions).

    Columns of a data frame are matched with ``feature_names_in_`` by their names: they
    may have another order, others may stand among them, and only the needed genes must
    be there.
    """
    refuse_anndata(X)
    names = getattr(estimator, "feature_names_in_", None)
    columns = getattr(X, "columns", None)
    if names is None or columns is None or list(columns) == list(names):
        values = validate_data(estimator, X, accept_sparse=_SPARSE, reset=False)
        return values, needed
    part = _columns_by_name(X, names[needed], type(estimator).__name__)
    return check_array(part, accept_sparse=_SPARSE), np.arange(len(needed))


def refuse_anndata(X: Any) -> None:
    """A TypeError for an AnnData, which is not a matrix, that names what takes one."""
    if any(kind.__name__ == "AnnData" for kind in type(X).__mro__):
        raise TypeError(
            "X is an AnnData, and estimators take a matrix or a data frame: use "
            "optirank.tl.train(adata, label=...) and optirank.tl.annotate, or adata.X"
        )


def _columns_by_name(frame: Any, genes: NDArray, estimator: str) -> Any:
    """The columns of a data frame with these names, in their order."""
    counts = Counter(frame.columns)
    missing = [str(gene) for gene in genes if gene not in counts]
    if missing:
        raise ValueError(
            f"X lacks {len(missing)} of the {len(genes)} genes that this {estimator} "
            f"needs: {some(missing, 5, quoted=True)}. Give a data frame with these "
            "columns, or train on the genes that there are"
        )
    repeated = [gene for gene in genes if counts[gene] > 1]
    if repeated:
        raise ValueError(
            f"X has {counts[repeated[0]]} columns named {repeated[0]!r}: keep one of "
            "them"
        )
    return frame[list(genes)]


class RankLinearClassifier(RankClassifier, ABC):
    """Logistic regression on ranks relative to a reference set, one problem per class.

    A subclass says how one binary problem is solved; with more than two classes there
    is one problem per class, against the rest, over the same orders of the samples.
    """

    _parameter_constraints = {
        "l1": [Interval(Real, 0, None, closed="left")],
        "l2": [Interval(Real, 0, None, closed="left")],
        "ties": [StrOptions(set(TIES))],
        "tol": [Interval(Real, 0, 1, closed="neither")],
        "max_iter": [Interval(Real, 1, None, closed="left")],
        "class_weight": CLASS_WEIGHT,
    }
    l1: float
    l2: float

    def __init__(
        self,
        *,
        ties: str,
        tol: float,
        max_iter: int,
        class_weight: str | dict | None,
        n_jobs: int | None,
        verbose: int,
    ) -> None:
        self.ties = ties
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose

    @abstractmethod
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from samples (rows of X) and their labels."""

    def decision_function(self, X: Any) -> NDArray:
        """Scores: one per sample for two classes, one per sample and class for more.

        Only the genes in ``genes_`` are looked at. Columns of a data frame are found by
        their names, where ``fit`` was given one too.
        """
        check_is_fitted(self)
        needed = np.flatnonzero(self.genes_)
        values, columns = data_for_scoring(self, X, needed)
        coef = self.coef_[:, needed]
        gamma = self.reference_weights_[:, needed]
        scores = score_rows(values, coef, gamma, self.intercept_, self.ties, columns)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _checked(
        self, X: Any, y: Any, sample_weight: ArrayLike | None
    ) -> tuple[Any, NDArray, NDArray]:
        """X, the position of each sample's class in ``classes_``, which is set, and the
        weights of the samples, with those of a dict ``class_weight``; parameters are
        checked first.
        """
        self._validate_params()
        X, y = data_for_fitting(self, X, y)
        self.classes_, codes = label_codes(y)
        weights = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        totals = np.bincount(codes, weights)
        if not totals.all():
            empty = self.classes_.tolist()[int(totals.argmin())]
            raise ValueError(
                f"the sample weights of class {empty!r} are all zero: give some of "
                "its samples a positive weight, or leave the class out"
            )
        if isinstance(self.class_weight, dict):
            of_classes = weights_of_classes(self.class_weight, self.classes_)
            weights = weights * of_classes[codes]
        return X, codes, weights

    def _orders(self, X: Any) -> SampleOrders:
        """Sorted samples; says if a fit takes longer because its loops are compiled."""
        from optirank._compiled.jit import is_compiled
        from optirank._compiled.solver_loops import proximal_steps
        from optirank.ranks.orders import order_for_fitting

        if not is_compiled(proximal_steps):
            logger.warning(
                "note: the first fit compiles its loops, which takes about half a "
                "minute; the result is kept on disk for the next ones"
            )
        return order_for_fitting(X, self.n_jobs)

    def _fit_orders(
        self,
        orders: Any,
        codes: NDArray,
        weights: NDArray,
        n_reference: int,
        solve: BinarySolver,
        candidates: NDArray | None = None,
    ) -> Self:
        """Solve the problem of each class on sorted samples, keep the solutions."""
        balanced = self.class_weight == "balanced"
        same = n_reference, float(self.l1), float(self.l2), self.ties, candidates
        problems = {}
        for k in [1] if len(self.classes_) == 2 else range(len(self.classes_)):
            v = sample_weights(codes == k, weights, balanced)
            y = (codes == k).astype(float)
            problems[self.classes_[k]] = Problem(orders, y, v, *same)
        with one_blas_thread():
            parallel: Any = Parallel(n_jobs=self.n_jobs, prefer="threads")
            solutions = parallel(
                delayed(solve)(problem, label) for label, problem in problems.items()
            )
        if self.verbose:
            for label, solution in zip(problems, solutions, strict=True):
                self._print_stages(label, solution)
        self.coef_ = np.array([solution.w for solution in solutions])
        self.intercept_ = np.array([solution.b for solution in solutions])
        self.reference_weights_ = np.array([solution.gamma for solution in solutions])
        self.reference_ = self.reference_weights_ > 0
        self.objective_ = np.array([solution.objective for solution in solutions])
        self.n_iter_ = np.array([solution.n_iter for solution in solutions])
        self.path_ = [solution.path for solution in solutions]
        self.genes_ = (self.reference_ | (self.coef_ != 0)).any(axis=0)
        late = sum(not solution.converged for solution in solutions)
        if late:
            warnings.warn(
                f"{late} of {len(solutions)} fits stopped at max_iter={self.max_iter} "
                f"before they reached tol={self.tol:g}: raise max_iter, or l2, or tol",
                ConvergenceWarning,
                stacklevel=3,  # the line that calls fit, which calls this
            )
        return self

    def _print_stages(self, positive: object, solution: Solution) -> None:
        """Print what happened while the problem of a class was solved."""
        end = {"stage": "fitted", "objective": solution.objective}
        for entry in solution.path or [end]:
            told = (
                f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
                for name, value in entry.items()
            )
            print(f"[{type(self).__name__}] {positive}: {', '.join(told)}")
