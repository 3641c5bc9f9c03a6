"""The genes that a fit may use, where there are too many or the user set a limit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from optirank.preprocessing.class_sums import ClassSums

SELECT_ABOVE = 1000  # genes


@dataclass
class Candidates:
    """Chooses genes by their correlation with the labels, on parts of the samples.

    ``limit`` is None where all genes are used. Else each class (against the rest) names its most
    correlated gene each way in turn, until there are ``limit`` genes; those of a reference set that
    the user fixed are always among them. Genes that hardly any sample expresses are passed over,
    as SingleCellNet does.

    Positions are those among the genes that were read (``read``, positions among all genes), once
    `keep_read` has said which these are.
    """

    n_genes: int  # that could be chosen from
    limit: int | None
    always: NDArray  # positions of genes that are always chosen
    sums: ClassSums | None  # None where all genes are used
    parts: NDArray  # the part of each sample: the fold that holds it out
    read: NDArray | None = None
    _known: dict[tuple, NDArray] = field(default_factory=dict, init=False)

    def __call__(self, rows: NDArray | None = None) -> NDArray:
        """Positions of the genes, chosen on all samples of the parts that these rows belong to."""
        parts = self.parts if rows is None else self.parts[rows]
        return self.of_parts(np.unique(parts))

    def of_parts(self, parts: NDArray) -> NDArray:
        """Positions of the genes, chosen on the samples of some parts."""
        if self.limit is None:
            return np.arange(self.n_genes)
        key = tuple(parts.tolist())
        if key not in self._known:
            order = _in_turn(self.sums.correlations(parts))
            order = order[~np.isin(order, self.always)]
            room = self.limit - len(self.always)
            self._known[key] = np.sort(np.concatenate([self.always, order[:room]])).astype(np.intp)
        chosen = self._known[key]
        return chosen if self.read is None else np.searchsorted(self.read, chosen)

    def keep_read(self, choices: Iterable[NDArray]) -> NDArray:
        """Say that of all genes only those of some choices are read; returns these."""
        self.read = np.unique(np.concatenate(list(choices)))
        return self.read

    def take(self, rows: NDArray) -> Candidates:
        """The same choice with some of the samples; sums are those of all."""
        found = Candidates(
            self.n_genes, self.limit, self.always, self.sums, self.parts[rows], self.read
        )
        found._known = self._known
        return found


def gene_limit(n_genes: int, n_problems: int, max_genes: int | None, n_always: int) -> int | None:
    """How many genes are chosen; None where all are used."""
    limit = max_genes
    if limit is None and n_genes > SELECT_ABOVE:
        limit = int(np.clip(100 * n_problems, 1000, 2000)) + n_always
    return None if limit is None or limit >= n_genes else limit


def _in_turn(correlations: NDArray) -> NDArray:
    """Positions of genes in the order in which the problems name them; NaN are never named."""
    known = np.flatnonzero(np.isfinite(correlations).all(axis=0))
    values = correlations[:, known]
    both_ways = np.concatenate([values, -values])
    turn = both_ways.argsort(axis=1, kind="stable").argsort(axis=1).min(axis=0)
    return known[np.lexsort((-np.abs(values).max(axis=0), turn))]
