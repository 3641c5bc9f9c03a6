"""Matrices of ranks multiply as the dense arrays they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from optirank.ranks.orders import order_samples

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@DTYPES
@given(n=st.integers(1, 6), d=st.integers(1, 9), density=st.floats(0, 1), seed=st.integers(0, 99))
def test_products_of_sparse_matrices_are_those_of_the_dense_array(dtype, n, d, density, seed):
    rng = np.random.default_rng(seed)
    X = (rng.uniform(size=(n, d)) < density) * rng.integers(-3, 4, size=(n, d))
    matrix = order_samples(sparse.csr_array(X)).ranks(rng.uniform(size=d), dtype=dtype)
    dense = matrix.toarray().astype(np.float64)
    a, b = rng.normal(size=d), rng.normal(size=n)
    tolerance = 1e-12 if dtype is np.float64 else 1e-5
    assert matrix.shape == dense.shape == (n, d)
    np.testing.assert_allclose(matrix.dot(a), dense @ a, atol=tolerance)
    np.testing.assert_allclose(matrix.transpose_dot(b), dense.T @ b, atol=tolerance)


@DTYPES
@pytest.mark.parametrize("way", [np.asarray, sparse.csr_array])
@given(n=st.integers(1, 6), d=st.integers(1, 9), density=st.floats(0, 1), seed=st.integers(0, 99))
def test_columns_and_groups_of_genes_are_those_of_the_whole_in_any_order(
    way, dtype, n, d, density, seed
):
    rng = np.random.default_rng(seed)
    X = (rng.uniform(size=(n, d)) < density) * rng.integers(-3, 4, size=(n, d))
    orders = order_samples(way(X))
    matrix = orders.ranks(rng.uniform(size=d), dtype=dtype)
    for size in {0, d // 2, d}:
        genes = rng.permutation(d)[:size]
        np.testing.assert_array_equal(matrix.columns(genes), matrix.toarray()[:, genes])
        groups = orders.groups_of(genes).astype(int)
        signs = np.sign(groups[:, :, None] - groups[:, None, :])
        np.testing.assert_array_equal(signs, np.sign(X[:, genes, None] - X[:, None, genes]))


@DTYPES
def test_products_of_dense_matrices_keep_their_precision(dtype):
    rng = np.random.default_rng(0)
    matrix = order_samples(rng.normal(size=(5, 8))).coranks(rng.normal(size=8), dtype=dtype)
    a, b = rng.normal(size=8), rng.normal(size=5)
    assert matrix.shape == (5, 8)
    assert matrix.dot(a).dtype == matrix.transpose_dot(b).dtype == dtype
    np.testing.assert_allclose(matrix.dot(a), matrix.toarray() @ a, rtol=1e-5)
    np.testing.assert_allclose(matrix.transpose_dot(b), matrix.toarray().T @ b, rtol=1e-5)


def test_scores_come_out_of_either_matrix():
    rng = np.random.default_rng(0)
    X = rng.poisson(0.5, size=(20, 50))
    gamma, w = rng.uniform(size=50), rng.normal(size=50)
    for way in (np.asarray, sparse.csr_array):
        orders = order_samples(way(X))
        expected = orders.scores(w, gamma)
        by_ranks = orders.ranks(gamma, dtype=np.float64).dot(w)
        by_coranks = orders.coranks(w, dtype=np.float64).dot(gamma) - 0.5 * w.sum()
        np.testing.assert_allclose(by_ranks, expected, rtol=1e-10)
        np.testing.assert_allclose(by_coranks, expected, rtol=1e-10)


def test_float32_products_of_a_sparse_matrix_are_summed_in_float64():
    rng = np.random.default_rng(0)
    X = sparse.random_array((3, 50_000), density=0.4, rng=rng, format="csr")
    ranks = order_samples(X).ranks(rng.uniform(size=50_000), dtype=np.float32)
    a = rng.uniform(size=50_000)
    exact = ranks.constants * a.sum() + [
        np.dot(ranks.excess[begin:end].astype(float), a[ranks.genes[begin:end]])
        for begin, end in zip(ranks.indptr[:-1], ranks.indptr[1:], strict=True)
    ]
    np.testing.assert_allclose(ranks.dot(a), exact, rtol=1e-13)
