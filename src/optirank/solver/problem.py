"""The optirank problem of one binary classification, and what a solution of it is.

    minimise  sum_i v_i logloss(y_i, z_i) + l1 |w|_1 + l2 |w|_2^2
    over      w in R^d, b in R, gamma in {0, 1}^d with sum gamma = s,
    with      z_i = w . (C_i gamma - offset) / s + b.

Where candidates are given, gamma is zero outside them; the weights stay free.

The relaxed problem lets gamma be fractional, in the capped simplex {0 <= gamma <= 1,
sum = s}, and adds ``lambda_p * sum gamma (1 - gamma)``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.solver.constants import RIDGE_FLOOR

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.blocks import CappedSimplex, ElasticNet

PenaltyPair = tuple[float, float]  # l1, l2


@dataclass(frozen=True)
class Problem:
    """One binary problem: data as orders, labels, weights, penalties, size of the
    reference.
    """

    orders: Any  # SampleOrders of ranks.orders, or orders that lie elsewhere
    y: NDArray  # (n,) of 0.0 and 1.0
    v: NDArray  # (n,) weights of the samples, summing to 1
    n_reference: int
    l1: float = 0.0
    l2: float = 1e-3
    ties: str = "average"
    candidates: NDArray | None = None  # mask of who may be in the reference; None: all

    def __post_init__(self) -> None:
        if self.l1 == 0 and self.l2 == 0:
            object.__setattr__(self, "l2", RIDGE_FLOOR)
        if self.candidates is not None and self.candidates.all():
            object.__setattr__(self, "candidates", None)

    @property
    def n_genes(self) -> int:
        """Number of genes, d."""
        return self.orders.n_genes

    @property
    def penalty(self) -> ElasticNet:
        """``l1 |w|_1 + l2 |w|_2^2``."""
        from optirank.solver.blocks import ElasticNet  # loads numba

        return ElasticNet(self.l1, self.l2)

    @property
    def feasible(self) -> CappedSimplex:
        """Where gamma may lie."""
        from optirank.solver.blocks import CappedSimplex  # loads numba

        return CappedSimplex(self.n_reference, self.candidates)

    def scores(self, w: NDArray, b: float, gamma: NDArray) -> NDArray:
        """``z``, in float64."""
        return self.orders.scores(w, gamma, self.ties) / self.n_reference + b

    def loss(self, z: NDArray) -> float:
        """``sum_i v_i logloss(y_i, z_i)`` in plain NumPy; the fast twin is in
        ``blocks``.
        """
        return float(self.v @ (np.logaddexp(0.0, z) - self.y * z))

    def slopes(self, z: NDArray) -> NDArray:
        """``v_i (sigmoid(z_i) - y_i)``, the derivative of the loss in each score."""
        return self.v * (sigmoid(z) - self.y)

    def objective(self, w: NDArray, b: float, gamma: NDArray) -> float:
        """Loss plus elastic net (without the push penalty)."""
        return self.loss(self.scores(w, b, gamma)) + self.penalty.value(w)


@dataclass
class Solution:
    """What a solver returns."""

    w: NDArray
    b: float
    gamma: NDArray
    objective: float  # loss plus elastic net
    n_iter: int = 0
    converged: bool = True
    path: list[dict] = field(default_factory=list)  # what happened at each stage
    # Of a search: CPU time, its share of its chain, and scores by view
    seconds: float = 0.0  # CPU time in a search, its share of its chain
    scores: dict[str, NDArray] = field(default_factory=dict)  # by view of a search

    @property
    def genes(self) -> NDArray:
        """Mask of the genes the model needs; ``gamma`` is None where values are used
        instead of ranks.
        """
        return self.w != 0 if self.gamma is None else (self.w != 0) | (self.gamma > 0)


def resolve_n_reference(
    n_reference: float, n_genes: int, candidates: NDArray | None = None
) -> int:
    """A count of genes from a fraction (a float) or a count (an int).

    It is out of the candidates where a mask of them is given.
    """
    if isinstance(n_reference, bool) or not isinstance(n_reference, Real):
        raise ValueError(
            f"n_reference={n_reference!r}: use a fraction in (0, 1] or a count"
        )
    number = n_genes if candidates is None else int(candidates.sum())
    if not isinstance(n_reference, Integral):
        if not 0 < n_reference <= 1:
            raise ValueError(
                f"n_reference={n_reference} is no fraction: use one in (0, 1], or an "
                "int"
            )
        return max(1, int(np.floor(n_reference * number + 1e-9)))
    if n_reference < 1:
        raise ValueError(
            f"n_reference={n_reference} leaves no reference gene: use a fraction in "
            "(0, 1] or a count of at least 1"
        )
    if n_reference > number:
        them = "genes of X" if candidates is None else "candidate genes"
        raise ValueError(
            f"n_reference={n_reference} reference genes are more than the {number} "
            f"{them}: use fewer, or a fraction such as 0.2"
        )
    return int(n_reference)


def sample_weights(
    y: NDArray, weights: NDArray | None = None, balanced: bool = True
) -> NDArray:
    """``v_i = q_i / (2 sum of q over i's class)`` when balanced, else ``q_i /
    sum q``.
    """
    q = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    if not balanced:
        return q / q.sum()
    positive = y == 1
    return q / (2.0 * np.where(positive, q[positive].sum(), q[~positive].sum()))


def sigmoid(z: NDArray) -> NDArray:
    """``1 / (1 + exp(-z))`` without overflow."""
    e = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, e) / (1.0 + e)
