"""Ranks of new samples relative to a reference set or to reference weights, with NumPy
alone.

For each sample the values of the reference genes are sorted, and each gene asked for is
found among them by binary search. Only these genes are read.

Sample ``x`` has the comparison matrix ``C_jk = 1[x_j > x_k] + t * 1[x_j = x_k]``.
Relative to reference weights ``gamma`` its ranks are ``C gamma - offset``; its co-ranks
for weights ``w`` are ``C^T w``. This room computes them without ever forming ``C``; the
tests form it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import scipy.sparse as sp

    Matrix = ArrayLike | sp.sparray | sp.spmatrix

# Values of a dense matrix gathered at a time: 8 MB, small beside any data set
_GATHERED = 1 << 20
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
        bad = np.count_nonzero(~np.isfinite(values))
        raise ValueError(
            f"X has NaN or infinite values, which have no rank ({bad} in the genes "
            "needed): impute them or leave these samples out"
        )


def relative_ranks(X: Any, reference: ArrayLike, **options: Any) -> NDArray[np.float64]:
    """Ranks relative to a reference set: ``C gamma - offset``, with gamma its 0/1
    indicator.

    ``reference`` is a boolean mask or distinct positions; the rest is as in
    `weighted_ranks`.
    """
    n_genes = np.shape(X)[-1]
    among = positions(reference, n_genes, "reference")
    if among.size == 0:
        raise ValueError("reference is empty: ranks need at least one reference gene")
    weights = np.bincount(among, minlength=n_genes)
    return weighted_ranks(X, weights, **options)


def weighted_ranks(
    X: Any,
    weights: ArrayLike,
    *,
    ties: str = "average",
    scale: bool = True,
    genes: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Ranks relative to reference weights: ``C gamma - offset``, gamma being any
    weights >= 0.

    Parameters
    ----------
    X : samples x genes, dense or scipy sparse, of any real dtype and layout. Values are
        compared as they are, so large integers lose nothing. The genes that are read
        must be finite.
    weights : gamma, one per gene.
    ties : ``"average"``, ``"min"`` or ``"max"``.
    scale : divide by the sum of the weights.
    genes : the genes to rank, as positions (in any order) or a boolean mask; None means
        all.

    Returns
    -------
    array of samples x genes asked for.
    """
    X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"X has {X.ndim} dimensions: give samples x genes (one sample: 1 x genes)"
        )
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != X.shape[1:]:
        raise ValueError(f"weights of shape {weights.shape}: X has {X.shape[1]} genes")
    t, offset = check_ties(ties)
    among = np.flatnonzero(weights)
    if among.size == 0:
        raise ValueError("all weights are zero: ranks need at least one reference gene")
    weights = weights[among]
    asked = slice(None) if genes is None else positions(genes, X.shape[1], "genes")
    n_asked = X.shape[1] if isinstance(asked, slice) else len(asked)
    ranks = np.empty((X.shape[0], n_asked))
    step = max(1, _GATHERED // max(ranks.shape[1], among.size))
    for rows in (slice(at, at + step) for at in range(0, X.shape[0], step)):
        values = _dense(X[rows][:, asked])
        reference = _dense(X[rows][:, among])
        for rank, value, known in zip(ranks[rows], values, reference, strict=True):
            rank[:] = _sum_below(value, known, weights, t)
    ranks -= offset
    if scale:
        ranks /= weights.sum()
    return ranks


def positions(selection: ArrayLike, d: int, what: str) -> NDArray[np.intp]:
    """Positions of the genes selected by a boolean mask or by positions, out of ``d``.

    ``what`` is the argument's name in the error messages. Those of a ``"reference"``
    must be distinct.
    """
    chosen = np.asarray(selection)
    if chosen.ndim != 1:
        raise ValueError(
            f"{what} has {chosen.ndim} dimensions: give a one-dimensional mask or list "
            "of positions"
        )
    if chosen.dtype == bool:
        if chosen.size != d:
            raise ValueError(
                f"{what} is a mask of {chosen.size} genes but X has {d}: give one "
                "entry per gene"
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
            f"{what} has {wrong.size} positions out of range, such as {wrong[0]}: X "
            f"has {d} genes, so positions run from 0 to {d - 1}"
        )
    if what == "reference":
        values, counts = np.unique(chosen, return_counts=True)
        if values.size < chosen.size:
            raise ValueError(
                f"{what} names {np.count_nonzero(counts > 1)} positions more than "
                f"once, such as {values[counts > 1][0]}: give each once, or a boolean "
                "mask"
            )
    return chosen.astype(np.intp)


def _sum_below(
    values: NDArray, known: NDArray, weights: NDArray, t: float
) -> NDArray[np.float64]:
    """Weights of the values ``known`` below each of ``values``, and ``t`` times those
    at it.

    Sorted values make the binary searches two to three times faster, sorting them
    included.
    """
    order = known.argsort()
    # the sum of the weights before each place
    sums = np.concatenate([[0.0], weights[order].cumsum()])
    known = known[order]
    order = values.argsort()
    keys = values[order]
    sums_below = np.zeros(values.size)
    if t < 1.0:
        sums_below += (1.0 - t) * sums[known.searchsorted(keys, "left")]
    if t > 0.0:
        sums_below += t * sums[known.searchsorted(keys, "right")]
    out = np.empty(values.size)
    out[order] = sums_below
    return out


def _dense(X: Any) -> NDArray:
    """Finite real numbers in rows, those of other types as float64 where that can
    be done.
    """
    values = np.ascontiguousarray(X.toarray() if hasattr(X, "tocsr") else X)
    values = values if values.dtype.kind in "biuf" else values.astype(np.float64)
    check_finite(values)
    return values
