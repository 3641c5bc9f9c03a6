"""What ranks and co-ranks are, by the d x d comparison matrix: for readers, and for the tests.

Sample ``x`` has the comparison matrix ``C_jk = 1[x_j > x_k] + t * 1[x_j = x_k]``. Relative to
reference weights ``gamma`` its ranks are ``C gamma - offset``; its co-ranks for weights ``w`` are
``C^T w``. Everything else in this room computes the same without ever forming ``C``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

TIES: dict[str, tuple[float, float]] = {
    "average": (0.5, 0.5),
    "min": (0.0, 0.0),
    "max": (1.0, 1.0),
}
"""For each way to rank ties: ``t``, what a tie counts for, and ``offset``, taken off the ranks."""


def check_ties(ties: str) -> tuple[float, float]:
    """Return ``(t, offset)`` for the option ``ties``, or say which options there are."""
    if isinstance(ties, str) and ties in TIES:
        return TIES[ties]
    known = ", ".join(repr(name) for name in TIES)
    raise ValueError(f"ties={ties!r} is not a way to rank ties: use one of {known}")


def check_finite(values: NDArray) -> None:
    """Refuse values that are NaN or infinite: they have no rank."""
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        bad = np.count_nonzero(~np.isfinite(values))
        raise ValueError(
            f"X has NaN or infinite values, which have no rank ({bad} in the genes needed): "
            "impute them or leave these samples out"
        )


def comparison_matrix(x: ArrayLike, ties: str = "average") -> NDArray[np.float64]:
    """Compare all genes of one sample: 1 where j is above k, t where they tie, else 0."""
    t, _ = check_ties(ties)
    x = np.asarray(x)
    return (x[:, None] > x[None, :]) + t * (x[:, None] == x[None, :])


def ranks_by_definition(
    X: ArrayLike, gamma: ArrayLike, ties: str = "average"
) -> NDArray[np.float64]:
    """Ranks relative to the weights ``gamma``: ``C gamma - offset`` for each row of ``X``."""
    _, offset = check_ties(ties)
    gamma = np.asarray(gamma, dtype=np.float64)
    return np.array([comparison_matrix(x, ties) @ gamma - offset for x in np.asarray(X)])


def coranks_by_definition(X: ArrayLike, w: ArrayLike, ties: str = "average") -> NDArray[np.float64]:
    """Co-ranks for the weights ``w``: ``C^T w`` for each row of ``X``."""
    w = np.asarray(w, dtype=np.float64)
    return np.array([w @ comparison_matrix(x, ties) for x in np.asarray(X)])
