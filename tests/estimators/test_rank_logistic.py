"""RankLogisticRegression is elastic-net logistic regression on full ranks."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from optirank import RankLogisticRegression
from optirank.ranks.definition import TIES


def make_data(n=120, d=20, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    rate = rng.uniform(1, 8, size=d) * np.exp(rng.normal(scale=0.6, size=(n_classes, d)))
    return rng.poisson(rate[y]).astype(float), y


def full_ranks(X, ties="average"):
    return (rankdata(X, method=ties, axis=1) - 1) / X.shape[1]


def objective(R, y, w, b, l1, l2):
    v = 0.5 / np.where(y == 1, y.sum(), (1 - y).sum())
    z = R @ w + b
    return v @ (np.logaddexp(0, z) - y * z) + l1 * np.abs(w).sum() + l2 * w @ w


def scikit_learn(R, y, l1, l2):
    total = 2 * l2 + l1
    settings = {"C": 1 / (len(y) * total), "class_weight": "balanced", "max_iter": 20_000}
    if l1:
        settings |= {"l1_ratio": l1 / total, "solver": "saga", "tol": 1e-7, "random_state": 0}
    else:
        settings |= {"tol": 1e-9}
    return LogisticRegression(**settings).fit(R, y)


@pytest.mark.parametrize("shape", [(120, 20), (40, 80)])
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 1e-3), (0.0, 1e-5), (5e-3, 1e-3)])
def test_it_agrees_with_scikit_learn_on_the_ranks(shape, l1, l2):
    X, y = make_data(*shape)
    R = full_ranks(X)
    ours, theirs = RankLogisticRegression(l1, l2).fit(X, y), scikit_learn(R, y, l1, l2)
    expected = objective(R, y, theirs.coef_[0], theirs.intercept_[0], l1, l2)
    assert ours.objective_[0] == pytest.approx(expected, abs=1e-5)
    assert ours.objective_[0] <= expected + 1e-8
    np.testing.assert_allclose(
        objective(R, y, ours.coef_[0], ours.intercept_[0], l1, l2), ours.objective_[0], rtol=1e-9
    )
    agreement = ours.predict(X) == theirs.predict(R)
    assert agreement.mean() > 0.98


@pytest.mark.parametrize("ties", TIES)
def test_scores_are_linear_in_the_ranks(ties):
    X, y = make_data()
    model = RankLogisticRegression(ties=ties).fit(X, y)
    expected = full_ranks(X, ties) @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-10)
    assert model.reference_.all()
    assert model.genes_.all()


def test_with_more_classes_each_is_fitted_against_the_rest():
    X, y = make_data(n_classes=3)
    model = RankLogisticRegression().fit(X, y)
    for k in range(3):
        one = RankLogisticRegression().fit(X, y == k)
        np.testing.assert_array_equal(model.coef_[k], one.coef_[0])
    together = RankLogisticRegression(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(model.coef_, together.coef_)


def test_sparse_dense_and_frames_agree():
    X, y = make_data()
    X[np.random.default_rng(0).random(X.shape) < 0.9] = 0.0
    dense = RankLogisticRegression().fit(X, y)
    sparse = RankLogisticRegression().fit(sp.csr_array(X), y)
    assert sparse.objective_[0] == pytest.approx(dense.objective_[0], abs=1e-7)
    np.testing.assert_allclose(sparse.decision_function(X), dense.decision_function(X), atol=1e-2)
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(20)])
    named = RankLogisticRegression().fit(frame, y)
    np.testing.assert_array_equal(named.coef_, dense.coef_)
    np.testing.assert_array_equal(named.feature_names_in_, frame.columns)


def test_weights_are_repetitions():
    X, y = make_data()
    weights = np.random.default_rng(0).integers(0, 3, size=len(y))
    twice = np.repeat(np.arange(len(y)), weights)
    weighted = RankLogisticRegression().fit(X, y, sample_weight=weights)
    repeated = RankLogisticRegression().fit(X[twice], y[twice])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-8)


def test_without_penalties_a_floor_stands_in():
    X, y = make_data(n=20)
    none, floor = (RankLogisticRegression(l1=0.0, l2=l2).fit(X, y) for l2 in (0.0, 1e-7))
    np.testing.assert_array_equal(none.coef_, floor.coef_)
    assert np.isfinite(none.coef_).all()
    assert none.score(X, y) == 1.0


def test_too_few_steps_warn_and_name_the_remedy():
    X, y = make_data()
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 .*raise max_iter") as caught:
        RankLogisticRegression(l2=1e-6, max_iter=2).fit(X, y)
    assert caught[0].filename == __file__


def test_prediction_does_without_numba(tmp_path):
    X, y = make_data()
    model = RankLogisticRegression().fit(X, y)
    (tmp_path / "model").write_bytes(pickle.dumps((model, X)))
    code = (
        "import pickle, sys\n"
        f"model, X = pickle.load(open({str(tmp_path / 'model')!r}, 'rb'))\n"
        "print(model.predict_proba(X).shape)\n"
        "assert 'numba' not in sys.modules, 'numba was imported'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(120, 2)"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"l1": -1}, "l1=-1"), ({"l2": "a"}, "l2='a'"), ({"ties": "dense"}, "ties='dense'"),
        ({"tol": 2}, "tol=2"), ({"max_iter": float("nan")}, "max_iter=nan"),
        ({"class_weight": "even"}, "class_weight='even'"),
    ],
)  # fmt: skip
def test_options_without_sense_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        RankLogisticRegression(**settings).fit(*make_data())
