"""Families of settings of the baselines: ranks relative to all genes or to a set that
is given, ANrank-lr, and logistic regression on the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from optirank.solver.constants import RIDGE_FLOOR
from optirank.solver.convex import Weights
from optirank.solver.problem import Solution
from optirank.tuning.search import (
    BinaryModel,
    Chain,
    Family,
    Key,
    PenaltyPair,
    Samples,
)


@dataclass(frozen=True)
class FixedReferenceFamily(Family):
    """Weights on ranks relative to a reference set that is given, as positions."""

    reference: tuple[int, ...] = ()
    name = "fixed reference"

    def fit_chain(self, samples, y, v, chain: Chain) -> dict[Key, BinaryModel]:
        """See :class:`Family`."""
        from optirank.solver.convex import solve_at, solve_grid_at

        genes = self._reference(samples, y, chain)
        gamma = np.zeros(samples.n_genes)
        gamma[genes] = 1.0
        problem = self._problem(samples, y, v, len(genes))
        return self._fit(
            chain,
            lambda pairs: solve_grid_at(problem, gamma, pairs, **self._accuracy),
            lambda l1, l2: solve_at(
                replace(problem, l1=l1, l2=l2), gamma, **self._accuracy
            ),
        )

    def _reference(self, samples: Samples, y: NDArray, chain: Chain) -> NDArray:
        """The positions of the reference genes."""
        return np.array(self.reference, dtype=np.intp)


class RankFamily(FixedReferenceFamily):
    """rank-lr: the reference set is all genes."""

    name = "rank-lr"
    on_device = True

    def _reference(self, samples: Samples, y: NDArray, chain: Chain) -> NDArray:
        return np.arange(samples.n_genes)


@dataclass(frozen=True)
class AnovaFamily(FixedReferenceFamily):
    """ANrank-lr; the data sets are told by ``Samples.dataset`` or by auxiliary
    samples.
    """

    n_references: tuple[float, ...] = (0.2,)
    auxiliary: tuple | None = None  # values and labels of another data set
    name = "ANrank-lr"
    names = ("n_reference", "l1", "l2")
    needs_values = True

    def _reference(self, samples: Samples, y: NDArray, chain: Chain) -> NDArray:
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
        return select_stable_genes(X, y, dataset, chain.head[0])


@dataclass(frozen=True)
class LogisticFamily(Family):
    """lr: elastic-net logistic regression on the values as they are.

    scikit-learn's ``LogisticRegression`` with ``C = 1 / (n (2 l2 + l1))`` and
    ``l1_ratio = l1 / (2 l2 + l1)``, without standardising.
    """

    name = "lr"
    needs_values = True
    needs_ranks = False

    def fit_chain(self, samples, y, v, chain: Chain) -> dict[Key, BinaryModel]:
        """See :class:`Family`."""
        from optirank.solver.blocks import LogisticLoss, centred_values
        from optirank.solver.convex import fit_weights_grid

        matrix = centred_values(samples.X, v)
        loss = LogisticLoss(y, v)

        def fit(pairs: Sequence[PenaltyPair]) -> dict[PenaltyPair, Solution]:
            by_pair = fit_weights_grid(matrix, loss, pairs, **self._accuracy)
            return {pair: solution(fit, *pair) for pair, fit in by_pair.items()}

        def solution(fit: Weights, l1: float, l2: float) -> Solution:
            z = samples.X @ fit.w
            b = float(loss.best_intercept(z, 0.0))
            ridge = (l2 if l1 or l2 else RIDGE_FLOOR) * (fit.w @ fit.w)
            objective = loss.evaluate(z, b) + l1 * np.abs(fit.w).sum() + ridge
            no_reference: Any = None
            return Solution(
                fit.w, b, no_reference, objective, fit.n_iter, fit.converged
            )

        return self._fit(chain, fit)

    def scores(self, samples: Samples, model: BinaryModel) -> NDArray:
        """See :class:`Family`."""
        return samples.X @ model.w + model.b
