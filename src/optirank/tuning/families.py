"""The families of classifiers whose settings can be searched."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from optirank.solver.sizes import resolve_n_reference
from optirank.tuning.family import Chain, Family, Key, Model, Samples, Values
from optirank.tuning.optirank_families import JointFamily, OptirankFamily

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "AnovaFamily",
    "FixedReferenceFamily",
    "JointFamily",
    "LogisticFamily",
    "OptirankFamily",
    "RankFamily",
]


@dataclass(frozen=True)
class RankFamily(Family):
    """rank-lr."""

    name = "rank-lr"
    on_device = True

    def fit_chain(self, samples, y, v, chain: Chain) -> dict[Key, Model]:
        """See :class:`Family`."""
        d = samples.n_genes
        return self._fit_at(self._problem(samples, y, v, d), np.ones(d), chain)

    def start_of(self, chain: Chain, n_genes: int) -> tuple[int, str]:
        """See :class:`Family`."""
        return n_genes, "best"


@dataclass(frozen=True)
class FixedReferenceFamily(Family):
    """Weights on ranks relative to a reference set that is given, as positions."""

    reference: tuple[int, ...] = ()
    name = "fixed reference"

    def fit_chain(self, samples, y, v, chain: Chain) -> dict[Key, Model]:
        """See :class:`Family`."""
        gamma = np.zeros(samples.n_genes)
        gamma[list(self.reference)] = 1.0
        return self._fit_at(self._problem(samples, y, v, len(self.reference)), gamma, chain)


@dataclass(frozen=True)
class AnovaFamily(Family):
    """ANrank-lr; the data sets are told by ``Samples.dataset`` or by auxiliary samples."""

    n_references: tuple[float, ...] = (0.2,)
    auxiliary: tuple | None = None  # values and labels of another data set
    name = "ANrank-lr"
    names = ("n_reference", "l1", "l2")
    needs_values = True

    def fit_chain(self, samples, y, v, chain: Chain) -> dict[Key, Model]:
        """See :class:`Family`."""
        chosen = self._stable_genes(samples, y, chain.head[0])
        gamma = np.zeros(samples.n_genes)
        gamma[chosen] = 1.0
        return self._fit_at(self._problem(samples, y, v, len(chosen)), gamma, chain)

    def _grid(self) -> list[Values]:
        return list(product(self.n_references, self.l1s, self.l2s))

    def _heads(self, params: dict, n_genes: int) -> list[tuple]:
        """One chain per size of the reference set."""
        return [(resolve_n_reference(params["n_reference"], n_genes),)]

    def _in_order(self, heads: Iterable[tuple]) -> list[tuple]:
        return sorted(heads)

    def _stable_genes(self, samples: Samples, y: NDArray, size: int) -> NDArray:
        from optirank.preprocessing.anova import select_stable_genes

        X, dataset = samples.X, samples.dataset
        if self.auxiliary is not None:
            X_auxiliary, y_auxiliary = self.auxiliary
            stack = [sparse.csr_array(part) for part in (X, X_auxiliary)]
            X, y = sparse.vstack(stack, format="csr"), np.concatenate([y, y_auxiliary])
            dataset = np.repeat([0, 1], [samples.n_samples, len(y_auxiliary)])
        if dataset is None or len(np.unique(dataset)) < 2:
            return np.arange(samples.n_genes)
        return select_stable_genes(X, y, dataset, size)


@dataclass(frozen=True)
class LogisticFamily(Family):
    """lr: elastic-net logistic regression on the values as they are."""

    name = "lr"
    needs_values = True
    needs_ranks = False

    def fit_chain(self, samples, y, v, chain: Chain) -> dict[Key, Model]:
        """See :class:`Family`."""
        from optirank.solver.convex import few_weights, finish_exactly, fit_weights
        from optirank.solver.grid import fit_weights_grid
        from optirank.solver.losses import LogisticLoss
        from optirank.solver.matrices import centred_values
        from optirank.solver.problem import RIDGE_FLOOR

        matrix = centred_values(samples.X, v)
        loss = LogisticLoss(y, v)
        options = {"tol": self.tol, "max_iter": self.max_iter}
        start = time.thread_time()
        if self.warm_start:
            found = fit_weights_grid(matrix, loss, chain.penalties, **options)
        else:
            found = {
                (l1, l2): fit_weights(matrix, loss, l1, l2 if l1 or l2 else RIDGE_FLOOR, **options)
                for l1, l2 in chain.penalties
            }
        each = (time.thread_time() - start) / len(found)
        models = {}
        for (l1, l2), one in found.items():
            w, floor = one.w, l2 if l1 or l2 else RIDGE_FLOOR
            if not self.warm_start and few_weights(w, y):
                columns = _dense(samples.X[:, np.flatnonzero(w)])
                w = finish_exactly(columns, y, v, w, one.b, l1, floor)
            z = samples.X @ w
            b = float(loss.best_intercept(z, 0.0))
            models[l1, l2] = Model(
                w=w,
                b=b,
                gamma=None,
                objective=loss.evaluate(z, b) + l1 * np.abs(w).sum() + floor * (w @ w),
                converged=one.converged,
                n_iter=one.n_iter,
                seconds=each,
            )
        return models

    def scores(self, samples: Samples, model: Model) -> NDArray:
        """See :class:`Family`."""
        return samples.X @ model.w + model.b


def _dense(X) -> NDArray:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)
