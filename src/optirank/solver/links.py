"""From decision scores to probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optirank.solver.problem import sigmoid

if TYPE_CHECKING:
    from numpy.typing import NDArray


def probabilities(scores: NDArray) -> NDArray:
    """Logistic probabilities of decision scores, one column per class.

    ``scores`` has one column per class, or one dimension for two classes. With more than two
    classes each row is divided by its sum; a row of zeros becomes equal shares.
    """
    each = sigmoid(scores)
    if each.ndim == 1:
        return np.column_stack([1.0 - each, each])
    total = each.sum(axis=1, keepdims=True)
    equal = np.full_like(each, 1.0 / each.shape[1])
    return np.divide(each, total, out=equal, where=total > 0)
