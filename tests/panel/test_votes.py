"""Votes: ranks of genes among themselves, by their definition."""

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import rankdata

from optirank.panel.votes import (
    centred,
    doubled_ranks_among,
    sort_groups,
    vote_scores,
)
from optirank.ranks.orders import doubled_ranks


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32, np.int64])
def test_doubled_ranks_are_the_definition_with_ties_zeros_and_negatives(kind):
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 4, (40, 30)).astype(kind)
    rows = rng.permutation(40)[:25]
    columns = rng.permutation(30)[:13]
    doubled = doubled_ranks_among(sort_groups(X), rows, columns, n_threads=2)
    assert (doubled / 2 == rankdata(X[np.ix_(rows, columns)], axis=1) - 1).all()
    assert (doubled_ranks(X, n_threads=2) / 2 == rankdata(X, axis=1) - 1).all()


def test_centred_ranks_count_the_comparisons_won_and_lost():
    X = np.random.default_rng(0).integers(0, 5, (20, 7))
    doubled = (2 * (rankdata(X, axis=1) - 1)).astype(int)
    signs = np.sign(X[:, :, None] - X[:, None, :]).sum(axis=2)
    np.testing.assert_allclose(centred(doubled), signs / (2 * 7), atol=1e-15)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_array])
def test_scores_are_the_same_for_one_sample_and_many_in_every_form(form):
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (6000, 12))
    columns = np.array([3, 8, 0, 11, 5, 6, 7, 1, 2])
    coef = rng.normal(size=(3, 9))
    scores = vote_scores(form(X), columns, coef)  # so many are ranked by compiled loops
    few = [vote_scores(form(X[k : k + 1]), columns, coef) for k in range(20)]
    assert np.array_equal(scores[:20], np.concatenate(few))
    expected = (rankdata(X[:, columns], axis=1) - 5) / 9 @ coef.T
    np.testing.assert_allclose(scores, expected, atol=1e-12)
