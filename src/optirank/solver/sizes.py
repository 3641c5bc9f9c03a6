"""Sizes of a reference set: fractions and counts, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def resolve_n_reference(n_reference: float, n_genes: int) -> int:
    """A count of genes from a fraction (a float) or a count (an int)."""
    if isinstance(n_reference, bool) or not is_number(n_reference):
        raise ValueError(f"n_reference={n_reference!r}: use a fraction in (0, 1] or a count")
    if isinstance(n_reference, int | np.integer):
        if n_reference < 1:
            raise ValueError(
                f"n_reference={n_reference} leaves no reference gene: use a fraction in (0, 1] or "
                "a count of at least 1"
            )
        if n_reference > n_genes:
            raise ValueError(
                f"n_reference={n_reference} reference genes are more than the {n_genes} genes of "
                "X: use fewer, or a fraction such as 0.2"
            )
        return int(n_reference)
    if not 0 < n_reference <= 1:
        raise ValueError(
            f"n_reference={n_reference} is no fraction: use one in (0, 1], or an int for a count"
        )
    return max(1, int(np.floor(n_reference * n_genes + 1e-9)))


def resolve_n_candidates(
    n_reference: float, n_genes: int, candidates: NDArray | None = None
) -> int:
    """As :func:`resolve_n_reference`, out of the candidates where a mask of them is given."""
    if candidates is None:
        return resolve_n_reference(n_reference, n_genes)
    number = int(candidates.sum())
    if isinstance(n_reference, int | np.integer) and n_reference > number:
        raise ValueError(
            f"n_reference={n_reference} reference genes are more than the {number} candidate genes "
            "of the reference: use fewer reference genes, or more candidates"
        )
    return resolve_n_reference(n_reference, number)


def is_number(value: object) -> bool:
    """Whether a value is a real number of Python or NumPy."""
    return isinstance(value, int | float | np.integer | np.floating)
