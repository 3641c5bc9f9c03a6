"""The joint model on a device: its matrices and its loss, for the algorithm of ``solver.joint``.

Samples x genes and samples x classes live on the device. The reference weights, W and the
intercepts, which are small, stay on the host, where the algorithm handles them as ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.solver.device.backend import out_of_memory
from optirank.solver.device.orders import DeviceOrders, SomeOrders
from optirank.solver.softmax import minimise_intercepts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.joint_problem import JointProblem

_COPIES = 3.5  # matrices of samples x genes in float32 that are held at once


class DeviceMap:
    """A matrix of samples x genes on the device, seen with weighted column means zero."""

    def __init__(self, xp: Any, values: Any, v: Any, mean: Any = None) -> None:
        self._xp = xp
        self.values = values
        self._v = v
        self._mean = (v @ values).astype(xp.float64) if mean is None else mean

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.values.shape[1]

    def dot(self, W: NDArray) -> Any:
        """``M W``, n x K, on the device."""
        xp = self._xp
        W = xp.asarray(W)
        return self.values @ W.astype(xp.float32) - (self._mean @ W).astype(xp.float32)

    def transpose_dot(self, G: Any) -> NDArray:
        """``M^T G``, d x K, on the host."""
        xp = self._xp
        G = xp.asarray(G, dtype=xp.float32)
        product = (G.T @ self.values).T.astype(xp.float64)
        product -= xp.outer(self._mean, G.sum(axis=0, dtype=xp.float64))
        return _host(xp, product)

    def columns(self, genes: NDArray) -> DeviceMap:
        """The matrix of some of the columns."""
        genes = self._xp.asarray(genes)
        values = self._xp.ascontiguousarray(self.values[:, genes])
        return DeviceMap(self._xp, values, self._v, self._mean[genes])


class DeviceJointMatrices:
    """Makes ``R(gamma) / s`` in one buffer: valid until the next is made."""

    def __init__(self, problem: JointProblem) -> None:
        orders = problem.orders
        backend = orders.whole.backend
        self._xp = xp = backend.xp
        n, d = orders.n_samples, orders.n_genes
        needed, free = int(_COPIES * 4 * n * d), backend.free_bytes()
        if backend.on_gpu and needed > free:
            raise out_of_memory(needed, free, f"a joint fit of {n} samples x {d} genes")
        self.orders = _gathered(orders)
        self.v = xp.asarray(problem.v, dtype=xp.float32)
        self.n_reference = problem.n_reference
        self.ties = problem.ties
        self._buffers: list[Any] = [xp.empty((1, n, d), xp.float32) for _ in range(2)]
        self._gamma: NDArray | None = None
        self._map: DeviceMap | None = None

    def ranks(self, gamma: NDArray) -> DeviceMap:
        """``R(gamma) / s``, centred."""
        if self._gamma is not gamma:
            weights = self._xp.asarray(gamma)[None]
            values = self.orders.ranks(weights, self.ties, self._buffers[0], self.n_reference)[0]
            self._map, self._gamma = DeviceMap(self._xp, values, self.v), gamma
        return self._map

    def gradient_gamma(self, W: NDArray, G: Any) -> NDArray:
        """``sum_i C_i^T (W G_i) / s`` for slopes G, with the part along v taken off them."""
        xp = self._xp
        G = G - self.v[:, None] * G.sum(axis=0)
        table = G.astype(xp.float32) @ xp.asarray(W, dtype=xp.float32).T
        coranks = self.orders.coranks_of_samples(table, self.ties, self._buffers[1])
        return _host(xp, coranks.sum(axis=0, dtype=xp.float64)) / self.n_reference

    def scores(self, W: NDArray, gamma: NDArray) -> Any:
        """``R(gamma) W / s``, n x K, not centred, in float64: exact ranks, single products."""
        xp = self._xp
        values = self.ranks(gamma).values
        z = values @ xp.asarray(W, dtype=xp.float32)
        return z.astype(xp.float64)


class DeviceSoftmaxLoss:
    """``optirank.solver.softmax.SoftmaxLoss`` with the scores on the device."""

    def __init__(self, problem: JointProblem) -> None:
        self._xp = xp = problem.orders.whole.backend.xp
        self.codes = problem.codes
        self.n_classes = problem.n_classes
        self._v = xp.asarray(problem.v, dtype=xp.float64)[:, None]
        self._own = xp.asarray(np.eye(problem.n_classes, dtype=bool)[problem.codes])
        self.probabilities: Any = None
        self.slopes: Any = None

    def _shifted(self, z: Any, b: NDArray) -> Any:
        xp = self._xp
        return xp.asarray(z, dtype=xp.float64) + xp.asarray(b, dtype=xp.float64)

    def differentiate(self, z: Any, b: NDArray) -> None:
        """Write ``probabilities`` and ``slopes`` at scores z + b."""
        xp = self._xp
        score = self._shifted(z, b)
        e = xp.exp(score - score.max(axis=1, keepdims=True))
        total = e.sum(axis=1, keepdims=True)
        self.probabilities = e / total
        # the others' sum, not 1 less the own probability: a small remainder keeps its digits
        rest = xp.where(self._own, 0.0, e).sum(axis=1, keepdims=True) / total
        slopes = self._v * xp.where(self._own, -rest, self.probabilities)
        self.slopes = slopes.astype(xp.float32)

    def value(self, z: Any, b: NDArray) -> float:
        """The loss at scores z + b."""
        xp = self._xp
        score = self._shifted(z, b)
        above = score - xp.where(self._own, score, 0.0).sum(axis=1, keepdims=True)
        top = above.max(axis=1, keepdims=True)
        log = top + xp.log(xp.exp(above - top).sum(axis=1, keepdims=True))
        return float((self._v * log).sum())

    def rise(self, z_new: Any, b_new: NDArray, z: Any, b: NDArray) -> float:
        """The rise above the tangent at z + b, where the derivatives were taken last."""
        xp = self._xp
        change = self._shifted(z_new, b_new) - self._shifted(z, b)
        p = self.probabilities
        u = change - (p * change).sum(axis=1, keepdims=True)
        series = 0.5 + u * (1 / 6 + u * (1 / 24 + u * (1 / 120 + u * (1 / 720 + u / 5040))))
        above = xp.where(xp.abs(u) < 0.3, u * u * series, xp.expm1(xp.minimum(u, 300.0)) - u)
        return float((self._v[:, 0] * xp.log1p((p * above).sum(axis=1))).sum())

    def intercept_slopes(self) -> NDArray:
        """Derivatives in the intercepts, where the loss was differentiated last."""
        return _host(self._xp, self.slopes.sum(axis=0, dtype=self._xp.float64))

    def intercept_hessian(self, floor: float) -> NDArray:
        """Second derivatives in the intercepts; see :class:`SoftmaxLoss`."""
        p = self.probabilities
        weighted = p * self._v
        hessian = 1.0 / self.n_classes - _host(self._xp, weighted.T @ p)
        diagonal = _host(self._xp, weighted.sum(axis=0)) + floor
        hessian[np.diag_indices_from(hessian)] += diagonal
        return hessian

    def curvature_along(self, u: Any) -> float:
        """``u' H u`` for a change u of the scores, H the second derivatives in them."""
        return float((self._v * self._centred(u) ** 2 * self.probabilities).sum())

    def quadratic_form(self, changes: Iterable[Any]) -> NDArray:
        """``u_k' H u_l`` for changes u of the scores."""
        xp = self._xp
        roots = xp.sqrt(self.probabilities * self._v)
        rows = xp.stack([(roots * self._centred(u)).astype(xp.float32).ravel() for u in changes])
        return _host(xp, rows @ rows.T).astype(np.float64)

    def mean_scores(self, z: Any) -> NDArray:
        """Weighted means of the scores of each class."""
        return _host(self._xp, (self._v * z).sum(axis=0))

    def best_intercept(self, z: Any, b: NDArray, tol: float = 1e-9) -> NDArray:
        """The b with sum 0 that minimises the loss at scores z + b."""
        return minimise_intercepts(self, z, b, tol)

    def _centred(self, u: Any) -> Any:
        u = self._xp.asarray(u, dtype=self._xp.float64)
        return u - (self.probabilities * u).sum(axis=1, keepdims=True)


def _gathered(orders: DeviceOrders | SomeOrders) -> DeviceOrders:
    """Orders of these samples alone."""
    whole = orders.whole
    if orders is whole:
        return whole
    rows = whole.backend.array(orders.rows)
    return DeviceOrders(whole.backend, whole.perm[rows], whole.start[rows], whole.end[rows])


def _host(xp: Any, values: Any) -> NDArray:
    return values if xp is np else xp.asnumpy(values)
