"""Ranks relative to fractional reference weights, against the definition."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from optirank.ranks.definition import TIES, ranks_by_definition
from optirank.ranks.relative import relative_ranks, weighted_ranks

CONTAINERS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
}


def make(seed, n=5, d=8):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 4, size=(n, d)) * (rng.random((n, d)) < 0.7).astype(float)
    X[0] = rng.normal(size=d)
    weights = rng.uniform(size=d) * (rng.random(d) < 0.7)
    weights[rng.integers(d)] = 0.5
    genes = rng.permutation(d)[: rng.integers(1, d + 1)]
    return X, weights, genes


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("ties", TIES)
@given(seed=st.integers(0, 10**6))
def test_weighted_ranks_are_the_definition(seed, ties, container):
    X, weights, genes = make(seed)
    ranks = weighted_ranks(CONTAINERS[container](X), weights, ties=ties, scale=False, genes=genes)
    expected = ranks_by_definition(X, weights, ties)[:, genes]
    np.testing.assert_allclose(ranks, expected, atol=1e-12)


@pytest.mark.parametrize("ties", TIES)
def test_weights_of_zero_and_one_are_a_reference_set(ties):
    X, weights, genes = make(0)
    ranks = weighted_ranks(X, (weights > 0).astype(float), ties=ties, genes=genes)
    expected = relative_ranks(X, weights > 0, ties=ties, genes=genes)
    np.testing.assert_allclose(ranks, expected, atol=1e-12)


def test_genes_outside_are_not_read():
    X, weights, genes = make(1)
    unread = np.setdiff1d(np.flatnonzero(weights == 0), genes)
    before = weighted_ranks(X, weights, genes=genes)
    X[:, unread] = 1e300
    np.testing.assert_array_equal(weighted_ranks(X, weights, genes=genes), before)


def test_large_integers_lose_nothing():
    X = np.array([[2**62, 2**62 + 1, 2**62 + 2]])
    ranks = weighted_ranks(X, np.array([0.5, 0.25, 0.25]))
    np.testing.assert_allclose(ranks, [[-0.25, 0.125, 0.375]])


def test_ranks_are_divided_by_the_sum_of_the_weights():
    X, weights, _ = make(3)
    expected = ranks_by_definition(X, weights) / weights.sum()
    np.testing.assert_allclose(weighted_ranks(X, weights), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("weights", "message"),
    [(np.zeros(8), "all weights are zero"), (np.ones(7), r"weights of shape \(7,\): X has 8")],
)
def test_weights_that_rank_nothing_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        weighted_ranks(make(2)[0], weights)
