"""Simulated platforms: random factors of the genes, the same in all samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from optirank.panel.drills import log_spread, simulate_platforms


def counts(n=40, d=30):
    rng = np.random.default_rng(0)
    return rng.poisson(np.exp(rng.normal(1.0, 1.5, d)), (n, d)).astype(float)


def logs(n=40, d=30):
    rng = np.random.default_rng(0)
    return rng.normal(rng.uniform(3.0, 12.0, d), 0.5, (n, d))


def linear(n=40, d=30):
    return np.exp(logs(n, d))


@pytest.mark.parametrize("make", [counts, logs, linear])
@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_copies_have_the_form_of_the_samples_which_stay_as_they_are(make, form):
    X, before = form(make()), make()
    copies = simulate_platforms(X, [1.0] * 3, 0)
    assert len(copies) == 3
    for one in copies:
        assert type(one) is type(X)
        assert one.shape == X.shape
        assert abs(one - before).max() > 0
    assert abs(X - before).max() == 0
    assert abs(copies[0] - copies[1]).max() > 0
    assert abs(simulate_platforms(X, [0.0], 0)[0] - before).max() == 0


def test_all_samples_share_the_factor_of_a_gene():
    X = linear(d=400)
    (copy,) = simulate_platforms(X, [0.5], 0)
    factors = copy / X
    np.testing.assert_allclose(factors, np.tile(factors[0], (40, 1)))
    assert np.log(factors[0]).std() == pytest.approx(0.5 * log_spread(X), rel=0.15)


def test_logarithms_are_shifted_by_as_much_as_linear_values_are_multiplied():
    X = logs(d=400)
    (copy,) = simulate_platforms(X, [0.5], 0)
    np.testing.assert_allclose(copy - X, np.tile(copy[0] - X[0], (40, 1)))
    assert (copy[0] - X[0]).std() == pytest.approx(0.5 * X.std(), rel=0.15)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
@pytest.mark.parametrize("change", [np.array, np.log1p], ids=["counts", "logarithms"])
def test_zeros_stay_zeros_and_the_expressed_stay_expressed(form, change):
    X = change(counts())
    for copy in simulate_platforms(form(X), [3.0] * 2, 1):
        there = copy.toarray() if sparse.issparse(copy) else copy
        np.testing.assert_array_equal(there > 0, X > 0)
        assert (there >= 0).all()


@given(st.integers(0, 10_000), st.floats(0.1, 2.0))
def test_dense_and_sparse_get_the_same_factors(seed, strength):
    X = counts(n=5, d=7)
    (dense,), (thin,) = (
        simulate_platforms(form(X), [strength], seed)
        for form in (np.array, sparse.csc_array)
    )
    np.testing.assert_allclose(thin.toarray(), dense)


def test_the_seed_and_the_spread_decide_whatever_the_samples():
    X = linear()
    whole = simulate_platforms(X, (0.5, 1.0), 5)
    part = simulate_platforms(X[:7], (0.5, 1.0), 5, spread=log_spread(X))
    for one, other in zip(whole, part, strict=True):
        np.testing.assert_allclose(one[:7], other)
    assert (simulate_platforms(X, [0.5], 6)[0] != whole[0]).any()


def test_single_precision_stays():
    assert (
        simulate_platforms(counts().astype(np.float32), [1.0], 0)[0].dtype == np.float32
    )
    assert simulate_platforms(counts().astype(int), [1.0], 0)[0].dtype == np.float64


def test_the_spread_is_that_of_the_genes_means_with_zeros_and_of_all_values_without():
    X = counts(n=100)
    assert log_spread(X) == pytest.approx(np.log1p(X).mean(axis=0).std())
    assert log_spread(sparse.csr_array(X)) == pytest.approx(log_spread(X))
    ratios = np.random.default_rng(0).normal(
        0, 0.4, (50, 40)
    )  # all means are nearly equal
    assert log_spread(ratios) == pytest.approx(0.4, rel=0.1)
