"""Ranks and co-ranks by their definition, the comparison matrix of a sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optirank.ranks.scoring import check_ties


def comparison_matrix(x: ArrayLike, ties: str = "average") -> NDArray[np.float64]:
    """Compare all genes of one sample: 1 where j is above k, t where they
    tie, else 0.
    """
    t, _ = check_ties(ties)
    x = np.asarray(x)
    return (x[:, None] > x[None, :]) + t * (x[:, None] == x[None, :])


def ranks_by_definition(
    X: ArrayLike, gamma: ArrayLike, ties: str = "average"
) -> NDArray[np.float64]:
    """Ranks relative to the weights ``gamma``: ``C gamma - offset`` for each row
    of ``X``.
    """
    _, offset = check_ties(ties)
    gamma = np.asarray(gamma, dtype=np.float64)
    return np.array(
        [comparison_matrix(x, ties) @ gamma - offset for x in np.asarray(X)]
    )


def coranks_by_definition(
    X: ArrayLike, w: ArrayLike, ties: str = "average"
) -> NDArray[np.float64]:
    """Co-ranks for the weights ``w``: ``C^T w`` for each row of ``X``."""
    w = np.asarray(w, dtype=np.float64)
    return np.array([w @ comparison_matrix(x, ties) for x in np.asarray(X)])
