"""Ranks of new samples relative to a reference set or to reference weights, with NumPy alone.

For each sample the values of the reference genes are sorted, and each gene asked for is found among
them by binary search. Only these genes are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optirank.ranks.definition import check_ties

if TYPE_CHECKING:
    from collections.abc import Iterator

    import scipy.sparse as sp

_BLOCK = 2**20  # values of a dense matrix gathered at a time


def relative_ranks(
    X: ArrayLike | sp.sparray | sp.spmatrix,
    reference: ArrayLike,
    *,
    ties: str = "average",
    scale: bool = True,
    genes: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Ranks relative to a reference set: ``C gamma - offset``, with gamma its 0/1 indicator.

    Parameters
    ----------
    X : samples x genes, dense or scipy sparse, of any real dtype and layout. Values are compared as
        they are, so large integers lose nothing. The genes that are read must be finite.
    reference : the reference genes, as a boolean mask or as distinct positions.
    ties : ``"average"``, ``"min"`` or ``"max"``.
    scale : divide by the size of the reference set.
    genes : the genes to rank, as positions (in any order) or a boolean mask; None means all.

    Returns
    -------
    array of samples x genes asked for. On sparse data the cost beyond filling it follows the
    non-zeros: the zeros of a sample share one rank.
    """
    X = _matrix(X)
    among = positions(reference, X.shape[1], "reference")
    if among.size == 0:
        raise ValueError("reference is empty: ranks need at least one reference gene")
    return _ranks(X, among, None, ties, scale, genes)


def weighted_ranks(
    X: ArrayLike | sp.sparray | sp.spmatrix,
    weights: ArrayLike,
    *,
    ties: str = "average",
    scale: bool = True,
    genes: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Ranks relative to reference weights: ``C gamma - offset``, gamma being any weights >= 0.

    As :func:`relative_ranks`, with one weight per gene instead of a set; ``scale`` divides by their
    sum.
    """
    X = _matrix(X)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != X.shape[1:]:
        raise ValueError(f"weights of shape {weights.shape}: X has {X.shape[1]} genes")
    among = np.flatnonzero(weights)
    if among.size == 0:
        raise ValueError("all weights are zero: ranks need at least one reference gene")
    taken = weights[among]
    return _ranks(X, among, None if (taken == 1.0).all() else taken, ties, scale, genes)


def _ranks(
    X: Any,
    among: NDArray[np.intp],
    weights: NDArray[np.float64] | None,
    ties: str,
    scale: bool,
    genes: ArrayLike | None,
) -> NDArray[np.float64]:
    """Ranks relative to the genes ``among``, of these weights; None for weights of one."""
    t, offset = check_ties(ties)
    asked = None if genes is None else positions(genes, X.shape[1], "genes")
    ranks = np.empty((X.shape[0], X.shape[1] if asked is None else asked.size))
    if hasattr(X, "tocsr"):
        _rank_sparse(X, among, asked, weights, t, ranks)
    else:
        _rank_dense(X, among, asked, weights, t, ranks)
    ranks -= offset
    if scale:
        ranks /= among.size if weights is None else weights.sum()
    return ranks


def positions(selection: ArrayLike, d: int, what: str) -> NDArray[np.intp]:
    """Positions of the genes selected by a boolean mask or by positions, out of ``d``.

    ``what`` is the argument's name in the error messages. Those of a ``"reference"`` must be
    distinct.
    """
    chosen = np.asarray(selection)
    if chosen.ndim != 1:
        raise ValueError(
            f"{what} has {chosen.ndim} dimensions: give a one-dimensional mask or list of positions"
        )
    if chosen.dtype == bool:
        if chosen.size != d:
            raise ValueError(
                f"{what} is a mask of {chosen.size} genes but X has {d}: give one entry per gene"
            )
        return np.flatnonzero(chosen)
    if chosen.size == 0:
        return np.empty(0, dtype=np.intp)
    if chosen.dtype.kind not in "iu":
        raise ValueError(
            f"{what} has dtype {chosen.dtype}: give a boolean mask or integer positions"
        )
    wrong = chosen[(chosen < 0) | (chosen >= d)]
    if wrong.size:
        raise ValueError(
            f"{what} has {wrong.size} positions out of range, such as {wrong[0]}: X has {d} genes, "
            f"so positions run from 0 to {d - 1}"
        )
    if what == "reference":
        values, counts = np.unique(chosen, return_counts=True)
        if values.size < chosen.size:
            raise ValueError(
                f"{what} names {np.count_nonzero(counts > 1)} positions more than once, such as "
                f"{values[counts > 1][0]}: give each once, or a boolean mask"
            )
    return chosen.astype(np.intp)


def _rank_dense(
    X: NDArray[Any],
    among: NDArray[np.intp],
    asked: NDArray[np.intp] | None,
    weights: NDArray[np.float64] | None,
    t: float,
    ranks: NDArray[np.float64],
) -> None:
    step = max(1, _BLOCK // max(ranks.shape[1], among.size))
    for start in range(0, len(X), step):
        block = X[start : start + step]
        values = np.ascontiguousarray(block if asked is None else block.take(asked, axis=1))
        reference = block.take(among, axis=1)
        _check_finite(values)
        _check_finite(reference)
        if weights is None:
            reference.sort(axis=1)
        for rank, value, known in zip(ranks[start : start + step], values, reference, strict=True):
            rank[:] = _sum_below(value, *_with_sums(known, weights), t)


def _rank_sparse(
    X: sp.sparray | sp.spmatrix,
    among: NDArray[np.intp],
    asked: NDArray[np.intp] | None,
    weights: NDArray[np.float64] | None,
    t: float,
    ranks: NDArray[np.float64],
) -> None:
    """Rank the non-zeros of each sample, and the zeros as one value.

    The reference zeros are not stored: they are added to the sums of the values at or above 0.
    """
    total = among.size if weights is None else weights.sum()
    rows = zip(_rows(X, asked), _rows(X, among), strict=True)
    for rank, ((columns, values), (places, reference)) in zip(ranks, rows, strict=True):
        values = np.append(values, values.dtype.type(0))
        if weights is None:
            known, sums = np.sort(reference), None
            zeros = total - reference.size
        else:
            known, sums = _with_sums(reference, weights[places])
            zeros = total - sums[-1]
        found = _sum_below(values, known, sums, t)
        found += zeros * ((values > 0) + t * (values == 0))
        rank[:] = found[-1]
        rank[columns] = found[:-1]


def _rows(
    X: sp.sparray | sp.spmatrix, columns: NDArray[np.intp] | None
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """The stored columns and values of each row, of the columns named."""
    if X.format not in ("csr", "csc"):
        X = X.tocsr()
    X = (X if columns is None else X[:, columns]).tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    data = _real(X.data)
    _check_finite(data)
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        yield X.indices[start:stop], data[start:stop]


def _with_sums(
    reference: NDArray[Any], weights: NDArray[np.float64] | None
) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
    """The reference values sorted, with the sums of the weights before each place."""
    if weights is None:  # sorted already
        return reference, None
    order = reference.argsort()
    return reference[order], np.concatenate([[0.0], np.cumsum(weights[order])])


def _sum_below(
    values: NDArray[Any], reference: NDArray[Any], sums: NDArray[np.float64] | None, t: float
) -> NDArray[np.float64]:
    """Weights of the sorted ``reference`` below each of ``values``, and ``t`` times those at it.

    Sorted values make the binary searches two to three times faster, sorting them included.
    """
    order = values.argsort()
    keys = values[order]
    found = 0.0
    for side, share in (("left", 1.0 - t), ("right", t)):
        if share:
            place = reference.searchsorted(keys, side)
            found = found + share * (place if sums is None else sums[place])
    out = np.empty(values.size)
    out[order] = found
    return out


def _matrix(X: Any) -> Any:
    if not hasattr(X, "tocsr"):
        X = _real(np.asarray(X))
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions: give samples x genes (one sample: 1 x genes)")
    return X


def _real(values: NDArray[Any]) -> NDArray[Any]:
    """The values themselves if they are real numbers, else as float64 where that can be done."""
    return values if values.dtype.kind in "biuf" else values.astype(np.float64)


def _check_finite(values: NDArray[Any]) -> None:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        bad = np.count_nonzero(~np.isfinite(values))
        raise ValueError(
            f"X has NaN or infinite values, which have no rank ({bad} in the genes needed): "
            "impute them or leave these samples out"
        )
