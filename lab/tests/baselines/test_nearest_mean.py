"""Classifiers on ranks: scikit-learn's contract, Spearman's correlation by
definition.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata, spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from optirank_lab.baselines.nearest_mean import (
    SpearmanCentroid,
    lr_on_ranks,
    sample_ranks,
)


@parametrize_with_checks([SpearmanCentroid()])
def test_scikit_learns_contract_is_kept(estimator, check):
    check(estimator)


@given(arrays(float, (5, 7), elements=st.sampled_from([-2.0, 0.0, 0.0, 1.0, 3.0])))
def test_ranks_are_average_ranks(X):
    expected = rankdata(X, axis=1) - 1
    np.testing.assert_array_equal(sample_ranks(X), expected)
    np.testing.assert_array_equal(sample_ranks(sp.csr_matrix(X)), expected)


@settings(deadline=None)
@given(arrays(float, (9, 6), elements=st.integers(0, 5).map(float)))
def test_the_centroid_of_highest_spearman_correlation_wins(X):
    y = np.array(["a", "b", "c"] * 3)
    model = SpearmanCentroid().fit(X, y)
    ranks = rankdata(X, axis=1)
    centroids = np.array([ranks[y == one].mean(axis=0) for one in "abc"])
    found = model.correlations(X)
    for i, k in np.ndindex(found.shape):
        if np.ptp(X[i]) and np.ptp(centroids[k]):
            assert found[i, k] == pytest.approx(
                spearmanr(X[i], centroids[k]).statistic, abs=1e-6
            )
        else:
            assert found[i, k] == 0
    np.testing.assert_array_equal(
        model.predict(X), model.classes_[found.argmax(axis=1)]
    )


def test_logistic_regression_is_that_of_scikit_learn_on_ranks():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(50, 12)), np.arange(50) % 2
    ours = lr_on_ranks().fit(X, y)
    ranks = (rankdata(X, axis=1) - 1) / 12
    options = {"class_weight": "balanced", "max_iter": 10_000, "tol": 1e-10}
    theirs = LogisticRegression(**options).fit(ranks, y)  # centring changes nothing
    np.testing.assert_allclose(ours[-1].coef_, theirs.coef_, atol=5e-3)
