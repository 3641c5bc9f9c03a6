"""ElasticNetLogisticRegression (lr): it is scikit-learn's, in our units."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from optirank.estimators.logistic import ElasticNetLogisticRegression


@parametrize_with_checks([ElasticNetLogisticRegression(), ElasticNetLogisticRegression(l1=1e-2)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def problem():
    X, y = make_classification(
        160, 20, n_informative=6, weights=[0.7], flip_y=0.1, class_sep=0.6, random_state=0
    )
    return X, y


def objective(X, y, w, b, l1, l2, weights=None):
    q = np.ones(len(y)) if weights is None else weights
    v = q / (2 * np.where(y == 1, q[y == 1].sum(), q[y == 0].sum()))
    z = X @ w + b
    return v @ (np.logaddexp(0, z) - y * z) + l1 * np.abs(w).sum() + l2 * (w @ w)


@pytest.mark.parametrize(
    ("l1", "l2"), [(0.0, 1e-1), (0.0, 1e-4), (1e-2, 0.0), (1e-3, 1e-3), (1e-2, 1e-1)]
)
def test_it_agrees_with_scikit_learn(problem, l1, l2):
    X, y = problem
    ours = ElasticNetLogisticRegression(l1, l2).fit(X, y)
    theirs = LogisticRegression(
        solver="saga",
        C=1 / (len(y) * (2 * l2 + l1)),
        l1_ratio=l1 / (2 * l2 + l1),
        class_weight="balanced",
        tol=1e-10,
        max_iter=50_000,
    ).fit(X, y)
    expected = objective(X, y, theirs.coef_[0], theirs.intercept_[0], l1, l2)
    found = objective(X, y, ours.coef_[0], ours.intercept_[0], l1, l2)
    assert found == pytest.approx(expected, rel=1e-5)
    assert ours.objective_[0] == pytest.approx(found, rel=1e-5)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_without_penalties_the_floor_stands_in(problem):
    X, y = problem
    ours = ElasticNetLogisticRegression(0.0, 0.0).fit(X[:12], y[:12])  # separable
    assert np.isfinite(ours.coef_).all()
    found = objective(X[:12], y[:12], ours.coef_[0], ours.intercept_[0], 0.0, 1e-7)
    assert ours.objective_[0] == pytest.approx(found, rel=1e-4)


def test_the_genes_are_those_with_a_weight(problem):
    X, y = problem
    model = ElasticNetLogisticRegression(l1=3e-2).fit(X, y)
    np.testing.assert_array_equal(model.genes_, model.coef_[0] != 0)
    assert 0 < model.genes_.sum() < 20


def test_several_classes_are_one_problem_each():
    X, y = make_classification(
        150, 10, n_informative=5, n_classes=3, n_clusters_per_class=1, random_state=0
    )
    model = ElasticNetLogisticRegression().fit(X, y)
    assert model.decision_function(X).shape == (150, 3)
    for k in range(3):
        one = ElasticNetLogisticRegression().fit(X, y == k)
        np.testing.assert_allclose(model.coef_[k], one.coef_[0])
    assert model.score(X, y) > 0.7


def test_sparse_values_and_names(problem):
    X, y = problem
    X = np.where(X > 0.3, X, 0.0)
    dense = ElasticNetLogisticRegression().fit(X, y)
    thin = ElasticNetLogisticRegression().fit(sp.csr_array(X), y)
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-4)
    np.testing.assert_allclose(thin.decision_function(sp.csr_array(X)), thin.decision_function(X))
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(20)])
    assert list(ElasticNetLogisticRegression().fit(frame, y).feature_names_in_) == [*frame.columns]


def test_sample_weights_are_those_of_the_objective(problem):
    X, y = problem
    weights = np.random.default_rng(0).uniform(0.1, 4, size=len(y))
    model = ElasticNetLogisticRegression(l2=1e-2).fit(X, y, weights)
    w, b = model.coef_[0], model.intercept_[0]
    here = objective(X, y, w, b, 0.0, 1e-2, weights)
    for step in np.random.default_rng(1).normal(scale=1e-2, size=(20, 21)):
        assert objective(X, y, w + step[:-1], b + step[-1], 0.0, 1e-2, weights) > here


def test_bad_options_and_too_few_steps_are_named(problem):
    with pytest.raises(ValueError, match="-1 is no penalty"):
        ElasticNetLogisticRegression(l1=-1).fit(*problem)
    with pytest.raises(ValueError, match="class_weight"):
        ElasticNetLogisticRegression(class_weight="half").fit(*problem)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        ElasticNetLogisticRegression(l2=1e-6, max_iter=1).fit(*problem)
