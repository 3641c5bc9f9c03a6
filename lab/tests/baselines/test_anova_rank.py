"""ANrank-lr is logistic regression on ranks relative to stable genes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.model_selection import GridSearchCV

from optirank import OptirankClassifier, RankLogisticRegression
from optirank_lab import AnovaRankLogisticRegression
from optirank_lab.baselines.anova import select_stable_genes

STABLE = np.arange(12)


def make_shifted(n=200, d=30, n_classes=2, n_datasets=2, seed=0):
    """Labels move some genes; data sets shift every gene but the first twelve."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    dataset = rng.integers(n_datasets, size=n)
    label_effect = rng.normal(scale=0.7, size=(n_classes, d))
    shift = 3.0 * np.outer(np.arange(n_datasets), rng.choice([-1, 1], size=d))
    shift[:, STABLE] = 0.0
    X = rng.normal(size=d) + rng.normal(size=(n, d)) + label_effect[y] + shift[dataset]
    return X, y, dataset


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_array])
def test_genes_that_shift_between_data_sets_are_not_chosen(container):
    X, y, dataset = make_shifted()
    model = AnovaRankLogisticRegression(8).fit(container(X), y, dataset=dataset)
    chosen = np.flatnonzero(model.reference_[0])
    np.testing.assert_array_equal(
        chosen, np.sort(select_stable_genes(X, y, dataset, 8))
    )
    assert len(chosen) == 8
    assert set(chosen) <= set(STABLE)


def test_the_weights_are_optimal_at_the_reference():
    X, y, dataset = make_shifted()
    model = AnovaRankLogisticRegression(8, l2=1e-2).fit(X, y, dataset=dataset)
    given = {"reference_candidates": model.reference_[0]}
    fixed = OptirankClassifier(1.0, l2=1e-2, **given).fit(X, y)
    np.testing.assert_array_equal(model.coef_, fixed.coef_)
    np.testing.assert_array_equal(
        model.decision_function(X), fixed.decision_function(X)
    )


def test_each_class_has_a_reference_of_its_own_and_names_may_be_words():
    X, y, dataset = make_shifted(n_classes=3)
    words = np.array(["a", "b", "c"])[y]
    sets = pd.Categorical(np.array(["array", "sequencing"])[dataset])
    model = AnovaRankLogisticRegression(8).fit(X, words, dataset=sets)
    assert model.classes_.tolist() == ["a", "b", "c"]
    for k in range(3):
        expected = select_stable_genes(X, y == k, dataset, 8)
        np.testing.assert_array_equal(
            np.flatnonzero(model.reference_[k]), np.sort(expected)
        )


@pytest.mark.parametrize("named", [False, True])
def test_with_one_data_set_it_warns_and_is_rank_logistic_regression(named):
    X, y, _ = make_shifted()
    dataset = np.zeros(len(y)) if named else None
    with pytest.warns(UserWarning, match="one data set only") as caught:
        model = AnovaRankLogisticRegression(8).fit(X, y, dataset=dataset)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(model.coef_, RankLogisticRegression().fit(X, y).coef_)
    assert model.reference_.all()


def test_a_constant_gene_is_not_chosen_as_long_as_there_are_others():
    X, y, dataset = make_shifted()
    X[:, :5] = 1.0
    for size, constant in ((25, 0), (26, 1)):
        model = AnovaRankLogisticRegression(size).fit(X, y, dataset=dataset)
        assert model.reference_[0, :5].sum() == constant


def test_data_sets_are_routed_through_a_grid_search():
    X, y, dataset = make_shifted()
    with sklearn.config_context(enable_metadata_routing=True):
        model = AnovaRankLogisticRegression().set_fit_request(dataset=True)
        search = GridSearchCV(model, {"n_reference": [4, 8]}, cv=3).fit(
            X, y, dataset=dataset
        )
    assert set(np.flatnonzero(search.best_estimator_.reference_[0])) <= set(STABLE)


@pytest.mark.parametrize("n_reference", [0, 1.5, True, "a", 31])
def test_a_wrong_size_of_the_reference_is_refused(n_reference):
    X, y, dataset = make_shifted()
    with pytest.raises(ValueError, match="n_reference="):
        AnovaRankLogisticRegression(n_reference).fit(X, y, dataset=dataset)


def test_wrong_data_sets_are_refused():
    X, y, dataset = make_shifted()
    words = np.array(["a", "b"], object)[dataset]
    words[3] = None
    model = AnovaRankLogisticRegression(8)
    for given, message in (
        (words, "missing for 1 samples"),
        (y, "confounded"),
        (dataset[:-1], "inconsistent numbers of samples"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, dataset=given)
