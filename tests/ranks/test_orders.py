"""Orders and the passes over them, against the d x d definition and their plain NumPy twin."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from plain_orders import plain_orders
from scipy import sparse

from optirank.ranks import sorting
from optirank.ranks.definition import TIES, coranks_by_definition, ranks_by_definition
from optirank.ranks.orders import DenseOrders, SparseOrders, order_samples

EACH_TIES = pytest.mark.parametrize("ties", TIES)
EACH_WAY = pytest.mark.parametrize("way", [np.asarray, sparse.csr_array, sparse.csc_array])
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]

shapes = st.tuples(st.integers(1, 6), st.integers(1, 14))
small_integers = hnp.arrays(np.int64, shapes, elements=st.integers(-3, 3))
floats = hnp.arrays(np.float64, shapes, elements=st.floats(allow_nan=False, allow_infinity=False))
mostly_zeros = hnp.arrays(
    np.float64, shapes, elements=st.sampled_from([0.0, 0.0, 0.0, -0.0, -2.5, -1.0, 0.5, 1.0, 7.0])
)
samples = st.one_of(small_integers, floats, mostly_zeros)
seeds = st.integers(0, 1000)


def weights(d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Reference weights with a few zeros and ones, and signed weights."""
    rng = np.random.default_rng(seed)
    return np.clip(rng.normal(0.5, 0.5, size=d), 0, 1), rng.normal(size=d)


def groups_with_zeros(orders: SparseOrders) -> np.ndarray:
    """Tie groups of all genes, without the number left out where a sample has no zeros."""
    groups = np.repeat(orders.zero_group[:, None], orders.n_genes, axis=1)
    for i, (begin, end) in enumerate(zip(orders.indptr[:-1], orders.indptr[1:], strict=True)):
        groups[i, orders.genes[begin:end]] = orders.groups[begin:end]
    return groups_by_definition(groups)


def groups_by_definition(X: np.ndarray) -> np.ndarray:
    return np.array([np.unique(row, return_inverse=True)[1] for row in X])


def assert_orders(orders: DenseOrders | SparseOrders, X: np.ndarray) -> None:
    expected = groups_by_definition(X)
    if isinstance(orders, SparseOrders):
        np.testing.assert_array_equal(groups_with_zeros(orders), expected)
        orders = orders.to_dense()
    np.testing.assert_array_equal(orders.groups, expected)
    np.testing.assert_array_equal(orders.n_groups, expected.max(axis=1) + 1)


# Against the definition


@EACH_WAY
@EACH_TIES
@given(X=samples, seed=seeds)
@example(X=np.zeros((2, 3)), seed=0)
@example(X=np.ones((2, 3)), seed=0)
@example(X=np.array([[-1.0]]), seed=0)
def test_ranks_and_coranks_follow_the_definition(way, ties, X, seed):
    gamma, w = weights(X.shape[1], seed)
    orders = order_samples(way(X))
    assert_orders(orders, X)
    ranks = orders.ranks(gamma, ties, np.float64).toarray()
    coranks = orders.coranks(w, ties, np.float64).toarray()
    np.testing.assert_allclose(ranks, ranks_by_definition(X, gamma, ties), atol=1e-12)
    np.testing.assert_allclose(coranks, coranks_by_definition(X, w, ties), atol=1e-12)


@EACH_WAY
@EACH_TIES
@pytest.mark.parametrize("n_values", [1, 2, 7, 50])
@pytest.mark.parametrize("n_weights", [0, 1, 9, 27, 42, 43])
def test_few_weights_and_many_ties_follow_the_definition(way, ties, n_values, n_weights):
    """The sums over groups have ways of their own for few weights and for few groups."""
    rng = np.random.default_rng(n_values)
    X = rng.integers(0, n_values, size=(5, 43)).astype(float)
    a = np.zeros(43)
    a[rng.permutation(43)[:n_weights]] = rng.normal(size=n_weights)
    orders = order_samples(way(X))
    ranks = orders.ranks(a, ties, np.float64).toarray()
    np.testing.assert_allclose(ranks, ranks_by_definition(X, a, ties), atol=1e-12)
    slopes = rng.normal(size=5)
    np.testing.assert_allclose(orders.gradient_w(a, slopes, ties), ranks.T @ slopes, atol=1e-11)


@EACH_WAY
@EACH_TIES
@given(X=samples, seed=seeds)
def test_scores_and_gradients_without_a_matrix_follow_the_definition(way, ties, X, seed):
    gamma, w = weights(X.shape[1], seed)
    slopes = np.random.default_rng(seed).normal(size=len(X))
    orders = order_samples(way(X))
    R, V = ranks_by_definition(X, gamma, ties), coranks_by_definition(X, w, ties)
    np.testing.assert_allclose(orders.scores(w, gamma, ties), R @ w, atol=1e-11)
    np.testing.assert_allclose(orders.gradient_w(gamma, slopes, ties), R.T @ slopes, atol=1e-11)
    np.testing.assert_allclose(orders.gradient_gamma(w, slopes, ties), V.T @ slopes, atol=1e-11)


@EACH_WAY
@EACH_TIES
@given(X=samples, seed=seeds)
def test_the_plain_twin_gives_the_same(way, ties, X, seed):
    gamma, w = weights(X.shape[1], seed)
    slopes = np.random.default_rng(seed).normal(size=len(X))
    orders = order_samples(way(X))
    plain = plain_orders(orders)
    for name, arguments in {
        "scores": (w, gamma),
        "gradient_w": (gamma, slopes),
        "gradient_gamma": (w, slopes),
    }.items():
        ours, theirs = (getattr(o, name)(*arguments, ties) for o in (orders, plain))
        np.testing.assert_allclose(ours, theirs, atol=1e-11)
    for name, a in {"ranks": gamma, "coranks": w}.items():
        ours, theirs = (getattr(o, name)(a, ties, np.float64).toarray() for o in (orders, plain))
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


@EACH_TIES
@given(X=mostly_zeros, seed=seeds)
def test_dense_and_sparse_are_exactly_equal_for_a_reference_set(ties, X, seed):
    rng = np.random.default_rng(seed)
    gamma, w = rng.integers(0, 2, size=(2, X.shape[1])).astype(float)
    slopes = rng.integers(-2, 3, size=len(X)).astype(float)
    dense, by_nonzeros = order_samples(X), order_samples(sparse.csr_array(X))
    for dtype in (np.float32, np.float64):
        for name, a in {"ranks": gamma, "coranks": w}.items():
            one, other = (getattr(o, name)(a, ties, dtype) for o in (dense, by_nonzeros))
            assert one.toarray().dtype == other.toarray().dtype == dtype
            np.testing.assert_array_equal(one.toarray(), other.toarray())
    for name, arguments in {
        "scores": (w, gamma),
        "gradient_w": (gamma, slopes),
        "gradient_gamma": (w, slopes),
    }.items():
        one, other = (getattr(o, name)(*arguments, ties) for o in (dense, by_nonzeros))
        np.testing.assert_array_equal(one, other)


@EACH_TIES
def test_dense_and_sparse_agree_to_1e_12_for_any_weights(ties):
    X = sparse.random_array((40, 3000), density=0.1, rng=np.random.default_rng(0)).toarray()
    X[::2] -= 0.5 * (X[::2] > 0)  # negative values too
    gamma, w = weights(3000, 1)
    dense, by_nonzeros = order_samples(X), order_samples(sparse.csr_array(X))
    for name, a in {"ranks": gamma, "coranks": w}.items():
        one, other = (getattr(o, name)(a, ties, np.float64).toarray() for o in (dense, by_nonzeros))
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12 * np.abs(a).sum())
    one, other = (o.scores(w, gamma, ties) for o in (dense, by_nonzeros))
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12 * np.abs(w).sum() * gamma.sum())


@given(X=small_integers, seed=seeds)
def test_orders_do_not_change_under_a_monotone_map(X, seed):
    expected = groups_by_definition(X)
    for mapped in (np.exp(X / 2.0), 2.0 * X - 7, X.astype(np.float32) ** 3, X * 10**15):
        np.testing.assert_array_equal(order_samples(mapped).groups, expected)


# Number types and memory layouts


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool", "float32", "float64"])
@EACH_WAY
def test_every_number_type_is_ordered(dtype, way):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, size=(7, 30))
    if np.dtype(dtype).kind in "if":
        X -= 4
    X = X.astype(dtype)
    if np.dtype(dtype).kind in "iu":
        X[:, 0], X[:, 1] = np.iinfo(dtype).min, np.iinfo(dtype).max
    assert_orders(order_samples(way(X)), X)


@given(
    X=st.sampled_from(INTEGERS).flatmap(lambda dtype: hnp.arrays(dtype, shapes)),
    way=st.sampled_from([np.asarray, sparse.csr_array]),
)
def test_integers_of_each_width_are_compared_as_they_are(X, way):
    assert_orders(order_samples(way(X)), X)


@EACH_WAY
def test_neighbouring_integers_beyond_the_floats_stay_apart(way):
    rng = np.random.default_rng(0)
    for dtype, top in (("uint64", 2**64 - 1), ("int64", 2**63 - 1)):
        near_top = np.array([top - k for k in range(200)], dtype=dtype)
        X = np.array([rng.permutation(near_top) for _ in range(3)])
        X[0, :5] = 0  # a range that leaves no bits for the place in the sample
        assert_orders(order_samples(way(X)), X)


@given(
    X=hnp.arrays(
        np.float32, shapes, elements=st.floats(width=32, allow_nan=False, allow_infinity=False)
    )
)
def test_float32_values_are_ordered(X):
    assert_orders(order_samples(X), X)


@pytest.mark.parametrize("step", [1e-13, 1e-15, 5e-324])
def test_float64_values_that_share_their_upper_bits_are_ordered(step):
    rng = np.random.default_rng(0)
    base = 0.0 if step < 1e-300 else 1.0
    X = base + step * rng.integers(0, 3000, size=(4, 2000))
    X[0] = rng.normal(size=2000)
    assert_orders(order_samples(X), X)
    X *= -1
    assert_orders(order_samples(X), X)


def test_extreme_values_are_ordered_without_a_warning():
    X = np.array([[1e308, -1e308, 5e-324, -5e-324, 0.0, -0.0, 1e308, 1.7e308]])
    assert_orders(order_samples(np.repeat(X, 3, axis=0)), np.repeat(X, 3, axis=0))


def test_half_precision_is_ordered():
    X = np.random.default_rng(0).normal(size=(3, 50)).astype(np.float16)
    assert_orders(order_samples(X), X)


def test_any_memory_layout_is_ordered():
    X = np.random.default_rng(0).normal(size=(9, 20))
    wide = np.zeros((18, 60))
    wide[::2, ::3] = X
    frozen = X.copy()
    frozen.setflags(write=False)
    layouts = (np.asfortranarray(X), wide[::2, ::3], X.astype(">f8"), frozen, X.tolist())
    for laid_out in layouts:
        assert_orders(order_samples(laid_out), X)
    assert_orders(order_samples(X[::-1, ::-1]), X[::-1, ::-1])


def test_explicit_zeros_duplicates_and_unsorted_indices_mean_what_they_say():
    data = np.array([3.0, 0.0, 1.0, 2.0, -1.0, 1.0])
    messy = sparse.csr_array((data, [4, 0, 2, 2, 1, 1], [0, 4, 6]), shape=(2, 5))
    X = np.array([[0.0, 0, 3, 0, 3], [0, 0, 0, 0, 0]])
    orders = order_samples(messy)
    assert_orders(orders, X)
    assert orders.genes.size == 2
    np.testing.assert_array_equal(messy.data, data)  # the input is left as it was
    np.testing.assert_array_equal(messy.indices, [4, 0, 2, 2, 1, 1])
    for form in ("csc", "coo", "lil"):
        assert_orders(order_samples(messy.copy().asformat(form)), X)


def test_sparse_samples_without_zeros_and_of_zeros_alone_are_ordered():
    X = np.array([[1.0, 2, 3], [0, 0, 0], [-1, -2, -2], [-1, 0, 1], [0, 0, 4], [-4, 0, 0]])
    orders = order_samples(sparse.csr_array(X))
    assert_orders(orders, X)
    gamma, _ = weights(3, 0)
    np.testing.assert_allclose(
        orders.ranks(gamma, dtype=np.float64).toarray(), ranks_by_definition(X, gamma)
    )


@pytest.mark.parametrize(("d", "index"), [(65_535, np.uint16), (65_536, np.uint32)])
@EACH_WAY
def test_genes_are_numbered_with_16_bits_while_that_is_enough(d, index, way):
    X = np.random.default_rng(0).permutation(d).astype(np.float32)[None] - 0.5 * d
    orders = order_samples(way(X))
    assert orders.groups.dtype == index
    ranks = orders.ranks(np.ones(d), dtype=np.float64).toarray()
    np.testing.assert_array_equal(ranks, np.argsort(np.argsort(X, axis=1), axis=1))


# Accuracy


@pytest.fixture(scope="module")
def long_sample():
    """60000 genes, weights that are multiples of 2^-20, and 2^21 times the exact ``C gamma``."""
    d = 60_000
    rng = np.random.default_rng(0)
    order = rng.permutation(d)
    X = np.empty((1, d))
    X[0, order] = np.arange(d)
    scaled = rng.integers(0, 2**20, size=d)  # a = scaled / 2^20
    twice = 2 * np.cumsum(scaled[order]) - scaled[order]  # 2^21 (c_k + h_k / 2)
    exact = np.empty(d, np.int64)
    exact[order] = twice
    return X, scaled, exact


def test_float32_ranks_of_60000_genes_carry_one_rounding(long_sample):
    X, scaled, exact = long_sample
    gamma = scaled / 2.0**20
    expected = ((exact - 2**20) / 2.0**21).astype(np.float32)  # offset 1/2; exact in float64
    for way in (np.asarray, sparse.csr_array):
        ranks = order_samples(way(X)).ranks(gamma, dtype=np.float32)
        if way is np.asarray:
            np.testing.assert_array_equal(ranks.toarray()[0], expected)
        np.testing.assert_allclose(ranks.toarray()[0], expected, rtol=1.2e-7, atol=0)


def test_a_running_sum_in_float32_would_not_reach_that(long_sample):
    X, scaled, exact = long_sample
    order = np.argsort(X[0])
    taken = (scaled / 2.0**20).astype(np.float32)[order]
    naive = np.empty_like(taken)
    naive[order] = np.cumsum(taken, dtype=np.float32) - np.float32(0.5) * taken - np.float32(0.5)
    expected = (exact - 2**20) / 2.0**21
    assert np.max(np.abs(naive / expected - 1)) > 10 * 1.2e-7


def test_scores_of_60000_genes_agree_with_exact_fractions(long_sample):
    X, scaled, exact = long_sample
    rng = np.random.default_rng(1)
    w_scaled = rng.integers(-(2**20), 2**20, size=X.shape[1])
    exact_score = sum(int(a) * (int(b) - 2**20) for a, b in zip(w_scaled, exact, strict=True))
    expected = float(Fraction(exact_score, 2**41))
    size = float(np.abs(w_scaled) @ (exact / 2.0**41))
    for way in (np.asarray, sparse.csr_array):
        score = order_samples(way(X)).scores(w_scaled / 2.0**20, scaled / 2.0**20)[0]
        assert score == pytest.approx(expected, abs=1e-14 * size)


# Samples and threads


@EACH_WAY
def test_taking_samples_is_ordering_those_samples(way):
    X = np.random.default_rng(0).poisson(0.7, size=(8, 40)) - 1.0
    orders = order_samples(way(X))
    mask = np.arange(8) % 3 == 0
    chosen = (mask, np.array([5, 0, 5, 5, 7]), np.array([-1]), np.zeros(8, bool), slice(1, 8, 2))
    gamma, w = weights(40, 0)
    for samples_ in chosen:
        taken = orders.take(samples_)
        assert taken.n_samples == len(X[samples_])
        np.testing.assert_array_equal(taken.scores(w, gamma), orders.scores(w, gamma)[samples_])
        np.testing.assert_array_equal(
            taken.ranks(gamma).toarray(), orders.ranks(gamma).toarray()[samples_]
        )
        taken.gradient_w(gamma, np.ones(taken.n_samples))
    plain = plain_orders(orders)
    np.testing.assert_allclose(plain.take(mask).scores(w, gamma), orders.scores(w, gamma)[mask])


@EACH_WAY
def test_a_matrix_made_before_can_be_written_over(way):
    X = np.random.default_rng(0).poisson(0.7, size=(8, 40))
    orders = order_samples(way(X))
    gamma, w = weights(40, 0)
    made = orders.ranks(gamma)
    reused = orders.coranks(w, reuse=made)
    assert np.shares_memory(
        *(m.values if isinstance(orders, DenseOrders) else m.excess for m in (made, reused))
    )
    np.testing.assert_array_equal(reused.toarray(), orders.coranks(w).toarray())


@EACH_WAY
@pytest.mark.parametrize("n_jobs", [None, 2, 3, -1, -2])
def test_the_number_of_threads_does_not_change_the_orders(way, n_jobs, monkeypatch):
    monkeypatch.setattr(sorting, "_BLOCK_ENTRIES", 300)
    X = np.random.default_rng(0).poisson(0.7, size=(50, 60)) - 1.0
    one, more = order_samples(way(X), n_jobs=1), order_samples(way(X), n_jobs=n_jobs)
    for name in ("groups", "n_groups"):
        np.testing.assert_array_equal(getattr(one, name), getattr(more, name))
    assert_orders(more, X)


def test_no_threads_at_all_are_refused():
    with pytest.raises(ValueError, match="n_jobs=0"):
        order_samples([[1.0]], n_jobs=0)


@EACH_WAY
def test_orders_can_be_sent_to_another_process(way):
    X = np.random.default_rng(0).poisson(1.0, size=(4, 10))
    orders = pickle.loads(pickle.dumps(order_samples(way(X))))
    assert_orders(orders, X)


@EACH_WAY
def test_orders_in_memory_that_cannot_be_written_serve_as_well(way):
    orders = order_samples(way(np.random.default_rng(0).poisson(1.0, size=(4, 10))))
    gamma, w = weights(10, 0)
    before = (
        orders.scores(w, gamma),
        orders.ranks(gamma).dot(w),
        orders.gradient_w(gamma, np.ones(4)),
    )
    for array in vars(orders).values():
        if isinstance(array, np.ndarray):
            array.setflags(write=False)
    after = (
        orders.scores(w, gamma),
        orders.ranks(gamma).dot(w),
        orders.gradient_w(gamma, np.ones(4)),
    )
    np.testing.assert_equal(after, before)


def test_memory_of_orders_follows_the_nonzeros():
    X = sparse.random_array((50, 4000), density=0.05, rng=np.random.default_rng(0), format="csr")
    dense, by_nonzeros = order_samples(X.toarray()), order_samples(X)
    assert dense.nbytes == 50 * 4000 * 2 + 50 * 4
    assert by_nonzeros.nbytes < dense.nbytes / 5
    assert plain_orders(dense).nbytes > dense.nbytes


# Errors


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -np.nan])
@EACH_WAY
def test_values_without_a_rank_are_counted_in_the_error(bad, way, monkeypatch):
    monkeypatch.setattr(sorting, "_BLOCK_ENTRIES", 4)
    X = np.ones((3, 4))
    X[1, 2] = X[2, 0] = bad
    for dtype in (np.float32, np.float64):
        with pytest.raises(ValueError, match="2 values that are NaN or infinite"):
            order_samples(way(X.astype(dtype)))


@pytest.mark.parametrize(
    "X", [np.array([["a", "b"]]), np.array([[1 + 2j]]), np.array([[1, None]]), np.ones((2, 2), "g")]
)
def test_other_types_than_numbers_are_refused(X):
    with pytest.raises(ValueError, match=f"X has dtype {X.dtype}"):
        order_samples(X)


def test_sparse_complex_numbers_are_refused():
    with pytest.raises(ValueError, match="X has dtype complex128"):
        order_samples(sparse.csr_array([[1 + 2j]]))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3,), (), (1, 2, 3)])
def test_shapes_other_than_samples_by_genes_are_refused(shape):
    with pytest.raises(ValueError, match="at least one of each"):
        order_samples(np.ones(shape))


@pytest.mark.parametrize(
    "X", [sparse.csr_array((0, 3)), sparse.csc_array((3, 0)), sparse.coo_array(np.ones(3))]
)
def test_empty_sparse_shapes_are_refused(X):
    with pytest.raises(ValueError, match="at least one of each"):
        order_samples(X)


@EACH_WAY
def test_vectors_of_the_wrong_length_or_type_are_refused(way):
    orders = order_samples(way(np.eye(3, 4)))
    with pytest.raises(ValueError, match=r"a gene, shape \(4,\), got shape \(3,\)"):
        orders.ranks(np.ones(3))
    with pytest.raises(ValueError, match=r"a gene, shape \(4,\), got shape \(4, 1\)"):
        orders.scores(np.ones(4), np.ones((4, 1)))
    with pytest.raises(ValueError, match=r"a sample, shape \(3,\), got shape \(4,\)"):
        orders.gradient_gamma(np.ones(4), np.ones(4))
    with pytest.raises(ValueError, match="dtype complex128"):
        orders.coranks(np.ones(4) * 1j)
    with pytest.raises(ValueError, match="use float32 or float64"):
        orders.ranks(np.ones(4), dtype=np.int32)
    with pytest.raises(ValueError, match="'average', 'min', 'max'"):
        orders.ranks(np.ones(4), ties="dense")
