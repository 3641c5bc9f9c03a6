"""Ranks of new samples with NumPy alone equal the definition, whatever holds
the values.
"""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from optirank.ranks.scoring import TIES, weighted_ranks
from rank_definition import ranks_by_definition


def relative_ranks(X, reference, *, genes=None, **options):
    """Ranks relative to a set, given as a mask or as positions."""
    gamma = np.zeros(X.shape[1])
    gamma[reference] = 1.0
    genes = None if genes is None else np.array(genes, dtype=int)
    return weighted_ranks(X, gamma, genes=genes, **options)


EACH_TIES = pytest.mark.parametrize("ties", TIES)


def strided(X):
    wide = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)
    return wide[::2, ::3]


def explicit_zeros(X):
    """A CSR matrix that stores every entry, zeros too, in a shuffled order."""
    n, d = X.shape
    columns = np.tile(np.arange(d)[::-1], n)
    return sp.csr_array(
        (X[:, ::-1].ravel(), columns, np.arange(n + 1) * d), shape=(n, d)
    )


def repeated_entries(X):
    """A CSR matrix whose every entry is stored as two that add up to it."""
    n, d = X.shape
    columns = np.tile(np.repeat(np.arange(d), 2), n)
    parts = np.stack([X - X.dtype.type(1), np.ones_like(X)], axis=2).ravel()
    return sp.csr_array((parts, columns, np.arange(n + 1) * 2 * d), shape=(n, d))


CONTAINERS = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "strided": strided,
    "CSR": sp.csr_array,
    "CSC": sp.csc_array,
    "COO": sp.coo_array,
    "CSR with explicit zeros": explicit_zeros,
}


@st.composite
def problems(draw, largest=2):
    """Samples full of ties, zeros and negative values, and a reference set."""
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 9)))
    X = draw(hnp.arrays(np.int64, shape, elements=st.integers(-largest, largest)))
    reference = draw(hnp.arrays(bool, shape[1]).filter(np.any))
    return X, reference


@pytest.mark.parametrize("container", CONTAINERS)
@given(
    problem=problems(),
    dtype=st.sampled_from([np.int8, np.int64, np.float32, np.float64]),
)
def test_ranks_are_those_of_the_definition(container, problem, dtype):
    X, reference = problem
    held = CONTAINERS[container](X.astype(dtype))
    for ties in TIES:
        ranks = relative_ranks(held, reference, ties=ties)
        assert ranks.dtype == np.float64
        expected = ranks_by_definition(X, reference, ties) / np.count_nonzero(reference)
        np.testing.assert_array_equal(ranks, expected)


@pytest.mark.parametrize("container", CONTAINERS)
@given(problem=problems(), data=st.data())
def test_the_ranks_of_some_genes_are_columns_of_all_ranks(container, problem, data):
    X, reference = problem
    genes = data.draw(st.lists(st.integers(0, X.shape[1] - 1), max_size=12))
    held = CONTAINERS[container](X)
    for ties in TIES:
        some = relative_ranks(held, reference, ties=ties, scale=False, genes=genes)
        expected = ranks_by_definition(X, reference, ties)[
            :, np.array(genes, dtype=int)
        ]
        np.testing.assert_array_equal(some, expected)


@EACH_TIES
@given(problem=problems(largest=10**6))
def test_ranks_do_not_change_under_a_monotone_map(ties, problem):
    X, reference = problem
    expected = relative_ranks(X, reference, ties=ties)
    for mapped in (
        np.arctan(X),
        np.exp(X / 1e6),
        X.astype(float) ** 3,
        X.astype(np.float32),
    ):
        np.testing.assert_array_equal(
            relative_ranks(mapped, reference, ties=ties), expected
        )


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_array])
def test_large_integers_are_compared_exactly(container):
    X = np.array([[2**62 + 1, 2**62, 0]])  # the same number as float64
    ranks = relative_ranks(container(X), [True, True, False], scale=False)
    np.testing.assert_array_equal(ranks, [[1, 0, -0.5]])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64, bool, np.float16, object])
def test_any_real_dtype_is_ranked(dtype):
    X = np.array([[1, 0, 1, 0]]).astype(dtype)
    np.testing.assert_array_equal(
        relative_ranks(X, [0, 1], scale=False), [[1.0, 0.0, 1.0, 0.0]]
    )


def test_entries_stored_twice_are_added_and_the_input_is_left_alone():
    X = np.array([[0, 3, -1], [2, 0, 0]])
    twice = repeated_entries(X)
    before = twice.data.copy()
    np.testing.assert_array_equal(
        relative_ranks(twice, [0, 1]), relative_ranks(X, [0, 1])
    )
    np.testing.assert_array_equal(twice.data, before)


def test_more_samples_than_a_block_are_all_ranked(monkeypatch):
    monkeypatch.setattr("optirank.ranks.scoring._BLOCK", 12)
    X = np.random.default_rng(0).normal(size=(11, 5))
    expected = ranks_by_definition(X, [1, 1, 0, 1, 0]) / 3
    np.testing.assert_array_equal(relative_ranks(X, [0, 1, 3]), expected)


def test_no_samples_give_no_ranks():
    assert relative_ranks(np.empty((0, 3)), [0]).shape == (0, 3)
    assert relative_ranks(sp.csr_array((0, 3)), [0], genes=[1]).shape == (0, 1)


def test_only_the_genes_needed_are_read():
    X = np.array([[1.0, 2.0, np.nan, 3.0]])
    for container in (np.asarray, sp.csr_array, sp.csc_array):
        ranks = relative_ranks(container(X), [0, 1], genes=[3], scale=False)
        np.testing.assert_array_equal(ranks, [[1.5]])


def test_a_panel_needs_no_copy_of_the_whole_matrix():
    X = np.random.default_rng(0).normal(size=(1000, 2000))
    tracemalloc.start()
    relative_ranks(X, np.arange(20), genes=np.arange(10, 40))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 10


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 2])
def test_values_without_a_rank_are_refused(container, bad, place):
    X = np.array([[1.0, 2.0, 3.0]])
    X[0, place] = bad
    with pytest.raises(ValueError, match="NaN or infinite"):
        relative_ranks(container(X), [0, 1])


def test_an_unknown_way_to_rank_ties_is_refused():
    with pytest.raises(ValueError, match="ties='first'"):
        relative_ranks(np.zeros((2, 3)), [0], ties="first")


@pytest.mark.parametrize("container", CONTAINERS)
@EACH_TIES
@given(seed=st.integers(0, 10**6))
def test_weighted_ranks_are_the_definition(seed, ties, container):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 4, size=(5, 8)) * (rng.random((5, 8)) < 0.7).astype(float)
    X[0] = rng.normal(size=8)
    weights = rng.uniform(size=8) * (rng.random(8) < 0.7)
    weights[rng.integers(8)] = 0.5
    genes = rng.permutation(8)[: rng.integers(1, 9)]
    ranks = weighted_ranks(CONTAINERS[container](X), weights, ties=ties, genes=genes)
    expected = ranks_by_definition(X, weights, ties)[:, genes] / weights.sum()
    np.testing.assert_allclose(ranks, expected, atol=1e-12)


def test_ranking_a_dense_array_needs_numpy_alone():
    code = (
        "import sys, numpy as np; from optirank.ranks.scoring import weighted_ranks; "
        "weighted_ranks(np.eye(3), [1, 1, 0]); print([m for m in ('numba', 'scipy', "
        "'sklearn', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
