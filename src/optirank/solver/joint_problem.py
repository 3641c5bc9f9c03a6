"""The joint problem: several classes, one reference set.

    minimise  sum_i v_i softmaxloss(c_i, Z_i) + l1 sum_j |W_j|_2 + l2 |W|_2^2
    over      W in R^(d x K), b in R^K, gamma in {0, 1}^d with sum gamma = s,
    with      Z_i = W^T (C_i gamma - offset) / s + b,

W_j being the weights of gene j for all classes. Rows of W and b sum to zero at a minimum.

Two classes are the binary problem: with ``W = [-w/2, w/2]`` the scores' difference is the binary
score, ``|W_j| = |w_j| / sqrt(2)`` and ``|W|^2 = |w|^2 / 2``, so that the joint problem with
(l1, l2) is the binary one with (l1 / sqrt(2), l2 / 2).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from optirank._compiled import joint_loops
from optirank.solver.joint_matrices import rank_scores
from optirank.solver.problem import ReferenceProblem, Solution

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.ranks.orders import SampleOrders


@dataclass(frozen=True)
class JointProblem(ReferenceProblem):
    """One problem of several classes: orders, codes of the classes, weights, penalties, size."""

    orders: SampleOrders
    codes: NDArray  # (n,) integers from 0 to n_classes - 1
    n_classes: int
    v: NDArray  # (n,) weights of the samples, summing to 1
    n_reference: int
    l1: float = 0.0
    l2: float = 1e-3
    ties: str = "average"
    candidates: NDArray | None = None  # (d,) mask of the genes that may be in the reference

    def scores(self, W: NDArray, b: NDArray, gamma: NDArray) -> NDArray:
        """``Z`` (n x K) in float64."""
        return rank_scores(self.orders, W, gamma, self.ties) / self.n_reference + b

    def loss(self, z: NDArray) -> float:
        """``sum_i v_i softmaxloss(c_i, z_i)``."""
        return joint_loops.softmax_loss(z, np.zeros(self.n_classes), self.codes, self.v)

    def penalty(self, W: NDArray) -> float:
        """``l1 sum_j |W_j|_2 + l2 |W|_2^2``."""
        squares = np.einsum("jk,jk->j", W, W)
        return float(self.l1 * np.sqrt(squares).sum() + self.l2 * squares.sum())

    def objective(self, W: NDArray, b: NDArray, gamma: NDArray) -> float:
        """Loss plus penalties (without the push penalty)."""
        return self.loss(self.scores(W, b, gamma)) + self.penalty(W)


@dataclass
class JointSolution:
    """What the joint solver returns."""

    W: NDArray  # (d, K)
    b: NDArray  # (K,)
    gamma: NDArray
    objective: float  # loss plus penalties
    n_iter: int = 0
    converged: bool = True
    path: list[dict] = field(default_factory=list)  # what happened at each stage

    def by_class(self) -> list[Solution]:
        """One row per class, all with the same reference weights and objective."""
        return [
            Solution(
                w, float(b), self.gamma, self.objective, self.n_iter, self.converged, self.path
            )
            for w, b in zip(np.ascontiguousarray(self.W.T), self.b, strict=True)
        ]

    def at_unit_spread(self, problem: JointProblem) -> JointSolution:
        """The same with scores of standard deviation 1 over the training samples and classes."""
        spread = float(problem.scores(self.W, np.zeros(len(self.b)), self.gamma).std())
        spread = spread if spread > 0 else 1.0
        return replace(self, W=self.W / spread, b=self.b / spread)


def joint_weights(
    codes: NDArray, n_classes: int, weights: NDArray | None = None, balanced: bool = True
) -> NDArray:
    """``v_i = q_i / (K sum of q over i's class)`` when balanced, else ``q_i / sum q``."""
    q = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=float)
    if not balanced:
        return q / q.sum()
    return q / (n_classes * np.bincount(codes, weights=q, minlength=n_classes)[codes])
