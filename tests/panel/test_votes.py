"""Votes: ranks of genes among themselves, by their definition; their fit against its
definition and scikit-learn, whatever the threads.
"""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime
from scipy.special import log_softmax
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression

from optirank._util.work import using_threads
from optirank.panel.votes import (
    centred,
    doubled_ranks_among,
    fit_votes,
    mean_weights,
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
    doubled = doubled_ranks_among(sort_groups(X), rows, columns)
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


def problem(n=300, k=25, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, k))
    codes = rng.integers(0, n_classes, n)
    codes[:n_classes] = np.arange(n_classes)
    values[codes == 1, 0] += 2
    ranks = values.argsort(axis=1).argsort(axis=1)
    return 2 * ranks.astype(np.uint16), codes, mean_weights(codes)


def objective(W, doubled, codes, weights, l2):
    z = centred(doubled) @ W.T
    if W.shape[0] == 1:
        z = np.column_stack([np.zeros(len(z)), z[:, 0]])
    losses = -log_softmax(z, axis=1)[np.arange(len(z)), codes]
    return weights @ losses + l2 * (W**2).sum()


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_the_numerical_gradient_vanishes_at_the_solution(n_classes):
    doubled, codes, weights = problem(n_classes=n_classes)
    coef = fit_votes(doubled, codes, n_classes, weights, l2=0.03, tol=1e-6)

    def f(x):
        return objective(x.reshape(coef.shape), doubled, codes, weights, 0.03)

    assert abs(approx_fprime(coef.ravel(), f, 1e-6)).max() < 1e-4


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("balanced", [True, False])
def test_equals_scikit_learns_regression_without_intercept(n_classes, balanced):
    doubled, codes, _ = problem(n_classes=n_classes)
    weights = mean_weights(codes, balanced=balanced)
    coef = fit_votes(doubled, codes, n_classes, weights, l2=0.05, tol=1e-7)
    other = LogisticRegression(
        C=1 / (2 * 0.05 * len(codes)),
        class_weight="balanced" if balanced else None,
        fit_intercept=False,
        tol=1e-9,
        max_iter=5000,
    )
    other.fit(centred(doubled), codes)
    assert np.abs(coef - other.coef_).max() < 1e-4


def test_weights_of_one_class_add_up_to_nothing_over_the_classes():
    doubled, codes, weights = problem(n_classes=5)
    coef = fit_votes(doubled, codes, 5, weights, l2=0.03, tol=1e-6)
    assert np.abs(coef.sum(axis=0)).max() < 1e-4


def test_threads_change_no_bit():
    doubled, codes, weights = problem(n=5000)
    one = fit_votes(doubled, codes, 4, weights, l2=0.01, tol=1e-6)
    with using_threads(3):
        three = fit_votes(doubled, codes, 4, weights, l2=0.01, tol=1e-6)
    assert (one == three).all()


def test_a_start_changes_the_way_and_not_the_end():
    doubled, codes, weights = problem()
    first = fit_votes(doubled, codes, 4, weights, l2=0.03, tol=1e-7)
    again = fit_votes(doubled, codes, 4, weights, l2=0.03, tol=1e-7, start=first)
    assert np.array_equal(again, first)  # nothing is left to do
    start = np.random.default_rng(0).normal(size=first.shape)
    other = fit_votes(doubled, codes, 4, weights, l2=0.03, tol=1e-7, start=start)
    assert not np.array_equal(other, first)
    assert np.abs(other - first).max() < 1e-4


def test_balanced_classes_count_equally_and_weights_sum_to_one():
    codes = np.array([0, 0, 0, 1])
    q = np.array([1.0, 1.0, 2.0, 7.0])
    sixth = 1 / 6
    assert mean_weights(codes) == pytest.approx([sixth, sixth, sixth, 1 / 2])
    assert mean_weights(codes, q) == pytest.approx([1 / 8, 1 / 8, 1 / 4, 1 / 2])
    assert mean_weights(codes, q, balanced=False) == pytest.approx(q / 11)
