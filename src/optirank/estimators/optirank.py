"""The paper's classifiers: a reference set that is learned, of all genes, or of
stable genes.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)

from optirank.estimators._base import BinarySolver, RankLinearClassifier
from optirank.ranks.transformer import reference_positions
from optirank.solver.constants import DEFAULTS, STARTS
from optirank.solver.problem import Problem, Solution, resolve_n_reference

SOLVER_OPTIONS = {
    "path_step": [Interval(Real, 1, None, closed="left")],
    "integral": ["boolean"],
    "polish": ["boolean"],
    "refit": ["boolean"],
}


class OptirankClassifier(RankLinearClassifier):
    """Logistic regression on ranks relative to a learned set of reference genes.

    Each sample's genes are ranked by comparing them with the reference genes of the
    same sample only. The reference set and the weights of the genes are learned
    together, by minimising

    ``sum_i v_i logloss(y_i, z_i) + l1 |w|_1 + l2 |w|_2^2``, with ``z = w . r / s + b``,

    r being the ranks relative to the s reference genes. A strictly increasing
    transformation of a sample's values changes nothing, and only the genes in
    ``genes_`` have to be measured. With more than two classes one problem per class is
    solved, against the rest.

    Parameters
    ----------
    n_reference : float or int, default=0.2
        Size s of the reference set: a float in (0, 1] is a fraction of the genes (of
        the candidates where ``reference_candidates`` are given), an int a count.
        1.0 is all genes (logistic regression on full ranks), 1 is one gene.
    l1, l2 : float, default=1e-3
        Penalties, in units of ranks divided by s. With both 0 a floor of l2 = 1e-7
        stands in, since separable data have no minimiser.
    algorithm : {"alternating", "bpcd"}, default="alternating"
        The fast algorithm, or the paper's.
    ties : {"average", "min", "max"}, default="average"
        The rank of tied values.
    side : {"best", "rising", "falling"}, default="best"
        The problem has two minima: the reference among the genes that rise with the
        class, or among those that fall. "best" takes the one of lower objective.
        "alternating" only.
    reference_candidates : None, mask, positions or gene names, default=None
        The genes that may be in the reference set, such as housekeeping genes; None is
        all genes. Every gene may have weights.
    tol : float, default=1e-5
        Tolerance: of the last fit of the weights, and of each solve of "bpcd".
    max_iter : int, default=10000
        Steps at most, from each start ("bpcd": in each solve of its path); a warning
        says when they were not enough.
    class_weight : "balanced", None or dict, default="balanced"
        Balanced: both classes of each problem weigh the same.
    n_jobs : int or None, default=None
        Threads: for sorting, and over the classes.
    verbose : int, default=0
        1 prints a line for each stage, after the fit.
    solver_options : dict or None, default=None
        What only a study of the algorithm needs:

        - ``path_step`` (100): how fast the penalty that pushes gamma to a set grows;
          smaller is slower and more careful.
        - ``integral`` (True): whether to end with a set; otherwise the reference
          weights stay fractional.
        - ``polish`` (True): whether to exchange genes after the push ("alternating"
          only).
        - ``refit`` (True): whether to optimise the weights to convergence at the final
          set.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (n_problems, d)
        Weights w. Two classes make one problem, more make one each.
    intercept_ : ndarray of shape (n_problems,)
    reference_ : boolean ndarray of shape (n_problems, d)
        The reference genes.
    reference_weights_ : ndarray of shape (n_problems, d)
        gamma: 0 and 1, or fractional with ``integral`` False.
    objective_, n_iter_ : ndarray of shape (n_problems,)
        Final objectives, and steps taken.
    path_ : list of list of dict
        What happened on the way, for each problem.
    genes_ : boolean ndarray of shape (d,)
        The genes needed to predict.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), where ``fit`` was given a data frame.

    Examples
    --------
    >>> from optirank import OptirankClassifier
    >>> from optirank.datasets import make_unstable_ranks
    >>> data = make_unstable_ranks(random_state=0)
    >>> model = OptirankClassifier(n_reference=10, l2=1e-6).fit(data.X, data.y)
    >>> int(model.reference_.sum())
    10
    """

    _parameter_constraints = {
        **RankLinearClassifier._parameter_constraints,
        "algorithm": [StrOptions({"alternating", "bpcd"})],
        "side": [StrOptions({"best", *STARTS})],
        "solver_options": [dict, None],
    }

    def __init__(
        self,
        n_reference: float = DEFAULTS["n_reference"],
        l1: float = DEFAULTS["l1"],
        l2: float = DEFAULTS["l2"],
        *,
        algorithm: str = "alternating",
        ties: str = "average",
        side: str = "best",
        reference_candidates: ArrayLike | None = None,
        tol: float = 1e-5,
        max_iter: int = 10_000,
        class_weight: str | dict | None = "balanced",
        n_jobs: int | None = None,
        verbose: int = 0,
        solver_options: dict | None = None,
    ) -> None:
        super().__init__(
            ties=ties,
            tol=tol,
            max_iter=max_iter,
            class_weight=class_weight,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.n_reference = n_reference
        self.l1 = l1
        self.l2 = l2
        self.algorithm = algorithm
        self.side = side
        self.reference_candidates = reference_candidates
        self.solver_options = solver_options

    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None
    ) -> OptirankClassifier:
        """Learn the reference set and the weights.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, d)
            Expression values on any scale; finite.
        y : array-like of shape (n_samples,)
            Labels of two classes or more.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, within their class when classes are balanced.
        """
        X, codes, weights = self._checked(X, y, sample_weight)
        candidates = candidate_mask(self, X.shape[1])
        size = resolve_n_reference(self.n_reference, X.shape[1], candidates)
        return self._fit_orders(
            self._orders(X), codes, weights, size, self._solve, candidates
        )

    def _validate_params(self) -> None:
        super()._validate_params()
        options = self.solver_options or {}
        for name in options:
            if name not in SOLVER_OPTIONS:
                raise ValueError(
                    f"solver_options has {name!r}, which is not known: use some of "
                    f"{', '.join(SOLVER_OPTIONS)}"
                )
        validate_parameter_constraints(SOLVER_OPTIONS, options, "solver_options")
        if self.algorithm == "bpcd" and self.side != "best":
            raise ValueError(
                f"side={self.side!r} with algorithm='bpcd': this algorithm has one "
                "start, use side='best' or algorithm='alternating'"
            )

    def _solve(self, problem: Problem, positive: object) -> Solution:
        """Solve the problem of one class."""
        from optirank.solver.bpcd import solve_bpcd
        from optirank.solver.solve import solve_alternating

        options: Any = {"tol": self.tol, "max_iter": int(self.max_iter)}
        options |= self.solver_options or {}
        if self.algorithm == "bpcd":
            return solve_bpcd(problem, **options)
        return solve_alternating(problem, side=self.side, **options)


class RankLogisticRegression(RankLinearClassifier):
    """Elastic-net logistic regression on the ranks of each sample's genes among all of
    them.

    The classifier called rank-lr in the paper. Ranks (average ones by default, lowest
    0) are divided by the number of genes d, so that penalties compare with
    :class:`~optirank.OptirankClassifier`'s at ``n_reference=1.0``.

    Parameters
    ----------
    l1, l2 : float, default=1e-3
        Penalties: ``sum_i v_i logloss(y_i, z_i) + l1 |w|_1 + l2 |w|_2^2``. With both 0
        a floor of l2 = 1e-7 stands in.
    tol : float, default=1e-5
        Of the proximal gradient, relative to the gradient at w = 0.
    ties, max_iter, class_weight, n_jobs, verbose
        As in :class:`~optirank.OptirankClassifier`.

    Attributes
    ----------
    classes_, coef_, intercept_, reference_, reference_weights_, objective_, n_iter_,
    genes_
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
        self.l1 = l1
        self.l2 = l2

    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None
    ) -> RankLogisticRegression:
        """Learn the weights; the arguments are those of
        :class:`~optirank.OptirankClassifier`.
        """
        X, codes, weights = self._checked(X, y, sample_weight)
        solve = solver_at(self)
        return self._fit_orders(self._orders(X), codes, weights, X.shape[1], solve)


def solver_at(
    estimator: RankLinearClassifier, references: dict[Any, NDArray] | None = None
) -> BinarySolver:
    """What fits the weights of a class to convergence at its reference set (positions),
    by default all genes.
    """

    def solve(problem: Problem, positive: object) -> Solution:
        from optirank.solver.convex import solve_at

        gamma = np.zeros(problem.n_genes)
        gamma[slice(None) if references is None else references[positive]] = 1.0
        options = {"tol": estimator.tol, "max_iter": int(estimator.max_iter)}
        return solve_at(problem, gamma, **options)

    return solve


def candidate_mask(estimator: Any, n_genes: int) -> NDArray | None:
    """Mask of the genes that may be in the reference, None for all; n_features_in_
    is known.
    """
    given = estimator.reference_candidates
    if given is None:
        return None
    names = getattr(estimator, "feature_names_in_", None)
    positions = reference_positions(given, n_genes, names, "reference_candidates")
    if not positions.size:
        raise ValueError(
            "reference_candidates is empty: name at least one gene, or use None for "
            "all genes"
        )
    return np.isin(np.arange(n_genes), positions)
