"""Training on more samples than a search over all of them has time for.

The reference set needs few samples, the weights need many. So the set is learned for all classes
together on a few thousand samples at most. Penalties are compared at this set on more samples, by
one held-out part. The weights of the best are then fitted to all samples, block by block, for as
long as there is time. The first setting is the one that carries over best on its own, so that
whatever time there is buys a model.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from optirank._util.growing import GrowingArray
from optirank._util.threads import one_blas_thread
from optirank.model.value_kinds import value_kinds
from optirank.solver.sizes import resolve_n_candidates
from optirank.tuning.family import Model, Samples
from optirank.tuning.optirank_families import JointFamily
from optirank.tuning.result import Setting, UnitResult
from optirank.tuning.search import HELD_OUT
from optirank.workflow.finishing import REMEMBERED
from optirank.workflow.grids import UNTUNED
from optirank.workflow.preparation import thin
from optirank.workflow.searching import Searched

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.ranks.orders import SampleOrders
    from optirank.solver.joint_problem import JointProblem, JointSolution
    from optirank.tuning.folds import Fold
    from optirank.workflow.preparation import Prepared
    from optirank.workflow.searching import Choice

Penalties = tuple[float, float]  # l1, l2

PENALTIES: tuple[Penalties, ...] = (
    UNTUNED[1:3],
    (3e-4, 3e-4),
    (3e-3, 1e-3),
    (1e-4, 1e-4),
    (1e-3, 1e-4),
    (1e-4, 1e-3),
    (3e-3, 3e-4),
    (1e-2, 1e-3),
)
"""In the order in which they are tried; all at one reference set."""

_FIRST = 20  # samples per class of the first fit, which tells the time of the others
_LARGEST = 6000  # samples to learn a reference set on: more hardly change it
_GROW = 4  # samples to compare penalties on, against those of the reference set
_SHARES = (0.35, 0.55, 0.85)  # of the time, by which set, penalties and held-out weights are done
_MOST_SCORED = 20_000  # held-out samples
_REMEMBERED = 2000  # samples whose mean ranks stand in for missing genes
_BLOCK = 5000  # samples that are sorted together
_LOOSE = 1e-3  # tolerance of fits on the way
_MANY = 20_000  # samples above which values that are not looked at again are let go
_COMPARED = 4000  # training samples that other classifiers may see
_PARTS = ("genes", "groups", "n_groups", "zero_group")  # of sparse orders, by entry or sample


def order_in_blocks(X: Any, genes: NDArray, n_jobs: int) -> SampleOrders:
    """Order some genes of all samples; sparse data in blocks, whose copies take little memory."""
    from optirank.ranks.orders import SparseOrders, order_samples

    if not sparse.issparse(X):
        return order_samples(X if len(genes) == X.shape[1] else X[:, genes], n_jobs)
    parts = {name: GrowingArray() for name in _PARTS}
    lengths = []
    for start in range(0, X.shape[0], _BLOCK):
        one = order_samples(X[start : start + _BLOCK][:, genes], n_jobs)
        lengths.append(np.diff(one.indptr))
        for name in _PARTS:
            parts[name].add(getattr(one, name))
    joined = [parts[name].whole() for name in _PARTS]
    pointers = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    return SparseOrders(pointers, *joined, len(genes))


@dataclass(frozen=True)
class RowsOf:
    """Some of the sorted samples, copied block by block when they are used.

    A copy of most of a million samples, with the positions of its entries, would be the peak of
    the memory.
    """

    orders: SampleOrders
    rows: NDArray

    @property
    def n_genes(self) -> int:
        """Number of genes."""
        return self.orders.n_genes

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.rows)

    def lengths(self) -> NDArray:
        """See :class:`SampleOrders`."""
        return self.orders.lengths()[self.rows]

    def take(self, samples: NDArray | slice) -> SampleOrders:
        """The orders of some of these samples."""
        return self.orders.take(self.rows[samples])


@dataclass
class LargeTraining:
    """The stages of a training; each ends by its share of the time."""

    prepared: Prepared
    first: tuple[float, float, float, str]  # the setting tried first; its set is that of all
    n_jobs: int
    end: float  # of time.perf_counter
    n_set: int = field(default=0, init=False)  # samples on which the set was learned

    def __post_init__(self) -> None:
        self.begin = time.perf_counter()
        prepared = self.prepared
        train, test = prepared.folds[0]
        if len(test) > _MOST_SCORED:
            test = test[thin(prepared.y[test], _MOST_SCORED)[0]]
        self.fold: Fold = train, test
        self.genes = prepared.chooser(train)
        self.orders: SampleOrders = order_in_blocks(prepared.X, self.genes, self.n_jobs)
        seen = train if len(train) <= _MANY else train[thin(prepared.y[train], _COMPARED)[0]]
        self.seen: Fold = seen, test  # whose values are looked at again
        if len(prepared.y) > _MANY:
            everywhere = [thin(prepared.y, n)[0] for n in (_REMEMBERED, REMEMBERED)]
            prepared.let_go(np.unique(np.concatenate([*self.seen, *everywhere])))
        self.classes, self.codes = np.unique(prepared.y, return_inverse=True)
        n_reference, *penalties, _ = self.first
        self.candidates = prepared.candidate_mask(self.genes)
        self.size = resolve_n_candidates(n_reference, len(self.genes), self.candidates)
        self.penalties = list(dict.fromkeys([tuple(penalties), *PENALTIES]))[: len(PENALTIES)]
        settings = [(n_reference, *pair, "best") for pair in self.penalties]
        family = JointFamily((), (), sides=("best",), candidates=self.candidates)
        self.family = family.keeping(settings)

    def search(self, progress: Callable[[int, int], None] | None = None) -> Searched:
        """Learn the reference set, then compare penalties at it on the held-out samples."""
        self.progress = progress
        with one_blas_thread():
            self._learn_set()
            self._done(1)
            return self._compare()

    def refit(self, found: Searched, choice: Choice) -> None:
        """Fit the chosen penalties to all training samples; the held-out scores become theirs."""
        with one_blas_thread():
            fitted = self._weights(self.fold[0], self._penalties(choice), self._until(2))
            self.solution = fitted
            self._done(3)
            result = found.results[0]
            self._add(result, choice.index, fitted)

    def finish(self, choice: Choice) -> tuple[Any, list[str], list[str]]:
        """The final model, on all samples, its genes, and what there is to say."""
        from optirank.estimators.shared import shared_model
        from optirank.model import remember_training

        every = np.arange(len(self.codes))
        with one_blas_thread():
            fitted = self._weights(every, self._penalties(choice), self.end)
        self._done(4)
        model = shared_model(choice.params, self.classes, fitted)
        names, y = self.prepared.genes[self.genes], self.prepared.y
        if self.candidates is not None:
            model.set_params(reference_candidates=names[self.candidates].tolist())
        some, _ = thin(y, _REMEMBERED)
        X = self.prepared.X[some][:, self.genes]
        remember_training(model, X, y[some], genes=names)
        labels, counts = np.unique(y, return_counts=True)
        model.training_summary_ |= {
            "n_samples": len(y),
            "class_counts": dict(zip(labels.tolist(), counts.tolist(), strict=True)),
        }
        notes = [
            f"one reference set for all classes was learned on {self.n_set} samples, the weights "
            f"on all {len(every)}"
        ]
        if not fitted.converged:
            notes.append(
                f"time was up after {fitted.n_iter} steps on the weights: more time may give "
                "better ones"
            )
        return model, names[model.genes_].tolist(), notes + value_kinds(X).own_notes()

    def _learn_set(self) -> None:
        """On a small sample first, which tells how large the next one may be."""
        train = self.fold[0]
        n = min(len(train), max(300, _FIRST * len(self.classes)))
        start = time.perf_counter()
        self._learn_on(n)
        seconds = time.perf_counter() - start
        affordable = int(n * 0.8 * (self._until(0) - time.perf_counter()) / seconds)
        more = min(len(train), _LARGEST, affordable)
        if more > 1.5 * n:
            self._learn_on(more)

    def _learn_on(self, n: int) -> None:
        from optirank.solver.joint import solve_joint

        rows = self._some(n)
        problem = self._problem(rows, self.penalties[0], dense=True)
        self.solution = solve_joint(problem, tol=_LOOSE, until=self._until(0))
        self.n_set = len(rows)

    def _compare(self) -> Searched:
        train, test = self.fold
        rows = self._some(min(len(train), _GROW * self.n_set))
        result = UnitResult(
            settings=[],
            n_genes=len(self.genes),
            n_problems=self.prepared.n_problems,
            known=np.isin(np.arange(len(self.classes)), self.codes[train]),
            n_scored={HELD_OUT: len(test)},
            compact=True,
        )
        first = self.solution
        seconds = 0.0
        for k, pair in enumerate(self.penalties):
            start = time.perf_counter()
            if k and start + seconds > self._until(1):
                break
            fitted = self._weights(rows, pair, self._until(1), first)
            result.settings.append(Setting(self.family, self.family.settings()[k]))
            self._add(result, k, fitted)
            if k == 0:
                first = fitted
            seconds = time.perf_counter() - start
        self._done(2)
        self.solution = first
        return Searched([self.seen], [result])

    def _weights(
        self,
        rows: NDArray,
        penalties: Penalties,
        until: float,
        start: JointSolution | None = None,
    ) -> JointSolution:
        from optirank.solver.joint_blocks import fit_weights_in_time

        start = self.solution if start is None else start
        return fit_weights_in_time(
            self._problem(rows, penalties),
            start.gamma,
            start.W,
            start.b,
            until=until,
            tol=_LOOSE,
            n_jobs=self.n_jobs,
        )

    def _problem(self, rows: NDArray, penalties: Penalties, dense: bool = False) -> JointProblem:
        """The joint problem of some samples; two classes have the binary model's penalties."""
        from optirank.solver.joint_problem import JointProblem, joint_weights

        orders = self.orders if len(rows) == len(self.codes) else RowsOf(self.orders, rows)
        if dense:
            orders = orders.take(np.arange(len(rows)))
            orders = orders.to_dense() if hasattr(orders, "to_dense") else orders
        codes, n_classes = self.codes[rows], len(self.classes)
        l1, l2 = penalties
        if n_classes == 2:
            l1, l2 = np.sqrt(2) * l1, 2 * l2
        v = joint_weights(codes, n_classes)
        return JointProblem(
            orders, codes, n_classes, v, self.size, l1, l2, candidates=self.candidates
        )

    def _add(self, result: UnitResult, setting: int, fitted: JointSolution) -> None:
        """Add the held-out scores of a solution to a result."""
        from optirank.estimators.shared import solutions_by_class

        test = self.orders.take(self.fold[1])
        (chain,) = self.family.keeping([self.family.settings()[setting]]).chains(result.n_genes)
        (key,) = chain.keys()
        for problem, one in enumerate(solutions_by_class(fitted)):
            model = Model.of(one, 0.0)
            scores = self.family.scores(Samples(orders=test), model)
            result.add(0, problem, {key: model}, {key: {HELD_OUT: scores}})

    def _penalties(self, choice: Choice) -> Penalties:
        return choice.params["l1"], choice.params["l2"]

    def _some(self, n: int) -> NDArray:
        """About so many training samples, as evenly from the classes as there are."""
        train = self.fold[0]
        return train if n >= len(train) else train[thin(self.prepared.y[train], n)[0]]

    def _until(self, stage: int) -> float:
        return self.begin + _SHARES[stage] * (self.end - self.begin)

    def _done(self, stages: int) -> None:
        if self.progress is not None:
            self.progress(stages, len(_SHARES) + 1)
