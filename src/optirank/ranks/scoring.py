"""Ranks of new samples relative to reference weights, and the one way to score samples
by a linear model on them.

Sample ``x`` has the comparison matrix ``C_jk = 1[x_j > x_k] + t * 1[x_j = x_k]``.
Relative to reference weights ``gamma`` its ranks are ``C gamma - offset``; its co-ranks
for weights ``w`` are ``C^T w``. This room computes them without ever forming ``C``; the
tests form it. With NumPy alone the values of the reference genes are sorted, and each
gene asked for is found among them by binary search. Only these genes are read.

The score of row k is ``coef_k . (C gamma_k - offset) / size_k + intercept_k``, with
``size_k`` the sum of ``gamma_k``. Each distinct reference set is one rank pass over the
samples and one product with the weights of its rows, so a model of K classes over one
reference set costs one pass.

Ranks come from NumPy alone for small inputs, which never load numba, and from sample
orders for large ones; scores are equal up to the last few bits.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optirank._util.numbers import as_dense

if TYPE_CHECKING:
    from optirank.ranks.orders import SampleOrders

TIES: dict[str, tuple[float, float]] = {
    "average": (0.5, 0.5),
    "min": (0.0, 0.0),
    "max": (1.0, 1.0),
}
"""For each way to rank ties: ``t``, what a tie counts for, and ``offset``, taken off
the ranks.
"""


def check_ties(ties: str) -> tuple[float, float]:
    """Return ``(t, offset)`` for the option ``ties``, or say which options
    there are.
    """
    if isinstance(ties, str) and ties in TIES:
        return TIES[ties]
    known = ", ".join(repr(name) for name in TIES)
    raise ValueError(f"ties={ties!r} is not a way to rank ties: use one of {known}")


def check_finite(values: NDArray) -> None:
    """Refuse values that are NaN or infinite: they have no rank."""
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(
            "X has NaN or infinite values, which have no rank "
            f"({np.count_nonzero(~np.isfinite(values))} in the genes needed): impute "
            "them or leave these samples out"
        )


def weighted_ranks(
    X: Any,
    weights: ArrayLike,
    *,
    ties: str = "average",
    scale: bool = True,
    genes: NDArray | None = None,
) -> NDArray[np.float64]:
    """Ranks relative to reference weights: ``C gamma - offset``, gamma being any
    weights >= 0.

    Parameters
    ----------
    X : samples x genes, dense or scipy sparse, of any real dtype and layout. Values are
        compared as they are, so large integers lose nothing. The genes that are read
        must be finite.
    weights : gamma, one per gene; not all are zero. A set is a mask.
    ties : ``"average"``, ``"min"`` or ``"max"``.
    scale : divide by the sum of the weights.
    genes : the positions of the genes to rank, in any order; None means all.

    Returns
    -------
    array of samples x genes asked for.
    """
    X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    t, offset = check_ties(ties)
    weights = np.asarray(weights, dtype=np.float64)
    among = np.flatnonzero(weights)
    weights = weights[among]
    asked = slice(None) if genes is None else genes
    n_asked = X.shape[1] if genes is None else len(genes)
    ranks = np.empty((X.shape[0], n_asked))
    step = max(1, _BLOCK // max(ranks.shape[1], among.size))
    for rows in (slice(at, at + step) for at in range(0, X.shape[0], step)):
        values = _dense(X[rows][:, asked])
        reference = _dense(X[rows][:, among])
        for rank, value, known in zip(ranks[rows], values, reference, strict=True):
            order = known.argsort()
            # the sum of the weights before each place
            sums = np.concatenate([[0.0], weights[order].cumsum()])
            known = known[order]
            # sorted values make the searches two to three times faster, with the sort
            order = value.argsort()
            keys = value[order]
            below = sums[known.searchsorted(keys, "left")]
            up_to = sums[known.searchsorted(keys, "right")]
            rank[order] = (1.0 - t) * below + t * up_to
    ranks -= offset
    if scale:
        ranks /= weights.sum()
    return ranks


def _dense(X: Any) -> NDArray:
    """Finite real numbers in rows, those of other types as float64 where that can
    be done.
    """
    values = np.ascontiguousarray(X.toarray() if hasattr(X, "tocsr") else X)
    values = values if values.dtype.kind in "biuf" else values.astype(np.float64)
    check_finite(values)
    return values


# Samples x rows: what NumPy scores in the time that numba loads in
_COMPILE_FROM = 50_000
# Values of the needed genes ranked together: 8 MB, small beside any data set
_BLOCK = 1 << 20


def score_rows(
    X: Any,
    coef: NDArray,
    gamma: NDArray,
    intercept: NDArray,
    ties: str,
    columns: NDArray | None = None,
    compiled: bool | None = None,
) -> NDArray:
    """Scores (n, rows) of the samples (rows) of X by the rows of a model over q genes.

    Parameters
    ----------
    X : array, or CSR or CSC matrix.
    coef, gamma : weights and reference weights (rows, q), which may be fractional. A
        row without reference weights scores its intercept.
    intercept : in units of ranks divided by the sum of the reference weights.
    columns : the columns of X that hold the q genes; None when X has these alone.
    compiled : whether to use the compiled loops; None where there are samples enough.
    """
    # The order in memory decides the last bit of sums
    coef = np.ascontiguousarray(coef)
    gamma = np.ascontiguousarray(gamma)
    sizes = gamma.sum(axis=1)
    sizes = np.where(sizes > 0, sizes, 1.0)
    # The offset of ranks is the same for all samples
    _, offset = check_ties(ties)
    base = np.asarray(intercept, dtype=float) - offset * coef.sum(axis=1) / sizes
    rows_of: dict[bytes, list[int]] = {}  # each distinct reference set's
    for k, weights in enumerate(gamma):
        if weights.any() and coef[k].any():
            rows_of.setdefault(weights.tobytes(), []).append(k)

    needed = np.arange(X.shape[1]) if columns is None else columns
    # Columns of such a matrix are cheap to cut, rows are not
    if getattr(X, "format", None) == "csc":
        X = X[:, needed].tocsr()
        needed = np.arange(len(needed))
    if compiled is None:
        compiled = worth_compiling(X.shape[0], len(base))
    products = np.zeros((X.shape[0], len(base)))
    step = max(1, _BLOCK // max(1, len(needed)))
    for some in (slice(at, at + step) for at in range(0, X.shape[0], step)):
        block = needed_values(X, some, needed)
        orders = _orders(block) if compiled else None
        for rows in rows_of.values():
            products[some, rows] = _products(
                block, orders, gamma[rows[0]], coef[rows], ties
            )
    return products / sizes + base


def _products(
    X: Any, orders: SampleOrders | None, gamma: NDArray, coef: NDArray, ties: str
) -> NDArray:
    """``coef . C gamma`` of each sample (row) of X, with NumPy alone or from
    their orders.
    """
    _, offset = check_ties(ties)
    genes = np.flatnonzero(coef.any(axis=0))
    if orders is None:
        ranks = weighted_ranks(X, gamma, ties=ties, scale=False, genes=genes)
        # not BLAS, which adds up in another order for one sample than for many
        return np.einsum("ng,kg->nk", ranks + offset, coef[:, genes])
    some = genes if orders.writes_columns else None
    weights = coef if some is None else coef[:, genes]
    ranks = orders.ranks(gamma, ties, np.float64, genes=some)
    return ranks.dot(weights.T) + offset * coef.sum(axis=1)


def _orders(X: Any) -> SampleOrders:
    """The orders of the samples of a block; numba loads here."""
    from scipy import sparse

    from optirank.ranks.orders import order_samples

    # From a quarter of non-zeros on, sorting the zeros too is faster
    if not sparse.issparse(X) and np.count_nonzero(X) < 0.25 * X.size:
        X = sparse.csr_array(X)
    return order_samples(X)


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
        return weighted_ranks(X, np.ones(len(columns)))
    from optirank.ranks.orders import doubled_ranks

    return doubled_ranks(as_dense(X)) / 2 / len(columns)


def worth_compiling(n_samples: int, n_rows: int) -> bool:
    """Whether so much is to be scored that loading numba pays, and it is there."""
    return (
        n_samples * n_rows >= _COMPILE_FROM
        and importlib.util.find_spec("numba") is not None
    )


def by_class(scores: NDArray) -> NDArray:
    """Scores with one column per class: ``-z, z`` for the one score z of two
    classes.
    """
    single_row = scores.ndim == 1 or scores.shape[1] == 1
    return np.column_stack([-scores, scores]) if single_row else scores


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
        z = slope * by_class(scores[rows])
        logs = z if offset == -np.inf else -np.logaddexp(0.0, -(z + offset))
        top = logs.max(axis=1, keepdims=True, initial=-np.inf)
        each = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
        total = each.sum(axis=1, keepdims=True)
        equal = np.full_like(each, 1.0 / n_classes)
        out[rows] = np.divide(each, total, out=equal, where=total > 0)
    return out


def needed_values(X: Any, rows: slice, columns: NDArray) -> Any:
    """The needed columns of some samples, all of them finite."""
    block = X[rows]
    if len(columns) < X.shape[1] or (columns != np.arange(len(columns))).any():
        block = block[:, columns]
    check_finite(block.data if hasattr(block, "tocsr") else block)
    return block
