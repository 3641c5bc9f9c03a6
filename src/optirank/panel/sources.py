"""Where samples are read from, block by block: a matrix in memory, or what looks
like one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy import sparse

from optirank._util.scales import value_scale
from optirank.panel.candidates import ClassSums

if TYPE_CHECKING:
    from numpy.typing import NDArray

PER_CLASS = 500  # samples for the elimination: more change little, and cost time
_BLOCK_ENTRIES = 1 << 24  # of a matrix in memory that are looked at together: 128 MiB
_SUMS_OF_BLOCK = 1 << 18  # sums that are worth the while of looking at one more block


class MatrixSource:
    """A matrix in memory (array, CSR or CSC), read in blocks of samples,
    arrays or CSR.
    """

    def __init__(self, X: Any) -> None:
        self._X = X
        self.shape: tuple[int, int] = X.shape
        self.scale = value_scale(X)

    def blocks(self, columns: NDArray | None = None) -> Iterator[Any]:
        """All samples in order, with some genes (all)."""
        X = self._X if columns is None else self._X[:, columns]
        X = X.tocsr() if sparse.issparse(X) else X
        step = max(1, _BLOCK_ENTRIES // max(1, X.shape[1]))
        for start in range(0, X.shape[0], step):
            yield X[start : start + step]

    def each(
        self,
        function: Callable[..., Any],
        columns: NDArray | None = None,
        *,
        per_sample: tuple[NDArray, ...] = (),
        combine: Callable[[Any, Any], Any] | None = None,
        together: int = 1,
    ) -> Iterator[tuple[slice, Any]]:
        """Rows and the result of a function for each block; see `Source`."""
        start = 0
        for block in self.blocks(columns):
            rows = slice(start, start + block.shape[0])
            own = [array[rows] for array in per_sample]
            yield rows, function(block, rows, *own)
            start = rows.stop


class Source(Protocol):
    """Samples that are looked at block by block, in this process or by others."""

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and genes."""
        ...

    def each(
        self,
        function: Callable[..., Any],
        columns: NDArray | None = None,
        *,
        per_sample: tuple[NDArray, ...] = (),
        combine: Callable[[Any, Any], Any] | None = None,
        together: int = 1,
    ) -> Iterator[tuple[slice, Any]]:
        """Rows and the result of a function for each block, in order.

        ``function`` is called with the values of a block, its rows, and the part of
        each array of ``per_sample`` for these rows. Results of as many blocks as
        ``together`` says may be combined to one.
        """
        ...


@dataclass(frozen=True)
class _FirstLook:
    """Sums by class and part for the samples of a block, and those that are wanted."""

    n_classes: int
    n_parts: int
    n_threads: int

    def __call__(
        self, X: Any, rows: slice, codes: NDArray, parts: NDArray, wanted: NDArray
    ) -> tuple[ClassSums, list[Any]]:
        sums = ClassSums(X.shape[1], self.n_classes, self.n_parts)
        sums.add(places_in_sample(X, self.n_threads), codes, parts)
        return sums, [X[np.flatnonzero(wanted)]]


def _both(
    first: tuple[ClassSums, list[Any]], second: tuple[ClassSums, list[Any]]
) -> tuple[ClassSums, list[Any]]:
    return first[0].plus(second[0]), first[1] + second[1]


def first_pass(
    source: Source,
    codes: NDArray,
    n_classes: int,
    parts: NDArray,
    rows: NDArray,
    n_threads: int = 1,
) -> tuple[ClassSums, Any]:
    """Sums by class and part for all samples, and the samples at ``rows`` (rising).

    Sums are added up in one order, wherever they come from: first over the blocks of a
    group, then over the groups. Groups are as large as makes it worth sending their
    sums.
    """
    n_parts = int(parts.max()) + 1
    sums = ClassSums(source.shape[1], n_classes, n_parts)
    wanted = np.zeros(len(codes), dtype=bool)
    wanted[rows] = True
    together = int(np.clip(sums.sums.size // _SUMS_OF_BLOCK, 4, 256))
    groups = source.each(
        _FirstLook(n_classes, n_parts, n_threads),
        per_sample=(codes, parts, wanted),
        combine=_both,
        together=together,
    )
    kept = []
    for _, (sums_of_group, samples) in groups:
        sums = sums.plus(sums_of_group)
        kept += samples
    if sparse.issparse(kept[0]):
        return sums, sparse.vstack(kept, format="csc")  # its columns are taken next
    return sums, np.concatenate(kept)


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
