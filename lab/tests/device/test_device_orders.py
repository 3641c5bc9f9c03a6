"""Orders of samples on a device against the definition, and which device can
be used.
"""

import sys

import numpy as np
import pytest
from scipy import sparse

from numpy_device import NumpyBackend
from optirank_lab.device.backend import (
    Backend,
    DeviceError,
    backend_of,
    check_device,
    order_on_device,
)
from rank_definition import comparison_matrix

RNG = np.random.default_rng(0)
SAMPLES = {
    "plain": RNG.normal(size=(7, 129)),
    "ties": np.round(RNG.normal(size=(7, 129)).clip(0) * 3),
    "counts": RNG.poisson(0.4, (7, 129)),
    "single precision": RNG.normal(size=(7, 129)).astype(np.float32),
    "unsigned": RNG.integers(0, 7, (7, 129)).astype(np.uint16),
    "close doubles": 1.0 + np.round(RNG.normal(size=(7, 129))) * 1e-12,
    "two zeros": np.where(RNG.random((7, 129)) < 0.5, 0.0, -0.0),
}


def check_passes(backend, X, ties="average"):
    """Ranks and co-ranks by an order of X are those of its comparison matrices."""
    n, d = X.shape
    orders = order_on_device(backend, X)
    a = np.random.default_rng(1).normal(size=(2, d))
    offset = {"average": 0.5, "min": 0.0, "max": 1.0}[ties]
    sizes = np.array([2.0, 5.0])
    there = backend.array(a)
    ranks = backend.host(orders.ranks(there, ties, backend.array(sizes)))
    coranks = backend.host(orders.coranks(there, ties))
    for i in range(n):
        C = comparison_matrix(X[i], ties)
        expected = (a @ C.T - offset) / sizes[:, None]
        np.testing.assert_allclose(ranks[:, i], expected, atol=1e-5 * d)
        np.testing.assert_allclose(coranks[:, i], a @ C, atol=1e-5 * d)
    some = orders.take(np.arange(n) % 2 == 0)
    scores = some.whole.scores_of_many(a[:1], a[1:2], ties)[0, some.rows]
    np.testing.assert_allclose(scores, ranks[1, ::2] @ a[0] * sizes[1], atol=1e-4 * d)


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("d", [1, 2, 33, 129])
@pytest.mark.parametrize("ties", ["average", "min", "max"])
def test_ranks_and_coranks_are_those_of_the_definition(backend, kind, d, ties):
    check_passes(backend, SAMPLES[kind][:, :d], ties)


@pytest.mark.parametrize("shared_bytes", [0, 1024, 100_000])
def test_samples_that_shared_memory_does_not_hold_are_sorted_all_the_same(
    backend, monkeypatch, shared_bytes
):
    if isinstance(backend, NumpyBackend) and shared_bytes:
        pytest.skip("NumPy has no shared memory")
    monkeypatch.setattr(backend, "shared_bytes", shared_bytes, raising=False)
    monkeypatch.setattr(
        "optirank_lab.device.backend.BLOCK_BYTES", 30_000
    )  # several blocks
    check_passes(backend, SAMPLES["ties"])


@pytest.mark.gpu
def test_a_gpu_says_how_much_shared_memory_a_block_may_have():
    pytest.importorskip("cupy")
    try:
        backend = Backend(backend_of("cuda").xp)
    except DeviceError as error:
        pytest.skip(str(error))
    assert 48 * 1024 <= backend.shared_bytes <= 1 << 20
    widest = (
        backend.shared_bytes // 8 - 65
    )  # the longest pass that fits, and one that does not
    for d in (widest, widest + 100):
        check_wide(backend, d)


def check_wide(backend, d):
    X = np.random.default_rng(d).permutation(d)[None].astype(float)
    orders = order_on_device(backend, X)
    ranks = backend.host(orders.ranks(backend.array(np.ones((1, d))), "average"))
    np.testing.assert_array_equal(ranks[0], X)


def test_sparse_samples_have_the_order_of_dense_ones(backend):
    X = SAMPLES["ties"] - SAMPLES["counts"]
    dense, other = (order_on_device(backend, one) for one in (X, sparse.csr_array(X)))
    for name in ("perm", "start", "end"):
        first, second = (backend.host(getattr(one, name)) for one in (dense, other))
        np.testing.assert_array_equal(first, second)


def test_values_that_are_not_finite_are_refused(backend):
    with pytest.raises(ValueError, match="not finite"):
        order_on_device(backend, np.array([[1.0, np.nan]]))


def test_an_order_that_memory_cannot_hold_is_refused_before_sorting():
    X = sparse.random_array((60, 50), density=0.1, format="csr", random_state=0)
    with pytest.raises(
        DeviceError, match=r"order of 60 samples x 50 genes.*fewer genes"
    ):
        order_on_device(NumpyBackend(memory=1000), X)


def test_an_unknown_device_names_those_there_are():
    with pytest.raises(ValueError, match="'cpu' or 'cuda'"):
        check_device("gpu")


def test_without_cupy_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    backend_of.cache_clear()
    with pytest.raises(DeviceError, match=r"pip install 'optirank-lab\[gpu\]'"):
        check_device("cuda")
