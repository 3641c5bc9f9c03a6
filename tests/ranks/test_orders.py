"""Orders, ranks and co-ranks read off from them, against the d x d definition and a
NumPy twin.
"""

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

from optirank.ranks import orders as module
from optirank.ranks.orders import DenseOrders, SparseOrders, order_samples
from optirank.ranks.scoring import TIES
from rank_definition import coranks_by_definition, ranks_by_definition

EACH_TIES = pytest.mark.parametrize("ties", TIES)
EACH_WAY = pytest.mark.parametrize(
    "way", [np.asarray, sparse.csr_array, sparse.csc_array]
)
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]

shapes = st.tuples(st.integers(1, 6), st.integers(1, 14))
small_integers = hnp.arrays(np.int64, shapes, elements=st.integers(-3, 3))
floats = hnp.arrays(
    np.float64, shapes, elements=st.floats(allow_nan=False, allow_infinity=False)
)
mostly_zeros = hnp.arrays(
    np.float64,
    shapes,
    elements=st.sampled_from([0.0, 0.0, 0.0, -0.0, -2.5, -1.0, 0.5, 1.0, 7.0]),
)
samples = st.one_of(small_integers, floats, mostly_zeros)
seeds = st.integers(0, 1000)


def weights(d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Reference weights with a few zeros and ones, and signed weights."""
    rng = np.random.default_rng(seed)
    return np.clip(rng.normal(0.5, 0.5, size=d), 0, 1), rng.normal(size=d)


def full(matrix, d: int) -> np.ndarray:
    """A matrix of ranks as a dense array."""
    return matrix.columns(np.arange(d))


def assert_orders(orders: DenseOrders | SparseOrders, X: np.ndarray) -> None:
    expected = np.array([np.unique(row, return_inverse=True)[1] for row in X])
    if isinstance(orders, SparseOrders):
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
def test_ranks_coranks_and_scores_follow_the_definition(way, ties, X, seed):
    d = X.shape[1]
    gamma, w = weights(d, seed)
    orders = order_samples(way(X))
    assert_orders(orders, X)
    R, V = ranks_by_definition(X, gamma, ties), coranks_by_definition(X, w, ties)
    ranks = orders.ranks(gamma, ties, np.float64)
    np.testing.assert_allclose(full(ranks, d), R, atol=1e-12)
    np.testing.assert_allclose(
        full(orders.coranks(w, ties, np.float64), d), V, atol=1e-12
    )
    np.testing.assert_allclose(orders.scores(w, gamma, ties), R @ w, atol=1e-11)
    slopes = np.random.default_rng(seed).normal(size=len(X))
    np.testing.assert_allclose(ranks.dot(w), R @ w, atol=1e-11)
    np.testing.assert_allclose(ranks.transpose_dot(slopes), R.T @ slopes, atol=1e-11)


@EACH_WAY
@given(X=samples, seed=seeds)
def test_some_genes_are_columns_of_the_whole_in_any_order(way, X, seed):
    gamma, w = weights(X.shape[1], seed)
    orders = order_samples(way(X))
    genes = np.random.default_rng(seed).permutation(X.shape[1])[: 1 + seed % X.shape[1]]
    for make, a in ((orders.ranks, gamma), (orders.coranks, w)):
        np.testing.assert_array_equal(
            make(a, genes=genes).values, make(a).columns(genes)
        )
    groups = orders.groups_of(genes).astype(int)
    signs = np.sign(groups[:, :, None] - groups[:, None, :])
    above = np.greater(X[:, genes, None], X[:, None, genes]).astype(int)
    np.testing.assert_array_equal(signs, above - above.transpose(0, 2, 1))


@EACH_WAY
@EACH_TIES
@pytest.mark.parametrize("n_values", [1, 2, 7, 50])
@pytest.mark.parametrize("n_weights", [0, 1, 9, 27, 43])
def test_few_weights_and_many_ties_follow_the_definition(
    way, ties, n_values, n_weights
):
    """The sums over groups have ways of their own for few weights and for
    few groups.
    """
    rng = np.random.default_rng(n_values)
    X = rng.integers(0, n_values, size=(5, 43)).astype(float)
    a = np.zeros(43)
    a[rng.permutation(43)[:n_weights]] = rng.normal(size=n_weights)
    ranks = full(order_samples(way(X)).ranks(a, ties, np.float64), 43)
    np.testing.assert_allclose(ranks, ranks_by_definition(X, a, ties), atol=1e-12)


@EACH_TIES
def test_dense_and_sparse_orders_and_the_plain_twin_agree_on_many_genes(ties):
    X = sparse.random_array(
        (40, 3000), density=0.1, rng=np.random.default_rng(0)
    ).toarray()
    X[::2] -= 0.5 * (X[::2] > 0)  # negative values too
    gamma, w = weights(3000, 1)
    dense, by_nonzeros = order_samples(X), order_samples(sparse.csr_array(X))
    for name, a in {"ranks": gamma, "coranks": w}.items():
        one, *others = (
            full(getattr(o, name)(a, ties, np.float64), 3000)
            for o in (dense, by_nonzeros, plain_orders(dense))
        )
        for other in others:
            np.testing.assert_allclose(
                one, other, rtol=1e-12, atol=1e-12 * np.abs(a).sum()
            )
    one, other = (o.scores(w, gamma, ties) for o in (dense, by_nonzeros))
    np.testing.assert_allclose(
        one, other, rtol=1e-12, atol=1e-12 * np.abs(w).sum() * gamma.sum()
    )


@given(X=small_integers)
def test_orders_do_not_change_under_a_monotone_map(X):
    for mapped in (np.exp(X / 2.0), 2.0 * X - 7, X.astype(np.float32) ** 3, X * 10**15):
        assert_orders(order_samples(mapped), X)


# Number types and memory layouts


@EACH_WAY
@pytest.mark.parametrize("dtype", [*INTEGERS, "bool", "float16", "float32", "float64"])
def test_every_number_type_is_ordered(dtype, way):
    if way is not np.asarray and dtype == "float16":
        pytest.skip("scipy has no sparse matrices of half precision")
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, size=(7, 30))
    if np.dtype(dtype).kind in "if":
        X -= 4
    X = X.astype(dtype)
    if np.dtype(dtype).kind in "iu":
        X[:, 0], X[:, 1] = np.iinfo(dtype).min, np.iinfo(dtype).max
    assert_orders(order_samples(way(X)), X)


@EACH_WAY
def test_neighbouring_integers_beyond_the_floats_stay_apart(way):
    rng = np.random.default_rng(0)
    for dtype, top in (("uint64", 2**64 - 1), ("int64", 2**63 - 1)):
        near_top = np.array([top - k for k in range(200)], dtype=dtype)
        X = np.array([rng.permutation(near_top) for _ in range(3)])
        assert_orders(order_samples(way(X)), X)


def test_extreme_values_and_any_memory_layout_are_ordered():
    extreme = np.array([[1e308, -1e308, 5e-324, -5e-324, 0.0, -0.0, 1e308, 1.7e308]])
    assert_orders(order_samples(extreme), extreme)
    X = np.random.default_rng(0).normal(size=(9, 20))
    wide = np.zeros((18, 60))
    wide[::2, ::3] = X
    frozen = X.copy()
    frozen.setflags(write=False)
    for laid_out in (
        np.asfortranarray(X),
        wide[::2, ::3],
        X.astype(">f8"),
        frozen,
        X.tolist(),
    ):
        assert_orders(order_samples(laid_out), X)


def test_explicit_zeros_duplicates_and_unsorted_indices_mean_what_they_say():
    data = np.array([3.0, 0.0, 1.0, 2.0, -1.0, 1.0])
    messy = sparse.csr_array((data, [4, 0, 2, 2, 1, 1], [0, 4, 6]), shape=(2, 5))
    X = np.array([[0.0, 0, 3, 0, 3], [0, 0, 0, 0, 0]])
    orders = order_samples(messy)
    assert_orders(orders, X)
    assert orders.genes.size == 2
    np.testing.assert_array_equal(messy.data, data)  # the input is left as it was
    for form in ("csc", "coo", "lil"):
        assert_orders(order_samples(messy.copy().asformat(form)), X)


@EACH_WAY
@pytest.mark.parametrize(("d", "index"), [(65_535, np.uint16), (65_536, np.uint32)])
def test_genes_are_numbered_with_16_bits_while_that_is_enough(d, index, way):
    X = np.random.default_rng(0).permutation(d).astype(np.float32)[None] - 0.5 * d
    orders = order_samples(way(X))
    assert orders.groups.dtype == index
    ranks = full(orders.ranks(np.ones(d), dtype=np.float64), d)
    np.testing.assert_array_equal(ranks, np.argsort(np.argsort(X, axis=1), axis=1))


# Accuracy


@EACH_WAY
def test_ranks_of_60000_genes_have_one_rounding_and_scores_are_exact(way):
    d, rng = 60_000, np.random.default_rng(0)
    order = rng.permutation(d)
    X = np.empty((1, d))
    X[0, order] = np.arange(d)
    scaled, w_scaled = (
        rng.integers(0, 2**20, size=d),
        rng.integers(-(2**20), 2**20, size=d),
    )
    exact = np.empty(d, np.int64)
    exact[order] = (
        2 * np.cumsum(scaled[order]) - scaled[order] - 2**20
    )  # 2^21 times the ranks
    orders = order_samples(way(X))
    ranks = full(orders.ranks(scaled / 2.0**20, dtype=np.float32), d)[0]
    np.testing.assert_allclose(ranks, exact / 2.0**21, rtol=1.2e-7, atol=0)
    score = orders.scores(w_scaled / 2.0**20, scaled / 2.0**20)[0]
    expected = Fraction(
        sum(int(a) * int(b) for a, b in zip(w_scaled, exact, strict=True)), 2**41
    )
    size = float(np.abs(w_scaled) @ np.abs(exact / 2.0**41))
    assert score == pytest.approx(float(expected), abs=1e-14 * size)


# Samples and threads


@EACH_WAY
def test_taking_samples_is_ordering_those_samples(way):
    X = np.random.default_rng(0).poisson(0.7, size=(8, 40)) - 1.0
    orders = order_samples(way(X))
    mask = np.arange(8) % 3 == 0
    gamma, w = weights(40, 0)
    for some in (
        mask,
        np.array([5, 0, 5, 7]),
        np.zeros(8, bool),
        slice(1, 8, 2),
        slice(2, 5),
    ):
        taken = orders.take(some)
        assert taken.n_samples == len(X[some])
        np.testing.assert_allclose(
            taken.scores(w, gamma), orders.scores(w, gamma)[some]
        )
        np.testing.assert_array_equal(
            full(taken.ranks(gamma), 40), full(orders.ranks(gamma), 40)[some]
        )


@EACH_WAY
def test_a_matrix_made_before_can_be_written_over(way):
    orders = order_samples(way(np.random.default_rng(0).poisson(0.7, size=(8, 40))))
    gamma, w = weights(40, 0)
    made = orders.ranks(gamma)
    reused = orders.coranks(w, reuse=made)
    assert np.shares_memory(
        *(
            m.values if isinstance(orders, DenseOrders) else m.excess
            for m in (made, reused)
        )
    )
    np.testing.assert_array_equal(full(reused, 40), full(orders.coranks(w), 40))


@EACH_WAY
@pytest.mark.parametrize("n_jobs", [None, 3, -1])
def test_the_number_of_threads_does_not_change_the_orders(way, n_jobs, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 300)
    X = np.random.default_rng(0).poisson(0.7, size=(50, 60)) - 1.0
    assert_orders(order_samples(way(X), n_jobs=n_jobs), X)


@EACH_WAY
def test_orders_sent_to_another_process_and_read_only_serve_as_well(way):
    X = np.random.default_rng(0).poisson(1.0, size=(4, 10))
    orders = pickle.loads(pickle.dumps(order_samples(way(X))))
    gamma, w = weights(10, 0)
    before = orders.scores(w, gamma)
    for array in vars(orders).values():
        if isinstance(array, np.ndarray):
            array.setflags(write=False)
    np.testing.assert_array_equal(orders.scores(w, gamma), before)
    assert_orders(orders, X)


# Errors


@EACH_WAY
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_without_a_rank_are_counted_in_the_error(bad, way):
    X = np.ones((3, 4))
    X[1, 2] = X[2, 0] = bad
    with pytest.raises(ValueError, match=r"NaN or infinite values.*\(2 in"):
        order_samples(way(X.astype(np.float32)))


@pytest.mark.parametrize(
    "X",
    [
        np.array([["a", "b"]]),
        np.array([[1, None]]),
        np.ones((2, 2), "g"),
        sparse.eye_array(2) * 1j,
    ],
)
def test_other_types_than_numbers_are_refused(X):
    with pytest.raises(ValueError, match=f"X has dtype {X.dtype}"):
        order_samples(X)


@pytest.mark.parametrize(
    "X", [np.ones((0, 3)), np.ones(3), np.ones((1, 2, 3)), sparse.csr_array((0, 3))]
)
def test_shapes_other_than_samples_by_genes_are_refused(X):
    with pytest.raises(ValueError, match="at least one of each"):
        order_samples(X)


def test_unknown_ties_and_no_thread_are_refused():
    orders = order_samples(np.eye(3, 4))
    with pytest.raises(ValueError, match="'average', 'min', 'max'"):
        orders.ranks(np.ones(4), ties="dense")
    with pytest.raises(ValueError, match="n_jobs=0"):
        order_samples([[1.0]], n_jobs=0)
