"""The order of each sample's genes, computed once, and the passes over it.

An order keeps, for each sample, the tie group of each gene: the number of distinct values below
its own. It is all that ranks see of the data, takes two bytes per entry (four beyond 65535
genes), and lets ranks and co-ranks be read off without a branch for ties. For sparse data only the
non-zeros are kept; the zeros of a sample are one group, between its negative and positive values.

Ranks may be stored as float32. Their sums run in float64 all the same and are rounded once, when
they are written, so each stored value is within half a unit in the last place of the float64 one,
however many genes there are; a running sum in float32 would collect one such error a gene.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import sparse

from optirank._compiled import rank_loops, sort_loops
from optirank.ranks.definition import check_ties
from optirank.ranks.matrices import DenseRanks, SparseRanks, all_in_order, find_entries
from optirank.ranks.sorting import check_finite, in_blocks, number_values, sortable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray


class SampleOrders(ABC):
    """The orders of n samples over d genes; see :func:`order_samples`."""

    n_samples: int
    n_genes: int
    nbytes: int
    """Memory held, in bytes."""
    writes_columns: ClassVar[bool] = False
    """Whether the ranks of some genes cost less than those of all (``write_ranks``)."""

    @abstractmethod
    def _values(
        self, a: NDArray, base: float, sign: float, tie: float, dtype: DTypeLike, reuse
    ): ...

    @abstractmethod
    def _weighted_sum(
        self, a: NDArray, base: float, sign: float, tie: float, sample_weights: NDArray
    ) -> NDArray: ...

    @abstractmethod
    def _scores(self, gamma: NDArray, w: NDArray, tie: float) -> NDArray: ...

    def lengths(self) -> NDArray:
        """Entries of each sample that sparse ranks hold; 0 for dense ones."""
        return np.zeros(self.n_samples, np.int64)

    @abstractmethod
    def take(self, samples: NDArray | slice) -> SampleOrders:
        """The orders of some of the samples (positions, a mask or a slice)."""

    @abstractmethod
    def groups_of(self, genes: NDArray) -> NDArray:
        """The tie groups of some genes (positions), n x len(genes)."""

    def over(self, genes: NDArray) -> DenseOrders:
        """The orders of some genes (positions) among themselves."""
        return order_samples(self.groups_of(genes))

    def ranks(
        self,
        gamma: ArrayLike,
        ties: str = "average",
        dtype: DTypeLike = np.float32,
        reuse: DenseRanks | SparseRanks | None = None,
    ) -> DenseRanks | SparseRanks:
        """``R(gamma)``: row i is ``C_i gamma - offset``, so that scores are linear in w.

        ``reuse`` is a matrix made by these orders before, whose memory is written over.
        """
        tie, offset = check_ties(ties)
        dtype = _float_type(dtype)
        return self._values(self._gene_vector(gamma), -offset, 1.0, tie, dtype, reuse)

    def coranks(
        self,
        w: ArrayLike,
        ties: str = "average",
        dtype: DTypeLike = np.float32,
        reuse: DenseRanks | SparseRanks | None = None,
    ) -> DenseRanks | SparseRanks:
        """``V(w)``: row i is ``C_i^T w``, so that scores are linear in gamma.

        ``reuse`` is a matrix made by these orders before, whose memory is written over.
        """
        tie, _ = check_ties(ties)
        w = self._gene_vector(w)
        dtype = _float_type(dtype)
        return self._values(w, float(w.sum()), -1.0, 1.0 - tie, dtype, reuse)

    def scores(self, w: ArrayLike, gamma: ArrayLike, ties: str = "average") -> NDArray:
        """``w . (C_i gamma - offset)`` for each sample, with no matrix made."""
        tie, offset = check_ties(ties)
        w = self._gene_vector(w)
        return self._scores(self._gene_vector(gamma), w, tie) - offset * w.sum()

    def gradient_w(self, gamma: ArrayLike, slopes: ArrayLike, ties: str = "average") -> NDArray:
        """``R(gamma)^T slopes``: the gradient in w of scores with these slopes, no matrix made."""
        tie, offset = check_ties(ties)
        slopes = self._sample_vector(slopes)
        return self._weighted_sum(self._gene_vector(gamma), -offset, 1.0, tie, slopes)

    def gradient_gamma(self, w: ArrayLike, slopes: ArrayLike, ties: str = "average") -> NDArray:
        """``V(w)^T slopes``: the gradient in gamma of scores with these slopes, no matrix made."""
        tie, _ = check_ties(ties)
        w = self._gene_vector(w)
        return self._weighted_sum(w, float(w.sum()), -1.0, 1.0 - tie, self._sample_vector(slopes))

    def _gene_vector(self, a: ArrayLike) -> NDArray:
        return _vector(a, self.n_genes, "gene")

    def _sample_vector(self, a: ArrayLike) -> NDArray:
        return _vector(a, self.n_samples, "sample")


@dataclass(frozen=True)
class DenseOrders(SampleOrders):
    """Orders over all genes of each sample."""

    writes_columns = True

    groups: NDArray  # (n, d): the tie group of each gene
    n_groups: NDArray  # (n,)

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return self.groups.shape[0]

    @property
    def n_genes(self) -> int:
        """Number of genes, d."""
        return self.groups.shape[1]

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self.groups.nbytes + self.n_groups.nbytes

    def take(self, samples: NDArray | slice) -> DenseOrders:
        """The orders of some of the samples (positions, a mask or a slice)."""
        groups = np.ascontiguousarray(self.groups[samples])
        return DenseOrders(groups, np.ascontiguousarray(self.n_groups[samples]))

    def groups_of(self, genes: NDArray) -> NDArray:
        """See :meth:`SampleOrders.groups_of`; the array itself if all genes are wanted."""
        if all_in_order(genes, self.n_genes):
            return self.groups
        return np.take(self.groups, genes, axis=1)

    def _values(self, a, base, sign, tie, dtype, reuse) -> DenseRanks:
        out = np.empty(self.groups.shape, dtype) if reuse is None else reuse.values
        self._write(a, base, sign, tie, np.empty(0, np.intp), out)
        return DenseRanks(out)

    def write_ranks(self, gamma: NDArray, ties: str, columns: NDArray, out: NDArray) -> None:
        """Write the ranks of some genes (positions, at least one) into ``out``, one column each."""
        tie, offset = check_ties(ties)
        self._write(self._gene_vector(gamma), -offset, 1.0, tie, columns, out)

    def write_coranks(self, w: NDArray, ties: str, columns: NDArray, out: NDArray) -> None:
        """Write the co-ranks of some genes (positions, at least one) into ``out``."""
        tie, _ = check_ties(ties)
        w = self._gene_vector(w)
        self._write(w, float(w.sum()), -1.0, 1.0 - tie, columns, out)

    def _write(self, a, base, sign, tie, columns, out) -> None:
        rank_loops.dense_values(
            self.groups, self.n_groups, *_given(a), base, sign, tie, columns, out
        )

    def _weighted_sum(self, a, base, sign, tie, sample_weights) -> NDArray:
        out = np.zeros(self.n_genes)
        rank_loops.dense_weighted_sum(
            self.groups, self.n_groups, *_given(a), base, sign, tie, sample_weights, out
        )
        return out

    def _scores(self, gamma, w, tie) -> NDArray:
        out = np.empty(self.n_samples)
        rank_loops.dense_scores(self.groups, self.n_groups, gamma, w, tie, out)
        return out


@dataclass(frozen=True)
class SparseOrders(SampleOrders):
    """Orders over the non-zeros of each sample, the zeros being one group."""

    indptr: NDArray  # (n + 1,)
    genes: NDArray  # (nnz,)
    groups: NDArray  # (nnz,)
    n_groups: NDArray  # (n,): the zeros' group counted in
    zero_group: NDArray  # (n,)
    n_genes: int

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return self.n_groups.shape[0]

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        arrays = (self.indptr, self.genes, self.groups, self.n_groups, self.zero_group)
        return sum(array.nbytes for array in arrays)

    def lengths(self) -> NDArray:
        """See :meth:`SampleOrders.lengths`."""
        return np.diff(self.indptr)

    def take(self, samples: NDArray | slice) -> SparseOrders:
        """The orders of some of the samples: positions or a mask, or a slice, which copies none."""
        if isinstance(samples, slice):
            start, stop, step = samples.indices(self.n_samples)
            if step == 1:
                return self._between(start, max(start, stop))
        samples = np.arange(self.n_samples)[samples]
        counts = np.diff(self.indptr)[samples]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        entries = np.repeat(self.indptr[samples] - indptr[:-1], counts) + np.arange(indptr[-1])
        return SparseOrders(
            indptr,
            self.genes[entries],
            self.groups[entries],
            self.n_groups[samples],
            self.zero_group[samples],
            self.n_genes,
        )

    def _between(self, start: int, stop: int) -> SparseOrders:
        inside = slice(self.indptr[start], self.indptr[stop])
        pointers = self.indptr[start : stop + 1] - self.indptr[start]
        parts = self.genes[inside], self.groups[inside]
        counts = self.n_groups[start:stop], self.zero_group[start:stop]
        return SparseOrders(pointers, *parts, *counts, self.n_genes)

    def groups_of(self, genes: NDArray) -> NDArray:
        """See :meth:`SampleOrders.groups_of`."""
        out = np.repeat(self.zero_group.astype(self.groups.dtype)[:, None], len(genes), axis=1)
        samples, places, entries = find_entries(self.indptr, self.genes, self.n_genes, genes)
        out[samples, places] = self.groups[entries]
        return out

    def _values(self, a, base, sign, tie, dtype, reuse) -> SparseRanks:
        constants = np.empty(self.n_samples)
        out = np.empty(len(self.genes), dtype) if reuse is None else reuse.excess
        rank_loops.sparse_values(
            *self._arrays(), a, float(a.sum()), base, sign, tie, constants, out
        )
        return SparseRanks(constants, out, self.genes, self.indptr, self.n_genes)

    @property
    def density(self) -> float:
        """Fraction of the entries that are not zero."""
        return len(self.genes) / (self.n_samples * self.n_genes)

    def to_dense(self) -> DenseOrders:
        """The same orders with every gene's group written out."""
        zero_group = self.zero_group.astype(_index_type(self.n_genes))[:, None]
        groups = np.repeat(zero_group, self.n_genes, axis=1)
        counts = np.diff(self.indptr)
        groups[np.repeat(np.arange(self.n_samples), counts), self.genes] = self.groups
        without_zeros = counts == self.n_genes  # their zeros' group is empty: number it away
        groups -= without_zeros[:, None] & (groups > zero_group)
        return DenseOrders(groups, self.n_groups - without_zeros)

    def _weighted_sum(self, a, base, sign, tie, sample_weights) -> NDArray:
        out = np.zeros(self.n_genes)
        constant = rank_loops.sparse_weighted_sum(
            *self._arrays(), a, float(a.sum()), base, sign, tie, sample_weights, out
        )
        out += constant
        return out

    def _scores(self, gamma, w, tie) -> NDArray:
        out = np.empty(self.n_samples)
        rank_loops.sparse_scores(
            *self._arrays(), gamma, float(gamma.sum()), w, float(w.sum()), tie, out
        )
        return out

    def _arrays(self) -> tuple[NDArray, ...]:
        return self.indptr, self.genes, self.groups, self.n_groups, self.zero_group


def order_samples(
    X: ArrayLike | sparse.sparray | sparse.spmatrix, n_jobs: int | None = 1
) -> SampleOrders:
    """Order the genes of each sample (row) of X, dense or sparse.

    Parameters
    ----------
    X : array-like or scipy sparse matrix of shape (n_samples, n_genes)
        Booleans, integers or floats in any memory layout. Values are compared as they are, so large
        integers lose nothing; they must be finite. Sparse input stays sparse.
    n_jobs : int or None
        Threads that sort; -1 is all cores.
    """
    if sparse.issparse(X):
        return _order_sparse(X, n_jobs)
    X = np.asarray(X)
    _check_shape(X)
    sortable(X[:0])  # refuses a wrong type before any work
    n, d = X.shape
    groups = np.empty((n, d), _index_type(d))
    n_groups = np.empty(n, np.int32)

    def order_block(block: slice) -> None:
        values = sortable(X[block]).ravel()
        check_finite(values, X)
        indptr = np.arange(0, values.size + 1, d)
        number_values(values, indptr, groups[block].reshape(-1), n_groups[block])

    in_blocks(order_block, n, d, n_jobs)
    return DenseOrders(groups, n_groups)


def _order_sparse(X, n_jobs: int | None) -> SparseOrders:
    _check_shape(X)
    X = sparse.csr_array(X)  # shares the data of a CSR input
    if not X.has_canonical_format or (X.data == 0).any():
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    values = sortable(X.data)
    check_finite(values, values)
    n, d = X.shape
    indptr = X.indptr.astype(np.int64)
    groups = np.empty(values.size, _index_type(d))
    n_groups = np.empty(n, np.int32)
    zero_group = np.empty(n, np.int32)

    def order_block(block: slice) -> None:
        begin, end = indptr[block.start], indptr[block.stop]
        here = indptr[block.start : block.stop + 1] - begin
        entries = values[begin:end], here, groups[begin:end], n_groups[block]
        number_values(*entries)
        sort_loops.leave_room_for_zero(*entries, zero_group[block])

    in_blocks(order_block, n, values.size // n, n_jobs)
    return SparseOrders(indptr, X.indices.astype(_index_type(d)), groups, n_groups, zero_group, d)


def _check_shape(X) -> None:
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X has shape {X.shape}: samples x genes are needed, at least one of each")


def _index_type(n_genes: int) -> type:
    """16 bits for as long as they can number d groups and one more for the zeros."""
    return np.uint16 if n_genes <= 65535 else np.uint32


def _given(a: NDArray) -> tuple[NDArray, NDArray]:
    """The genes with a weight and their weights; all of them unless a third has none."""
    genes = np.flatnonzero(a)
    if 3 * len(genes) > 2 * len(a):
        return genes, a
    return genes, a[genes]


def _vector(a: ArrayLike, size: int, of: str) -> NDArray:
    a = np.asarray(a)
    if a.dtype.kind not in "biuf":
        raise ValueError(f"expected one number a {of}, got dtype {a.dtype}")
    if a.shape != (size,):
        raise ValueError(f"expected one value a {of}, shape ({size},), got shape {a.shape}")
    return np.ascontiguousarray(a, dtype=np.float64)


def _float_type(dtype: DTypeLike) -> np.dtype:
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype} cannot hold ranks here: use float32 or float64")
    return dtype
