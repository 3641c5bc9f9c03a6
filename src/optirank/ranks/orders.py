"""The order of each sample's genes, computed once, and the ranks and co-ranks read off
from it.

An order keeps, for each sample, the tie group of each gene: the number of distinct
values below its own. It is all that ranks see of the data, takes two bytes per entry
(four beyond 65535 genes), and gives ranks and co-ranks without a branch for ties. For
sparse data only the non-zeros are kept; the zeros of a sample are one group, between
its negative and positive values.

Ranks may be stored as float32. Their sums run in float64 all the same and are rounded
once, when they are written, so each stored value is within half a unit in the last
place of the float64 one.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from optirank._compiled import rank_loops
from optirank._util.numbers import as_dense, product
from optirank._util.work import threads, worker_count
from optirank.ranks.scoring import check_finite, check_ties

# Share of non-zeros above which dense orders are faster (bench_sparse.py)
DENSE_ABOVE = 0.11
PLACE_STEPS = 1 << 24  # of a place from 0 to 1: single precision holds them exactly
_BLOCK = 1 << 17  # entries sorted or ranked at a time: they stay in a core's own cache


@dataclass(frozen=True)
class DenseRanks:
    """An n x d matrix of ranks or co-ranks, held as it is."""

    values: NDArray

    def columns(self, genes: NDArray) -> NDArray:
        """The columns of some genes (positions), dense: the matrix itself if all."""
        return take_columns(self.values, genes)

    def dot(self, a: NDArray) -> NDArray:
        """``M a``, in the matrix's own precision."""
        return product(self.values, a.astype(self.values.dtype, copy=False))

    def transpose_dot(self, a: NDArray) -> NDArray:
        """``M^T a``, in the matrix's own precision."""
        return product(a.astype(self.values.dtype, copy=False), self.values)


@dataclass(frozen=True)
class SparseRanks:
    """An n x d matrix ``constants 1^T + E`` with E as sparse as the data."""

    constants: NDArray
    excess: NDArray
    genes: NDArray
    indptr: NDArray
    n_genes: int

    def columns(self, genes: NDArray) -> NDArray:
        """The columns of some genes (positions), dense."""
        out = np.repeat(self.constants[:, None], len(genes), axis=1)
        samples, places, entries = _find_entries(self, genes)
        out[samples, places] += self.excess[entries]
        return out.astype(self.excess.dtype, copy=False)

    def dot(self, a: NDArray) -> NDArray:
        """``M a`` for a vector or a matrix, summed in float64."""
        if a.ndim == 2:
            return np.column_stack([self.dot(column) for column in a.T])
        a = np.ascontiguousarray(a, dtype=np.float64)
        out = np.empty(len(self.constants))
        rank_loops.sparse_dot(
            self.indptr, self.genes, self.excess, self.constants, a, float(a.sum()), out
        )
        return out

    def transpose_dot(self, a: NDArray) -> NDArray:
        """``M^T a``, summed in float64."""
        a = np.ascontiguousarray(a, dtype=np.float64)
        out = np.full(self.n_genes, self.constants @ a)
        rank_loops.sparse_transpose_dot(self.indptr, self.genes, self.excess, a, out)
        return out


Ranks = DenseRanks | SparseRanks


class SampleOrders(ABC):
    """The orders of n samples over d genes; see :func:`order_samples`."""

    n_genes: int
    n_groups: NDArray
    writes_columns: ClassVar[bool]
    """Whether the ranks of some genes cost less than those of all."""

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return len(self.n_groups)

    @abstractmethod
    def take(self, samples: NDArray | slice) -> SampleOrders:
        """The orders of some of the samples (positions, a mask or a slice)."""

    @abstractmethod
    def groups_of(self, genes: NDArray) -> NDArray:
        """The tie groups of some genes (positions), n x len(genes)."""

    @abstractmethod
    def _values(self, a, base, sign, tie, dtype, reuse, genes) -> Any:
        """``f`` of the compiled loops for weights a, as a matrix."""

    def ranks(
        self,
        gamma: ArrayLike,
        ties: str = "average",
        dtype: DTypeLike = np.float32,
        reuse: Ranks | None = None,
        genes: NDArray | None = None,
    ) -> Any:
        """``R(gamma)``: row i is ``C_i gamma - offset``, so that scores are linear in
        w.

        ``reuse`` is a matrix of the same kind made by these orders before, whose memory
        is written over. With ``genes`` (positions, at least one), a dense matrix of
        their columns.
        """
        tie, offset = check_ties(ties)
        gamma = np.ascontiguousarray(gamma, dtype=np.float64)
        return self._values(gamma, -offset, 1.0, tie, dtype, reuse, genes)

    def coranks(
        self,
        w: ArrayLike,
        ties: str = "average",
        dtype: DTypeLike = np.float32,
        reuse: Ranks | None = None,
        genes: NDArray | None = None,
    ) -> Any:
        """``V(w)``: row i is ``C_i^T w``, so that scores are linear in gamma; see
        ``ranks``.
        """
        tie, _ = check_ties(ties)
        w = np.ascontiguousarray(w, dtype=np.float64)
        return self._values(w, float(w.sum()), -1.0, 1.0 - tie, dtype, reuse, genes)

    def scores(self, w: ArrayLike, gamma: ArrayLike, ties: str = "average") -> NDArray:
        """``w . (C_i gamma - offset)`` for each sample, in float64, a few samples
        at a time.
        """
        w = np.asarray(w)
        genes = np.flatnonzero(w) if self.writes_columns else np.arange(self.n_genes)
        out = np.zeros(self.n_samples)
        if genes.size:
            step = max(1, _BLOCK // genes.size)
            for rows in (slice(at, at + step) for at in range(0, self.n_samples, step)):
                some = genes if self.writes_columns else None
                ranks = self.take(rows).ranks(gamma, ties, np.float64, genes=some)
                out[rows] = ranks.dot(w[genes])
        return out


@dataclass(frozen=True)
class DenseOrders(SampleOrders):
    """Orders over all genes of each sample."""

    writes_columns = True

    groups: NDArray  # (n, d): the tie group of each gene
    ordered: NDArray  # (n, d): the genes in the order of their values
    n_groups: NDArray  # (n,)

    @property
    def n_genes(self) -> int:
        """Number of genes, d."""
        return self.groups.shape[1]

    def take(self, samples: NDArray | slice) -> DenseOrders:
        """See :meth:`SampleOrders.take`; a slice copies nothing."""
        arrays = (self.groups, self.ordered, self.n_groups)
        return DenseOrders(*(np.ascontiguousarray(array[samples]) for array in arrays))

    def groups_of(self, genes: NDArray) -> NDArray:
        """See :meth:`SampleOrders.groups_of`; the array itself if all genes
        are wanted.
        """
        return take_columns(self.groups, genes)

    def _values(self, a, base, sign, tie, dtype, reuse, genes) -> DenseRanks:
        columns = np.empty(0, np.intp) if genes is None else genes
        shape = self.n_samples, self.n_genes if genes is None else len(genes)
        out = np.empty(shape, dtype) if reuse is None else reuse.values
        given = np.flatnonzero(a)
        # Up to so many, reading them alone is faster (bench_ranks.py)
        few = given if 8 * len(given) <= len(a) else given[:0]
        orders = self.groups, self.ordered, self.n_groups
        rank_loops.dense_values(*orders, few, a, base, sign, tie, columns, out)
        return DenseRanks(out)


@dataclass(frozen=True)
class SparseOrders(SampleOrders):
    """Orders over the non-zeros of each sample, the zeros being one group."""

    writes_columns = False

    indptr: NDArray  # (n + 1,)
    genes: NDArray  # (nnz,)
    groups: NDArray  # (nnz,)
    n_groups: NDArray  # (n,): the zeros' group counted in
    zero_group: NDArray  # (n,)
    n_genes: int

    @property
    def density(self) -> float:
        """Fraction of the entries that are not zero."""
        return len(self.genes) / (self.n_samples * self.n_genes)

    def take(self, samples: NDArray | slice) -> SparseOrders:
        """See :meth:`SampleOrders.take`; a slice copies no entries."""
        if isinstance(samples, slice) and samples.step in (None, 1):
            start, stop, _ = samples.indices(self.n_samples)
            stop = max(start, stop)
            entries = slice(self.indptr[start], self.indptr[stop])
            indptr = self.indptr[start : stop + 1] - self.indptr[start]
        else:
            samples = np.arange(self.n_samples)[samples]
            counts = np.diff(self.indptr)[samples]
            indptr = np.concatenate([[0], np.cumsum(counts)])
            entries = np.repeat(self.indptr[samples] - indptr[:-1], counts) + np.arange(
                indptr[-1]
            )
        taken = self.n_groups[samples], self.zero_group[samples]
        return SparseOrders(
            indptr, self.genes[entries], self.groups[entries], *taken, self.n_genes
        )

    def groups_of(self, genes: NDArray) -> NDArray:
        """See :meth:`SampleOrders.groups_of`."""
        out = np.repeat(
            self.zero_group.astype(self.groups.dtype)[:, None], len(genes), axis=1
        )
        samples, places, entries = _find_entries(self, genes)
        out[samples, places] = self.groups[entries]
        return out

    def to_dense(self) -> DenseOrders:
        """The same orders with every gene's group written out."""
        groups = self.groups_of(np.arange(self.n_genes))
        zero_group = self.zero_group[:, None]
        # Samples without zeros, whose group of zeros is empty
        without_zeros = np.diff(self.indptr) == self.n_genes
        groups -= without_zeros[:, None] & (groups > zero_group)
        ordered = groups.argsort(axis=1, kind="stable").astype(groups.dtype)
        return DenseOrders(groups, ordered, self.n_groups - without_zeros)

    def _values(self, a, base, sign, tie, dtype, reuse, genes) -> Ranks:
        constants = np.empty(self.n_samples)
        out = np.empty(len(self.genes), dtype) if reuse is None else reuse.excess
        rank_loops.sparse_values(
            self.indptr,
            self.genes,
            self.groups,
            self.n_groups,
            self.zero_group,
            a,
            float(a.sum()),
            base,
            sign,
            tie,
            constants,
            out,
        )
        ranks = SparseRanks(constants, out, self.genes, self.indptr, self.n_genes)
        return ranks if genes is None else DenseRanks(ranks.columns(genes))


def order_samples(
    X: ArrayLike | sparse.sparray | sparse.spmatrix, n_jobs: int | None = 1
) -> SampleOrders:
    """Order the genes of each sample (row) of X, dense or sparse.

    Parameters
    ----------
    X : booleans, integers or floats in any memory layout. Values are compared as they
        are, so large integers lose nothing; they must be finite. Sparse input stays
        sparse.
    n_jobs : threads that sort; -1 is all cores.
    """
    is_sparse = sparse.issparse(X)
    samples: Any = sparse.csr_array(X) if is_sparse else np.asarray(X)
    if samples.ndim != 2 or 0 in samples.shape:
        raise ValueError(
            f"X has shape {samples.shape}: samples x genes are needed, at least one of "
            "each"
        )
    n, d = samples.shape
    if is_sparse:
        if not samples.has_canonical_format or (samples.data == 0).any():
            samples = samples.copy()
            samples.sum_duplicates()
            samples.eliminate_zeros()
        indptr = samples.indptr.astype(np.int64)
    else:
        indptr = np.arange(0, samples.size + 1, d)
    # 16 bits for as long as they number d groups and one more for the zeros
    index_type = np.uint16 if d <= 65535 else np.uint32
    groups = np.empty(indptr[-1], index_type)
    ordered = np.empty(0 if is_sparse else indptr[-1], index_type)
    n_groups = np.empty(n, np.int32)
    zero_group = np.empty(n, np.int32)

    def order_block(block: slice) -> None:
        values, order, starts = _sorted(samples, block)
        entries = slice(indptr[block.start], indptr[block.stop])
        numbers = groups[entries], n_groups[block]
        rank_loops.number_values(values, order, starts, *numbers)
        if is_sparse:
            rank_loops.leave_room_for_zero(values, starts, *numbers, zero_group[block])
        else:
            ordered[entries] = order

    _in_blocks(order_block, n, indptr[-1] // n, n_jobs)
    if is_sparse:
        genes = samples.indices.astype(index_type)
        return SparseOrders(indptr, genes, groups, n_groups, zero_group, d)
    return DenseOrders(groups.reshape(n, d), ordered.reshape(n, d), n_groups)


def order_for_fitting(X: Any, n_jobs: int | None = None) -> SampleOrders:
    """Orders of the samples; sparse data with many non-zeros become dense orders."""
    orders = order_samples(X, n_jobs or 1)
    if isinstance(orders, SparseOrders) and orders.density > DENSE_ABOVE:
        return orders.to_dense()
    return orders


def doubled_ranks(values: NDArray, n_threads: int = 1) -> NDArray:
    """Twice the ranks of each sample's values among themselves: whole numbers from 0.

    It is faster than ranks from an order that is kept.
    """
    n, d = values.shape
    out = np.empty((n, d), np.uint16 if 2 * d <= np.iinfo(np.uint16).max else np.uint32)

    def rank_block(block: slice) -> None:
        part = _sortable(values[block])
        with np.errstate(invalid="ignore"):  # what does not fit is compared
            counts = part.astype(np.uint16)
        # Counts that fit into 16 bits sort in half the time
        order = _argsort(counts if np.array_equal(counts, part) else part)
        rank_loops.doubled_ranks_in_order(part, order, out[block])

    _in_blocks(rank_block, n, d, n_threads)
    return out


def places_in_sample(X: Any, n_threads: int = 1) -> Any:
    """The place of each gene among those above the lowest of its sample, from 0 to 1.

    The lowest value of a sample, mostly the zeros, has place 0. The m genes above it
    have the places 1/m to 1; equal values share their mean. So places depend on the
    order within a sample alone: counts and their logarithms have the same, and sparse
    samples stay sparse. They are multiples of 2^-24, so that sums of them are exact and
    do not depend on the order of the samples.
    """
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        X.sum_duplicates()
        X.eliminate_zeros()
    is_sparse = sparse.issparse(X) and bool((X.data > 0).all())
    X = X if is_sparse else as_dense(X)
    n, d = X.shape
    indptr = X.indptr if is_sparse else np.arange(0, X.size + 1, d)
    places = np.empty(indptr[-1], np.float32)

    def place_block(block: slice) -> None:
        entries = slice(indptr[block.start], indptr[block.stop])
        rank_loops.places_in_order(*_sorted(X, block), d, PLACE_STEPS, places[entries])

    _in_blocks(place_block, n, len(places) // max(1, n), n_threads)
    if is_sparse:
        return sparse.csr_array((places, X.indices, X.indptr), X.shape)
    return places.reshape(n, d)


def _sorted(X: Any, rows: slice) -> tuple[NDArray, NDArray, NDArray]:
    """The values of some samples (of a CSR array those that are stored) one sample
    after the other, the order that sorts each, and where each begins.
    """
    if not sparse.issparse(X):
        values = _sortable(X[rows])
        starts = np.arange(0, values.size + 1, values.shape[1])
        return values.ravel(), _argsort(values).ravel(), starts
    starts = X.indptr[rows.start : rows.stop + 1].astype(np.int64)
    values = _sortable(X.data[starts[0] : starts[-1]])
    starts -= starts[0]
    order = np.empty(values.size, np.int64)
    for start, stop in itertools.pairwise(starts.tolist()):
        order[start:stop] = _argsort(values[start:stop])
    return values, order, starts


def _sortable(values: NDArray) -> NDArray:
    """The values, finite and C-contiguous, in a type that the compiled loops take and
    that compares alike.
    """
    dtype = values.dtype
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise ValueError(
            f"X has dtype {dtype}: booleans, integers or floats of at most 64 bits are "
            "needed"
        )
    taken = {"b": np.uint8, "e": np.float32}.get(
        dtype.char if dtype.kind == "f" else dtype.kind
    )
    values = np.ascontiguousarray(values, dtype=taken or dtype.newbyteorder("="))
    check_finite(values)
    return values


def _argsort(values: NDArray) -> NDArray:
    """The order of each sample's values: a stable sort where it is faster.

    That is for 16 bits (radix sort), and where most values are zero: NumPy's default is
    five times slower on so many ties.
    """
    stable = values.itemsize <= 2 or 2 * np.count_nonzero(values) < values.size
    return values.argsort(axis=-1, kind="stable" if stable else None)


def _in_blocks(
    work: Callable[[slice], None], n_samples: int, sample_size: int, n_jobs: int | None
) -> None:
    """Call ``work`` on blocks of samples that cover them all, in ``n_jobs`` threads."""
    rows = max(1, _BLOCK // max(1, sample_size))
    blocks = [slice(at, min(n_samples, at + rows)) for at in range(0, n_samples, rows)]
    with threads(min(worker_count(n_jobs), len(blocks))) as map_blocks:
        list(map_blocks(work, blocks))


def take_columns(values: NDArray, columns: NDArray) -> NDArray:
    """Some columns (positions) in memory of their own; the array itself if all in
    their order.
    """
    n_columns = values.shape[1]
    if len(columns) == n_columns and (columns == np.arange(n_columns)).all():
        return values
    return np.take(values, columns, axis=1)


def _find_entries(
    matrix: SparseRanks | SparseOrders, wanted: NDArray
) -> tuple[NDArray, NDArray, NDArray]:
    """Where the non-zeros of some genes are: their samples, places among the wanted,
    positions.
    """
    place = np.full(matrix.n_genes, -1)
    place[wanted] = np.arange(len(wanted))
    places = place[matrix.genes]
    entries = np.flatnonzero(places >= 0)
    samples = np.searchsorted(matrix.indptr, entries, side="right") - 1
    return samples, places[entries], entries
