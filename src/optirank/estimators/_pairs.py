"""How often one gene is above another, for all pairs of genes at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from numpy.typing import NDArray


def count_pairs(groups: NDArray, codes: NDArray, n_codes: int) -> NDArray:
    """Number of samples with ``x_a > x_b``, for all (a, b), by the samples' codes.

    ``groups`` (n, g) are unsigned integers in the order of the values of each sample, as
    ``SampleOrders.groups_of`` gives them. The result has shape (n_codes, g, g).
    """
    from optirank._compiled.pair_loops import count_above

    counts = np.zeros((n_codes, groups.shape[1], groups.shape[1]), np.int32)
    for code in range(n_codes):
        count_above(np.ascontiguousarray(groups[codes == code]), counts[code])
    return counts


def pair_counts(values: NDArray, positive: NDArray) -> NDArray:
    """Number of samples with ``x_a > x_b``, for all (a, b): of the positives and of the rest.

    ``values`` has shape (n, g), the result (2, g, g).
    """
    from optirank.ranks.orders import order_samples

    return count_pairs(order_samples(values).groups, (~positive).astype(int), 2)


def dense_columns(X, genes: NDArray) -> NDArray:
    """Some columns as a dense array."""
    chosen = X[:, genes]
    return chosen.toarray() if sparse.issparse(chosen) else np.asarray(chosen)
