"""OptirankClassifier: the reference set and the classifier, learned together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from optirank._util.threads import one_blas_thread
from optirank.estimators._base import RankLinearClassifier
from optirank.estimators._options import (
    averaged_members,
    candidate_mask,
    check_options,
    check_shared_reference,
    check_whole_panel,
)
from optirank.ranks.definition import TIES
from optirank.solver.device.backend import check_device
from optirank.solver.sizes import resolve_n_candidates

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from optirank.ranks.orders import SampleOrders
    from optirank.solver.device.solve import Options
    from optirank.solver.problem import Problem, Solution


class OptirankClassifier(RankLinearClassifier):
    """Logistic regression on ranks relative to a learned set of reference genes.

    Each sample's genes are ranked by comparing them with the reference genes of the same sample
    only. The reference set and the weights of the genes are learned together, by minimising

    ``sum_i v_i logloss(y_i, z_i) + l1 |w|_1 + l2 |w|_2^2``, with ``z = w . r / s + b``,

    r being the ranks relative to the s reference genes. A strictly increasing transformation of a
    sample's values changes nothing, and only the genes in ``genes_`` have to be measured.

    With more than two classes one problem per class is solved, against the rest, or one problem
    with one reference set for all of them (``shared_reference=True``): the softmax of

    ``Z = R W / s + b``, under ``l1 sum_j |W_j|_2 + l2 |W|_2^2``,

    R being the ranks and W_j the weights of gene j for all classes, so that a gene has weights for
    all classes or for none. Its panels are several times smaller, and it is faster.

    Parameters
    ----------
    n_reference : float or int, default=0.2
        Size s of the reference set: a float in (0, 1] is a fraction of the genes (of the candidates
        where ``reference_candidates`` are given), an int a count.
        1.0 is all genes (logistic regression on full ranks), 1 is one gene. Sequences of equal
        length for this and the penalties make an average: one model per entry, with scores divided
        by their standard deviation over the training samples.
    l1, l2 : float, default=1e-3
        Penalties, in units of ranks divided by s. With both 0 a floor of l2 = 1e-7 stands in,
        since separable data have no minimiser.
    algorithm : {"alternating", "bpcd"}, default="alternating"
        The fast algorithm, or the paper's, step for step.
    ties : {"average", "min", "max"}, default="average"
        The rank of tied values.
    tol : float, default=1e-5
        Tolerance: of the last refit of the weights, of the relaxed problem when
        ``integral=False``, and of each solve of "bpcd".
    max_iter : int, default=10000
        Steps at most; a warning says when they were not enough.
    path_step : float, default=100
        How fast the penalty that pushes gamma to a set grows; smaller is slower and more careful.
    integral : bool, default=True
        Whether to end with a set; otherwise the reference weights stay fractional.
    polish : bool, default=True
        Whether to exchange genes after the push ("alternating" only).
    refit : bool, default=True
        Whether to optimise the weights to convergence at the final reference set.
    side : {"best", "rising", "falling", "both"}, default="best"
        The problem has two minima: the reference among the genes that rise with the class, or
        among those that fall. "best" takes the one of lower objective, "both" is a model of the two
        with the mean of their scores. "alternating" only.
    shared_reference : bool, default=False
        Whether all classes share one reference set. Two classes have one in any case, and give the
        same model either way. For more, "alternating" and ``side="best"`` only.
    reference_candidates : None, mask, positions or gene names, default=None
        The genes that may be in the reference set, such as housekeeping genes; None is all genes.
        Every gene may have weights.
    whole_panel : bool, default=False
        Whether to use all of the panel: once the reference set and the genes with weights are
        found, all of these genes join the reference set (as far as they are candidates), and their
        weights are fitted under l2 alone. No further gene has to be measured. Sparse models of
        several classes then carry over better to other platforms.
    n_platforms : int, default=0
        Copies of the training samples on simulated platforms to train on beside the samples
        themselves: each gene gets a random factor per platform. Sparse models then carry over
        better to real ones; five are enough.
    class_weight : "balanced", None or dict, default="balanced"
        Balanced: both classes of each problem weigh the same.
    device : {"cpu", "cuda"}, default="cpu"
        Where to fit: "cuda" is an NVIDIA GPU, and needs CuPy (``pip install 'optirank[gpu]'``). A
        CuPy array given as X stays on the GPU.
    n_jobs : int or None, default=None
        Threads: for sorting, and over the classes.
    random_state : int or None, default=None
        Seed of the simulated platforms; nothing else is random. None is 0.
    verbose : int, default=0
        Log each stage.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (n_problems, d)
        Weights w. Two classes make one problem, more make one each; with ``side="both"`` each
        problem has two rows, rising and falling, here and below. With ``shared_reference=True`` the
        rows of ``reference_`` and ``reference_weights_`` are all the same.
    intercept_ : ndarray of shape (n_problems,)
    reference_ : boolean ndarray of shape (n_problems, d)
        The reference genes.
    reference_weights_ : ndarray of shape (n_problems, d)
        gamma: 0 and 1, or fractional with ``integral=False``.
    objective_ : ndarray of shape (n_problems,)
    n_iter_ : ndarray of shape (n_problems,)
        Steps taken.
    path_ : list of list of dict
        What happened on the way, for each row.
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

    def __init__(
        self,
        n_reference: float = 0.2,
        l1: float = 1e-3,
        l2: float = 1e-3,
        *,
        algorithm: str = "alternating",
        ties: str = "average",
        tol: float = 1e-5,
        max_iter: int = 10_000,
        path_step: float = 100,
        integral: bool = True,
        polish: bool = True,
        refit: bool = True,
        side: str = "best",
        shared_reference: bool = False,
        reference_candidates: ArrayLike | None = None,
        whole_panel: bool = False,
        n_platforms: int = 0,
        class_weight: str | dict | None = "balanced",
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_reference = n_reference
        self.l1 = l1
        self.l2 = l2
        self.algorithm = algorithm
        self.ties = ties
        self.tol = tol
        self.max_iter = max_iter
        self.path_step = path_step
        self.integral = integral
        self.polish = polish
        self.refit = refit
        self.side = side
        self.shared_reference = shared_reference
        self.reference_candidates = reference_candidates
        self.whole_panel = whole_panel
        self.n_platforms = n_platforms
        self.class_weight = class_weight
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
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
        from optirank.solver.solve import ALGORITHMS  # loads numba

        choices = {
            "algorithm": tuple(ALGORITHMS),
            "ties": tuple(TIES),
            "side": ("best", "rising", "falling", "both"),
        }
        check_options(self, choices)
        check_device(self.device)
        check_shared_reference(self, (self.side,))
        check_whole_panel(self)
        if self.device == "cuda" and self.algorithm != "alternating":
            raise ValueError(
                f"algorithm={self.algorithm!r} runs on the CPU alone: use device='cpu', or "
                "algorithm='alternating'"
            )
        if self.side != "best" and not ALGORITHMS[self.algorithm].has_sides:
            raise ValueError(
                f"side={self.side!r} with algorithm={self.algorithm!r}: this algorithm has one "
                "start, use side='best' or algorithm='alternating'"
            )
        X, y, classes = self._checked(X, y)
        settings = {label: {} for label in classes.tolist()}
        solver = _Solver(self, settings, candidate_mask(self, X.shape[1]))
        size = solver.size(X.shape[1])
        if self.n_platforms:
            from optirank.tuning.shifts import with_platforms

            X = with_platforms(X, self.n_platforms, self.random_state)
            y = np.tile(y, 1 + self.n_platforms)
            if sample_weight is not None:
                sample_weight = np.tile(sample_weight, 1 + self.n_platforms)
        return self._fit_checked(X, y, sample_weight, size, solver)

    def _fit_with_settings(
        self,
        orders: SampleOrders,
        y: NDArray,
        weights: NDArray,
        settings: dict[object, dict],
        stacklevel: int,
    ) -> OptirankClassifier:
        """As ``fit``, on sorted samples, with parameters of its own for the problem of each class.

        ``settings`` maps a class to values of ``n_reference``, ``l1``, ``l2`` and ``side`` that
        stand in for this estimator's.
        """
        self.n_features_in_ = orders.n_genes
        solver = _Solver(self, settings, candidate_mask(self, orders.n_genes))
        size = solver.size(orders.n_genes)
        return self._fit_orders(orders, y, weights, size, solver, stacklevel + 1)

    def _fit_orders(
        self,
        orders: SampleOrders,
        y: NDArray,
        weights: NDArray,
        n_reference: int,
        solve: _Solver,
        stacklevel: int,
    ) -> OptirankClassifier:
        """One problem for all classes where they share the reference, else as the base class."""
        classes, codes = np.unique(y, return_inverse=True)
        if not self.shared_reference or len(classes) == 2:
            return super()._fit_orders(orders, y, weights, n_reference, solve, stacklevel + 1)
        from optirank.solver.joint_problem import joint_weights  # numba loads with a fit

        v = joint_weights(codes, len(classes), weights, self.class_weight == "balanced")
        with one_blas_thread():
            found = solve.all_classes(orders, codes, classes, v, self._progress("all classes"))
        self.classes_ = classes
        self._keep(found, stacklevel + 1)
        return self


@dataclass(frozen=True)
class _Solver:
    """How the problems of an estimator are solved; each class may have settings of its own."""

    model: OptirankClassifier
    settings: dict[object, dict]
    candidates: NDArray | None = None  # mask of the genes that may be in the reference

    def size(self, n_genes: int) -> int:
        """The size of the reference set of the first member; all sizes are checked."""
        members = averaged_members(self.model.n_reference, self.model.l1, self.model.l2)
        sizes = [self._size(size, n_genes) for size, _, _ in members]
        return sizes[0]

    def _size(self, n_reference: float, n_genes: int) -> int:
        """A count of reference genes, from a fraction or count of what may be in the set."""
        return resolve_n_candidates(n_reference, n_genes, self.candidates)

    def prepared(self, problem: Problem, positive: object) -> list[tuple[Problem, str]]:
        """See :class:`BinarySolver`: one problem per averaged member."""
        own, model = self.settings[positive], self.model
        names = ("n_reference", "l1", "l2")
        members = averaged_members(*(own.get(name, getattr(model, name)) for name in names))
        return [
            (
                replace(
                    problem,
                    n_reference=self._size(size, problem.n_genes),
                    l1=float(l1),
                    l2=float(l2),
                    candidates=self.candidates,
                ),
                own.get("side", model.side),
            )
            for size, l1, l2 in members
        ]

    def __call__(self, problem: Problem, positive: object, callback) -> list[Solution]:
        """See :class:`BinarySolver`."""
        from optirank.solver.averaging import at_unit_spread
        from optirank.solver.solve import solve

        members = self.prepared(problem, positive)
        options = {"algorithm": self.model.algorithm, "callback": callback, **self._given()}
        found = [
            self._ended(member, one)
            for member, side in members
            for one in solve(member, side=side, **options)
        ]
        return found if len(members) == 1 else [at_unit_spread(problem, one) for one in found]

    def all_classes(
        self, orders: SampleOrders, codes: NDArray, classes: NDArray, v: NDArray, callback
    ) -> list[list[Solution]]:
        """The problem of all classes together; for each class a row per averaged member."""
        from optirank.solver.joint import solve_joint
        from optirank.solver.joint_problem import JointProblem
        from optirank.solver.panel import joint_on_whole_panel

        own, model = self.settings[classes.tolist()[0]], self.model
        names = ("n_reference", "l1", "l2")
        members = averaged_members(*(own.get(name, getattr(model, name)) for name in names))
        found = []
        for size, l1, l2 in members:
            problem = JointProblem(
                orders,
                codes,
                len(classes),
                v,
                self._size(size, orders.n_genes),
                float(l1),
                float(l2),
                model.ties,
                self.candidates,
            )
            solution = solve_joint(problem, callback=callback, **self._given())
            if model.whole_panel:
                solution = joint_on_whole_panel(problem, solution, **self._accuracy())
            found.append(solution if len(members) == 1 else solution.at_unit_spread(problem))
        return [list(rows) for rows in zip(*(one.by_class() for one in found), strict=True)]

    def _ended(self, problem: Problem, solution: Solution) -> Solution:
        """The solution, on its whole panel where that is asked for."""
        from optirank.solver.panel import on_whole_panel

        if not self.model.whole_panel:
            return solution
        return on_whole_panel(problem, solution, **self._accuracy())

    def options(self) -> Options:
        """See :class:`BinarySolver`."""
        if self.model.whole_panel:
            raise ValueError("whole_panel=True is fitted on the CPU alone: use device='cpu'")
        from optirank.solver.device.solve import Options

        return Options(ties=self.model.ties, candidates=self.candidates, **self._given())

    def _given(self) -> dict:
        model = self.model
        return self._accuracy() | {
            "path_step": model.path_step,
            "integral": model.integral,
            "polish": model.polish,
            "refit": model.refit,
        }

    def _accuracy(self) -> dict:
        return {"tol": self.model.tol, "max_iter": int(self.model.max_iter)}
