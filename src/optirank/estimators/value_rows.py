"""Scores of a linear classifier on values, in the form that prediction has for those on ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.ranks.scoring import needed_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK = 1 << 22  # values looked at together


def as_seen(X: Any, target_sum: float | None) -> Any:
    """The values that weights are multiplied with: X, or ``log(1 + target_sum x / sum(x))``."""
    if target_sum is None:
        return X
    from optirank.preprocessing import LogCPM

    return LogCPM(target_sum).transform(X)


@dataclass(frozen=True)
class ValueRows:
    """Rows of a linear model on values: ``coef_k . x + base_k`` over q genes.

    With ``target_sum``, x are logarithms of values relative to the total of the q genes.
    """

    coef: NDArray  # (rows, q)
    base: NDArray  # (rows,)
    target_sum: float | None

    def scores(
        self, X: Any, columns: NDArray | None = None, compiled: bool | None = None
    ) -> NDArray:
        """Scores (n, rows) of the samples (rows) of X; see :class:`ScoreRows`.

        ``compiled`` changes nothing: it is one product.
        """
        if columns is None:
            columns = np.arange(X.shape[1])
        X = X.tocsr() if hasattr(X, "tocsr") else X
        found = np.empty((X.shape[0], len(self.base)))
        step = max(1, _BLOCK // max(1, len(columns)))
        for start in range(0, X.shape[0], step):
            block = slice(start, start + step)
            values = needed_values(X, block, columns)
            if self.target_sum is not None and values.shape[0] and values.min() < 0:
                raise ValueError(
                    f"a value is negative ({values.min():g}), and the model was trained on counts: "
                    "give it counts (layer=, --layer), or train a model on ranks"
                )
            values = as_seen(values, self.target_sum)
            found[block] = values @ self.coef.T
        return found + self.base
