"""The model file gives back the model that was saved, and old files keep opening."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_cases import (
    assert_refused,
    assert_same_model,
    make_model,
    make_samples,
    models,
    own_scores,
    pack,
    unpack,
)
from sklearn.exceptions import NotFittedError

from optirank import (
    AnovaRankLogisticRegression,
    OptirankClassifier,
    RankLogisticRegression,
    SingleCellNetClassifier,
)
from optirank.datasets import make_unstable_ranks
from optirank.estimators.logistic import ElasticNetLogisticRegression
from optirank.model import (
    Calibration,
    Predictor,
    Rejection,
    fit_calibration,
    fit_rejection,
    load,
    remember_training,
    save,
)
from optirank.model.values import decode, encode

DATA = Path(__file__).parent / "data"


def save_and_load(model, folder: Path):
    path = folder / "model.optirank"
    save(model, path)
    return load(path)


@given(models, st.integers(0, 1000))
def test_a_loaded_model_is_the_saved_one_to_the_last_bit(tmp_path_factory, model, seed):
    found = save_and_load(model, tmp_path_factory.mktemp("models"))
    assert_same_model(found, model)
    X = make_samples(seed, 5, model.n_features_in_)
    np.testing.assert_array_equal(own_scores(found, X), own_scores(model, X))
    if hasattr(model, "feature_names_in_"):
        X = pd.DataFrame(X, columns=model.feature_names_in_)
    np.testing.assert_array_equal(found.predict(X), model.predict(X))
    np.testing.assert_array_equal(found.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("cls", [OptirankClassifier, RankLogisticRegression])
def test_a_fitted_model_comes_back(cls, tmp_path):
    data = make_unstable_ranks(n_samples=150, n_genes=20, n_perturbed=12, random_state=0)
    y = np.array(["healthy", "ill"])[data.y.astype(int)]
    X = pd.DataFrame(data.X, columns=[f"g{j}" for j in range(20)])
    model = cls(l2=1e-3, class_weight={"ill": 2.0}).fit(X, y)
    found = save_and_load(model, tmp_path)
    assert_same_model(found, model)
    np.testing.assert_array_equal(found.predict_proba(X), model.predict_proba(X))


def test_an_average_of_models_comes_back(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 8)), np.arange(60) % 3
    X[np.arange(60), y] += 2
    model = OptirankClassifier((0.25, 0.5, 0.5), (1e-2, 3e-3, 1e-3), side="both", n_platforms=1)
    model.fit(X, y)
    again = save_and_load(model, tmp_path)
    assert again.get_params() == model.get_params()
    assert (again.decision_function(X) == model.decision_function(X)).all()
    two = model.subset([0, 2])
    assert (save_and_load(two, tmp_path).predict(X) == two.predict(X)).all()


def test_a_fitted_anova_model_comes_back_with_its_fixed_reference(tmp_path):
    data = make_unstable_ranks(n_samples=120, n_genes=20, n_perturbed=12, random_state=1)
    y = np.digitize(data.X[:, 0], np.quantile(data.X[:, 0], [0.3, 0.6]))
    for reference in (data.reference > 0, np.array([3, 5]), [3, 5], None):
        model = AnovaRankLogisticRegression(n_reference=4, reference=reference)
        model.fit(data.X, y, dataset=np.arange(120) % 2)
        found = save_and_load(model, tmp_path)
        assert_same_model(found, model)
        np.testing.assert_array_equal(
            found.decision_function(data.X), model.decision_function(data.X)
        )


def test_what_is_remembered_of_training_is_kept(tmp_path):
    model = make_model(n_classes=3)
    rng = np.random.default_rng(0)
    scores, y = rng.normal(size=(60, 3)), model.classes_[np.arange(60) % 3]
    remember_training(
        model, make_samples(0, 60, 12), y, accuracy={"type 0": 0.9, "type 1": float("nan")}
    )
    model.rejection_ = fit_rejection(rng.uniform(0.5, 1, 60), np.arange(60) % 20 > 0, 0.1)
    model.calibration_ = fit_calibration(scores, y, model.classes_)
    found = save_and_load(model, tmp_path)
    np.testing.assert_array_equal(found.mean_ranks_, model.mean_ranks_)
    assert repr(found.training_summary_) == repr(model.training_summary_)
    assert isinstance(found.rejection_, Rejection)
    assert found.rejection_ == model.rejection_
    assert isinstance(found.calibration_, Calibration)
    np.testing.assert_array_equal(
        found.calibration_.probabilities(scores), model.calibration_.probabilities(scores)
    )


def test_a_model_of_20_classes_and_20000_genes_is_a_small_file(tmp_path):
    model = make_model(n_classes=20, n_genes=20_000, n_weights=200)
    model.reference_weights_[:, 1000:] = 0
    model.reference_ = model.reference_weights_ > 0
    model.genes_ = (model.reference_ | (model.coef_ != 0)).any(axis=0)
    found = save_and_load(model, tmp_path)
    assert (tmp_path / "model.optirank").stat().st_size < 200_000
    np.testing.assert_array_equal(found.coef_, model.coef_)


def test_only_the_columns_of_the_panel_are_stored(tmp_path):
    model = make_model(n_genes=30)
    save(model, tmp_path / "m")
    document, arrays = unpack(tmp_path / "m")
    assert arrays["coef"].shape[1] == document["n_panel"] == model.genes_.sum() < 30
    assert (document["schema"], document["class"]) == (2, "OptirankClassifier")
    assert document["genes"] == model.feature_names_in_.tolist()


def test_the_same_model_gives_the_same_bytes(tmp_path):
    save(make_model(), tmp_path / "a")
    save(make_model(), tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_saving_replaces_a_file_at_once_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "m"
    path.write_text("old")
    save(make_model(), path)
    assert os.listdir(tmp_path) == ["m"]
    assert_same_model(load(path), make_model())


def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m"
    save(make_model(), path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save(make_model(1), path)
    assert (os.listdir(tmp_path), path.read_bytes()) == (["m"], before)


def test_a_saved_file_can_be_read_by_others(tmp_path):
    before = os.umask(0o022)
    try:
        save(make_model(), tmp_path / "m")
    finally:
        os.umask(before)
    assert (tmp_path / "m").stat().st_mode & 0o777 == 0o644


def test_a_forest_is_refused_with_the_reason(tmp_path):
    with pytest.raises(TypeError, match=r"SingleCellNetClassifier cannot be saved.*pickles"):
        save(SingleCellNetClassifier(), tmp_path / "m")
    assert not os.listdir(tmp_path)


def test_other_objects_are_refused(tmp_path):
    class OptirankClassifier:  # a name is not enough
        pass

    for thing in (OptirankClassifier(), "model", None):
        with pytest.raises(TypeError, match="cannot be saved"):
            save(thing, tmp_path / "m")


def test_an_unfitted_model_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        save(OptirankClassifier(), tmp_path / "m")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda m: m.coef_.__setitem__((0, 0), np.nan), "coef.*NaN"),
        (lambda m: m.intercept_.__setitem__(0, np.inf), "intercept.*NaN or infinite"),
        (lambda m: m.feature_names_in_.__setitem__(1, "GENE0"), "'GENE0' is there more than once"),
        (lambda m: m.set_params(random_state=np.random.RandomState(0)), "random_state"),
        (lambda m: m.set_params(ties="none"), "ties"),
        (lambda m: setattr(m, "path_", [[{"x": "y" * 10_000}] * 2000]), "path_ = "),
    ],
)
def test_a_model_that_could_not_be_opened_is_not_saved(tmp_path, spoil, message):
    model = make_model()
    spoil(model)
    with pytest.raises((ValueError, TypeError), match=message):
        save(model, tmp_path / "m")
    assert not os.listdir(tmp_path)


def test_the_file_of_schema_1_opens_for_good():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = load(DATA / "schema-1.optirank")
    expected = json.loads((DATA / "schema-1.json").read_text())
    assert type(model) is OptirankClassifier
    assert model.get_params() | {"n_reference": 6, "l2": 1e-4} == model.get_params()
    assert model.classes_.tolist() == expected["classes"] == ["ill", "mixed", "well"]
    assert model.feature_names_in_.tolist() == expected["genes"]
    assert model.training_summary_["n_samples"] == 120
    X = pd.DataFrame(expected["X"], columns=expected["genes"])
    np.testing.assert_allclose(model.decision_function(X), expected["scores"], rtol=1e-12)
    assert model.predict(X).tolist() == expected["labels"]
    # Its curves, one per class, moved labels: their mean slope is what is left of them
    assert model.calibration_.slope > 0
    assert model.calibration_.offset == 0.0
    assert model.classes_[model.predict_proba(X).argmax(axis=1)].tolist() == expected["labels"]
    assert not hasattr(model, "rejection_")
    assert model.mean_ranks_.shape == model.coef_.shape


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.text(max_size=3) | st.integers() | st.booleans(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(plain_values)
def test_plain_values_come_back_from_json(value):
    assert repr(decode(json.loads(json.dumps(encode(value), allow_nan=False)))) == repr(value)


@pytest.mark.parametrize(("n_classes", "l1"), [(2, 1e-2), (3, 1e-2), (2, 10.0)])
def test_logistic_regression_on_values_is_kept_too(n_classes, l1, tmp_path):
    rng = np.random.default_rng(0)
    y = np.array([f"c{k % n_classes}" for k in range(60)])
    X = pd.DataFrame(rng.normal(size=(60, 8)), columns=[f"g{j}" for j in range(8)])
    X["g0"] += 2.0 * (y == "c0")
    model = ElasticNetLogisticRegression(l1=l1, l2=1e-2).fit(X, y)
    found = save_and_load(model, tmp_path)
    np.testing.assert_array_equal(found.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(found.predict(X), model.predict(X))
    np.testing.assert_array_equal(found.genes_, model.genes_)
    assert found.get_params() == model.get_params()
    assert not hasattr(found, "training_summary_")
    scores = Predictor(found, X.columns[::-1]).scores(X[X.columns[::-1]])
    np.testing.assert_allclose(scores, model.decision_function(X))


@pytest.mark.parametrize("wrong", [-1.0, "many", True, float("nan")])
def test_a_total_that_makes_no_sense_is_refused(wrong, tmp_path):
    X, y = np.random.default_rng(0).poisson(3.0, (40, 6)), np.arange(40) % 2
    save(ElasticNetLogisticRegression(target_sum=1e4).fit(X, y), tmp_path / "m")
    document, arrays = unpack(tmp_path / "m")
    document["parameters"]["target_sum"] = encode(wrong)
    pack(tmp_path / "m", document, arrays)
    assert_refused(tmp_path / "m", "target_sum")
