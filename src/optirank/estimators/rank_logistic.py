"""RankLogisticRegression (rank-lr): logistic regression on full ranks, or on a given reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optirank.estimators._base import RankLinearClassifier
from optirank.estimators._options import check_options
from optirank.ranks.definition import TIES
from optirank.solver.device.backend import check_device

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from optirank.solver.device.solve import Options
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
    ties : {"average", "min", "max"}, default="average"
        The rank of tied values.
    tol : float, default=1e-5
        Of the proximal gradient, relative to the gradient at w = 0.
    max_iter : int, default=10000
        Steps at most.
    class_weight : "balanced", None or dict, default="balanced"
        Balanced: both classes of each problem weigh the same.
    device : {"cpu", "cuda"}, default="cpu"
        Where to fit: "cuda" is an NVIDIA GPU, and needs CuPy (``pip install 'optirank[gpu]'``). A
        CuPy array given as X stays on the GPU.
    n_jobs : int or None, default=None
        Threads: for sorting, and over the classes.
    random_state : int or None, default=None
        Nothing is random; accepted so that pipelines can set it on every step.
    verbose : int, default=0
        Log each problem.

    Attributes
    ----------
    classes_, coef_, intercept_, reference_, reference_weights_, objective_, n_iter_, genes_
        As in :class:`~optirank.OptirankClassifier`; all genes are in the reference set.
    """

    def __init__(
        self,
        l1: float = 1e-3,
        l2: float = 1e-3,
        *,
        ties: str = "average",
        tol: float = 1e-5,
        max_iter: int = 10_000,
        class_weight: str | dict | None = "balanced",
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: int | None = None,
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
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> RankLogisticRegression:
        """Learn the weights.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, d)
            Expression values on any scale; finite.
        y : array-like of shape (n_samples,)
            Labels of two classes or more.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, within their class when classes are balanced.
        """
        check_options(self, {"ties": tuple(TIES)})
        check_device(self.device)
        X, y, _ = self._checked(X, y)
        return self._fit_checked(X, y, sample_weight, X.shape[1], _Solver(self))


@dataclass(frozen=True)
class _Solver:
    """How the problem of one class is solved: see :class:`BinarySolver`."""

    model: RankLogisticRegression

    def __call__(self, problem: Problem, positive: object, callback) -> list[Solution]:
        """See :class:`BinarySolver`."""
        return solve_at_reference(self.model, problem, np.ones(problem.n_genes), callback)

    def prepared(self, problem: Problem, positive: object) -> list[tuple[Problem, str]]:
        """See :class:`BinarySolver`."""
        return [(problem, "best")]

    def options(self) -> Options:
        """See :class:`BinarySolver`."""
        from optirank.solver.device.solve import Options

        model = self.model
        return Options(ties=model.ties, tol=model.tol, max_iter=int(model.max_iter))


def solve_at_reference(
    estimator: RankLinearClassifier, problem: Problem, gamma: NDArray, callback
) -> list[Solution]:
    """Fit the weights to convergence at a given reference set."""
    from optirank.solver.convex import solve_at

    solution = solve_at(problem, gamma, tol=estimator.tol, max_iter=int(estimator.max_iter))
    if callback is not None:
        callback({"stage": "fitted", "objective": solution.objective})
    return [solution]
