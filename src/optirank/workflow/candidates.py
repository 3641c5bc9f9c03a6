"""The genes that a fit may use, where there are too many or the user set a limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from optirank.preprocessing import LogCPM, SingleCellNetGenes
from optirank.preprocessing._statistics import is_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.workflow.preparation import Prepared

SELECT_ABOVE = 3000  # genes
_TOTAL = 1e4


@dataclass(frozen=True)
class Candidates:
    """Chooses genes by their correlation with the labels, on the samples it is given.

    ``limit`` is None where all genes are used. Else each class (against the rest) names its most
    correlated gene each way in turn, until there are ``limit`` genes; those of a reference set that
    the user fixed are always among them. Genes that hardly any sample expresses are passed over,
    as SingleCellNet does.
    """

    expression: Any  # logarithms of scaled counts, or the values where they are no counts
    y: NDArray
    limit: int | None
    always: NDArray

    def __call__(self, rows: NDArray | None = None) -> NDArray:
        """Positions of the genes, chosen on some of the samples."""
        n_genes = self.expression.shape[1]
        if self.limit is None:
            return np.arange(n_genes)
        X, y = self.expression, self.y
        if rows is not None:
            X, y = X[rows], y[rows]
        fitted = SingleCellNetGenes(1, min_expressed=min(1.0, 3 / len(y))).fit(X, y)
        order = _in_turn(fitted.correlations_)
        order = order[~np.isin(order, self.always)]
        room = self.limit - len(self.always)
        return np.sort(np.concatenate([self.always, order[:room]])).astype(np.intp)


def candidates(prepared: Prepared) -> Candidates:
    """The choice of genes for these data; its limit is None where no choice is needed."""
    n_genes = len(prepared.genes)
    always = np.zeros(0, np.intp) if prepared.reference is None else prepared.reference
    limit = prepared.max_genes
    if limit is None and n_genes > SELECT_ABOVE:
        limit = int(np.clip(100 * prepared.n_problems, 1000, 2000)) + len(always)
    if limit is None or limit >= n_genes:
        return Candidates(prepared.X, prepared.y, None, always)
    return Candidates(_expression(prepared.X), prepared.y, limit, always)


def _expression(X: Any) -> Any:
    """Values on which correlations make sense; positive ones count as expressed."""
    if is_counts(X):
        return LogCPM(_TOTAL).transform(X)
    if not sparse.issparse(X) and X.min() < 0:  # logarithms or ratios: all are measured
        return X - X.min()
    return X


def _in_turn(correlations: NDArray) -> NDArray:
    """Positions of genes in the order in which the problems name them; NaN are never named."""
    known = np.flatnonzero(np.isfinite(correlations).all(axis=0))
    values = correlations[:, known]
    both_ways = np.concatenate([values, -values])
    turn = both_ways.argsort(axis=1, kind="stable").argsort(axis=1).min(axis=0)
    return known[np.lexsort((-np.abs(values).max(axis=0), turn))]
