"""The model file gives back the model that was saved; damaged and hostile files are refused."""

from __future__ import annotations

import contextlib
import os
import pickle
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_cases import (
    as_input,
    assert_refused,
    assert_same_model,
    make_model,
    make_panel,
    make_samples,
    models,
    pack,
    unpack,
)
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold

import optirank
from optirank import (
    OptirankClassifier,
    OptirankClassifierCV,
    RankLogisticRegression,
    load,
    save,
)
from optirank.datasets import make_unstable_ranks
from optirank.model import (
    ModelFileError,
    fit_calibration,
    fit_error_control,
    fit_novelty,
    panel_ranks,
)


def save_and_load(model, folder: Path):
    save(model, folder / "model.optirank", overwrite=True)
    return load(folder / "model.optirank")


def full(model):
    """The model with everything that it can store beyond its fit."""
    rng = np.random.default_rng(0)
    n, k = 60, len(model.classes_)
    y = model.classes_[np.arange(n) % k]
    scores = rng.normal(size=n if k == 2 else (n, k))
    model.calibration_ = fit_calibration(scores, y, model.classes_)
    model.error_control_ = fit_error_control(
        rng.uniform(size=n), np.arange(n) > 0, y, 0.2
    )
    X = make_samples(0, n, model.n_features_in_)
    model.novelty_ = fit_novelty(
        model, panel_ranks(X[:, np.flatnonzero(model.genes_)]), y, y
    )
    model.training_summary_ = {
        "n_samples": n, "class_counts": {1: 2}, "nan": float("nan"), "notes": ["a", ("b", None)]
    }  # fmt: skip
    return model


@given(models, st.integers(0, 1000))
def test_a_loaded_model_is_the_saved_one_to_the_last_bit(tmp_path_factory, model, seed):
    found = save_and_load(model, tmp_path_factory.mktemp("models"))
    assert_same_model(found, model)
    X = as_input(model, make_samples(seed, 5, model.n_features_in_))
    np.testing.assert_array_equal(found.predict(X), model.predict(X))
    np.testing.assert_array_equal(found.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("make", [make_model, make_panel])
def test_what_a_model_stores_of_its_training_is_kept(make, tmp_path):
    model = full(make(means=True) if make is make_model else make())
    found = save_and_load(model, tmp_path)
    assert repr(found.training_summary_) == repr(model.training_summary_)
    assert found.calibration_ == model.calibration_
    assert found.error_control_.at() == model.error_control_.at()
    np.testing.assert_array_equal(found.novelty_.profiles, model.novelty_.profiles)
    np.testing.assert_array_equal(found.novelty_.levels, model.novelty_.levels)


def test_a_smaller_panel_comes_out_of_the_file(tmp_path):
    model = make_panel(sizes=(3, 6, 10))
    small = save_and_load(model, tmp_path).smaller(6)
    np.testing.assert_array_equal(small.panel_, model.path_[6].genes)
    again = save_and_load(small, tmp_path)
    X = as_input(model, make_samples(0, 9, 30))
    np.testing.assert_array_equal(
        again.predict_proba(X), model.smaller(6).predict_proba(X)
    )


@pytest.mark.parametrize("cls", [OptirankClassifier, RankLogisticRegression])
def test_a_fitted_model_comes_back(cls, tmp_path):
    data = make_unstable_ranks(
        n_samples=150, n_genes=20, n_perturbed=12, random_state=0
    )
    y = np.array(["healthy", "ill"])[data.y.astype(int)]
    X = pd.DataFrame(data.X, columns=[f"g{j}" for j in range(20)])
    model = cls(l2=1e-3, class_weight={"ill": 2.0}).fit(X, y)
    found = save_and_load(model, tmp_path)
    assert_same_model(found, model)
    np.testing.assert_array_equal(found.predict_proba(X), model.predict_proba(X))


def test_a_search_comes_back_with_its_results(tmp_path):
    data = make_unstable_ranks(90, 16, 8, random_state=0)
    y = np.array(["low", "mid", "top"])[
        np.digitize(data.X[:, 0], np.quantile(data.X[:, 0], [0.3, 0.7]))
    ]
    model = OptirankClassifierCV((2, 0.5), (0,), (1e-2, 1e-1), cv=2).fit(data.X, y)
    found = save_and_load(model, tmp_path)
    assert_same_model(found.best_estimator_, model.best_estimator_)
    np.testing.assert_array_equal(
        found.predict_proba(data.X), model.predict_proba(data.X)
    )
    assert found.best_params_ == model.best_params_
    assert list(found.cv_results_["param_l2"]) == list(model.cv_results_["param_l2"])
    for one, other in zip(found.folds_, model.folds_, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
    model.set_params(cv=KFold(2))
    with pytest.raises(
        TypeError, match=r"parameter cv .*best_estimator_ can be saved instead"
    ):
        save(model, tmp_path / "m")
    document, arrays = unpack(tmp_path / "model.optirank")
    pack(tmp_path / "m", document | {"search": None}, arrays)
    assert_refused(tmp_path / "m", "incomplete")


def test_a_model_of_20_classes_and_20000_genes_is_a_small_file(tmp_path):
    found = save_and_load(
        make_panel(n_classes=20, n_genes=20_000, sizes=(30, 100)), tmp_path
    )
    assert (tmp_path / "model.optirank").stat().st_size < 150_000
    assert found.coef_.shape == (20, 20_000)


def test_the_same_model_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        save(full(make_panel()), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    save(load(tmp_path / "a"), tmp_path / "b", overwrite=True)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_file_is_replaced_only_where_asked_for_and_at_once(tmp_path, monkeypatch):
    path = tmp_path / "m"
    path.write_text("old")
    with pytest.raises(
        FileExistsError, match=r"m exists: name another file.*overwrite=True"
    ):
        save(make_panel(), path)
    assert path.read_text() == "old"

    def is_full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", is_full)
    with pytest.raises(OSError, match="No space"):
        save(make_panel(), path, overwrite=True)
    assert (os.listdir(tmp_path), path.read_text()) == (["m"], "old")
    monkeypatch.undo()
    save(make_panel(), path, overwrite=True)
    assert os.listdir(tmp_path) == ["m"]
    assert_same_model(load(path), make_panel())


@pytest.mark.parametrize(
    ("cls", "reason"),
    [
        ("SingleCellNetClassifier", "pickles"),
        ("TopScoringPairsClassifier", "PanelClassifier"),
    ],
)
def test_other_classifiers_are_refused_with_the_reason(cls, reason, tmp_path):
    with pytest.raises(TypeError, match=rf"a {cls} cannot be saved.*{reason}"):
        save(getattr(optirank, cls)(), tmp_path / "m")


def test_other_objects_and_unfitted_models_are_refused(tmp_path):
    class OptirankClassifier:  # a name is not enough
        pass

    for thing in (OptirankClassifier(), "model", None):
        with pytest.raises(TypeError, match="cannot be saved"):
            save(thing, tmp_path / "m")
    for cls in (optirank.PanelClassifier, optirank.OptirankClassifier):
        with pytest.raises(NotFittedError):
            save(cls(), tmp_path / "m")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda m: m.coef_.__setitem__((0, 0), np.nan), "coef.*NaN"),
        (
            lambda m: m.feature_names_in_.__setitem__(1, "GENE0"),
            "'GENE0' is there more than once",
        ),
        (lambda m: m.set_params(class_weight=object()), "class_weight"),
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


# Files that are damaged or made to do harm


@pytest.fixture
def path(tmp_path) -> Path:
    save(full(make_model(n_genes=20, means=True)), tmp_path / "model.optirank")
    return tmp_path / "model.optirank"


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("good") / "m"
    save(full(make_panel()), file)
    return file


@given(data=st.data())
def test_a_damaged_file_is_refused_or_means_the_same(good, tmp_path_factory, data):
    content = bytearray(good.read_bytes())
    for at in data.draw(
        st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)
    ):
        content[at] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content)))]
    file = tmp_path_factory.mktemp("damaged") / "m"
    file.write_bytes(content)
    with contextlib.suppress(ModelFileError):
        assert_same_model(load(file), load(good))


@given(st.binary(max_size=200))
def test_any_other_file_is_refused(tmp_path_factory, content):
    file = tmp_path_factory.mktemp("other") / "m"
    file.write_bytes(content)
    assert_refused(file, "not a zip")


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load(tmp_path / "nowhere")
    with pytest.raises(OSError, match=tmp_path.name):
        load(tmp_path)


any_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["dict", "tuple", "array", "float"]), inner, max_size=2
        )
    ),
    max_leaves=6,
)


def replace_somewhere(document, draw):
    """The document with one of its values, at any depth, replaced by any other."""
    inside = list(document) if isinstance(document, dict) else range(len(document))
    key = draw(st.sampled_from(list(inside)))
    changed = document.copy()
    deeper = isinstance(document[key], dict | list) and len(document[key])
    if deeper and draw(st.booleans()):
        changed[key] = replace_somewhere(document[key], draw)
    else:
        changed[key] = draw(any_json)
    return changed


@given(data=st.data())
def test_any_document_is_a_model_or_is_refused(good, tmp_path_factory, data):
    document, arrays = unpack(good)
    file = tmp_path_factory.mktemp("any") / "m"
    pack(file, replace_somewhere(document, data.draw), arrays)
    with contextlib.suppress(ModelFileError):
        assert len(load(file).classes_) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "celltypist"}, "does not say that it is an optirank model"),
        ({"schema": "1"}, "does not say"),
        (
            {"schema": 9, "optirank": "9.1"},
            r"version 9, written by optirank '9.1'.*update",
        ),
        ({"class": "os.system"}, "class 'os.system'; known are"),
        ({"parameters": {"l3": 1}}, "no parameter 'l3'"),
        ({"parameters": {"ties": "sideways"}}, "ties='sideways'"),
        ({"parameters": {"l1": {"call": "os.system"}}}, "unknown kind 'call'"),
        ({"classes": {"array": ["str", [2], ["a", "b"]]}}, "not fit"),
        ({"classes": {"array": ["str", [3], ["a", "b", "b"]]}}, "distinct"),
        ({"classes": {"array": ["O", [3], ["a", "b", "c"]]}}, "unknown dtype"),
        ({"n_features": 19}, "20 gene names for 19 genes"),
        ({"n_features": 10**12, "genes": None}, "are no model"),
        ({"n_rows": 4}, "do not fit 3 classes"),
        ({"n_panel": 3}, "more than|shape"),
        ({"genes": list(range(20))}, "list of strings"),
        ({"training_summary": [1]}, "training summary is not a dictionary"),
        (
            {
                "calibration": {
                    "dict": [["slope", 0.0], ["offset", 0.0], ["n_samples", 3]]
                }
            },
            "slope",
        ),
        ({"error_control": {"dict": [["threshold", 0.5]]}}, "threshold"),
        ({"novelty": {"dict": []}}, "missing"),
    ],
)
def test_a_wrong_document_is_refused_with_the_reason(path, change, message):
    document, arrays = unpack(path)
    pack(path, document | change, arrays)
    assert_refused(path, message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[]", "not an object"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 200_000, "not JSON"),
        (b'{"schema": ' + b"9" * 10_000 + b"}", "not JSON"),
    ],
)
def test_json_that_is_none_is_refused(path, text, message):
    pack(path, text, unpack(path)[1])
    assert_refused(path, message)


class OpenedError(Exception):
    pass


def explode() -> None:
    raise OpenedError


class Bomb:
    def __reduce__(self):
        return explode, ()


def lying_header() -> bytes:
    header = (
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }".ljust(
            117
        )
    )
    return b"\x93NUMPY\x01\x00\x76\x00" + header + b"\n"


def first(array: np.ndarray, value: float) -> np.ndarray:
    array = array.copy()
    array.flat[0] = value
    return array


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("coef", lambda a: first(a, np.nan), "'coef' has NaN or infinite"),
        ("mean_ranks", lambda a: first(a, -np.inf), "'mean_ranks' has NaN"),
        ("coef", lambda a: a.astype(np.float32), "'coef' is of float32"),
        ("coef", lambda a: a[:, :-1], r"'coef' is of float64 and shape \(3, "),
        ("panel", lambda a: a[::-1].copy(), "not increasing"),
        ("panel", lambda a: first(a, -1), "not increasing positions"),
        ("panel", lambda a: a + np.int32(10), "not increasing positions"),
        ("reference", lambda a: a * 0, "all zero in a row"),
        ("reference", lambda a: a * 1.5, r"outside \[0, 1\]"),
        ("intercept", lambda _: lying_header(), r"shape \(1000000000000,\)"),
        ("intercept", lambda _: b"__import__('os').abort()", "damaged header"),
        ("intercept", lambda _: pickle.dumps(Bomb()), "damaged header"),
        ("intercept", lambda a: a[0:0].tobytes(), "damaged header"),
        ("more", lambda _: np.zeros(3), "holds 'more', which does not belong there"),
    ],
)
def test_wrong_arrays_are_refused_with_the_reason(path, name, change, message):
    document, arrays = unpack(path)
    pack(path, document, arrays | {name: change(arrays.get(name))})
    assert_refused(path, message)


def test_pickles_are_never_opened(path):
    document, arrays = unpack(path)
    pickled = np.empty(3, dtype=object)
    pickled[:] = Bomb()
    pack(path, document, arrays | {"intercept": pickled})
    assert_refused(path, "more than|object")
    path.write_bytes(pickle.dumps(Bomb()))
    assert_refused(path, "not a zip")


def test_lacking_repeated_and_additional_members_are_refused(path, tmp_path):
    document, arrays = unpack(path)
    pack(tmp_path / "half", document, {"coef": arrays["coef"]})
    assert_refused(tmp_path / "half", "lacks the array 'panel'")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../model.json", "text")
    assert_refused(path, "which does not belong there")
    with (
        zipfile.ZipFile(path, "a") as archive,
        pytest.warns(UserWarning, match="Duplicate"),
    ):
        archive.writestr("model.json", "{}")
    assert_refused(path, "members of the same name")


@pytest.mark.parametrize("bomb", ["json", "lists", "zeros", "strings"])
def test_bombs_are_refused_before_memory_is_taken(path, bomb):
    document, arrays = unpack(path)
    if bomb == "json":
        pack(path, b" " * 100_000_000, arrays)
    elif bomb == "lists":
        pack(path, b'{"a":[' + b"[]," * 4_000_000 + b"[]]}", arrays)
    elif bomb == "zeros":
        pack(path, document, arrays | {"coef": np.zeros((3, 4_000_000))})
    else:
        many = {"array": ["str", [5001], ["x"] * 5000 + ["y" * 9000]]}
        pack(path, document | {"training_summary": {"dict": [["a", many]]}}, arrays)
    size = path.stat().st_size
    tracemalloc.start()
    try:
        assert_refused(path, "more than|at most")
        assert tracemalloc.get_traced_memory()[1] < 5e7 + size
    finally:
        tracemalloc.stop()


def test_messages_about_a_file_are_short_and_have_no_control_characters(path):
    document, arrays = unpack(path)
    pack(path, document | {"class": "\x1b[31m" * 5000}, arrays)
    with pytest.raises(ModelFileError) as caught:
        load(path)
    assert len(str(caught.value)) < 600 + len(str(path))
    assert str(caught.value).isprintable()
