"""``whole_panel=True`` on the estimators."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from optirank import OptirankClassifier, OptirankClassifierCV, load, save
from optirank.solver.device import backend, problems


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[np.arange(120) % 3]
    X = rng.poisson(1.0, (120, 30)).astype(float)
    for k, label in enumerate("abc"):
        X[y == label, 4 * k : 4 * k + 4] += rng.poisson(2.0, (40, 4))
    return X, y


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_further_gene_is_needed(data, shared, n_classes):
    X, y = data
    kept = y < "abcd"[n_classes]
    X, y = X[kept], y[kept]
    plain = OptirankClassifier(5, 1e-2, shared_reference=shared).fit(X, y)
    whole = OptirankClassifier(5, 1e-2, shared_reference=shared, whole_panel=True).fit(X, y)
    np.testing.assert_array_equal(whole.genes_, plain.genes_)
    np.testing.assert_array_equal(whole.coef_ != 0, whole.reference_)
    assert whole.reference_.sum() > plain.reference_.sum()
    some = np.where(whole.genes_, X, -1.0)
    np.testing.assert_array_equal(whole.decision_function(some), whole.decision_function(X))


def test_sparse_data_give_the_same(data):
    X, y = data
    model = OptirankClassifier(5, 1e-2, shared_reference=True, whole_panel=True)
    dense = model.fit(X, y).decision_function(X)
    np.testing.assert_allclose(
        model.fit(sparse.csr_array(X), y).decision_function(X), dense, atol=1e-4
    )


@pytest.mark.parametrize("shared", [True, False])
def test_a_search_scores_the_models_that_are_kept(data, shared, tmp_path):
    X, y = data
    grid = {"n_references": (0.2, 1.0), "l1s": (1e-2,), "l2s": (1e-2,), "cv": 2}
    search = OptirankClassifierCV(
        **grid, shared_reference=shared, whole_panel=True, warm_start=False
    ).fit(X, y)
    train, test = search.folds_[0]
    for k, params in enumerate(search.cv_results_["params"]):
        model = OptirankClassifier(**params).fit(X[train], y[train])
        recalls = [(model.predict(X[test]) == y[test])[y[test] == c].mean() for c in "abc"]
        assert search.cv_results_["split0_test_score"][k] == pytest.approx(np.mean(recalls))
    save(search.best_estimator_, tmp_path / "m.optirank")
    loaded = load(tmp_path / "m.optirank")
    assert loaded.get_params()["whole_panel"]
    np.testing.assert_allclose(loaded.decision_function(X), search.decision_function(X))


def test_the_reference_set_is_the_whole_panel_on_a_device_too(data, monkeypatch):
    twin = backend.backend_of("numpy")
    monkeypatch.setattr(problems, "backend_of", lambda device: twin)
    monkeypatch.setattr(backend, "backend_of", lambda device: twin)
    X, y = data
    options = {"whole_panel": True, "device": "cuda"}
    model = OptirankClassifier(5, 1e-2, shared_reference=True, **options).fit(X, y)
    np.testing.assert_array_equal(model.coef_ != 0, model.reference_)
    with pytest.raises(ValueError, match=r"whole_panel=True.*CPU alone"):
        OptirankClassifier(5, 1e-2, **options).fit(X, y)
    with pytest.raises(ValueError, match=r"whole_panel=True.*CPU alone"):
        OptirankClassifierCV((0.2,), (1e-2,), (1e-2,), cv=2, **options).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"whole_panel": "yes"}, "whole_panel='yes'"),
        ({"whole_panel": True, "integral": False}, "integral=False with whole_panel=True"),
        ({"whole_panel": True, "refit": False}, "refit=False with whole_panel=True"),
    ],
)
def test_options_that_make_no_sense_are_refused(data, options, message):
    with pytest.raises(ValueError, match=message):
        OptirankClassifier(5, **options).fit(*data)
