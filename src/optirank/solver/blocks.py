"""One block with the other fixed: the maps R(gamma) and V(w) as centred matrices, and
the steps.

With the other block fixed the scores are linear, ``z = M x + b``, and the problem is
convex. The intercept is free, so subtracting from each column of M its weighted mean
changes nothing but the conditioning, and that by an order of magnitude. Entries are
float32; sums over genes of sparse data and over everything that decides are float64.
Algorithms see a matrix through ``mean`` (one entry per column), ``dot``,
``transpose_dot`` and ``columns``; the compiled steps take its arrays, ``stored``.

Steps are Nesterov's with restarts; the step size adapts to the curvature where the loss
stands, which for well-separated samples is far below its bound of 1/4. The loop is
compiled, and reads the matrix once per step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optirank._compiled import solver_loops
from optirank._util.matrices import product
from optirank.ranks.orders import DenseRanks, SparseRanks
from optirank.solver import constants as c
from optirank.solver.problem import Problem
from optirank.solver.terms import LogisticLoss, Proximal

_NO_VALUES = np.empty((0, 0), np.float32)
_NO_ENTRIES = (
    np.empty(0, np.int64),
    np.empty(0, np.uint16),
    np.empty(0, np.float32),
    np.empty(0),
)

_STEP_RULES = (c.GROW, c.RELAX, c.LARGEST_L, c.SLACK, c.INTERCEPT_CURVATURE)


@dataclass
class CentredMatrix:
    """``ranks - 1 mean^T``: ranks or co-ranks with columns of weighted mean zero.

    Subtracting the mean in the products is cheaper than in the matrix.
    """

    ranks: DenseRanks | SparseRanks
    mean: NDArray  # float32

    @property
    def stored(self) -> tuple:
        """The arrays of the matrix, dense and sparse ones, and its means, for
        compiled loops.
        """
        ranks = self.ranks
        if isinstance(ranks, DenseRanks):
            return (ranks.values, *_NO_ENTRIES, self.mean)
        entries = (ranks.indptr, ranks.genes, ranks.excess, ranks.constants)
        return (_NO_VALUES, *entries, self.mean)

    def dot(self, x: NDArray) -> NDArray:
        """``M x``, float32."""
        shift = product(self.mean, x.astype(np.float32))
        return (self.ranks.dot(x) - shift).astype(np.float32)

    def transpose_dot(self, a: NDArray) -> NDArray:
        """``M^T a``, float64."""
        sums = self.ranks.transpose_dot(a).astype(np.float64)
        return sums - self.mean * a.sum(dtype=np.float64)

    def columns(self, which: NDArray) -> NDArray:
        """Some columns (positions), float32; if all of a dense matrix, the means are
        subtracted in place.
        """
        taken = self.ranks.columns(which)
        taken -= self.mean[which]
        if isinstance(self.ranks, DenseRanks) and taken is self.ranks.values:
            self.mean = np.zeros_like(self.mean)
        return taken


def centre(matrix: DenseRanks | SparseRanks, v: NDArray) -> CentredMatrix:
    """Subtract from each column its mean under the weights v."""
    return CentredMatrix(matrix, matrix.transpose_dot(v).astype(np.float32))


def centred_values(X, v: NDArray) -> CentredMatrix:
    """The values themselves, dense and float32, with each column's weighted mean
    subtracted.
    """
    values = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    values = np.array(values, dtype=np.float64, order="C")
    values -= v @ values
    return not_centred(values.astype(np.float32))


def not_centred(values: NDArray) -> CentredMatrix:
    """A dense matrix of float32 as it is."""
    return CentredMatrix(DenseRanks(values), np.zeros(values.shape[1], np.float32))


class ProblemMatrices:
    """Makes R(gamma)/s and V(w)/s of a problem, centred, each in a buffer of its own.

    A matrix is valid until the next one of its kind is made.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._ranks: DenseRanks | SparseRanks | None = None
        self._coranks: DenseRanks | SparseRanks | None = None

    def ranks(self, gamma: NDArray) -> CentredMatrix:
        """``R(gamma) / s``, centred: scores are linear in w."""
        problem = self._problem
        scaled = gamma / problem.n_reference
        ranks = problem.orders.ranks(scaled, problem.ties, reuse=self._ranks)
        self._ranks = ranks
        return centre(ranks, problem.v)

    def coranks(self, w: NDArray) -> CentredMatrix:
        """``V(w) / s``, centred: scores are linear in gamma."""
        problem = self._problem
        scaled = w / problem.n_reference
        coranks = problem.orders.coranks(scaled, problem.ties, reuse=self._coranks)
        self._coranks = coranks
        return centre(coranks, problem.v)


@dataclass
class BlockResult:
    """Where a block's steps ended."""

    x: NDArray
    b: float
    z: NDArray  # M x
    L: float  # to start the next steps of this block from
    residual: float  # largest entry of the last proximal gradient
    n_steps: int


def accelerated_steps(
    matrix: CentredMatrix,
    loss: LogisticLoss,
    x: NDArray,
    b: float,
    proximal: Proximal,
    L: float,
    n_steps: int,
    *,
    linear: NDArray | None = None,
    tol: float = 0.0,
    z: NDArray | None = None,
) -> BlockResult:
    """Take up to ``n_steps`` accelerated steps; stop when the proximal gradient is
    below ``tol``.

    ``proximal`` is the penalty of w or the feasible set of gamma. ``linear`` is added
    to the gradient of the block (the tangent of the push penalty). ``z`` are the scores
    ``M x`` where they are known, and b is then their best intercept.
    """
    known = np.empty(0, np.float32) if z is None else z
    start = (np.asarray(x, dtype=np.float64), float(b), known, float(L))
    ended = solver_loops.proximal_steps(
        matrix.stored,
        (loss.y, loss.v),
        start,
        proximal.proximal_map,
        proximal.parameters,
        np.empty(0) if linear is None else linear,
        n_steps,
        tol,
        _STEP_RULES,
    )
    return BlockResult(*ended)


def curvature_scale(matrix: CentredMatrix, v: NDArray) -> float:
    """About the largest eigenvalue of ``M^T diag(v/4) M``, by a few power steps."""
    x = 1.0 + np.arange(len(matrix.mean)) % 3
    norm = 0.0
    for _ in range(3):
        x = matrix.transpose_dot((v * matrix.dot(x)).astype(np.float32))
        norm = float(np.linalg.norm(x))
        if norm == 0.0:
            break
        x /= norm
    return max(0.25 * norm, 1e-8)
