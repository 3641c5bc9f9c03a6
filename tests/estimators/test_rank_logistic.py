"""rank-lr is logistic regression on full ranks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from optirank import (
    RankLogisticRegression,
)
from optirank.ranks.scoring import TIES


def make_counts(n=120, d=20, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    rate = rng.uniform(1, 8, size=d) * np.exp(
        rng.normal(scale=0.6, size=(n_classes, d))
    )
    return rng.poisson(rate[y]).astype(float), y


def full_ranks(X, ties="average"):
    return (rankdata(X, method=ties, axis=1) - 1) / X.shape[1]


def objective(R, y, w, b, l1, l2):
    v = 0.5 / np.where(y == 1, y.sum(), (1 - y).sum())
    z = R @ w + b
    return v @ (np.logaddexp(0, z) - y * z) + l1 * np.abs(w).sum() + l2 * w @ w


def scikit_learn(R, y, l1, l2):
    total = 2 * l2 + l1
    settings = {
        "C": 1 / (len(y) * total),
        "class_weight": "balanced",
        "max_iter": 20_000,
    }
    if l1:
        settings |= {
            "l1_ratio": l1 / total,
            "solver": "saga",
            "tol": 1e-7,
            "random_state": 0,
        }
    else:
        settings |= {"tol": 1e-9}
    return LogisticRegression(**settings).fit(R, y)


@pytest.mark.parametrize("shape", [(120, 20), (40, 80)])
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 1e-3), (0.0, 1e-5), (5e-3, 1e-3)])
def test_it_agrees_with_scikit_learn_on_the_ranks(shape, l1, l2):
    X, y = make_counts(*shape)
    R = full_ranks(X)
    ours, theirs = RankLogisticRegression(l1, l2).fit(X, y), scikit_learn(R, y, l1, l2)
    expected = objective(R, y, theirs.coef_[0], theirs.intercept_[0], l1, l2)
    assert ours.objective_[0] == pytest.approx(expected, abs=1e-5)
    assert ours.objective_[0] <= expected + 1e-8
    own = objective(R, y, ours.coef_[0], ours.intercept_[0], l1, l2)
    assert own == pytest.approx(ours.objective_[0], rel=1e-9)
    assert (ours.predict(X) == theirs.predict(R)).mean() > 0.98


@pytest.mark.parametrize("ties", TIES)
def test_scores_are_linear_in_the_ranks(ties):
    X, y = make_counts()
    model = RankLogisticRegression(ties=ties).fit(X, y)
    expected = full_ranks(X, ties) @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-10)
    assert model.reference_.all()
    assert model.genes_.all()


def test_sparse_dense_and_frames_agree():
    X, y = make_counts()
    X[np.random.default_rng(0).random(X.shape) < 0.9] = 0.0
    dense = RankLogisticRegression().fit(X, y)
    sparse = RankLogisticRegression().fit(sp.csr_array(X), y)
    assert sparse.objective_[0] == pytest.approx(dense.objective_[0], abs=1e-7)
    np.testing.assert_allclose(
        sparse.decision_function(X), dense.decision_function(X), atol=1e-2
    )
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(20)])
    named = RankLogisticRegression().fit(frame, y)
    np.testing.assert_array_equal(named.coef_, dense.coef_)
    np.testing.assert_array_equal(named.feature_names_in_, frame.columns)


def test_without_penalties_a_floor_stands_in():
    X, y = make_counts(n=20)
    none, floor = (
        RankLogisticRegression(l1=0.0, l2=l2).fit(X, y) for l2 in (0.0, 1e-7)
    )
    np.testing.assert_array_equal(none.coef_, floor.coef_)
    assert none.score(X, y) == 1.0


def test_too_few_steps_warn_and_name_the_remedy():
    X, y = make_counts()
    with pytest.warns(
        ConvergenceWarning, match=r"max_iter=2 .*raise max_iter"
    ) as caught:
        RankLogisticRegression(l2=1e-6, max_iter=2).fit(X, y)
    assert caught[0].filename == __file__
