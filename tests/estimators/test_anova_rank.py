"""AnovaRankLogisticRegression takes the genes that are stable between data sets as reference."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from optirank import AnovaRankLogisticRegression, RankLogisticRegression
from optirank.preprocessing.anova import select_stable_genes

STABLE = np.arange(12)


def make_data(n=200, d=30, n_classes=2, n_datasets=2, seed=0):
    """Labels move some genes; data sets shift every gene but the first twelve."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    dataset = rng.integers(n_datasets, size=n)
    label_effect = rng.normal(scale=0.7, size=(n_classes, d))
    shift = 3.0 * np.outer(np.arange(n_datasets), rng.choice([-1, 1], size=d))
    shift[:, STABLE] = 0.0
    X = rng.normal(size=d) + rng.normal(size=(n, d)) + label_effect[y] + shift[dataset]
    return X, y, dataset


def test_genes_that_shift_between_data_sets_are_not_chosen():
    X, y, dataset = make_data()
    model = AnovaRankLogisticRegression(8).fit(X, y, dataset=dataset)
    assert model.reference_.sum() == 8
    assert set(np.flatnonzero(model.reference_[0])) <= set(STABLE)
    expected = select_stable_genes(X, y, dataset, 8)
    np.testing.assert_array_equal(np.flatnonzero(model.reference_[0]), np.sort(expected))


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_array])
def test_sparse_data_choose_the_same_genes(container):
    X, y, dataset = make_data()
    X = np.where(X > 0.5, X, 0.0)
    dense = AnovaRankLogisticRegression(8).fit(X, y, dataset=dataset)
    model = AnovaRankLogisticRegression(8).fit(container(X), y, dataset=dataset)
    np.testing.assert_array_equal(model.reference_, dense.reference_)
    assert model.objective_[0] == pytest.approx(dense.objective_[0], abs=1e-6)


def test_the_weights_are_optimal_at_the_reference():
    X, y, dataset = make_data()
    model = AnovaRankLogisticRegression(8, l2=1e-2).fit(X, y, dataset=dataset)
    fixed = AnovaRankLogisticRegression(l2=1e-2, reference=model.reference_[0]).fit(X, y)
    np.testing.assert_array_equal(model.coef_, fixed.coef_)
    np.testing.assert_array_equal(model.decision_function(X), fixed.decision_function(X))


def test_each_class_has_a_reference_of_its_own():
    X, y, dataset = make_data(n_classes=3)
    model = AnovaRankLogisticRegression(8).fit(X, y, dataset=dataset)
    assert model.reference_.shape == (3, 30)
    for k in range(3):
        expected = select_stable_genes(X, y == k, dataset, 8)
        np.testing.assert_array_equal(np.flatnonzero(model.reference_[k]), np.sort(expected))


def test_data_sets_may_be_named_by_words():
    X, y, dataset = make_data()
    words = np.array(["array", "sequencing"])[dataset]
    plain = AnovaRankLogisticRegression(8).fit(X, y, dataset=dataset)
    for given in (words, words.tolist(), pd.Series(words), pd.Categorical(words)):
        named = AnovaRankLogisticRegression(8).fit(X, y, dataset=given)
        np.testing.assert_array_equal(named.reference_, plain.reference_)


def test_labels_may_be_words():
    X, y, dataset = make_data(n_classes=3)
    words = np.array(["a", "b", "c"])[y]
    model = AnovaRankLogisticRegression(8).fit(X, words, dataset=dataset)
    plain = AnovaRankLogisticRegression(8).fit(X, y, dataset=dataset)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert set(model.predict(X)) <= {"a", "b", "c"}


# The auxiliary data set


def test_an_auxiliary_data_set_serves_the_choice_alone():
    X, y, dataset = make_data()
    own = dataset == 0
    auxiliary = {"X_auxiliary": X[~own], "y_auxiliary": y[~own]}
    model = AnovaRankLogisticRegression(8).fit(X[own], y[own], **auxiliary)
    both = AnovaRankLogisticRegression(8).fit(X, y, dataset=dataset)
    np.testing.assert_array_equal(model.reference_, both.reference_)
    fixed = AnovaRankLogisticRegression(reference=model.reference_[0]).fit(X[own], y[own])
    np.testing.assert_array_equal(model.coef_, fixed.coef_)


def test_an_auxiliary_data_set_is_one_more_beside_those_named():
    X, y, dataset = make_data(n_datasets=3)
    own = dataset < 2
    model = AnovaRankLogisticRegression(8).fit(
        X[own], y[own], dataset=dataset[own], X_auxiliary=sp.csr_array(X[~own]), y_auxiliary=y[~own]
    )
    both = AnovaRankLogisticRegression(8).fit(X, y, dataset=dataset)
    np.testing.assert_array_equal(model.reference_, both.reference_)


def test_wrong_auxiliary_data_are_refused():
    X, y, dataset = make_data()
    model = AnovaRankLogisticRegression(8)
    with pytest.raises(ValueError, match="both X_auxiliary and y_auxiliary"):
        model.fit(X, y, X_auxiliary=X)
    with pytest.raises(ValueError, match="both X_auxiliary and y_auxiliary"):
        model.fit(X, y, y_auxiliary=y)
    with pytest.raises(ValueError, match="29 genes but X has 30"):
        model.fit(X, y, X_auxiliary=X[:, :29], y_auxiliary=y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y, X_auxiliary=X, y_auxiliary=y[:-1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y, dataset=dataset[:-1])


def test_auxiliary_genes_in_another_order_are_refused():
    X, y, dataset = make_data()
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(30)])
    own = dataset == 0
    with pytest.raises(ValueError, match="order"):
        AnovaRankLogisticRegression(8).fit(
            frame[own], y[own], X_auxiliary=frame.iloc[~own, ::-1], y_auxiliary=y[~own]
        )
    model = AnovaRankLogisticRegression(8).fit(
        frame[own], y[own], X_auxiliary=frame[~own], y_auxiliary=y[~own]
    )
    np.testing.assert_array_equal(model.feature_names_in_, frame.columns)


# Without data sets


@pytest.mark.parametrize("named", [False, True])
def test_with_one_data_set_it_warns_and_is_rank_logistic_regression(named):
    X, y, _ = make_data()
    dataset = np.zeros(len(y)) if named else None
    with pytest.warns(UserWarning, match="one data set only") as caught:
        model = AnovaRankLogisticRegression(8).fit(X, y, dataset=dataset)
    assert caught[0].filename == __file__
    rank_lr = RankLogisticRegression().fit(X, y)
    np.testing.assert_array_equal(model.coef_, rank_lr.coef_)
    assert model.reference_.all()


# A fixed reference


def test_a_reference_may_be_given_as_names_positions_or_a_mask():
    X, y, dataset = make_data()
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(30)])
    mask = np.isin(np.arange(30), [4, 2, 7])
    models = [
        AnovaRankLogisticRegression(reference=reference).fit(frame, y, dataset=dataset)
        for reference in (["g4", "g2", "g7"], [4, 2, 7], mask)
    ]
    for model in models:
        np.testing.assert_array_equal(model.reference_[0], mask)
        np.testing.assert_array_equal(model.coef_, models[0].coef_)


def test_a_wrong_reference_is_refused():
    X, y, _ = make_data()
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(30)])
    for reference, message in (
        (["g4", "actin"], "actin"),
        ([], "reference is empty"),
        (np.zeros(30, bool), "reference is empty"),
        ([30], "out of range"),
        ([1, 1], "more than once"),
    ):
        with pytest.raises(ValueError, match=message):
            AnovaRankLogisticRegression(reference=reference).fit(frame, y)


# Stated rules


def test_a_constant_gene_is_not_chosen_as_long_as_there_are_others():
    X, y, dataset = make_data()
    X[:, :5] = 1.0
    model = AnovaRankLogisticRegression(25).fit(X, y, dataset=dataset)
    assert not model.reference_[0, :5].any()
    model = AnovaRankLogisticRegression(26).fit(X, y, dataset=dataset)
    assert model.reference_[0, :5].sum() == 1


def test_a_label_that_a_data_set_lacks_is_no_obstacle():
    X, y, dataset = make_data(n_classes=3)
    keep = ~((y == 2) & (dataset == 1))
    model = AnovaRankLogisticRegression(8).fit(X[keep], y[keep], dataset=dataset[keep])
    for row in model.reference_:
        assert np.isin(np.flatnonzero(row), STABLE).mean() >= 0.75


def test_label_and_data_set_that_coincide_are_refused():
    X, y, _ = make_data()
    with pytest.raises(ValueError, match="confounded"):
        AnovaRankLogisticRegression(8).fit(X, y, dataset=y)


@pytest.mark.parametrize("missing", [None, np.nan])
def test_a_missing_data_set_is_refused(missing):
    X, y, dataset = make_data()
    words = np.array(["a", "b"], object)[dataset]
    words[3] = missing
    with pytest.raises(ValueError, match="missing for 1 samples"):
        AnovaRankLogisticRegression(8).fit(X, y, dataset=words)


def test_sample_weights_act_on_the_regression_alone():
    X, y, dataset = make_data()
    weights = np.random.default_rng(0).uniform(0.1, 2, size=len(y))
    plain = AnovaRankLogisticRegression(8).fit(X, y, dataset=dataset)
    weighted = AnovaRankLogisticRegression(8).fit(X, y, weights, dataset=dataset)
    np.testing.assert_array_equal(weighted.reference_, plain.reference_)
    assert not np.allclose(weighted.coef_, plain.coef_)


# Metadata routing


def test_data_sets_are_routed_through_cross_validation():
    X, y, dataset = make_data()
    with sklearn.config_context(enable_metadata_routing=True):
        model = AnovaRankLogisticRegression(8).set_fit_request(dataset=True)
        scores = cross_val_score(model, X, y, cv=3, params={"dataset": dataset})
        assert scores.mean() > 0.6


def test_data_sets_are_routed_through_a_grid_search():
    X, y, dataset = make_data()
    with sklearn.config_context(enable_metadata_routing=True):
        model = AnovaRankLogisticRegression().set_fit_request(dataset=True)
        search = GridSearchCV(model, {"n_reference": [4, 8]}, cv=3).fit(X, y, dataset=dataset)
        best = search.best_estimator_
        assert set(np.flatnonzero(best.reference_[0])) <= set(STABLE)
        assert clone(best).get_metadata_routing().fit.requests["dataset"] is True


def test_data_sets_that_are_not_asked_for_are_refused_by_scikit_learn():
    X, y, dataset = make_data()
    with sklearn.config_context(enable_metadata_routing=True):
        model = AnovaRankLogisticRegression(8)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            cross_val_score(model, X, y, cv=3, params={"dataset": dataset}, error_score="raise")


@pytest.mark.parametrize("n_reference", [0, 1.5, -1, True, "a", 31])
def test_a_wrong_size_of_the_reference_is_refused(n_reference):
    X, y, dataset = make_data()
    with pytest.raises(ValueError, match="n_reference="):
        AnovaRankLogisticRegression(n_reference).fit(X, y, dataset=dataset)
