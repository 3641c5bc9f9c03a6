"""What every linear classifier on relative ranks shares: checking, one-vs-rest, prediction."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from optirank._util.threads import one_blas_thread
from optirank.estimators._subset import subset_classes
from optirank.estimators.card import ModelCard
from optirank.estimators.panel import (
    PanelAttributes,
    carried,
    forget_training,
    model_rows,
    plain_probabilities,
)
from optirank.ranks.fitting import order_for_fitting
from optirank.ranks.scoring import average_rows, best_class
from optirank.solver.device.backend import is_device_array
from optirank.solver.sizes import is_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from optirank.ranks.orders import SampleOrders
    from optirank.solver.device.orders import DeviceOrders
    from optirank.solver.device.solve import Options
    from optirank.solver.problem import Problem, Solution


logger = logging.getLogger("optirank")


class BinarySolver(Protocol):
    """How the problem of one class is solved; several solutions are averaged at prediction."""

    def __call__(
        self, problem: Problem, positive: object, callback: Callable[[dict], None] | None
    ) -> list[Solution]:
        """Solve it on the CPU; ``callback`` is told of each stage."""
        ...

    def prepared(self, problem: Problem, positive: object) -> list[tuple[Problem, str]]:
        """The problem with the settings of its class, and the side to start from.

        One for each of the models that are averaged.
        """
        ...

    def options(self) -> Options:
        """How to solve on a device."""
        ...


class LinearClassifier(ModelCard, PanelAttributes, ClassifierMixin, BaseEstimator):
    """One linear score per class against the rest, a single one for two classes."""

    def _checked(self, X: ArrayLike, y: ArrayLike):
        """X and y as arrays, with the classes of y."""
        if is_device_array(X):
            X, y = self._checked_on_device(X, y)
        else:
            # Sorting on a GPU checks the values there, where that takes no time
            on_gpu = getattr(self, "device", "cpu") == "cuda"
            X, y = validate_data(
                self, X, y, accept_sparse=("csr", "csc"), ensure_all_finite=not on_gpu
            )
        check_classification_targets(y)
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(
                f"y has one class only ({classes.tolist()[0]!r}): a classifier needs samples of "
                "at least 2 classes"
            )
        return X, y, classes

    def _checked_on_device(self, X, y: ArrayLike):
        """The checks of a CuPy array, which stays where it is; sorting checks its values."""
        if getattr(self, "device", "cpu") != "cuda":
            raise ValueError(
                f"X is a CuPy array and {type(self).__name__} fits on the CPU here: use "
                "device='cuda' where the classifier has it, or X.get()"
            )
        y = column_or_1d(y.get() if is_device_array(y) else y, warn=True)
        if X.ndim != 2 or 0 in X.shape or len(y) != X.shape[0]:
            raise ValueError(
                f"X has shape {X.shape} and y {y.shape}: give samples x genes, and one label per "
                "sample"
            )
        self.n_features_in_ = X.shape[1]
        return X, y

    def predict_proba(self, X: ArrayLike) -> NDArray:
        """Probabilities that suppose equally frequent classes; the label is the most probable one.

        They are logistic functions of the scores, divided by their sum for more than two classes
        (the softmax of the scores where the classes share one reference set), or those of
        ``calibration_`` where the model carries one.
        """
        scores = self.decision_function(X)
        calibration = carried(self, "calibration_")
        if calibration is not None:
            return calibration.probabilities(scores)
        return plain_probabilities(self, scores)

    def predict_log_proba(self, X: ArrayLike) -> NDArray:
        """Logarithms of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: ArrayLike) -> NDArray:
        """The class of the highest score."""
        chosen = best_class(self.decision_function(X))
        return self.classes_[chosen]

    def subset(self, classes: Iterable) -> Self:
        """The model restricted to two or more of its classes, which it then chooses among.

        Each class of a model of three or more has a problem of its own, against the rest, so the
        others can be left out without training again; the scores of those kept do not change. With
        two classes kept, the score is half the difference of theirs (all of it where the classes
        share one reference set): the label is that of the higher score as before. The calibration
        and the record of held-out scores are then dropped, since they were of the single scores.
        This model is left as it is.
        """
        check_is_fitted(self)
        return subset_classes(self, classes)

    def _sample_weights(self, X, y: NDArray, sample_weight: ArrayLike | None) -> NDArray:
        like = np.empty((X.shape[0], 1)) if is_device_array(X) else X
        weights = _check_sample_weight(sample_weight, like, ensure_non_negative=True)
        present = np.unique(y)
        empty = [label for label in present.tolist() if weights[y == label].sum() == 0]
        if empty:
            raise ValueError(
                f"the sample weights of class {empty[0]!r} are all zero: give some of its samples "
                "a positive weight, or leave the class out"
            )
        if isinstance(self.class_weight, dict):
            unknown = set(self.class_weight) - set(present.tolist())
            if unknown:
                raise ValueError(
                    f"class_weight names {sorted(map(repr, unknown))[0]}, which is not a class of "
                    f"y: the classes are {present.tolist()}"
                )
            for label, weight in self.class_weight.items():
                if not is_number(weight) or not 0 < weight < np.inf:
                    raise ValueError(
                        f"class_weight[{label!r}]={weight!r}: use a positive, finite number"
                    )
            weights = weights * np.array([self.class_weight.get(label, 1.0) for label in y])
        return weights

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class RankLinearClassifier(LinearClassifier):
    """Logistic regression on ranks relative to a reference set, one problem per class.

    A subclass says how one binary problem is solved; with more than two classes there is one
    problem per class, against the rest, over the same orders of the samples.
    """

    def _fit_checked(
        self,
        X,
        y: NDArray,
        sample_weight: ArrayLike | None,
        n_reference: int,
        solve: BinarySolver,
    ) -> Self:
        """Order the samples, then as :meth:`_fit_orders`."""
        weights = self._sample_weights(X, y, sample_weight)
        return self._fit_orders(self._orders(X), y, weights, n_reference, solve, stacklevel=4)

    def _orders(self, X) -> SampleOrders | DeviceOrders:
        """Sorted samples, where the fit takes place."""
        if getattr(self, "device", "cpu") == "cpu":
            return order_for_fitting(X, self.n_jobs)
        from optirank.solver.device.problems import orders_for  # a GPU is asked for

        return orders_for(X, self.device)

    def _fit_orders(
        self,
        orders: SampleOrders,
        y: NDArray,
        weights: NDArray,
        n_reference: int,
        solve: BinarySolver,
        stacklevel: int,
    ) -> Self:
        """Solve the problem of each class on sorted samples, keep the solutions.

        ``stacklevel`` leads warnings to the line that calls ``fit``.
        """
        from optirank.solver.problem import Problem, sample_weights  # numba loads with a fit

        classes, codes = np.unique(y, return_inverse=True)
        balanced = self.class_weight == "balanced"
        l1, l2 = (
            float(np.ravel(value)[0]) for value in (self.l1, self.l2)
        )  # of an average, the first
        with one_blas_thread():
            positives = [1] if len(classes) == 2 else list(range(len(classes)))
            problems = [
                Problem(
                    orders,
                    (codes == k).astype(float),
                    sample_weights(codes == k, weights, balanced),
                    n_reference,
                    l1,
                    l2,
                    self.ties,
                )
                for k in positives
            ]
            if hasattr(orders, "whole"):
                from optirank.solver.device.problems import solve_together  # a GPU is asked for

                ready = [
                    solve.prepared(problem, classes[k])[0]
                    for k, problem in zip(positives, problems, strict=True)
                ]
                side_by_side = solve_together(*zip(*ready, strict=True), solve.options())
                found = [[one.solution] for one in side_by_side]
            else:
                found = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                    delayed(solve)(problem, classes[k], self._progress(classes[k]))
                    for k, problem in zip(positives, problems, strict=True)
                )
        self.classes_ = classes
        self._keep(found, stacklevel + 1)
        return self

    def _keep(self, found: list[list[Solution]], stacklevel: int) -> None:
        """Fitted attributes, one row per solution of each problem, as many for each."""
        forget_training(self)
        most = max(map(len, found))
        solutions = [one[k % len(one)] for one in found for k in range(most)]
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
                f"{late} of {len(solutions)} fits stopped at max_iter={self.max_iter} before they "
                f"reached tol={self.tol:g}: raise max_iter, or l2, or tol",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )

    def decision_function(self, X: ArrayLike) -> NDArray:
        """Scores: one per sample for two classes, one per sample and class for more.

        Only the genes in ``genes_`` are looked at.
        """
        check_is_fitted(self)
        rows, columns = model_rows(self)
        n_problems = 1 if len(self.classes_) == 2 else len(self.classes_)
        if is_device_array(X):
            X = X[:, columns].get()  # only the panel leaves the device
            columns = np.arange(len(columns))
        else:
            X = validate_data(self, X, accept_sparse=("csr", "csc"), reset=False)
        scores = average_rows(rows.scores(X, columns), n_problems)
        return scores[:, 0] if n_problems == 1 else scores

    def _progress(self, positive: object):
        if not self.verbose:
            return None
        show_log()

        def tell(entry: dict) -> None:
            rest = ", ".join(
                f"{key} {value:.6g}" if isinstance(value, float) else f"{key} {value}"
                for key, value in entry.items()
                if key != "stage"
            )
            logger.info("%s: %s: %s", positive, entry.get("stage", "lambda_p"), rest)

        return tell

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # Ranks within a sample see the order of its features alone: two-dimensional blobs, on
        # which scikit-learn's checks ask for a high score, differ by position and not by order.
        tags.classifier_tags.poor_score = True
        return tags


def show_log() -> None:
    """Send the log of optirank to the screen, unless the user has set up logging."""
    if not logger.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("[optirank] %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
