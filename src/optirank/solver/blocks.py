"""The terms of the problem, and steps on one block of its variables with the other
fixed.

The terms are the loss of the scores, the penalty of w and the feasible set of gamma.
With the other block fixed the scores are linear, ``z = M x + b``, by the maps R(gamma)
and V(w), and the problem is convex. The intercept is free, so subtracting from each
column of M its weighted mean changes nothing but the conditioning, and that by an order
of magnitude. Entries are float32; sums over genes of sparse data and over everything
that decides are float64. Algorithms see a matrix through ``mean`` (one entry per
column), ``dot``, ``transpose_dot`` and ``columns``; the compiled steps take its arrays,
``stored``.

Steps are Nesterov's with restarts; the step size adapts to the curvature where the loss
stands, which for well-separated samples is far below its bound of 1/4. The loop is
compiled, and reads the matrix once per step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optirank._compiled import solver_loops
from optirank._util.numbers import product
from optirank.ranks.orders import DenseRanks, SparseRanks
from optirank.solver import constants as c
from optirank.solver.problem import Problem


class Proximal:
    """A term with a proximal map: the penalty of w, or the feasible set of gamma.

    The map is one compiled function, ``proximal_map``, which the compiled steps and
    ``prox`` call with ``parameters``; see ``_compiled.jit.proximal_map``.
    """

    proximal_map: ClassVar[Any]
    parameters: NDArray[np.float64]

    def prox(self, x: NDArray, step: float = 1.0) -> NDArray[np.float64]:
        """``argmin_u |u - x|^2 / (2 step) + value(u)``."""
        moved = np.array(x, dtype=np.float64)
        solver_loops.apply_map(self.proximal_map, self.parameters, float(step), moved)
        return moved


class ElasticNet(Proximal):
    """The penalty of w: ``l1 |w|_1 + l2 |w|_2^2`` (no 1/2).

    Every algorithm and the refit use it through what stands here, so another penalty is
    a subclass. It must be separable and convex, and a quadratic where each weight keeps
    its sign: Newton steps take ``gradient`` and ``curvature`` from there.

    Attributes
    ----------
    smooth : whether it is one quadratic everywhere, without a kink at zero.
    threshold : size of the loss's gradient up to which a weight of zero stays zero.
    curvature : its second derivative where a weight keeps its sign.
    """

    proximal_map = solver_loops.elastic_net_map

    def __init__(self, l1: float, l2: float) -> None:
        self.l1 = l1
        self.l2 = l2
        self.parameters = np.array([l1, l2], dtype=np.float64)
        self.smooth = l1 == 0
        self.threshold = l1
        self.curvature = 2.0 * l2

    def value(self, w: NDArray) -> float:
        """The penalty of w."""
        return float(self.l1 * np.abs(w).sum() + self.l2 * (w @ w))

    def gradient(self, w: NDArray, sign: NDArray) -> NDArray:
        """Its gradient where each weight keeps the sign given."""
        return 2.0 * self.l2 * w + self.l1 * sign

    def keep_signs(self, w: NDArray, sign: NDArray) -> NDArray:
        """w with zero for the weights that left their sign, unless the penalty
        is smooth.
        """
        return w if self.smooth else np.where(w * sign < 0, 0.0, w)


class LogisticLoss:
    """``sum_i v_i (log(1 + exp(z_i + b)) - y_i (z_i + b))`` with y_i of 0 and 1.

    ``slopes`` and ``curvatures`` are its first and second derivatives in the scores:
    ``v_i (p_i - y_i)`` and ``v_i p_i (1 - p_i)``, with ``p_i = sigmoid(z_i + b)``. The
    loss owns these buffers.
    """

    def __init__(self, y: NDArray, v: NDArray, dtype: type = np.float32) -> None:
        self.y = y
        self.v = v
        self.slopes = np.empty(len(y), dtype)  # the precision of the matrix they meet
        self.curvatures = np.empty(len(y))

    def value(self, z: NDArray, b: float) -> float:
        """The loss at scores z + b."""
        return solver_loops.logistic_loss(z, b, self.y, self.v)

    def differentiate(self, z: NDArray, b: float) -> None:
        """Write ``slopes`` and ``curvatures`` at scores z + b."""
        solver_loops.logistic_slopes(z, b, self.y, self.v, self.slopes, self.curvatures)

    def evaluate(self, z: NDArray, b: float) -> float:
        """The loss at scores z + b; leaves ``slopes`` and ``curvatures`` there."""
        self.differentiate(z, b)
        return self.value(z, b)

    def best_intercept(self, z: NDArray, b: float) -> float:
        """The b that minimises the loss at scores z + b, searched from the
        one given.
        """
        return solver_loops.optimal_intercept(z, b, self.y, self.v)


def project_capped_simplex(x: ArrayLike, s: float) -> NDArray[np.float64]:
    """The point of ``{z : 0 <= z <= 1, sum z = s}`` nearest to ``x``.

    It is ``z = clip(x - shift, 0, 1)`` for the ``shift`` at which ``z`` sums to ``s``.
    """
    x = np.array(x, dtype=np.float64, order="C")
    if s in (0, x.size):
        return np.full(x.size, 0.0 if s == 0 else 1.0)
    solver_loops.project_capped_simplex(x, float(s))
    return x


def spread(part: NDArray, genes: NDArray, n_genes: int) -> NDArray:
    """A vector of all genes: ``part`` at some genes, zero for the others."""
    full = np.zeros(n_genes)
    full[genes] = part
    return full


class CappedSimplex(Proximal):
    """``{0 <= gamma <= 1, sum gamma = s}``, with gamma zero outside the candidates.

    ``candidates`` is a mask of the genes that may be in the reference; None means all
    genes. The vertices are the reference sets of s candidates.
    """

    proximal_map = solver_loops.capped_simplex_map

    def __init__(self, s: int, candidates: NDArray | None = None) -> None:
        self.s = s
        self.candidates = candidates
        # What picks the candidates from a vector of all genes
        self._where: Any = slice(None)
        positions = np.empty(0)
        if candidates is not None:
            self._where = positions = np.flatnonzero(candidates)
        # The compiled map takes no positions as all genes
        self.parameters = np.concatenate([[s], positions]).astype(np.float64)

    def _spread(self, part: NDArray, n_genes: int) -> NDArray:
        """A vector of all genes: ``part`` on the candidates, zero for the others."""
        return part if self.candidates is None else spread(part, self._where, n_genes)

    def free_part(self, direction: NDArray) -> NDArray:
        """What the constraint on the sum lets through of a direction: its part of
        mean zero.
        """
        part = direction[self._where]
        return self._spread(part - part.mean(), len(direction))

    def only_point(self, n_genes: int) -> NDArray | None:
        """The one set there is when every candidate must be in it, else None."""
        candidates = (
            np.ones(n_genes, bool) if self.candidates is None else self.candidates
        )
        return candidates.astype(float) if candidates.sum() == self.s else None

    def centre(self, n_genes: int) -> NDArray:
        """Equal weights on all candidates."""
        part = np.ones(n_genes)[self._where]
        return self._spread(part * (self.s / len(part)), n_genes)

    def tilted(self, criterion: NDArray) -> tuple[NDArray, NDArray]:
        """Weights that grow, and weights that fall, with the candidates' order by a
        criterion.

        ``2 s / m`` times the normalised order of the m candidates, projected.
        """
        values = criterion[self._where]
        number = len(values)
        order = np.empty(number)
        order[np.argsort(values, kind="stable")] = np.arange(number) / max(
            1, number - 1
        )
        share = 2.0 * self.s / number
        rising = project_capped_simplex(share * order, self.s)
        falling = project_capped_simplex(share * (1.0 - order), self.s)
        n_genes = len(criterion)
        return self._spread(rising, n_genes), self._spread(falling, n_genes)

    def vertex(self, gamma: NDArray) -> NDArray:
        """The set of the s largest entries, the first of equal ones: ones there,
        else zeros.
        """
        part = gamma[self._where]
        rounded = np.zeros(len(part))
        rounded[np.argsort(-part, kind="stable")[: self.s]] = 1.0
        return self._spread(rounded, len(gamma))

    def exchangeable(
        self, gamma: NDArray, gradient: NDArray, number: int
    ) -> tuple[NDArray, NDArray]:
        """The genes of a set that most want out, and the candidates outside that most
        want in.
        """
        allowed = True if self.candidates is None else self.candidates
        inside = np.flatnonzero(gamma > 0.5)
        outside = np.flatnonzero((gamma <= 0.5) & allowed)
        inside = inside[np.argsort(-gradient[inside], kind="stable")[:number]]
        outside = outside[np.argsort(gradient[outside], kind="stable")[:number]]
        return inside, outside


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


def not_centred(values: NDArray) -> CentredMatrix:
    """A dense matrix of float32 as it is."""
    return CentredMatrix(DenseRanks(values), np.zeros(values.shape[1], np.float32))


class ProblemMatrices:
    """Makes R(gamma)/s and V(w)/s of a problem, centred, each in a buffer of its own.

    A matrix is valid until the next one of its kind is made.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._ranks: Any = None
        self._coranks: Any = None

    def ranks(self, gamma: NDArray) -> CentredMatrix:
        """``R(gamma) / s``, centred: scores are linear in w."""
        problem = self._problem
        scaled = gamma / problem.n_reference
        self._ranks = problem.orders.ranks(scaled, problem.ties, reuse=self._ranks)
        return centre(self._ranks, problem.v)

    def coranks(self, w: NDArray) -> CentredMatrix:
        """``V(w) / s``, centred: scores are linear in gamma."""
        problem = self._problem
        scaled = w / problem.n_reference
        self._coranks = problem.orders.coranks(
            scaled, problem.ties, reuse=self._coranks
        )
        return centre(self._coranks, problem.v)


@dataclass
class BlockResult:
    """Where a block's steps ended."""

    x: NDArray
    b: float
    z: NDArray  # M x
    L: float  # to start the next steps of this block from
    residual: float  # largest entry of the last proximal gradient
    n_steps: int
    converged: bool = False


def accelerated_steps(
    matrix: CentredMatrix,
    loss: LogisticLoss,
    x: NDArray,
    b: float,
    proximal: Proximal,
    L: float | None,
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
    ``M x`` where they are known, and b is then their best intercept. L is the inverse
    size of the first step, by default from the curvature.
    """
    L = L or curvature_scale(matrix, loss.v)
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
