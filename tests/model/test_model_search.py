"""A search over settings is saved with its results, and predicts by its best model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from model_cases import assert_same_model, pack, unpack
from sklearn.model_selection import KFold

from optirank import OptirankClassifierCV
from optirank.datasets import make_unstable_ranks
from optirank.model import (
    ModelFileError,
    Predictor,
    fit_calibration,
    load,
    panel_table,
    remember_training,
    save,
    subset,
)

GENES = [f"g{j}" for j in range(16)]


def search_on(n_classes: int, **options):
    data = make_unstable_ranks(90, 16, 8, random_state=0)
    X = pd.DataFrame(data.X, columns=GENES)
    cuts = np.quantile(data.X[:, 0], np.linspace(0, 1, n_classes + 1)[1:-1])
    y = np.array(["low", "mid", "top"])[np.digitize(data.X[:, 0], cuts)]
    model = OptirankClassifierCV((2, 0.5), (0,), (1e-2, 1e-1), cv=2, **options)
    return model.fit(X, y), X, y


@pytest.mark.parametrize("per_class", [False, True])
def test_a_search_comes_back_with_its_results(tmp_path, per_class):
    model, X, _ = search_on(3, per_class=per_class, sides=("best", "both"))
    save(model, tmp_path / "m")
    found = load(tmp_path / "m")
    assert_same_model(found.best_estimator_, model.best_estimator_)
    np.testing.assert_array_equal(found.predict_proba(X), model.predict_proba(X))
    assert found.get_params() == model.get_params()
    _ = found.coef_, found.genes_  # made when asked for
    np.testing.assert_array_equal(found.coef_, model.coef_)
    fitted = {name for name in vars(model) if name.endswith("_")}
    assert fitted == {name for name in vars(found) if name.endswith("_")}
    label = "mid" if per_class else None
    pd.testing.assert_frame_equal(found.one_se_path(label), model.one_se_path(label))
    ours, theirs = (m.cv_results_[label] if per_class else m.cv_results_ for m in (found, model))
    assert list(ours) == list(theirs)
    for key in theirs:
        np.testing.assert_array_equal(ours[key], theirs[key])
    for one, other in zip(found.folds_, model.folds_, strict=True):
        np.testing.assert_array_equal(one[0], other[0])


def test_everything_works_on_the_best_model_of_a_search(tmp_path):
    model, X, y = search_on(3)
    remember_training(model, X, y, source="here")
    model.calibration_ = fit_calibration(model.decision_function(X), y, model.classes_)
    save(model, tmp_path / "m")
    found = load(tmp_path / "m")
    before = Predictor(model, GENES).predict(X)
    after = Predictor(found, GENES).predict(X)
    np.testing.assert_array_equal(after.probabilities, before.probabilities)
    for one in (model, found):  # one rule for labels and probabilities, whoever predicts
        np.testing.assert_array_equal(one.predict_proba(X), after.probabilities)
        np.testing.assert_array_equal(one.predict(X), after.labels)
    assert found.best_estimator_.training_summary_["source"] == "here"
    assert len(panel_table(found)) == model.genes_.sum()
    assert subset(found, ["low", "top"]).classes_.tolist() == ["low", "top"]


def test_a_search_that_keeps_the_folds_is_refused(tmp_path):
    model, X, _ = search_on(2, refit="folds")
    for use in (lambda: save(model, tmp_path / "m"), lambda: Predictor(model, X.columns)):
        with pytest.raises(TypeError, match=r"keeps one model per fold.*refit=True"):
            use()


def test_a_search_over_splits_of_its_own_says_what_can_be_saved(tmp_path):
    model, _, _ = search_on(2)
    model.set_params(cv=KFold(2))
    with pytest.raises(TypeError, match=r"parameter cv .*best_estimator_ can be saved instead"):
        save(model, tmp_path / "m")
    save(model.best_estimator_, tmp_path / "m")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"search": None}, "incomplete"),
        ({"search": {"dict": [["cv_results_", 1]]}}, "incomplete"),
        ({"best": None}, "no best of the right type"),
    ],
)
def test_a_search_without_results_is_refused(tmp_path, change, message):
    model, _, _ = search_on(2)
    save(model, tmp_path / "m")
    document, arrays = unpack(tmp_path / "m")
    pack(tmp_path / "m", document | change, arrays)
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path / "m")
