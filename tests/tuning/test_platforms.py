"""Folds on simulated platforms: what is trained on, what is scored, and averages of settings."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from optirank import OptirankClassifier
from optirank.ranks.fitting import order_for_fitting
from optirank.tuning.average import AverageFamily
from optirank.tuning.family import Samples
from optirank.tuning.platforms import (
    VIEW_STRENGTHS,
    PlatformFolds,
    platforms_for,
    stack_platforms,
)
from optirank.tuning.search import HELD_OUT, Unit, search
from optirank.tuning.shifts import with_platforms


def problem(n=40, d=10, n_classes=2):
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(n, d)), np.arange(n) % n_classes
    X[np.arange(n), codes] += 2
    return X, codes


@pytest.mark.parametrize("as_sparse", [False, True])
def test_the_stack_holds_samples_training_copies_and_views_in_this_order(as_sparse):
    X, _ = problem()
    X = np.maximum(X, 0)
    given = sparse.csr_array(X) if as_sparse else X
    stack = stack_platforms(given, PlatformFolds(40, 2))
    stack = stack.toarray() if as_sparse else stack
    assert stack.shape == (40 * (3 + len(VIEW_STRENGTHS)), 10)
    training = with_platforms(given, 2, 0)
    assert (stack[:120] == (training.toarray() if as_sparse else training)).all()
    parts = [stack[40 * k : 40 * (k + 1)] for k in range(3 + len(VIEW_STRENGTHS))]
    for k, one in enumerate(parts):
        assert all((one != other).any() for other in parts[k + 1 :])


def test_without_copies_and_views_the_stack_is_the_samples():
    X, _ = problem()
    folds = PlatformFolds(40, 0, with_views=False)
    assert stack_platforms(X, folds) is X
    assert folds.views == []


def test_a_fold_trains_on_copies_of_its_training_samples_and_scores_the_held_out_on_others():
    _, codes = problem()
    folds = PlatformFolds(40, 2)
    values = np.arange(40 * 7, dtype=float)[:, None] + np.zeros((1, 3))  # a row's value is its row
    test = np.array([0, 5, 7])
    train = np.setdiff1d(np.arange(40), test)
    weights = np.linspace(1, 2, 40)
    (unit,) = folds.units(Samples(X=values), codes, [(train, test)], n_classes=2, weights=weights)
    rows = unit.train.X[:, 0].astype(int)
    assert sorted(rows // 40) == sorted([0, 1, 2] * len(train))
    assert not np.isin(rows % 40, test).any()
    assert (unit.codes == codes[rows % 40]).all()
    assert (unit.weights == weights[rows % 40]).all()
    assert (unit.views[HELD_OUT].X[:, 0] == test).all()
    for k, name in enumerate(folds.views):
        assert (unit.views[name].X[:, 0] == test + 40 * (3 + k)).all()


def test_small_sets_get_more_platforms_than_large_ones():
    counts = [platforms_for(n) for n in (20, 100, 300, 500, 1000, 3000, 3001, 10**6)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 5
    assert counts[-3] == 1
    assert counts[-1] == 0


@pytest.mark.parametrize("side", ["best", "both"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_an_average_scores_as_the_estimator_of_its_parameters(side, n_classes):
    X, codes = problem(60, 10, n_classes)
    members = ((0.2, 3e-3, 1e-3), (0.2, 1e-2, 1e-3), (0.5, 3e-3, 1e-3))
    family = AverageFamily(members=members, side=side, warm_start=False)
    samples = Samples(orders=order_for_fitting(X, 1))
    unit = Unit(train=samples, codes=codes, n_classes=n_classes, views={"same": samples})
    (result,) = search(family, [unit])
    (setting,) = result.settings
    model = OptirankClassifier(**setting.params).fit(X, codes)
    expected = model.decision_function(X).reshape(60, -1)
    assert np.allclose(result.decision(0, "same"), expected, atol=1e-3)
    assert (result.genes(0) == model.genes_).all()


def test_the_parameters_of_an_average_are_sequences_where_members_differ():
    members = ((0.2, 1e-3, 1e-3), (0.2, 3e-3, 1e-3))
    family = AverageFamily(members=members, side="best")
    (values,) = family.settings()
    assert family.params(values) == {
        "n_reference": 0.2,
        "l1": (1e-3, 3e-3),
        "l2": 1e-3,
        "side": "best",
    }
