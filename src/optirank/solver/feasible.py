"""Where the reference weights may lie: the capped simplex, over all genes or over candidates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from optirank._compiled import solver_loops

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def project_capped_simplex(x: ArrayLike, s: float) -> NDArray[np.float64]:
    """The point of ``{z : 0 <= z <= 1, sum z = s}`` nearest to ``x``.

    It is ``z = clip(x - shift, 0, 1)`` for the ``shift`` at which ``z`` sums to ``s``.

    Parameters
    ----------
    x : array of d finite numbers.
    s : the sum asked for, between 0 and d.
    """
    x = np.array(x, dtype=np.float64, order="C")
    if x.ndim != 1:
        raise ValueError(f"x has {x.ndim} dimensions: the projection takes a vector")
    d = x.size
    if not 0 <= s <= d:
        raise ValueError(f"s={s} cannot be the sum of {d} weights in [0, 1]: use 0 <= s <= {d}")
    if not np.isfinite(x).all():
        raise ValueError(f"x has {np.count_nonzero(~np.isfinite(x))} entries that are not finite")
    if s == 0 or s == d:
        return np.full(d, 0.0 if s == 0 else 1.0)
    solver_loops.project_capped_simplex(x, float(s))
    return x


@dataclass(frozen=True)
class CappedSimplex:
    """``{0 <= gamma <= 1, sum gamma = s}``, with gamma zero outside the candidates.

    ``candidates`` is a mask of the genes that may be in the reference; None means all genes. The
    vertices are the reference sets of s candidates.
    """

    s: int
    candidates: NDArray | None = None

    @cached_property
    def _where(self) -> NDArray | slice:
        """What picks the candidates from a vector of all genes."""
        return slice(None) if self.candidates is None else np.flatnonzero(self.candidates)

    def _spread(self, part: NDArray, n_genes: int) -> NDArray:
        """A vector of all genes: ``part`` on the candidates, zero for the others."""
        if self.candidates is None:
            return part
        full = np.zeros(n_genes)
        full[self._where] = part
        return full

    def prox(self, x: NDArray, step: float = 1.0) -> NDArray:
        """The nearest point of the set, whatever the step."""
        return self._spread(project_capped_simplex(x[self._where], self.s), len(x))

    def parameters(self) -> tuple[float, float, float, NDArray]:
        """What the compiled steps are told: no penalty, the sum, the candidates if any."""
        where = np.empty(0, np.int64) if self.candidates is None else self._where
        return 0.0, 0.0, float(self.s), where

    def free_part(self, direction: NDArray) -> NDArray:
        """What the constraint on the sum lets through of a direction: its part of mean zero."""
        part = direction[self._where]
        return self._spread(part - part.mean(), len(direction))

    def only_point(self, n_genes: int) -> NDArray | None:
        """The one set there is when every candidate must be in it, else None."""
        candidates = np.ones(n_genes, bool) if self.candidates is None else self.candidates
        return candidates.astype(float) if candidates.sum() == self.s else None

    def centre(self, n_genes: int) -> NDArray:
        """Equal weights on all candidates."""
        part = np.ones(n_genes)[self._where]
        return self._spread(part * (self.s / len(part)), n_genes)

    def tilted(self, criterion: NDArray) -> tuple[NDArray, NDArray]:
        """Weights that grow, and weights that fall, with the candidates' order by a criterion.

        ``2 s / m`` times the normalised order of the m candidates, projected.
        """
        values = criterion[self._where]
        order = np.empty(len(values))
        order[np.argsort(values, kind="stable")] = np.arange(len(values)) / max(1, len(values) - 1)
        rising, falling = (
            project_capped_simplex(2.0 * self.s / len(order) * tilt, self.s)
            for tilt in (order, 1.0 - order)
        )
        return self._spread(rising, len(criterion)), self._spread(falling, len(criterion))

    def vertex(self, gamma: NDArray) -> NDArray:
        """The set of the s largest entries, the first of equal ones: ones there, else zeros."""
        part = gamma[self._where]
        rounded = np.zeros(len(part))
        rounded[np.argsort(-part, kind="stable")[: self.s]] = 1.0
        return self._spread(rounded, len(gamma))

    def exchangeable(
        self, gamma: NDArray, gradient: NDArray, number: int
    ) -> tuple[NDArray, NDArray]:
        """The genes of a set that most want out, and the candidates outside that most want in."""
        inside = np.flatnonzero(gamma > 0.5)
        outside = gamma <= 0.5
        if self.candidates is not None:
            outside &= self.candidates
        outside = np.flatnonzero(outside)
        inside = inside[np.argsort(-gradient[inside], kind="stable")[:number]]
        outside = outside[np.argsort(gradient[outside], kind="stable")[:number]]
        return inside, outside
