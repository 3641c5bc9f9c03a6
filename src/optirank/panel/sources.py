"""Where samples are read from, block by block: a matrix in memory, or what looks like one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from optirank._util.scales import value_scale
from optirank.panel.candidates import ClassSums

if TYPE_CHECKING:
    from numpy.typing import NDArray

PER_CLASS = 500  # samples for the elimination: more change little, and cost time
_BLOCK_ENTRIES = 1 << 24  # of a matrix in memory that are looked at together: 128 MiB


class MatrixSource:
    """A matrix in memory (array, CSR or CSC), read in blocks of samples, arrays or CSR."""

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


def first_pass(
    source: MatrixSource,
    codes: NDArray,
    n_classes: int,
    parts: NDArray,
    rows: NDArray,
    n_threads: int = 1,
) -> tuple[ClassSums, Any]:
    """Sums by class and part for all samples, and the samples at ``rows`` (rising)."""
    sums = ClassSums(source.shape[1], n_classes, int(parts.max()) + 1)
    kept = []
    start = 0
    for block in source.blocks():
        stop = start + block.shape[0]
        places = places_in_sample(block, n_threads)
        sums.add(places, codes[start:stop], parts[start:stop])
        first, last = np.searchsorted(rows, [start, stop])
        kept.append(block[rows[first:last] - start])
        start = stop
    if sparse.issparse(kept[0]):
        return sums, sparse.vstack(kept, format="csc")  # its columns are taken next
    return sums, np.concatenate(kept)


def places_in_sample(block: Any, n_threads: int = 1) -> Any:
    """The place of each gene among those above the lowest of its sample, from 0 to 1.

    The lowest value of a sample, mostly the zeros, has place 0. The m genes above it have the
    places 1/m to 1; equal values share their mean. So places depend on the order within a
    sample alone: counts and their logarithms have the same, and sparse samples stay sparse.
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
    """Rising positions of at most so many samples per class, the same ones every time."""
    rng = np.random.default_rng(0)
    chosen = [
        rng.permutation(np.flatnonzero(codes == code))[:most]
        for code in np.unique(codes)
    ]
    return np.sort(np.concatenate(chosen))


def dense(block: Any) -> NDArray:
    """A block of samples as an array."""
    return block.toarray() if sparse.issparse(block) else np.asarray(block)
