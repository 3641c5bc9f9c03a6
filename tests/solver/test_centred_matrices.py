"""Centred matrices: dense and sparse ones agree, with each other and with the definition."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from optirank.ranks.definition import TIES, coranks_by_definition, ranks_by_definition
from optirank.ranks.orders import order_samples
from optirank.solver.matrices import CentredDense, CentredSparse, ProblemMatrices
from optirank.solver.problem import Problem, sample_weights

CONTAINERS = {"dense": (np.asarray, CentredDense), "sparse": (sp.csr_array, CentredSparse)}


def make_problem(seed, container, ties, n=10, d=7):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 4, size=(n, d)) * (rng.random((n, d)) < 0.6).astype(float)
    y = (np.arange(n) % 3 == 0).astype(float)
    v = sample_weights(y, rng.uniform(0.5, 2.0, n))
    return Problem(order_samples(container(X)), y, v, 3, ties=ties), X, rng


def in_full(matrix):
    """The matrix itself, by its products with unit vectors."""
    return np.column_stack([matrix.dot(unit) for unit in np.eye(matrix.n_columns)])


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("container", CONTAINERS)
@given(seed=st.integers(0, 10**6))
def test_they_are_the_scaled_ranks_and_coranks_less_their_weighted_means(seed, container, ties):
    make, kind = CONTAINERS[container]
    problem, X, rng = make_problem(seed, make, ties)
    d = problem.n_genes
    gamma, w = rng.dirichlet(np.ones(d)) * 3, rng.normal(size=d)
    matrices = ProblemMatrices(problem)
    for matrix, expected in (
        (matrices.ranks(gamma), ranks_by_definition(X, gamma, ties) / 3),
        (matrices.coranks(w), coranks_by_definition(X, w, ties) / 3),
    ):
        assert isinstance(matrix, kind)
        expected = expected - problem.v @ expected
        np.testing.assert_allclose(in_full(matrix), expected, atol=2e-6)
        a = rng.normal(size=d)
        assert matrix.dot(a).dtype == np.float32
        np.testing.assert_allclose(matrix.dot(a), expected @ a, atol=2e-5)
        slopes = rng.normal(size=len(X)).astype(np.float32)
        assert matrix.transpose_dot(slopes).dtype == np.float64
        np.testing.assert_allclose(matrix.transpose_dot(slopes), expected.T @ slopes, atol=2e-5)


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_matrix_is_written_over_by_the_next_of_its_kind_only(container):
    problem, _, rng = make_problem(0, CONTAINERS[container][0], "average")
    d = problem.n_genes
    matrices = ProblemMatrices(problem)
    ranks = matrices.ranks(np.full(d, 3 / d))
    before = in_full(ranks)
    matrices.coranks(rng.normal(size=d))
    np.testing.assert_array_equal(in_full(ranks), before)
    again = matrices.ranks(np.full(d, 3 / d))
    np.testing.assert_array_equal(in_full(again), before)


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_two_matrices_give_the_same_scores_up_to_the_intercept(container):
    problem, _, rng = make_problem(3, CONTAINERS[container][0], "average")
    d = problem.n_genes
    gamma, w = rng.dirichlet(np.ones(d)) * 3, rng.normal(size=d)
    matrices = ProblemMatrices(problem)
    z = problem.scores(w, 0.0, gamma)
    z -= problem.v @ z
    np.testing.assert_allclose(matrices.ranks(gamma).dot(w), z, atol=1e-5)
    np.testing.assert_allclose(matrices.coranks(w).dot(gamma), z, atol=1e-5)


@pytest.mark.parametrize("ties", TIES)
@given(seed=st.integers(0, 10**6))
def test_matrices_of_some_genes_are_columns_of_the_whole(seed, ties):
    problem, _, rng = make_problem(seed, np.asarray, ties)
    d = problem.n_genes
    gamma, w = rng.dirichlet(np.ones(d)) * 3, rng.normal(size=d)
    genes = np.sort(rng.permutation(d)[: rng.integers(1, d + 1)])
    matrices = ProblemMatrices(problem)
    assert matrices.restricts
    for make, a in ((matrices.ranks, gamma), (matrices.coranks, w)):
        whole = in_full(make(a))
        np.testing.assert_allclose(in_full(make(a, genes)), whole[:, genes], atol=1e-6)


@pytest.mark.parametrize("container", CONTAINERS)
def test_columns_are_those_of_the_matrix(container):
    problem, _, rng = make_problem(5, CONTAINERS[container][0], "average")
    d = problem.n_genes
    matrix = ProblemMatrices(problem).ranks(rng.dirichlet(np.ones(d)) * 3)
    whole = in_full(matrix)
    for genes in (rng.permutation(d)[:2], rng.permutation(d), np.arange(d)):
        columns = matrix.columns(genes)
        assert columns.dtype == np.float32
        np.testing.assert_allclose(columns, whole[:, genes], atol=1e-6)
    np.testing.assert_allclose(in_full(matrix), whole, atol=1e-6)  # also after centring in place
