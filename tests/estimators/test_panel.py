"""A model that holds its panel's columns alone behaves like one that holds them all."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from optirank import OptirankClassifier, load, save
from optirank.datasets import make_unstable_ranks
from optirank.estimators.panel import panel_arrays
from optirank.model import remember_training


@pytest.fixture
def fitted():
    data = make_unstable_ranks(120, 30, 20, random_state=0)
    y = np.digitize(data.X[:, 0], np.quantile(data.X[:, 0], [0.3, 0.6]))
    model = OptirankClassifier(n_reference=3, l1=1e-2).fit(data.X, y)
    return remember_training(model, data.X, y), data.X, y


@pytest.fixture
def loaded(fitted, tmp_path):
    save(fitted[0], tmp_path / "m")
    return load(tmp_path / "m")


def test_a_loaded_model_predicts_without_spreading_its_panel(fitted, loaded):
    model, X, _ = fitted
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert not {"coef_", "reference_weights_", "reference_", "mean_ranks_"} & set(vars(loaded))
    assert loaded._panel.coef.shape[1] == model.genes_.sum() < model.n_features_in_


@pytest.mark.parametrize("first", ["coef_", "reference_weights_", "reference_", "mean_ranks_"])
def test_full_size_attributes_are_made_when_asked_for(fitted, loaded, first):
    getattr(loaded, first)
    for name in ("coef_", "reference_weights_", "reference_", "mean_ranks_", "genes_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(fitted[0], name))
    np.testing.assert_array_equal(loaded.decision_function(fitted[1]), scores(*fitted[:2]))


def scores(model, X):
    return model.decision_function(X)


def test_what_a_user_changes_counts(fitted, loaded):
    loaded.coef_[:] = 0.0
    expected = np.tile(loaded.intercept_, (len(fitted[1]), 1))
    np.testing.assert_allclose(loaded.decision_function(fitted[1]), expected)


def test_setting_an_attribute_counts_too(fitted, loaded):
    loaded.coef_ = np.zeros_like(fitted[0].coef_)
    expected = np.tile(loaded.intercept_, (len(fitted[1]), 1))
    np.testing.assert_allclose(loaded.decision_function(fitted[1]), expected)
    np.testing.assert_array_equal(loaded.reference_, fitted[0].reference_)


def test_a_copy_predicts_the_same(fitted, loaded):
    one = copy.deepcopy(loaded)
    np.testing.assert_array_equal(one.coef_, fitted[0].coef_)
    assert "coef_" not in vars(loaded)


def test_an_attribute_that_is_not_there_is_named(loaded):
    with pytest.raises(AttributeError, match=r"'OptirankClassifier' .* no attribute 'colour'"):
        _ = loaded.colour
    with pytest.raises(AttributeError, match="'coef_'"):
        _ = OptirankClassifier().coef_


def test_a_model_without_mean_ranks_has_none(fitted, tmp_path):
    del fitted[0].mean_ranks_
    save(fitted[0], tmp_path / "m")
    assert not hasattr(load(tmp_path / "m"), "mean_ranks_")


def test_fitting_again_forgets_the_earlier_training(fitted, loaded):
    _, X, y = fitted
    loaded.fit(X[:, :20], y)
    assert loaded.coef_.shape == (3, 20)
    for name in ("mean_ranks_", "training_summary_", "_panel"):
        assert not hasattr(loaded, name)


def test_the_panel_of_a_fitted_model_is_cut_out_of_it(fitted):
    model = fitted[0]
    panel = panel_arrays(model)
    np.testing.assert_array_equal(panel.positions, np.flatnonzero(model.genes_))
    np.testing.assert_array_equal(panel.coef, model.coef_[:, model.genes_])
