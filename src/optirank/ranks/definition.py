"""What ranks and co-ranks are, by the d x d comparison matrix.

Sample ``x`` has the comparison matrix ``C_jk = 1[x_j > x_k] + t * 1[x_j = x_k]``. Relative to
reference weights ``gamma`` its ranks are ``C gamma - offset``; its co-ranks for weights ``w`` are
``C^T w``. This room computes them without ever forming ``C``; the tests form it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
