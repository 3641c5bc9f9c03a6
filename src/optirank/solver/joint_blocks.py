"""Weights of the joint model on many samples, at a given reference set, within a given time.

Samples are taken in blocks, which threads share. Ranks of sparse data are held as they are, a
constant per sample and the non-zeros: at 5 to 20 % filled and a handful of classes a product with
them takes less time than one with a dense matrix. Ranks of dense data are held up to a limit of
memory, and beyond it are made anew whenever they are used. The steps can end at any time: the
objective falls with each of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from optirank._compiled import joint_loops
from optirank.ranks.definition import check_ties
from optirank.ranks.orders import SparseOrders
from optirank.solver.joint_problem import JointSolution
from optirank.solver.joint_steps import GroupLasso, LinearMap, joint_steps
from optirank.solver.softmax import SoftmaxLoss

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.ranks.orders import SampleOrders
    from optirank.solver.joint_problem import JointProblem

_BLOCK = 4_000_000  # entries that a thread works on at a time
_HELD = 50_000_000  # entries of dense ranks that are held
_STEPS = 10  # before momentum starts anew and the time is looked at


@dataclass(frozen=True)
class SparseBlock:
    """A constant per sample plus the non-zeros, whose genes are those of the orders."""

    constants: NDArray
    excess: NDArray  # of each non-zero
    orders: SparseOrders

    def dot(self, W: NDArray) -> NDArray:
        """See :class:`LinearMap`."""
        out = np.empty((len(self.constants), W.shape[1]), np.float32)
        joint_loops.sparse_rows_dot(*self._entries(), self.constants, W, W.sum(axis=0), out)
        return out

    def transpose_dot(self, G: NDArray) -> NDArray:
        """See :class:`LinearMap`."""
        out = np.zeros((self.orders.n_genes, G.shape[1]), np.float32)
        joint_loops.sparse_rows_transpose_dot(*self._entries(), G, out)
        return out.astype(np.float64) + (self.constants @ G)

    def _entries(self) -> tuple[NDArray, NDArray, NDArray]:
        return self.orders.indptr, self.orders.genes, self.excess


@dataclass(frozen=True)
class DenseBlock:
    """A matrix, held or made when it is used."""

    make: Callable[[], NDArray]

    def dot(self, W: NDArray) -> NDArray:
        """See :class:`LinearMap`."""
        return self.make() @ W

    def transpose_dot(self, G: NDArray) -> NDArray:
        """See :class:`LinearMap`."""
        return (G.T @ self.make()).T.astype(np.float64)


def make_block(
    orders: SampleOrders, scaled: NDArray, ties: str, held: bool, excess: NDArray
) -> LinearMap:
    """Ranks relative to weights, of samples whose orders are given; ``excess`` is room for them."""
    if isinstance(orders, SparseOrders):
        ranks = orders.ranks(scaled, ties)
        excess[:] = ranks.excess
        return SparseBlock(ranks.constants.astype(np.float32), excess, orders)
    if held:
        values = orders.ranks(scaled, ties).values
        return DenseBlock(lambda: values)
    return DenseBlock(lambda: orders.ranks(scaled, ties).values)


@dataclass(frozen=True)
class BlockMap:
    """``R(gamma) / s``, centred, in blocks of samples."""

    blocks: list[tuple[slice, LinearMap]]
    mean: NDArray  # of the columns, under the weights of the samples
    n_jobs: int = 1

    @classmethod
    def of(cls, problem: JointProblem, gamma: NDArray, n_jobs: int = 1) -> BlockMap:
        """The matrix of a problem at reference weights."""
        orders, n, d = problem.orders, len(problem.codes), problem.n_genes
        held = n * d <= _HELD
        size = max(1, _BLOCK // d)
        rows = [slice(start, min(start + size, n)) for start in range(0, n, size)]
        scaled = gamma / problem.n_reference
        starts = np.concatenate([[0], np.cumsum(orders.lengths(), dtype=np.int64)])
        # one array for all blocks: many would leave gaps between them as large as themselves
        excess = np.empty(starts[-1], np.float32)

        def make(part: slice) -> tuple[slice, LinearMap]:
            room = excess[starts[part.start] : starts[part.stop]]
            return part, make_block(orders.take(part), scaled, problem.ties, held, room)

        raw = cls([], np.zeros(d), n_jobs)
        raw = replace(raw, blocks=raw._run(make, rows))
        mean = raw.transpose_dot(problem.v.astype(np.float32)[:, None])[:, 0]
        return replace(raw, mean=mean)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.mean)

    def dot(self, W: NDArray) -> NDArray:
        """``M W``, n x K."""
        weights, shift = W.astype(np.float32), (self.mean @ W).astype(np.float32)
        parts = self._run(lambda one: one[1].dot(weights) - shift, self.blocks)
        return np.concatenate(parts)

    def transpose_dot(self, G: NDArray) -> NDArray:
        """``M^T G``, d x K."""
        parts = self._run(lambda one: one[1].transpose_dot(G[one[0]]), self.blocks)
        return sum(parts) - np.outer(self.mean, G.sum(axis=0, dtype=np.float64))

    def _run(self, work: Callable, parts: list) -> list:
        if self.n_jobs == 1 or len(parts) == 1:
            return [work(one) for one in parts]
        with ThreadPoolExecutor(self.n_jobs) as pool:
            return list(pool.map(work, parts))


def fit_weights_in_time(
    problem: JointProblem,
    gamma: NDArray,
    W: NDArray,
    b: NDArray,
    *,
    until: float,
    tol: float = 1e-3,
    max_iter: int = 1000,
    n_jobs: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> JointSolution:
    """Optimise (W, b) at ``gamma`` from a start, for as long as ``clock()`` is below ``until``.

    Accelerated proximal steps on all samples. They end where the proximal gradient is below ``tol``
    times the largest gradient at W = 0 (``converged``), after ``max_iter`` steps, or before a step
    that would last beyond the time, which one pass over the samples tells beforehand. At least one
    step is taken.
    """
    begin = clock()
    matrix = BlockMap.of(problem, gamma, n_jobs)
    each = clock() - begin  # of a step, at most: making the ranks takes longer than using them
    loss = SoftmaxLoss(problem.codes, problem.n_classes, problem.v)
    penalty = GroupLasso(problem.l1, problem.l2)
    zero = np.zeros((len(problem.codes), problem.n_classes), np.float32)
    loss.differentiate(zero, np.zeros(problem.n_classes))
    scale = float(np.abs(matrix.transpose_dot(loss.slopes)).max())
    # Ranks relative to gamma / s lack (1 - 1 / s) of the offset, which centring hides
    _, offset = check_ties(problem.ties)
    mean = matrix.mean + offset * (1.0 - 1.0 / problem.n_reference)
    b = b + mean @ W
    z, L, taken, residual = None, None, 0, np.inf
    while taken < max_iter and residual > tol * scale:
        left = until - clock()
        if taken and left < each:
            break
        steps = int(np.clip(left / each, 1, _STEPS)) if each > 0 else _STEPS
        start = clock()
        done = joint_steps(
            matrix, loss, W, b, penalty, L, min(steps, max_iter - taken), z=z, tol=tol * scale
        )
        W, b, z, L, residual = done.x, done.b, done.z, done.L, done.residual
        each = (clock() - start) / done.n_steps
        taken += done.n_steps
    b = loss.best_intercept(z, b)
    objective = loss.value(z, b) + problem.penalty(W)
    return JointSolution(
        W,
        b - mean @ W,
        gamma,
        objective,
        taken,
        bool(residual <= tol * scale),
        [{"stage": "streamed", "objective": objective, "n_samples": len(problem.codes)}],
    )
