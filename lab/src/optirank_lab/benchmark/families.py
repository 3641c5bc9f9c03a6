"""Families of settings of the baselines: ranks relative to all genes or to a set that
is given, ANrank-lr, and logistic regression on the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from optirank._util.numbers import as_dense
from optirank.estimators.search import (
    Family,
    Fits,
    Head,
)
from optirank.solver.constants import RIDGE_FLOOR
from optirank.solver.problem import PenaltyPair, Solution

if TYPE_CHECKING:
    from optirank.solver.blocks import BlockResult, CentredMatrix, ElasticNet


@dataclass(frozen=True)
class Samples:
    """Samples to train on or to score, in the forms that the families here need."""

    X: Any = None  # values, for families that see them
    orders: Any = None  # of ranks.orders
    dataset: NDArray | None = None

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.orders.n_samples if self.orders is not None else self.X.shape[0]

    @property
    def n_genes(self) -> int:
        """Number of genes."""
        return self.orders.n_genes if self.orders is not None else self.X.shape[1]

    def take(self, rows: NDArray) -> Samples:
        """Some of the samples."""
        return Samples(
            None if self.X is None else self.X[rows],
            None if self.orders is None else self.orders.take(rows),
            None if self.dataset is None else self.dataset[rows],
        )


@dataclass(frozen=True)
class FixedReferenceFamily(Family):
    """Weights on ranks relative to a reference set that is given, as positions."""

    reference: tuple[int, ...] = ()
    names = ("l1", "l2")
    needs_values: ClassVar[bool] = False
    needs_ranks: ClassVar[bool] = True

    def fit_chain(self, samples, y, v, head, penalties) -> Fits:
        """See :class:`Family`."""
        from optirank.solver.convex import solve_at, solve_grid_at

        genes = self._reference(samples, y, head)
        gamma = np.zeros(samples.n_genes)
        gamma[genes] = 1.0
        problem = self.problem(samples.orders, y, v, len(genes))
        if self.warm_start:
            return solve_grid_at(problem, gamma, penalties, **self.accuracy)
        return {
            (l1, l2): solve_at(replace(problem, l1=l1, l2=l2), gamma, **self.accuracy)
            for l1, l2 in penalties
        }

    def scores(self, samples: Samples, model: Solution) -> NDArray:
        """See :class:`Family`."""
        return super().scores(samples.orders, model)

    def _reference(self, samples: Samples, y: NDArray, head: Head) -> NDArray:
        """The positions of the reference genes."""
        return np.array(self.reference, dtype=np.intp)


class RankFamily(FixedReferenceFamily):
    """rank-lr: the reference set is all genes."""

    def _reference(self, samples: Samples, y: NDArray, head: Head) -> NDArray:
        return np.arange(samples.n_genes)


@dataclass(frozen=True)
class AnovaFamily(FixedReferenceFamily):
    """ANrank-lr; the data sets are told by ``Samples.dataset`` or by auxiliary
    samples.
    """

    auxiliary: tuple | None = None  # values and labels of another data set
    names = ("n_reference", "l1", "l2")
    needs_values = True

    def _reference(self, samples: Samples, y: NDArray, head: Head) -> NDArray:
        from optirank_lab.baselines.anova import select_stable_genes

        X: Any = samples.X
        dataset = samples.dataset
        if self.auxiliary is not None:
            X_auxiliary, y_auxiliary = self.auxiliary
            stack = [sparse.csr_array(part) for part in (X, X_auxiliary)]
            X = sparse.vstack(stack, format="csr")
            y = np.concatenate([y, y_auxiliary])
            dataset = np.repeat([0, 1], [samples.n_samples, len(y_auxiliary)])
        if dataset is None or len(np.unique(dataset)) < 2:
            return np.arange(samples.n_genes)
        return select_stable_genes(X, y, dataset, head[0])


def centred_values(X: Any, v: NDArray) -> CentredMatrix:
    """The values themselves, dense and float32, with each column's weighted mean
    subtracted.
    """
    from optirank.solver.blocks import not_centred

    values = as_dense(X).astype(np.float64)
    values -= v @ values
    return not_centred(values.astype(np.float32))


@dataclass(frozen=True)
class LogisticFamily(Family):
    """lr: elastic-net logistic regression on the values as they are.

    scikit-learn's ``LogisticRegression`` with ``C = 1 / (n (2 l2 + l1))`` and
    ``l1_ratio = l1 / (2 l2 + l1)``, without standardising.
    """

    names = ("l1", "l2")
    needs_values = True
    needs_ranks = False

    def fit_chain(self, samples, y, v, head, penalties) -> Fits:
        """See :class:`Family`."""
        from optirank.solver.blocks import ElasticNet, LogisticLoss
        from optirank.solver.convex import fit_weights_grid

        matrix = centred_values(samples.X, v)
        loss = LogisticLoss(y, v)

        def fit(pairs: Sequence[PenaltyPair]) -> Fits:
            penalties = {
                (l1, l2): ElasticNet(l1, l2 if l1 or l2 else RIDGE_FLOOR)
                for l1, l2 in pairs
            }
            fits = fit_weights_grid(matrix, loss, penalties, **self.accuracy)
            return {pair: solution(fits[pair], penalties[pair]) for pair in pairs}

        def solution(fit: BlockResult, penalty: ElasticNet) -> Solution:
            z = samples.X @ fit.x
            b = float(loss.best_intercept(z, 0.0))
            objective = loss.evaluate(z, b) + penalty.value(fit.x)
            no_reference: Any = None
            return Solution(
                fit.x, b, no_reference, objective, fit.n_steps, fit.converged
            )

        if self.warm_start:
            return fit(penalties)
        return {pair: fit([pair])[pair] for pair in penalties}

    def scores(self, samples: Samples, model: Solution) -> NDArray:
        """See :class:`Family`."""
        return samples.X @ model.w + model.b
