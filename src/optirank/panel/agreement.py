"""Agreement of other genes: labels checked by genes that had no part in them.

A panel labels samples with few genes; data have thousands of others. If the labels are
right, the samples that got label c differ from those that got other labels, in the
other genes, as they do in the reference. Over genes outside the panel, ranked among
themselves in each sample (from -1/2 to 1/2),

    d_c = mean of the samples of label c - mean of these means over the labels,

and the agreement is the correlation of ``d`` of the reference with ``d`` of the query,
over all labels of at least three samples and all genes that both have; by label, that
of the rows. It needs no truth: a query of another tissue, or with scrambled genes, has
almost none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.ranks.scoring import panel_ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.panel.samples import ClassSums

N_GENES = 1000  # outside the panel, those of largest t statistic
_LEAST_T = 3.0  # one gene in 400 has such a t statistic by chance: it tells no class
FEWEST_GENES = 50  # fewer genes of a query show nothing but a clear agreement
CLEAR = 2.0  # standard errors of a correlation by chance, 1 / sqrt(genes)
FEWEST_SAMPLES = 3  # of a label that is looked at
MOST_SAMPLES = 2000  # of a query, evenly spaced: more change little, and cost time

# The class of each sample of a block, whose places among all samples are the slice
LabelsOfBlock = Callable[[Any, slice], "NDArray[np.intp]"]


@dataclass(frozen=True)
class LabelMeans:
    """Mean ranks of samples by label: zeros for a label without samples."""

    counts: NDArray[np.float64]  # (classes,)
    means: NDArray[np.float64]  # (classes, genes)


@dataclass(frozen=True)
class Agreement:
    """How labels differ in other genes, in the reference and in the query.

    Attributes
    ----------
    labels : positions of the classes that were looked at: those of at least three
        samples of the query, where there are two or more of them; else none.
    reference, query : (labels, genes), differences from the mean of the labels.
    """

    labels: NDArray[np.intp]
    reference: NDArray[np.float64]
    query: NDArray[np.float64]

    @property
    def n_genes(self) -> int:
        """Genes that were compared."""
        return self.reference.shape[1]

    @cached_property
    def overall(self) -> float | None:
        """The agreement over all labels; None where there is none."""
        if not len(self.labels):
            return None
        return _correlation(self.reference.ravel(), self.query.ravel())

    @cached_property
    def by_label(self) -> dict[int, float]:
        """The agreement of each label that was looked at, by its position."""
        rows = zip(self.labels.tolist(), self.reference, self.query, strict=True)
        return {label: _correlation(own, given) for label, own, given in rows}


class RanksByLabel:
    """Accumulates the ranks of some genes among themselves, by label.

    Parameters
    ----------
    label : gives the classes of the samples of a block.
    n_classes : int
    genes : the columns of a block that are ranked; all by default.
    every : every so many-th sample is looked at, the first among them.
    """

    takes_all = True  # also of blocks of which other accumulators get a panel alone

    def __init__(
        self,
        label: LabelsOfBlock,
        n_classes: int,
        genes: NDArray | None = None,
        every: int = 1,
    ) -> None:
        self._label = label
        self._n_classes = n_classes
        self._genes = genes
        self._every = every
        self._counts: NDArray = np.zeros(n_classes)
        self._sums: NDArray = np.zeros((n_classes, 1))

    def add(self, block: Any, rows: slice) -> None:
        """Take the samples of a block whose turn it is."""
        first = -rows.start % self._every
        chosen = block[first :: self._every]
        if not chosen.shape[0]:
            return
        looked_at = slice(rows.start + first, rows.stop, self._every)
        labels = self._label(chosen, looked_at)
        n_genes = chosen.shape[1] if self._genes is None else len(self._genes)
        ranks = panel_ranks(chosen, self._genes) - (n_genes - 1) / (2 * n_genes)
        # Not a product of matrices, whose last digits depend on the machine
        sums = np.zeros((self._n_classes, n_genes))
        for label in np.unique(labels):
            sums[label] = ranks[labels == label].sum(axis=0)
        self._counts = self._counts + np.bincount(labels, minlength=self._n_classes)
        self._sums = self._sums + sums

    def merge(self, other: RanksByLabel) -> None:
        """Take those of the samples that follow."""
        self._counts = self._counts + other._counts
        self._sums = self._sums + other._sums

    def result(self) -> LabelMeans:
        """The mean ranks of each label."""
        sizes = np.maximum(self._counts, 1.0)[:, None]
        return LabelMeans(self._counts, self._sums / sizes)


def further_genes(sums: ClassSums, panel: NDArray, n: int = N_GENES) -> NDArray:
    """Rising positions of the genes outside a panel that tell the classes best.

    None where too few tell them to check anything, as in the data of an assay.
    """
    correlations = np.abs(sums.correlations()).max(axis=0)
    n_free = max(sums.sizes.sum() - 2, 1)
    t = correlations * np.sqrt(n_free / np.maximum(1.0 - correlations**2, 1e-12))
    telling = np.setdiff1d(np.flatnonzero(t >= _LEAST_T), panel)
    if len(telling) < FEWEST_GENES:
        return np.zeros(0, np.intp)
    return sums.best_genes(n, among=telling)


def agreement_of(reference: NDArray, query: LabelMeans) -> Agreement:
    """Compare the mean ranks of the reference (classes, genes) with those of labels.

    Fewer than 50 genes compare nothing, unless their agreement is too high for chance.
    """
    labels = np.flatnonzero(query.counts >= FEWEST_SAMPLES)
    if len(labels) < 2 or not reference.shape[1]:
        labels = labels[:0]
    of_reference = _differences(reference[labels])
    compared = Agreement(labels, of_reference, _differences(query.means[labels]))
    overall = compared.overall
    if overall is None or compared.n_genes >= FEWEST_GENES:
        return compared
    if overall * np.sqrt(compared.n_genes) > CLEAR:
        return compared
    return Agreement(labels[:0], compared.reference[:0], compared.query[:0])


def every_so_many(n_samples: int) -> int:
    """Every how many-th sample of a query is looked at."""
    return max(1, -(-n_samples // MOST_SAMPLES))


def _differences(means: NDArray) -> NDArray[np.float64]:
    means = means.astype(np.float64)
    return means - means.mean(axis=0) if len(means) else means


def _correlation(a: NDArray, b: NDArray) -> float:
    """The correlation of two rows; 0 where one is constant."""
    a = a - a.mean()
    b = b - b.mean()
    size = float(np.sqrt((a**2).sum() * (b**2).sum()))
    return float((a * b).sum()) / size if size > 0 else 0.0
