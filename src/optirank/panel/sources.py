"""One pass over samples for a panel: sums by class, the samples that are kept, sorted
panels; and the pass over a matrix in memory.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from optirank._util.passes import Accumulator, PerSample, merge_all
from optirank.panel.candidates import ClassSums
from optirank.panel.votes import sort_groups

if TYPE_CHECKING:
    from numpy.typing import NDArray

PER_CLASS = 500  # samples for the elimination: more change little, and cost time
_BLOCK_ENTRIES = 1 << 24  # of a matrix in memory that are looked at together: 128 MiB
_SUMS_OF_BLOCK = 1 << 18  # sums that are worth the while of looking at one more block

# Feeds accumulators with all samples, and some genes (positions; None for all)
Pass = Callable[[Sequence[Accumulator], "NDArray | None"], None]


def matrix_blocks(X: Any, columns: NDArray | None = None) -> Iterator[Any]:
    """All samples of a matrix in memory (array, CSR or CSC) in order, in blocks."""
    X = X if columns is None else X[:, columns]
    X = X.tocsr() if sparse.issparse(X) else X
    step = max(1, _BLOCK_ENTRIES // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        yield X[start : start + step]


def fold_matrix(
    X: Any, accumulators: Sequence[Accumulator], columns: NDArray | None = None
) -> None:
    """Feed accumulators with the samples of a matrix in memory."""
    empty = [copy.copy(accumulator) for accumulator in accumulators]
    start = 0
    for block in matrix_blocks(X, columns):
        rows = slice(start, start + block.shape[0])
        own = [copy.copy(accumulator) for accumulator in empty]
        for accumulator in own:
            accumulator.add(block, rows)
        merge_all(accumulators, own)
        start = rows.stop


class PlaceSums:
    """Accumulates the sums of the places of genes, by class and part of the samples."""

    def __init__(
        self,
        codes: NDArray,
        parts: NDArray,
        n_genes: int,
        n_classes: int,
        n_threads: int = 1,
    ) -> None:
        self._codes = codes
        self._parts = parts
        self._n_threads = n_threads
        self._sums = ClassSums(n_genes, n_classes, int(parts.max()) + 1)

    @property
    def together(self) -> int:
        """Blocks of a group: as many as make it worth sending their sums."""
        return int(np.clip(self._sums.sums.size // _SUMS_OF_BLOCK, 4, 256))

    def add(self, block: Any, rows: slice) -> None:
        """Add the samples of a block."""
        sums = self._sums
        of_block = ClassSums(sums.n_genes, sums.n_classes, sums.n_parts)
        places = places_in_sample(block, self._n_threads)
        of_block.add(places, self._codes[rows], self._parts[rows])
        self._sums = sums.plus(of_block)

    def merge(self, other: PlaceSums) -> None:
        """Add the sums of the samples that follow."""
        self._sums = self._sums.plus(other._sums)

    def result(self) -> ClassSums:
        """The sums of all samples."""
        return self._sums


class KeptSamples:
    """Accumulates some samples as they are: those at rising positions ``rows``."""

    def __init__(self, rows: NDArray, n_samples: int) -> None:
        self._wanted = np.zeros(n_samples, dtype=bool)
        self._wanted[rows] = True
        self._blocks: list[Any] = []

    def add(self, block: Any, rows: slice) -> None:
        """Keep the samples of a block that are wanted."""
        wanted = np.flatnonzero(self._wanted[rows])
        self._blocks = [*self._blocks, block[wanted]]

    def merge(self, other: KeptSamples) -> None:
        """Keep those that follow."""
        self._blocks = self._blocks + other._blocks

    def result(self) -> Any:
        """The samples: an array, or a CSC matrix, since columns are taken next."""
        if sparse.issparse(self._blocks[0]):
            return sparse.vstack(self._blocks, format="csc")
        return np.concatenate(self._blocks)


class SortedSamples(PerSample):
    """Accumulates the samples of some genes, sorted: see `sort_groups`."""

    def __init__(self, n_samples: int, n_threads: int = 1) -> None:
        super().__init__(n_samples)
        self._n_threads = n_threads

    def of_block(self, block: Any, rows: slice) -> NDArray:
        """The numbers of each sample's distinct values."""
        return sort_groups(dense(block), self._n_threads)


def first_look(
    run_pass: Pass,
    codes: NDArray,
    n_classes: int,
    n_genes: int,
    *,
    fold_of: NDArray | None = None,
    checks: Sequence[Accumulator] = (),
    n_threads: int = 1,
) -> tuple[ClassSums, NDArray, Any]:
    """One pass over all samples and genes, before anything is fitted.

    Gives the sums by class and fold, the rising positions of at most 500 samples per
    class, and these samples with all genes. ``checks`` are fed in the same pass, and
    see every block first.
    """
    parts = np.zeros(len(codes), np.intp) if fold_of is None else fold_of + 1
    rows = some_rows(codes)
    sums = PlaceSums(codes, parts, n_genes, n_classes, n_threads)
    kept = KeptSamples(rows, len(codes))
    run_pass([*checks, sums, kept], None)
    return sums.result(), rows, kept.result()


def places_in_sample(block: Any, n_threads: int = 1) -> Any:
    """The place of each gene among those above the lowest of its sample, from 0 to 1.

    The lowest value of a sample, mostly the zeros, has place 0. The m genes above it
    have the places 1/m to 1; equal values share their mean. So places depend on the
    order within a sample alone: counts and their logarithms have the same, and sparse
    samples stay sparse.
    """
    from optirank.ranks.orders import SparseRanks, order_samples

    n_genes = block.shape[1]
    every_gene = np.ones(n_genes)
    if sparse.issparse(block):
        block = sparse.csr_array(block)
        block.sum_duplicates()
        block.eliminate_zeros()
        n_above = np.diff(block.indptr)
        if (n_above < n_genes).all() and (block.data > 0).all():
            ranks = order_samples(block, n_threads).ranks(every_gene, dtype=np.float64)
            assert isinstance(ranks, SparseRanks)
            shift = ranks.constants - (n_genes - n_above) + 1.0
            above = ranks.excess + np.repeat(shift, n_above)
            data = above / np.repeat(n_above, n_above)
            return sparse.csr_array((data, block.indices, block.indptr), block.shape)
    ranks = order_samples(dense(block), n_threads).ranks(every_gene, dtype=np.float64)
    values = ranks.columns(np.arange(n_genes))
    lowest = values.min(axis=1, keepdims=True)
    n_lowest = 2.0 * lowest + 1.0
    n_above = np.maximum(n_genes - n_lowest, 1.0)
    return np.where(values > lowest, (values - n_lowest + 1.0) / n_above, 0.0)


def some_rows(codes: NDArray, most: int = PER_CLASS) -> NDArray:
    """Rising positions of at most so many samples per class, the same ones
    every time.
    """
    rng = np.random.default_rng(0)
    chosen = [
        rng.permutation(np.flatnonzero(codes == code))[:most]
        for code in np.unique(codes)
    ]
    return np.sort(np.concatenate(chosen))


def dense(block: Any) -> NDArray:
    """A block of samples as an array."""
    return block.toarray() if sparse.issparse(block) else np.asarray(block)
