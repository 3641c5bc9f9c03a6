"""The joint model's compiled loops against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from scipy.special import log_softmax, softmax

from optirank._compiled import joint_loops
from optirank.ranks.definition import comparison_matrix
from optirank.ranks.orders import order_samples
from optirank.solver.joint_matrices import GammaMap, JointMatrices, gradient_gamma

values = st.sampled_from([-2.0, -1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0])


@st.composite
def samples(draw):
    """A few samples with ties, zeros and negative values, down to a single gene."""
    n, d = draw(st.integers(1, 5)), draw(st.integers(1, 7))
    return draw(arrays(float, (n, d), elements=values))


@pytest.mark.parametrize("ties", ["average", "min", "max"])
@given(X=samples(), seed=st.integers(0, 99), used=st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_the_gradient_in_gamma_is_the_sum_of_coranks_with_own_weights(ties, X, seed, used):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(X.shape[1], 3)) * (rng.random((X.shape[1], 1)) <= used)
    G = rng.normal(size=(len(X), 3))
    expected = sum(comparison_matrix(x, ties).T @ (W @ g) for x, g in zip(X, G, strict=True))
    for data in (X, sparse.csr_array(X)):
        found = gradient_gamma(order_samples(data), W, G, ties)
        np.testing.assert_allclose(found, expected, atol=2e-5)


@given(X=samples(), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_both_maps_are_linear_centred_and_transposes_of_themselves(X, seed):
    rng = np.random.default_rng(seed)
    n, d = X.shape
    v = rng.random(n) + 0.1
    v /= v.sum()
    W, gamma = rng.normal(size=(d, 3)), rng.random(d)
    G = rng.normal(size=(n, 3)).astype(np.float32)
    ranks = np.array([comparison_matrix(x) @ gamma - 0.5 for x in X]) / 2
    expected = ranks @ W
    expected -= v @ expected
    for data in (X, sparse.csr_array(X)):
        matrices = JointMatrices(order_samples(data), v, 2, "average")
        z = matrices.ranks(gamma).dot(W)
        # the offset is divided by s once more: it is constant, so centring takes it away
        np.testing.assert_allclose(z, expected, atol=1e-5)
        transposed = matrices.ranks(gamma).transpose_dot(G)
        np.testing.assert_allclose(np.vdot(transposed, W), np.vdot(G, z), atol=1e-4)
        step = GammaMap(matrices, W)
        np.testing.assert_allclose(
            step.transpose_dot(G) @ gamma, np.vdot(G, step.dot(gamma)), atol=1e-4
        )
        some = np.flatnonzero(rng.random(d) < 0.5)
        np.testing.assert_allclose(
            matrices.ranks(gamma).columns(some).dot(W[some]),
            (ranks - v @ ranks)[:, some] @ W[some],
            atol=1e-5,
        )


@given(seed=st.integers(0, 999), scale=st.sampled_from([1e-3, 1.0, 30.0]))
@settings(max_examples=30, deadline=None)
def test_softmax_loss_slopes_and_rise_are_those_of_the_definition(seed, scale):
    rng = np.random.default_rng(seed)
    n, K = 6, 4
    z, change = rng.normal(size=(n, K)) * 3, rng.normal(size=(n, K)) * scale
    b, codes, v = rng.normal(size=K), rng.integers(0, K, n), rng.random(n)
    probabilities, slopes = np.empty((n, K)), np.empty((n, K))
    joint_loops.softmax_slopes(z, b, codes, v, probabilities, slopes)
    p = softmax(z + b, axis=1)
    np.testing.assert_allclose(probabilities, p, rtol=1e-10)
    np.testing.assert_allclose(slopes, v[:, None] * (p - np.eye(K)[codes]), atol=1e-12)

    def loss(z):
        return float(-(v @ log_softmax(z, axis=1)[np.arange(n), codes]))

    np.testing.assert_allclose(joint_loops.softmax_loss(z, b, codes, v), loss(z + b), rtol=1e-12)
    rise = loss(z + b + change) - loss(z + b) - np.vdot(slopes, change)
    found = joint_loops.softmax_rise(z + change, b, z, b, probabilities, v)
    np.testing.assert_allclose(found, rise, rtol=1e-6, atol=1e-12)


@given(
    seed=st.integers(0, 999), l1=st.sampled_from([0.0, 0.5, 5.0]), l2=st.sampled_from([0.0, 1.0])
)
@settings(max_examples=40, deadline=None)
def test_the_step_of_w_minimises_its_model(seed, l1, l2):
    rng = np.random.default_rng(seed)
    x, gradient = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    L, out = 0.5 + rng.random(), np.empty((5, 3))
    squared = joint_loops.group_step(x, gradient, L, l1, l2, out)
    assert squared == pytest.approx(((out - x) ** 2).sum())

    def model(u):
        near = np.vdot(gradient, u) + 0.5 * L * ((u - x) ** 2).sum()
        return near + l1 * np.linalg.norm(u, axis=1).sum() + l2 * (u**2).sum()

    for _ in range(20):
        other = out + rng.normal(size=x.shape) * 10.0 ** rng.uniform(-4, 0)
        assert model(out) <= model(other) + 1e-12
    assert model(out) <= model(np.where(rng.random((5, 1)) < 0.5, 0.0, out)) + 1e-12


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 12), st.integers(1, 6))
def test_products_with_sparse_rows_are_those_of_the_dense_matrix(seed, n, d, n_classes):
    rng = np.random.default_rng(seed)
    M = sparse.csr_array(rng.random((n, d)) * (rng.random((n, d)) < 0.4), dtype=np.float32)
    entries = M.indptr.astype(np.int64), M.indices.astype(np.uint16), M.data
    constants = rng.normal(size=n).astype(np.float32)
    W = rng.normal(size=(d, n_classes)).astype(np.float32)
    G = rng.normal(size=(n, n_classes)).astype(np.float32)
    whole = M.toarray() + constants[:, None]
    found = np.empty((n, n_classes), np.float32)
    joint_loops.sparse_rows_dot(*entries, constants, W, W.sum(axis=0), found)
    np.testing.assert_allclose(found, whole @ W, atol=1e-4)
    found = np.zeros((d, n_classes), np.float32)
    joint_loops.sparse_rows_transpose_dot(*entries, G, found)
    np.testing.assert_allclose(found, M.toarray().T @ G, atol=1e-4)
