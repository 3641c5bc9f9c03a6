"""The one way to score new samples by a linear model on ranks.

The score of row k is ``coef_k . (C gamma_k - offset) / size_k + intercept_k``, with C
the sample's comparison matrix and ``size_k`` the sum of ``gamma_k``. Each distinct
reference set is one rank pass over the samples and one product with the weights of its
rows, so a model of K classes over one reference set costs one pass.

Ranks come from NumPy alone for small inputs, which never load numba, and from sample
orders for large ones; scores are equal up to the last few bits.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optirank.ranks.relative import (
    check_finite,
    check_ties,
    relative_ranks,
    weighted_ranks,
)

if TYPE_CHECKING:
    from optirank.ranks.orders import SampleOrders

# Samples x rows: what NumPy scores in the time that numba loads in
_COMPILE_FROM = 50_000
# Values of the needed genes ranked together: 8 MB, small beside any data set
_BLOCK = 1 << 20


@dataclass(frozen=True)
class ScoreRows:
    """Rows of a linear model on relative ranks, over q genes.

    ``gamma`` may be fractional. ``base`` is what a row adds to
    ``coef . C gamma / size``; see :func:`score_rows` for how it follows from the
    intercept.
    """

    coef: NDArray  # (rows, q)
    gamma: NDArray  # (rows, q)
    base: NDArray  # (rows,)
    ties: str

    @cached_property
    def sizes(self) -> NDArray:
        """Sum of each row's reference weights; 1 for a row without any, whose score is
        its base.
        """
        sizes = self.gamma.sum(axis=1)
        return np.where(sizes > 0, sizes, 1.0)

    @cached_property
    def _sets(self) -> list[tuple[NDArray, NDArray]]:
        """Each distinct reference set with its rows; those without weights score
        their base.
        """
        rows: dict[bytes, list[int]] = {}
        for k, gamma in enumerate(self.gamma):
            if gamma.any() and self.coef[k].any():
                rows.setdefault(gamma.tobytes(), []).append(k)
        return [(self.gamma[of[0]], np.array(of)) for of in rows.values()]

    def scores(
        self, X: Any, columns: NDArray | None = None, compiled: bool | None = None
    ) -> NDArray:
        """Scores (n, rows) of the samples (rows) of X.

        Parameters
        ----------
        X : array, or CSR or CSC matrix.
        columns : the columns of X that hold the q genes; None when X has these alone.
        compiled : whether to use the compiled loops; None where there are samples
            enough.
        """
        needed = np.arange(X.shape[1]) if columns is None else columns
        # Columns of such a matrix are cheap to cut, rows are not
        if getattr(X, "format", None) == "csc":
            X = X[:, needed].tocsr()
            needed = np.arange(len(needed))
        if compiled is None:
            compiled = worth_compiling(X.shape[0], len(self.base))
        products = np.zeros((X.shape[0], len(self.base)))
        step = max(1, _BLOCK // max(1, len(needed)))
        for rows in (slice(at, at + step) for at in range(0, X.shape[0], step)):
            block = needed_values(X, rows, needed)
            orders = _orders(block) if compiled else None
            for gamma, of in self._sets:
                products[rows, of] = self._products(block, orders, gamma, self.coef[of])
        return products / self.sizes + self.base

    def _products(
        self, X: Any, orders: SampleOrders | None, gamma: NDArray, coef: NDArray
    ) -> NDArray:
        """``coef . C gamma`` of each sample (row) of X, with NumPy alone or from
        their orders.
        """
        _, offset = check_ties(self.ties)
        genes = np.flatnonzero(coef.any(axis=0))
        if orders is None:
            ranks = weighted_ranks(X, gamma, ties=self.ties, scale=False, genes=genes)
            # not BLAS, which adds up in another order for one sample than for many
            return np.einsum("ng,kg->nk", ranks + offset, coef[:, genes])
        some = genes if orders.writes_columns else None
        weights = coef if some is None else coef[:, genes]
        ranks = orders.ranks(gamma, self.ties, np.float64, genes=some)
        return ranks.dot(weights.T) + offset * coef.sum(axis=1)


def _orders(X: Any) -> SampleOrders:
    """The orders of the samples of a block; numba loads here."""
    from scipy import sparse

    from optirank.ranks.orders import order_samples

    # From a quarter of non-zeros on, sorting the zeros too is faster
    if not sparse.issparse(X) and np.count_nonzero(X) < 0.25 * X.size:
        X = sparse.csr_array(X)
    return order_samples(X)


def score_rows(
    coef: NDArray, gamma: NDArray, intercept: NDArray, ties: str
) -> ScoreRows:
    """Rows with weights, reference weights (both rows x q) and intercepts in scaled
    units.

    The offset of ranks is the same for all samples:
    ``base = intercept - offset sum(coef) / size``.
    """
    _, offset = check_ties(ties)
    # The order in memory decides the last bit of sums
    coef = np.ascontiguousarray(coef)
    gamma = np.ascontiguousarray(gamma)
    rows = ScoreRows(coef, gamma, np.asarray(intercept, dtype=float), ties)
    base = rows.base - offset * coef.sum(axis=1) / rows.sizes
    return ScoreRows(coef, gamma, base, ties)


def panel_ranks(
    X: Any, columns: NDArray | None = None, compiled: bool | None = None
) -> NDArray:
    """Ranks of each sample's values among themselves, ``(average rank - 1) / genes``.

    Parameters
    ----------
    X : samples x genes, an array or CSR or CSC matrix.
    columns : the columns to rank among themselves; all by default.
    compiled : whether to use the compiled loop; None where there are samples enough.
        Both give the same.
    """
    columns = np.arange(X.shape[1]) if columns is None else columns
    X = needed_values(X, slice(None), columns)
    if not (worth_compiling(X.shape[0], 1) if compiled is None else compiled):
        return relative_ranks(X, np.ones(len(columns), dtype=bool))
    from optirank.ranks.orders import order_samples

    ranks = order_samples(X).ranks(np.ones(len(columns)), dtype=np.float64)
    return ranks.columns(np.arange(len(columns))) / len(columns)


def worth_compiling(n_samples: int, n_rows: int) -> bool:
    """Whether so much is to be scored that loading numba pays, and it is there."""
    enough = n_samples * n_rows >= _COMPILE_FROM
    return enough and importlib.util.find_spec("numba") is not None


def by_class(scores: NDArray) -> NDArray:
    """Scores with one column per class: ``-z, z`` for the one score z of two
    classes.
    """
    single_row = scores.ndim == 1 or scores.shape[1] == 1
    return np.column_stack([-scores, scores]) if single_row else scores


def class_positions(asked: Iterable, classes: NDArray) -> NDArray[np.intp]:
    """Where at least two classes are among those of a model, in their order there."""
    known = classes.tolist()
    named = [asked] if isinstance(asked, str) else list(asked)
    if strange := [label for label in named if label not in known]:
        raise ValueError(
            f"the model has no class {strange[0]!r}: its classes are {known}"
        )
    if len(set(named)) < max(2, len(named)):
        raise ValueError(
            f"classes={named!r}: give at least 2 different classes of the model"
        )
    return np.flatnonzero([label in named for label in known])


def best_class(scores: NDArray) -> NDArray:
    """The position of each sample's class: that of the highest score, the first of
    equal ones.
    """
    return by_class(scores).argmax(axis=1)


def probabilities(scores: NDArray, slope: float = 1.0, offset: float = 0.0) -> NDArray:
    """Probabilities of the classes: ``p_k = g(z_k) / sum_m g(z_m)``.

    ``g(z) = 1 / (1 + exp(-(slope z + offset)))`` is the same rising function for all
    classes, so the order of the classes is that of their scores. With an offset of
    minus infinity g is ``exp(slope z)``, which makes it a softmax. For two classes,
    ``(n,)`` scores z, the columns are ``-z`` and ``z``; with offset 0 that is the
    logistic function of ``slope z``.
    """
    scores = np.asarray(scores, dtype=float)
    n_classes = 2 if scores.ndim == 1 else max(2, scores.shape[1])
    out = np.empty((len(scores), n_classes))
    step = max(1, _BLOCK // n_classes)
    for rows in (slice(at, at + step) for at in range(0, len(scores), step)):
        out[rows] = _probabilities(by_class(scores[rows]), slope, offset)
    return out


def _probabilities(scores: NDArray, slope: float, offset: float) -> NDArray:
    """The same for some samples, with one score per class."""
    z = slope * scores
    logs = z if offset == -np.inf else -np.logaddexp(0.0, -(z + offset))
    top = logs.max(axis=1, keepdims=True, initial=-np.inf)
    each = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
    total = each.sum(axis=1, keepdims=True)
    return np.divide(
        each, total, out=np.full_like(each, 1.0 / each.shape[1]), where=total > 0
    )


def needed_values(X: Any, rows: slice, columns: NDArray) -> Any:
    """The needed columns of some samples, all of them finite."""
    block = X[rows]
    if len(columns) < X.shape[1] or (columns != np.arange(len(columns))).any():
        block = block[:, columns]
    check_finite(block.data if hasattr(block, "tocsr") else block)
    return block
