"""One reference set for all classes, and candidates of the reference, in the estimators."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import log_softmax, softmax
from sklearn.metrics import balanced_accuracy_score

import optirank
from optirank import OptirankClassifier, OptirankClassifierCV
from optirank.model import explain, fit_calibration, predict_samples

GRID = {"n_references": (0.1, 0.2), "l1s": (1e-3, 1e-2), "l2s": (1e-3,), "cv": 3}


def make_cells(n=180, d=40, n_classes=4, seed=0):
    """Counts of cells of several types, each with some markers."""
    rng = np.random.default_rng(seed)
    means = np.exp(rng.normal(0.3, 1.0, d)) * np.ones((n_classes, 1))
    for k in range(n_classes):
        means[k, rng.choice(d, 6, replace=False)] *= 4.0
    codes = np.arange(n) % n_classes
    y = np.array([f"type {k}" for k in range(n_classes)])[codes]
    return rng.poisson(means[codes]).astype(float), y


@pytest.fixture(scope="module")
def cells():
    return make_cells()


@pytest.fixture(scope="module")
def fitted(cells):
    X, y = cells
    frame = pd.DataFrame(X, columns=[f"G{j}" for j in range(X.shape[1])])
    return OptirankClassifier(0.15, 1e-2, shared_reference=True).fit(frame, y), frame, y


def test_all_classes_share_one_reference_set_and_one_panel(fitted):
    model, X, y = fitted
    assert model.coef_.shape == (4, 40)
    assert model.intercept_.shape == (4,)
    assert (model.reference_ == model.reference_[0]).all()
    assert model.reference_[0].sum() == 6
    weighted = model.coef_ != 0
    assert (weighted.any(axis=0) == weighted.all(axis=0)).all()  # for all classes or for none
    assert (model.genes_ == (model.reference_[0] | weighted[0])).all()
    assert model.genes_.sum() < 40
    assert balanced_accuracy_score(y, model.predict(X)) > 0.9
    held_out, truth = make_cells(seed=0, n=400)
    assert balanced_accuracy_score(truth, model.predict(pd.DataFrame(held_out, columns=X.columns)))


def test_probabilities_are_the_softmax_of_the_scores(fitted):
    model, X, _ = fitted
    scores = model.decision_function(X)
    np.testing.assert_allclose(model.predict_proba(X), softmax(scores, axis=1))
    np.testing.assert_allclose(model.predict_log_proba(X), log_softmax(scores, axis=1))
    found = predict_samples(model, X)
    np.testing.assert_allclose(found.probabilities, softmax(scores, axis=1))
    assert found.labels.tolist() == model.predict(X).tolist()


def test_the_objective_is_the_balanced_softmax_loss_plus_penalties(fitted):
    model, X, y = fitted
    log_p = log_softmax(model.decision_function(X), axis=1)
    own = log_p[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    loss = -np.mean([own[y == label].mean() for label in model.classes_])
    penalty = 1e-2 * np.linalg.norm(model.coef_, axis=0).sum() + 1e-3 * (model.coef_**2).sum()
    np.testing.assert_allclose(model.objective_, loss + penalty, rtol=1e-6)


def test_two_classes_give_the_binary_model(cells):
    X, y = cells
    two = y <= "type 1"
    joint = OptirankClassifier(0.2, 1e-3, shared_reference=True).fit(X[two], y[two])
    alone = OptirankClassifier(0.2, 1e-3).fit(X[two], y[two])
    np.testing.assert_array_equal(joint.coef_, alone.coef_)
    np.testing.assert_array_equal(joint.reference_, alone.reference_)
    np.testing.assert_array_equal(joint.predict_proba(X), alone.predict_proba(X))


def test_a_file_gives_the_model_back(fitted, tmp_path):
    model, X, _ = fitted
    optirank.save(model, tmp_path / "joint.optirank")
    again = optirank.load(tmp_path / "joint.optirank")
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X))
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.reference_, model.reference_)
    assert again.shared_reference is True


def test_contributions_sum_to_the_scores(fitted):
    model, X, _ = fitted
    table = explain(model, X.iloc[0])
    sums = table.groupby("class")["contribution"].sum()[model.classes_]
    np.testing.assert_allclose(sums, model.decision_function(X)[0])


def test_a_missing_gene_is_reported_and_hardly_changes_the_labels(fitted):
    model, X, _ = fitted
    weights = np.linalg.norm(model.coef_, axis=0)
    lightest = np.where(weights > 0, weights, np.inf).argmin()
    less = X.drop(columns=X.columns[lightest])
    found = predict_samples(model, less, max_missing=0.5)
    assert (found.labels == model.predict(X)).mean() > 0.8


def test_a_subset_of_the_classes_has_the_conditional_probabilities(fitted):
    model, X, _ = fitted
    scores = model.decision_function(X)
    three = model.subset(["type 0", "type 2", "type 3"])
    np.testing.assert_allclose(three.predict_proba(X), softmax(scores[:, [0, 2, 3]], axis=1))
    two = model.subset(["type 1", "type 2"])
    np.testing.assert_allclose(two.decision_function(X), scores[:, 2] - scores[:, 1])
    np.testing.assert_allclose(two.predict_proba(X), softmax(scores[:, [1, 2]], axis=1))


def test_a_calibration_keeps_the_labels(fitted):
    model, X, y = fitted
    calibration = fit_calibration(model.decision_function(X), y, model.classes_)
    found = calibration.probabilities(model.decision_function(X))
    assert (model.classes_[found.argmax(axis=1)] == model.predict(X)).all()


def test_sparse_data_and_weights_of_zero_give_the_same(cells):
    X, y = cells
    options = {"n_reference": 5, "l1": 1e-2, "shared_reference": True}
    dense = OptirankClassifier(**options).fit(X, y)
    other = OptirankClassifier(**options).fit(sparse.csr_array(X), y)
    np.testing.assert_array_equal(dense.reference_, other.reference_)
    np.testing.assert_allclose(dense.objective_, other.objective_, atol=1e-7)
    twice = OptirankClassifier(**options).fit(
        np.vstack([X, X[:50]]), np.r_[y, y[:50]], sample_weight=np.r_[np.ones(len(y)), np.zeros(50)]
    )
    np.testing.assert_allclose(twice.objective_, dense.objective_, atol=1e-5)


def test_reference_weights_may_stay_fractional_and_models_be_averaged(cells):
    X, y = cells
    relaxed = OptirankClassifier(4, shared_reference=True, integral=False, max_iter=300)
    relaxed.fit(X, y)
    np.testing.assert_allclose(relaxed.reference_weights_.sum(axis=1), 4)
    average = OptirankClassifier((4, 8), (1e-2, 1e-2), 1e-3, shared_reference=True).fit(X, y)
    assert average.coef_.shape == (8, 40)
    assert average.reference_.sum(axis=1).tolist() == [4, 8] * 4
    assert balanced_accuracy_score(y, average.predict(X)) > 0.9


@pytest.mark.parametrize("shared", [False, True])
def test_the_reference_is_chosen_among_the_candidates(cells, shared, tmp_path):
    X, y = cells
    names = [f"G{j}" for j in range(40)]
    frame = pd.DataFrame(X, columns=names)
    mask = np.arange(40) % 3 == 0
    options = {"n_reference": 4, "l1": 1e-2, "shared_reference": shared}
    by_mask = OptirankClassifier(**options, reference_candidates=mask).fit(frame, y)
    assert not by_mask.reference_[:, ~mask].any()
    assert by_mask.coef_[:, ~mask].any()
    for given in (np.flatnonzero(mask), np.array(names)[mask], np.array(names)[mask].tolist()):
        other = OptirankClassifier(**options, reference_candidates=given).fit(frame, y)
        np.testing.assert_array_equal(other.coef_, by_mask.coef_)
        optirank.save(other, tmp_path / "model")
        again = optirank.load(tmp_path / "model")
        np.testing.assert_array_equal(again.reference_, by_mask.reference_)
        assert np.array_equal(again.reference_candidates, given)
    everything = OptirankClassifier(1.0, reference_candidates=mask, shared_reference=shared)
    np.testing.assert_array_equal(everything.fit(frame, y).reference_, np.tile(mask, (4, 1)))


def test_the_papers_algorithm_keeps_to_the_candidates_too(cells):
    X, y = cells
    two = y <= "type 1"
    model = OptirankClassifier(3, algorithm="bpcd", reference_candidates=range(20), max_iter=2000)
    assert not model.fit(X[two], y[two]).reference_[:, 20:].any()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reference_candidates": [0, 1], "n_reference": 3}, "more than the 2 candidate genes"),
        ({"reference_candidates": ["G1"]}, "gives gene names .* but X has none"),
        ({"reference_candidates": [99]}, "out of range, such as 99"),
        ({"reference_candidates": [True] * 3}, "mask of 3 genes but X has 40"),
        ({"reference_candidates": []}, "reference_candidates is empty"),
        ({"shared_reference": 1}, "shared_reference=1: use True"),
        ({"shared_reference": True, "side": "both"}, "side='both' with shared_reference=True"),
        ({"shared_reference": True, "algorithm": "bpcd"}, "algorithm='bpcd' with shared"),
    ],
)
def test_what_cannot_be_is_refused(cells, options, words):
    X, y = cells
    with pytest.raises(ValueError, match=words):
        OptirankClassifier(**options).fit(X, y)


def test_unknown_candidates_are_named(cells):
    X, y = cells
    frame = pd.DataFrame(X, columns=[f"G{j}" for j in range(40)])
    model = OptirankClassifier(2, reference_candidates=["G1", "G2", "nobody"])
    with pytest.raises(ValueError, match=r"1 of the 3 genes of reference_candidates .*'nobody'"):
        model.fit(frame, y)


def test_a_search_finds_one_setting_for_all_classes(cells, tmp_path):
    X, y = cells
    search = OptirankClassifierCV(**GRID, shared_reference=True).fit(X, y)
    assert search.best_params_["shared_reference"] is True
    assert len(search.cv_results_["params"]) == 4
    model = search.best_estimator_
    assert (model.reference_ == model.reference_[0]).all()
    np.testing.assert_allclose(
        search.predict_proba(X), softmax(search.decision_function(X), axis=1)
    )
    assert search.best_score_ > 0.7
    alone = OptirankClassifier(**search.best_params_).fit(X, y)
    np.testing.assert_array_equal(alone.coef_, model.coef_)
    optirank.save(search, tmp_path / "search.optirank")
    again = optirank.load(tmp_path / "search.optirank")
    np.testing.assert_allclose(again.predict_proba(X), search.predict_proba(X))


def test_a_search_keeps_the_models_of_its_folds_and_to_the_candidates(cells):
    X, y = cells
    mask = np.arange(40) < 25
    y = y.copy()
    y[np.flatnonzero(y == "type 3")[2:]] = "type 2"  # a class that one fold lacks
    search = OptirankClassifierCV(
        **GRID, shared_reference=True, reference_candidates=mask, refit="folds"
    ).fit(X, y)
    assert len(search.fold_estimators_) == 3
    assert not search.reference_[:, ~mask].any()
    assert search.decision_function(X).shape == (len(X), 4)
    separate = OptirankClassifierCV(**GRID, reference_candidates=mask).fit(X, y)
    assert not separate.reference_[:, ~mask].any()


def test_threads_change_nothing_and_settings_per_class_are_refused(cells):
    X, y = cells
    one = OptirankClassifierCV(**GRID, shared_reference=True).fit(X, y)
    two = OptirankClassifierCV(**GRID, shared_reference=True, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    with pytest.raises(ValueError, match="per_class=True with shared_reference=True"):
        OptirankClassifierCV(**GRID, shared_reference=True, per_class=True).fit(X, y)
    with pytest.raises(ValueError, match="side='both' with shared_reference=True"):
        OptirankClassifierCV(**GRID, sides=("both",), shared_reference=True).fit(X, y)
