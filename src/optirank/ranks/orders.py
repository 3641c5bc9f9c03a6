"""The order of each sample's genes, computed once, and the passes over it.

An order keeps, for each sample, the tie group of each gene: the number of distinct values below
its own. It is all that ranks see of the data, takes two bytes an entry (four beyond 65535
genes), and lets ranks and co-ranks be read off without a branch for ties. For sparse data only the
non-zeros are kept; the zeros of a sample are one group, between its negative and positive values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from optirank._compiled import rank_loops
from optirank.ranks.definition import check_ties
from optirank.ranks.matrices import DenseRanks, SparseRanks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

_BLOCK_ENTRIES = 1 << 20  # what one thread sorts at a time: its argsort takes 8 bytes an entry


class SampleOrders(ABC):
    """The orders of n samples over d genes; see :func:`order_samples`."""

    n_samples: int
    n_genes: int

    @abstractmethod
    def _values(self, a: NDArray, base: float, sign: float, tie: float, dtype: DTypeLike): ...

    @abstractmethod
    def _weighted_sum(
        self, a: NDArray, base: float, sign: float, tie: float, sample_weights: NDArray
    ) -> NDArray: ...

    @abstractmethod
    def _scores(self, gamma: NDArray, w: NDArray, tie: float) -> NDArray: ...

    @abstractmethod
    def take(self, samples: NDArray) -> SampleOrders:
        """The orders of some of the samples (positions or a mask)."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory held, in bytes."""

    def ranks(self, gamma: ArrayLike, ties: str = "average", dtype: DTypeLike = np.float32):
        """``R(gamma)``: row i is ``C_i gamma - offset``, so that scores are linear in w."""
        tie, offset = check_ties(ties)
        return self._values(self._gene_vector(gamma), -offset, 1.0, tie, dtype)

    def coranks(self, w: ArrayLike, ties: str = "average", dtype: DTypeLike = np.float32):
        """``V(w)``: row i is ``C_i^T w``, so that scores are linear in gamma."""
        tie, _ = check_ties(ties)
        w = self._gene_vector(w)
        return self._values(w, float(w.sum()), -1.0, 1.0 - tie, dtype)

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

    groups: NDArray  # (n, d): the tie group of each gene
    n_groups: NDArray  # (n,)

    @property
    def n_samples(self) -> int:
        return self.groups.shape[0]

    @property
    def n_genes(self) -> int:
        return self.groups.shape[1]

    @property
    def nbytes(self) -> int:
        return self.groups.nbytes + self.n_groups.nbytes

    def take(self, samples: NDArray) -> DenseOrders:
        return DenseOrders(self.groups[samples], self.n_groups[samples])

    def _values(self, a, base, sign, tie, dtype) -> DenseRanks:
        out = np.empty(self.groups.shape, dtype)
        rank_loops.dense_values(self.groups, self.n_groups, a, base, sign, tie, out)
        return DenseRanks(out)

    def _weighted_sum(self, a, base, sign, tie, sample_weights) -> NDArray:
        out = np.zeros(self.n_genes)
        rank_loops.dense_weighted_sum(
            self.groups, self.n_groups, a, base, sign, tie, sample_weights, out
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
        return self.n_groups.shape[0]

    @property
    def nbytes(self) -> int:
        arrays = (self.indptr, self.genes, self.groups, self.n_groups, self.zero_group)
        return sum(array.nbytes for array in arrays)

    def take(self, samples: NDArray) -> SparseOrders:
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

    def _values(self, a, base, sign, tie, dtype) -> SparseRanks:
        constants = np.empty(self.n_samples)
        out = np.empty(len(self.genes), dtype)
        rank_loops.sparse_values(
            *self._arrays(), a, float(a.sum()), base, sign, tie, constants, out
        )
        return SparseRanks(constants, out, self.genes, self.indptr, self.n_genes)

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


def order_samples(X, n_jobs: int = 1) -> SampleOrders:
    """Order the genes of each sample (row) of X, dense or sparse.

    Parameters
    ----------
    X : array-like or scipy sparse matrix of shape (n_samples, n_genes)
        Any number type and memory layout; sparse input stays sparse. Finite values only.
    n_jobs : int
        Threads that sort.
    """
    if sparse.issparse(X):
        return _order_sparse(X, n_jobs)
    X = np.asarray(X)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X has shape {X.shape}: samples x genes are needed, at least one of each")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X has dtype {X.dtype}: numbers are needed")
    if X.dtype.kind == "b" or X.dtype == np.float16:
        X = X.astype(np.float32)
    _check_finite(X)
    n, d = X.shape
    groups = np.empty((n, d), _index_type(d))
    n_groups = np.empty(n, np.int32)

    def order_block(block: slice) -> None:
        part = np.ascontiguousarray(X[block])
        rank_loops.group_sorted_rows(part, _argsort(part), groups[block], n_groups[block])

    _in_threads(order_block, _blocks(n, d), n_jobs)
    return DenseOrders(groups, n_groups)


def _order_sparse(X, n_jobs: int) -> SparseOrders:
    X = sparse.csr_array(X)  # shares the data of a CSR input
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X has dtype {X.dtype}: numbers are needed")
    if 0 in X.shape:
        raise ValueError(f"X has shape {X.shape}: samples x genes are needed, at least one of each")
    if not X.has_canonical_format or (X.data == 0).any():
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    values = X.data.astype(np.float32) if X.dtype.kind == "b" else X.data
    _check_finite(values)
    n, d = X.shape
    indptr = X.indptr.astype(np.int64)
    groups = np.empty(len(values), _index_type(d + 1))
    order = np.empty(len(values), np.int32)
    n_groups = np.empty(n, np.int32)
    zero_group = np.empty(n, np.int32)

    def order_block(block: slice) -> None:
        for i in range(block.start, block.stop):
            begin, end = indptr[i], indptr[i + 1]
            order[begin:end] = _argsort(values[begin:end])
        rank_loops.group_sorted_nonzeros(
            indptr[block.start : block.stop + 1],
            values,
            order,
            groups,
            n_groups[block],
            zero_group[block],
        )

    mean_size = max(1, len(values) // n)
    _in_threads(order_block, _blocks(n, mean_size), n_jobs)
    genes = X.indices.astype(_index_type(d))
    return SparseOrders(indptr, genes, groups, n_groups, zero_group, d)


def _argsort(values: NDArray) -> NDArray:
    """NumPy's vectorised argsort, or its radix sort for 16-bit integers; order of ties is free."""
    small = values.dtype.kind in "iu" and values.dtype.itemsize <= 2
    return np.argsort(values, axis=-1, kind="stable" if small else None)


def _index_type(n_values: int) -> type:
    return np.uint16 if n_values <= 65535 else np.uint32


def _blocks(n: int, row_size: int) -> list[slice]:
    rows = max(1, _BLOCK_ENTRIES // row_size)
    return [slice(begin, min(n, begin + rows)) for begin in range(0, n, rows)]


def _in_threads(work, blocks: list[slice], n_jobs: int) -> None:
    if n_jobs == 1 or len(blocks) == 1:
        for block in blocks:
            work(block)
        return
    with ThreadPoolExecutor(n_jobs) as pool:
        list(pool.map(work, blocks))


def _check_finite(values: NDArray) -> None:
    if values.dtype.kind == "f" and not np.isfinite(values.sum(dtype=np.float64)):
        bad = int(np.size(values) - np.isfinite(values).sum())
        if bad:
            raise ValueError(
                f"X has {bad} values that are NaN or infinite: ranks need finite values; "
                "drop or impute them first"
            )


def _vector(a: ArrayLike, size: int, of: str) -> NDArray:
    a = np.ascontiguousarray(a, dtype=np.float64)
    if a.shape != (size,):
        raise ValueError(f"expected one value a {of}, shape ({size},), got shape {a.shape}")
    return a
