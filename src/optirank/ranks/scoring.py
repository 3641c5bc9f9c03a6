"""The one way to score new samples: all rows of a linear model on ranks in one sweep per sample.

The score of row k is ``coef_k . (C gamma_k - offset) / size_k + intercept_k``, with C the sample's
comparison matrix and ``size_k`` the sum of ``gamma_k``. Going up through a sample's distinct
values, each reference set keeps the sum c of its weights below, and every value adds
``W (c + t h)`` to the score of a row, with h and W the sums of reference weights and of weights at
this value. A sample's zeros are one value, so only its non-zeros are sorted.

Rows that share a reference set share its sums: a model of K classes over one reference set costs
one pass and one product. There are two twins, equal up to the last few bits: NumPy for small
inputs, which never load numba, and ``optirank._compiled.predict_loops``. (A fit scores the samples
that it has ordered before, one row at a time over all genes: ``SampleOrders.scores``.)
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.ranks.definition import check_ties

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_COMPILE_FROM = 300_000  # samples x (rows + 10): what NumPy does in about the time numba loads
_BLOCK = 1 << 22  # values of the needed genes looked at together
_TOGETHER = 1 << 16  # weights that NumPy handles together: they stay in a core's own cache
_DENSE_FROM = 0.25  # share of non-zeros from which the zeros are sorted like other values


@dataclass(frozen=True)
class ScoreRows:
    """Rows of a linear model on relative ranks, over q genes.

    ``gamma`` may be fractional. ``base`` is what a row adds to ``coef . C gamma / size``; see
    :func:`score_rows` for how it follows from the intercept.
    """

    coef: NDArray  # (rows, q)
    gamma: NDArray  # (rows, q)
    base: NDArray  # (rows,)
    ties: str

    @cached_property
    def sizes(self) -> NDArray:
        """Sum of each row's reference weights; 1 for a row without any, whose score is its base."""
        sizes = self.gamma.sum(axis=1)
        return np.where(sizes > 0, sizes, 1.0)

    def scores(
        self, X: Any, columns: NDArray | None = None, compiled: bool | None = None
    ) -> NDArray:
        """Scores (n, rows) of the samples (rows) of X.

        Parameters
        ----------
        X : array, or CSR or CSC matrix.
        columns : the columns of X that hold the q genes; None when X has these alone.
        compiled : whether to use the compiled loops; None where there are samples enough.
        """
        if columns is None:
            columns = np.arange(X.shape[1])
        if getattr(X, "format", None) == "csc":  # cut columns while that is cheap, then rows
            X = X[:, columns].tocsr()
            columns = np.arange(len(columns))
        if compiled is None:
            compiled = worth_compiling(X.shape[0], len(self.base))
        score = self._compiled_scores if compiled else self._plain_scores
        found = np.empty((X.shape[0], len(self.base)))
        step = max(1, _BLOCK // max(1, len(columns)))
        for start in range(0, X.shape[0], step):
            found[start : start + step] = score(
                needed_values(X, slice(start, start + step), columns)
            )
        return found / self.sizes + self.base

    @cached_property
    def _references(self) -> tuple[NDArray, NDArray]:
        """The distinct reference sets (q, sets) in order of appearance, and that of each row."""
        known: dict[bytes, int] = {}
        of_row = [known.setdefault(gamma.tobytes(), len(known)) for gamma in self.gamma]
        first = [of_row.index(k) for k in range(len(known))]
        return np.ascontiguousarray(self.gamma[first].T), np.array(of_row, dtype=np.int64)

    @cached_property
    def _by_gene(self) -> NDArray:
        """The weights, (q, rows)."""
        return np.ascontiguousarray(self.coef.T)

    @cached_property
    def _entries(self) -> tuple[NDArray, ...]:
        """The non-zeros of each gene in gamma and coef: where they begin, sets or rows, values."""
        return (*_non_zeros(self._references[0]), *_non_zeros(self._by_gene))

    def _plain_scores(self, X: Any) -> NDArray:
        """``coef . C gamma`` (n, rows) with NumPy alone, many samples at a time."""
        tie, _ = check_ties(self.ties)
        gamma, of_row = self._references
        one_each = gamma.shape[1] == len(of_row)
        gamma, coef = (np.vstack([one, np.zeros(one.shape[1])]) for one in (gamma, self._by_gene))
        sums = gamma.sum(axis=0), coef.sum(axis=0)
        scores = np.empty((X.shape[0], len(of_row)))
        for rows, genes, values, full in _padded(X, len(gamma) - 1, len(of_row)):
            order = values.argsort(axis=1, kind="stable")  # the same sums for every type of values
            genes = np.take_along_axis(genes, order, axis=1)
            g, w = gamma[genes], coef[genes]
            zero = np.arange(len(g)), (order == order.shape[1] - 1).argmax(axis=1)
            for table, total in ((g, sums[0]), (w, sums[1])):  # what is left is the zeros'
                table[zero] = np.where(full, 0.0, total - _sums(table))
            below = np.zeros((len(g), g.shape[1] + 1, g.shape[2]))
            np.cumsum(g, axis=1, out=below[:, 1:])
            ranks = _at_groups(np.take_along_axis(values, order, axis=1), below, tie)
            ranks = ranks if one_each else ranks.take(of_row, axis=2)
            ranks *= w
            scores[rows] = _sums(ranks)
        return scores

    def _compiled_scores(self, X: Any) -> NDArray:
        """The same with compiled loops; numba loads here."""
        from scipy import sparse

        from optirank._compiled import predict_loops
        from optirank.ranks.orders import SparseOrders, order_samples

        tie, offset = check_ties(self.ties)
        if not sparse.issparse(X) and np.count_nonzero(X) < _DENSE_FROM * X.size:
            X = sparse.csr_array(X)
        orders = order_samples(X)
        gamma, of_row = self._references
        sums = gamma.sum(axis=0), self._by_gene.sum(axis=0)
        if isinstance(orders, SparseOrders):
            samples = orders.indptr, orders.genes, False, orders.groups
            zero_group = orders.zero_group
        elif gamma.shape[1] == 1:  # one reference set: a pass and a product, five times faster
            ranks = orders.ranks(gamma[:, 0], self.ties, np.float64)
            return ranks.values @ self._by_gene + offset * sums[1]
        else:
            n, d = orders.groups.shape
            genes = np.arange(d, dtype=orders.groups.dtype)
            samples = np.arange(0, n * d + 1, d), genes, True, orders.groups.reshape(-1)
            zero_group = np.full(n, -1, dtype=np.int32)
        scores = np.zeros((X.shape[0], len(of_row)))
        predict_loops.scores_of_rows(
            *samples, orders.n_groups, zero_group, *self._entries, of_row, tie, *sums, scores
        )
        return scores


def score_rows(coef: NDArray, gamma: NDArray, intercept: NDArray, ties: str) -> ScoreRows:
    """Rows with weights, reference weights (both rows x q) and intercepts in scaled units.

    The offset of ranks is the same for all samples: ``base = intercept - offset sum(coef) / size``.
    """
    _, offset = check_ties(ties)
    coef, gamma = np.ascontiguousarray(coef), np.ascontiguousarray(gamma)  # sums to the last bit
    rows = ScoreRows(coef, gamma, np.asarray(intercept, dtype=float), ties)
    base = rows.base - offset * coef.sum(axis=1) / rows.sizes
    return ScoreRows(coef, gamma, base, ties)


def worth_compiling(n_samples: int, n_rows: int) -> bool:
    """Whether so much is to be scored that loading numba pays, and it is there."""
    enough = n_samples * (n_rows + 10) >= _COMPILE_FROM
    return enough and importlib.util.find_spec("numba") is not None


def average_rows(scores: NDArray, n_problems: int) -> NDArray:
    """Mean over the rows of each problem, along the last axis; they follow each other."""
    each = scores.shape[-1] // n_problems
    return scores.reshape(*scores.shape[:-1], n_problems, each).mean(axis=-1)


def by_class(scores: NDArray) -> NDArray:
    """Scores with one column per class: ``-z, z`` for the one score z of two classes."""
    return np.column_stack([-scores, scores]) if scores.ndim == 1 else scores


def best_class(scores: NDArray) -> NDArray:
    """The position of each sample's class: that of the highest score, the first of equal ones."""
    return by_class(scores).argmax(axis=1)


def probabilities(scores: NDArray, slope: float = 1.0, offset: float = 0.0) -> NDArray:
    """Probabilities of the classes: ``p_k = g(z_k) / sum_m g(z_m)``.

    ``g(z) = 1 / (1 + exp(-(slope z + offset)))`` is the same rising function for all classes, so
    the order of the classes is that of their scores. With an offset of minus infinity g is
    ``exp(slope z)``, which makes it a softmax. For two classes, ``(n,)`` scores z, the columns are
    ``-z`` and ``z``; with offset 0 that is the logistic function of ``slope z``.
    """
    z = slope * by_class(np.asarray(scores, dtype=float))
    logs = z if offset == -np.inf else -np.logaddexp(0.0, -(z + offset))
    top = logs.max(axis=1, keepdims=True, initial=-np.inf)
    each = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
    total = each.sum(axis=1, keepdims=True)
    return np.divide(each, total, out=np.full_like(each, 1.0 / each.shape[1]), where=total > 0)


def _non_zeros(matrix: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    genes, rows = np.nonzero(matrix)
    return np.searchsorted(genes, np.arange(len(matrix) + 1)), rows, matrix[genes, rows]


def _sums(table: NDArray) -> NDArray:
    """Sums over the places (n, places, columns), one after the other whatever n and padding."""
    return table.cumsum(axis=1)[:, -1] if table.shape[2] == 1 else table.sum(axis=1)


def _at_groups(values: NDArray, below: NDArray, tie: float) -> NDArray:
    """``c + t h`` of each value's group of equal ones, from the sums ``below`` each place.

    ``values`` (n, m) are sorted within samples, ``below`` is (n, m + 1, sets).
    """
    starts = np.ones(values.shape, dtype=bool)
    starts[:, 1:] = values[:, 1:] != values[:, :-1]
    if starts.all():
        return (1.0 - tie) * below[:, :-1] + tie * below[:, 1:]
    m = values.shape[1]
    places = np.arange(m)
    first = np.maximum.accumulate(np.where(starts, places, 0), axis=1)
    ends = np.ones_like(starts)
    ends[:, :-1] = starts[:, 1:]
    end = np.minimum.accumulate(np.where(ends, places + 1, m)[:, ::-1], axis=1)[:, ::-1]
    rows = below.reshape(-1, below.shape[2])
    begin = (m + 1) * np.arange(len(values))[:, None]
    found = rows[begin + first]
    found *= 1.0 - tie
    found += tie * rows[begin + end]
    return found


def _padded(X: Any, n_genes: int, n_rows: int) -> Iterator[tuple[slice, NDArray, NDArray, NDArray]]:
    """Samples by their non-zeros, a few at a time: rows, genes, values, which have no zeros.

    Genes and values (n, most non-zeros + 1) end with places of gene ``n_genes`` and value 0: of
    samples with fewer non-zeros, and one for the zeros of each sample.
    """
    sparse = hasattr(X, "tocsr")
    counts = np.diff(X.indptr) if sparse else np.count_nonzero(X, axis=1)
    step = max(1, _TOGETHER // (n_rows * (int(counts.max(initial=0)) + 1)))
    for start in range(0, len(counts), step):
        rows = slice(start, min(start + step, len(counts)))
        here = counts[rows]
        there = np.arange(here.max() + 1) < here[:, None]
        genes = np.full(there.shape, n_genes)
        values = np.zeros(there.shape, X.dtype)
        if sparse:
            entries = slice(X.indptr[rows.start], X.indptr[rows.stop])
            genes[there], values[there] = X.indices[entries], X.data[entries]
        else:
            where = np.nonzero(X[rows])
            genes[there], values[there] = where[1], X[rows][where]
        yield rows, genes, values, (here == n_genes)[:, None]


def needed_values(X: Any, rows: slice, columns: NDArray) -> Any:
    """The needed columns of some samples; finite, and in canonical form where sparse."""
    block = X[rows]
    if len(columns) < X.shape[1] or (columns != np.arange(len(columns))).any():
        block = block[:, columns]
    if not hasattr(block, "tocsr"):
        _check_finite(block)
        return block
    if not block.has_canonical_format or (block.data == 0).any():
        block = block.copy()
        block.sum_duplicates()
        block.eliminate_zeros()
    _check_finite(block.data)
    return block


def _check_finite(values: NDArray) -> None:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        bad = np.count_nonzero(~np.isfinite(values))
        raise ValueError(
            f"X has NaN or infinite values, which have no rank ({bad} in the genes needed): "
            "impute them or leave these samples out"
        )
