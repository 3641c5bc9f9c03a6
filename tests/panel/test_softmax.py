"""The fit of the panel model: against its definition and scikit-learn, whatever the threads."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from optirank.panel.softmax import balanced_weights, fit_ridge


def problem(n=300, k=25, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    ranks = rng.permuted(np.tile(np.arange(k), (n, 1)), axis=1)
    codes = rng.integers(0, n_classes, n)
    codes[:n_classes] = np.arange(n_classes)
    ranks[codes == 1, 0] += k // 2
    return 2 * ranks.astype(np.uint16), codes, balanced_weights(codes)


def objective(W, b, doubled, codes, weights, l2):
    z = doubled / (2 * doubled.shape[1]) @ W.T + b
    if W.shape[0] == 1:
        z = np.column_stack([np.zeros(len(z)), z[:, 0]])
    losses = -log_softmax(z, axis=1)[np.arange(len(z)), codes]
    return weights @ losses + l2 * (W**2).sum()


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_the_gradient_vanishes_at_the_solution(n_classes):
    doubled, codes, weights = problem(n_classes=n_classes)
    found = fit_ridge(doubled, codes, n_classes, weights, l2=0.03, tol=1e-6)
    shape = found.coef.shape

    def f(x):
        return objective(
            x[: -shape[0]].reshape(shape), x[-shape[0] :], doubled, codes, weights, 0.03
        )

    x = np.concatenate([found.coef.ravel(), found.intercept])
    assert abs(approx_fprime(x, f, 1e-6)).max() < 1e-4
    assert f(x) == pytest.approx(found.objective, rel=1e-5)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_equals_scikit_learn(n_classes):
    doubled, codes, weights = problem(n_classes=n_classes)
    found = fit_ridge(doubled, codes, n_classes, weights, l2=0.05, tol=1e-7)
    C = 1 / (2 * 0.05 * len(codes))
    other = LogisticRegression(C=C, class_weight="balanced", tol=1e-9, max_iter=5000)
    other.fit(doubled / (2 * doubled.shape[1]), codes)
    assert np.abs(found.coef - other.coef_).max() < 1e-4
    centred = found.intercept - found.intercept.mean() * (n_classes > 2)
    expected = other.intercept_ - other.intercept_.mean() * (n_classes > 2)
    assert np.abs(centred - expected).max() < 1e-3


def test_threads_change_no_bit():
    doubled, codes, weights = problem(n=5000)
    one, two = (
        fit_ridge(doubled, codes, 4, weights, l2=0.01, tol=1e-6, n_threads=n)
        for n in (1, 3)
    )
    assert (one.coef == two.coef).all()
    assert (one.intercept == two.intercept).all()


def test_a_start_changes_the_way_and_not_the_end():
    doubled, codes, weights = problem()
    first = fit_ridge(doubled, codes, 4, weights, l2=0.03, tol=1e-7)
    again = fit_ridge(doubled, codes, 4, weights, l2=0.03, tol=1e-7, start=first)
    assert again.n_iter < first.n_iter
    assert np.abs(again.coef - first.coef).max() < 1e-4


def test_classes_count_equally_and_weights_sum_to_one():
    codes, q = np.array([0, 0, 0, 1]), np.array([1.0, 1.0, 2.0, 7.0])
    assert balanced_weights(codes).tolist() == pytest.approx(
        [1 / 6, 1 / 6, 1 / 6, 1 / 2]
    )
    assert balanced_weights(codes, q).tolist() == pytest.approx(
        [1 / 8, 1 / 8, 1 / 4, 1 / 2]
    )
