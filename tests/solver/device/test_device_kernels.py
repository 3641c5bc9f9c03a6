"""Passes over orders on a device, against the definition; on NumPy, and with CuPy on a GPU."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from optirank.ranks.definition import comparison_matrix
from optirank.ranks.orders import order_samples
from optirank.solver.device.backend import DeviceError, backend_of, check_device
from optirank.solver.device.kernels import best_intercept, project_rows
from optirank.solver.device.orders import from_groups, order_on_device
from optirank.solver.feasible import project_capped_simplex


def samples(kind: str, n: int, d: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if kind == "ties":
        return np.round(np.maximum(X, 0) * 3)
    if kind == "counts":
        return rng.poisson(0.4, (n, d))
    if kind == "single precision":
        return X.astype(np.float32)
    if kind == "unsigned":
        return rng.integers(0, 7, (n, d)).astype(np.uint16)
    if kind == "close doubles":
        return 1.0 + np.round(X) * 1e-12
    return X


KINDS = ["plain", "ties", "counts", "single precision", "unsigned", "close doubles"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "d"), [(5, 1), (4, 2), (7, 33), (3, 129)])
@pytest.mark.parametrize("ties", ["average", "min", "max"])
def test_ranks_and_coranks_are_those_of_the_definition(backend, kind, n, d, ties):
    X = samples(kind, n, d)
    orders = order_on_device(backend, X)
    rng = np.random.default_rng(1)
    a = rng.normal(size=(2, d))
    per_sample = rng.normal(size=(n, d))
    offset = {"average": 0.5, "min": 0.0, "max": 1.0}[ties]
    ranks = backend.host(orders.ranks(backend.array(a), ties))
    coranks = backend.host(orders.coranks(backend.array(a), ties))
    divided = backend.host(orders.ranks(backend.array(a), ties, size=backend.array([2.0, 5.0])))
    np.testing.assert_allclose(divided, ranks / np.array([2, 5])[:, None, None], atol=1e-5 * d)
    own = backend.host(orders.coranks_of_samples(backend.array(per_sample), ties))
    for i in range(n):
        C = comparison_matrix(X[i], ties)
        np.testing.assert_allclose(ranks[:, i], a @ C.T - offset, atol=1e-5 * d)
        np.testing.assert_allclose(coranks[:, i], a @ C, atol=1e-5 * d)
        np.testing.assert_allclose(own[i], C.T @ per_sample[i], atol=1e-5 * d)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(0, 10_000))
def test_orders_of_values_groups_and_sparse_data_are_the_same(d, seed):
    backend = backend_of("numpy")
    X = samples("ties", 3, d, seed) - samples("counts", 3, d, seed)
    straight = order_on_device(backend, X)
    others = (
        order_on_device(backend, sparse.csr_array(X)),
        from_groups(backend, order_samples(X).groups),
    )
    for other in others:
        for name in ("perm", "start", "end"):
            np.testing.assert_array_equal(getattr(other, name), getattr(straight, name))


@pytest.mark.parametrize("d", [1, 2, 50, 1000])
def test_rows_are_projected_as_one_by_one(backend, d):
    rng = np.random.default_rng(d)
    x = rng.normal(size=(5, d)) * np.array([[1e-6], [0.1], [1], [10], [1000]])
    s = np.minimum([1, 1, max(1, d // 3), d, 1], d).astype(float)
    found = backend.host(project_rows(backend.xp, backend.array(x), backend.array(s)))
    wanted = [project_capped_simplex(row, size) for row, size in zip(x, s, strict=True)]
    np.testing.assert_allclose(found, wanted, atol=1e-8)


def test_intercepts_have_no_slope(backend):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(6, 80)) * np.array([[0], [0.1], [1], [5], [30], [200]])
    y = (rng.random((6, 80)) < 0.2).astype(float)
    v = rng.random((6, 80))
    v /= v.sum(axis=1, keepdims=True)
    arrays = [backend.array(one) for one in (z, y, v, np.zeros(6))]
    b = backend.host(best_intercept(backend.xp, *arrays, 60))
    slope = (v * (1 / (1 + np.exp(-np.clip(z + b[:, None], -700, 700))) - y)).sum(axis=1)
    assert np.abs(slope).max() < 1e-8


def test_values_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="not finite"):
        order_on_device(backend_of("numpy"), np.array([[1.0, np.nan]]))


def test_an_unknown_device_names_those_there_are():
    with pytest.raises(ValueError, match="'cpu' or 'cuda'"):
        check_device("gpu")


def test_without_cupy_the_error_names_the_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "cupy", None)
    backend_of.cache_clear()
    with pytest.raises(DeviceError, match=r"pip install 'optirank\[gpu\]'"):
        check_device("cuda")
