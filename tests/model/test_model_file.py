"""The model file gives back the model that was saved; damaged and hostile files are
refused.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_cases import (
    assert_refused,
    assert_same,
    full,
    make_model,
    make_panel,
    make_samples,
    models,
    pack,
    unpack,
)
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from optirank import (
    Model,
    OptirankClassifier,
    OptirankClassifierCV,
    PanelClassifier,
    RankLogisticRegression,
    load,
    save,
)
from optirank.datasets import make_unstable_ranks
from optirank.model import Card, ModelFileError
from optirank.model.file import model_digest


def save_and_load(model, folder: Path) -> Model:
    save(model, folder / "model.optirank", overwrite=True)
    return load(folder / "model.optirank")


@given(models, st.integers(0, 1000))
def test_a_loaded_model_is_the_saved_one_to_the_last_bit(tmp_path_factory, model, seed):
    loaded = save_and_load(model, tmp_path_factory.mktemp("models"))
    assert_same(loaded, model)
    X = make_samples(seed, 5, model.n_features)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("make", [make_model, make_panel])
def test_what_a_model_stores_of_its_training_is_kept(make, tmp_path):
    model = full(make())
    assert_same(save_and_load(model, tmp_path), model)


@pytest.mark.parametrize(
    "estimator",
    [
        PanelClassifier(n_genes=10),
        OptirankClassifier(l2=1e-3, class_weight={"ill": 2.0}),
        RankLogisticRegression(l2=1e-3),
        OptirankClassifierCV((2, 0.5), (0,), (1e-2, 1e-1), cv=2),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_fitted_estimator_comes_back_as_a_model_that_labels_alike(
    estimator, tmp_path
):
    data = make_unstable_ranks(
        n_samples=150, n_genes=20, n_perturbed=12, random_state=0
    )
    y = np.array(["healthy", "ill"])[data.y.astype(int)]
    X = pd.DataFrame(data.X, columns=[f"g{j}" for j in range(20)])
    estimator.fit(X, y)
    model = save_and_load(estimator, tmp_path)
    np.testing.assert_allclose(
        model.decision_function(X), estimator.decision_function(X), atol=1e-12
    )
    np.testing.assert_allclose(
        model.predict_proba(X), estimator.predict_proba(X), atol=1e-12
    )
    np.testing.assert_array_equal(model.predict(X), estimator.predict(X))


def test_a_model_of_20_classes_and_20000_genes_is_a_small_file(tmp_path):
    model = make_panel(n_classes=20, n_genes=20_000, sizes=(30, 100))
    loaded = save_and_load(model, tmp_path)
    assert (tmp_path / "model.optirank").stat().st_size < 150_000
    assert loaded.n_features == 20_000


def test_the_same_model_gives_the_same_bytes_and_digest(tmp_path):
    for name in ("a", "b"):
        save(full(make_panel()), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    loaded = load(tmp_path / "a")
    save(loaded, tmp_path / "b", overwrite=True)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert model_digest(full(make_panel())) == model_digest(loaded) == loaded.digest


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
    assert_same(load(path), make_panel())


def test_pipelines_and_searches_over_them_say_which_part_to_save(tmp_path):
    data = make_unstable_ranks(60, 16, 6, random_state=0)
    pipeline = make_pipeline(FunctionTransformer(), PanelClassifier(n_genes=5))
    search = GridSearchCV(pipeline, {"panelclassifier__n_genes": [4, 5]}, cv=2)
    search.fit(data.X, data.y)
    with pytest.raises(TypeError, match="the last step of a Pipeline"):
        save(search.best_estimator_, tmp_path / "m")
    with pytest.raises(TypeError, match="the last step of a Pipeline"):
        save(search, tmp_path / "m")
    plain = GridSearchCV(PanelClassifier(), {"n_genes": [4, 5]}, cv=2)
    plain.fit(data.X, data.y)
    model = save_and_load(plain, tmp_path)
    np.testing.assert_array_equal(model.predict(data.X), plain.predict(data.X))


def test_other_objects_and_unfitted_models_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="nor the name of a model"):
        save("model", tmp_path / "m")
    for thing in (None, 3):
        with pytest.raises(TypeError):
            save(thing, tmp_path / "m")
    for cls in (PanelClassifier, OptirankClassifier, OptirankClassifierCV):
        with pytest.raises(NotFittedError):
            save(cls(), tmp_path / "m")
    assert not os.listdir(tmp_path)


def spoilt_weights(model: Model) -> Model:
    coef = model.panel.coef.copy()
    coef[0, 0] = np.nan
    panel = replace(model.panel, coef=coef)
    return replace(model, panels={model.n_genes: panel})


def two_genes_of_one_name(model: Model) -> Model:
    genes = model.panel.genes.copy()
    genes[1] = genes[0]
    panel = replace(model.panel, genes=genes)
    return replace(model, panels={model.n_genes: panel})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (spoilt_weights, "weights are NaN"),
        (two_genes_of_one_name, "a gene more than once"),
        (
            lambda model: replace(model, card=Card(notes=("y" * 10_000,) * 2000)),
            "bytes",
        ),
    ],
)
def test_a_model_that_could_not_be_opened_is_not_saved(tmp_path, spoil, message):
    with pytest.raises((ValueError, TypeError), match=message):
        save(spoil(make_panel(sizes=(10,))), tmp_path / "m")
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
        assert_same(load(file), load(good))


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
        assert len(load(file).classes) == 3


def changed(document: dict, where: str, value: object) -> dict:
    """The document with another value at a place such as "panels/17/missing"."""
    key, _, deeper = where.partition("/")
    inner = changed(document[key], deeper, value) if deeper else value
    return document | {key: inner}


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        ("format", "celltypist", "does not say that it is an optirank model"),
        ("schema", "1", "has schema version 1"),
        ("schema", 9, r"version 9, written by optirank '0.1.0'.*reads version 1"),
        ("classes", ["a", "b", "b"], "distinct"),
        ("classes", ["a", "b", 3], "'classes' is not as"),
        ("classes", ["a", "b", None], "'classes' is not as"),
        ("classes", {"call": "os.system"}, "KeyError|'classes' is not as|expected"),
        ("label_type", "O", "unknown type 'O'"),
        ("label_type", "3f8", "unknown type '3f8'"),
        ("label_type", "int64", "invalid literal"),
        ("n_features", 10, "column"),
        ("n_features", 20.0, "'n_features' is not as"),
        ("n_genes", 3, "no panel of 3 genes"),
        ("panels/17/genes", list(range(17)), "'panels' is not as"),
        ("panels/17/genes", ["GENE0"] * 17, "more than once"),
        ("panels/17/genes", [], "expected"),
        ("panels/17/genes", ["A", "B"], "expected"),
        ("panels/17/columns", [-1, *range(1, 17)], "column is not one of the training"),
        ("panels/17/columns", [0] * 17, "a column of the training data each"),
        ("panels/17/columns", [0.5] * 17, "a column of the training data each"),
        ("panels/17/columns", [10**30] * 17, "too large"),
        ("panels/17/columns", [1, 2], "a column of the training data each"),
        ("panels/17/coef", [1.0] * 17, "'panels' is not as"),
        ("panels/17/references/intercept", [1.0], "not 3 finite numbers"),
        ("panels/17/references/intercept", [None] * 3, "not 3 finite numbers"),
        ("panels/17/references/intercept", [1e400] * 3, "not 3 finite numbers"),
        ("panels/17/references/ties", "sideways", "ties='sideways'"),
        ("further/genes", ["A"] * 60, "a name more than once"),
        ("further/genes", ["A", "B"], "expected"),
        ("panels", {}, "panel"),
        ("panels", {"17": {}}, "KeyError"),
        ("panels", {"x": {}}, "invalid literal for int.* 'x'"),
        ("panels/17/more", 1, "'panels' is not as"),
        ("panels/17/calibration/slope", 0.0, "slope"),
        ("panels/17/calibration/slope", "2.5", "'panels' is not as"),
        ("panels/17/error_control/kept", [2.0] * 20, "no shares at falling thresholds"),
        ("panels/17/error_control/thresholds", [0.5] * 20, "falling"),
        ("panels/17/likeness/medians", [0.5, None, 0.5], "3 finite numbers"),
        ("panels/17/missing", [[0.5, 0.9], [0.1, 0.9]], "rising table"),
        ("panels/17/missing", [[0.5]], "not enough values"),
        ("card", [1], "damaged"),
        ("card/n_samples", "60", "'card' is not as"),
        ("card/surprise", 1, "'card' is not as"),
        ("card/notes", "text", "'card' is not as"),
        ("card/balanced_accuracy", 1e400, "not JSON compliant"),
        ("card/held_out", {"type 0": {"n": 1}}, "KeyError"),
        (
            "card/held_out",
            {"a": {"right": 3, "n": 2, "false": 0, "n_others": 0}},
            "cannot be",
        ),
    ],
)
def test_a_wrong_document_is_refused_with_the_reason(path, where, value, message):
    document, arrays = unpack(path)
    pack(path, changed(document, where, value), arrays)
    assert_refused(path, message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[]", "not an object"),
        (b"\xff\xfe", "damaged|utf|Expecting"),
        (b"[" * 200_000, "damaged"),
        (b'{"schema": ' + b"9" * 10_000 + b"}", "digits"),
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
        ("coef", lambda a: first(a, np.nan), "coef' has NaN or infinite"),
        ("coef", lambda a: a.astype(np.float32), r"float32.*expected .*float64"),
        ("coef", lambda a: np.asfortranarray(a), r"\(3, 17\), True.*expected"),
        ("coef", lambda a: a[:, :-1], r"\(3, 16\).*expected"),
        ("coef", lambda _: lying_header(), r"\(1000000000000,\).*expected"),
        ("coef", lambda _: b"__import__('os').abort()", "magic string"),
        ("coef", lambda _: pickle.dumps(Bomb()), "magic string"),
        ("likeness/profiles", lambda a: a[:, :-1], "expected"),
        ("references/mean_ranks", lambda a: first(a, -np.inf), "mean_ranks' has NaN"),
        ("references/weights", lambda a: a * 0, "all zero in a row"),
        ("references/weights", lambda a: a * 1.5, r"outside \[0, 1\]"),
        ("../../further/means", lambda a: a * 2, "not all within 1/2"),
        ("../../more", lambda _: np.zeros(3), "'more.npy'] does not belong"),
    ],
)
def test_wrong_arrays_are_refused_with_the_reason(path, name, change, message):
    document, arrays = unpack(path)
    place = os.path.normpath(f"panels/17/{name}")
    pack(path, document, arrays | {place: change(arrays.get(place))})
    assert_refused(path, message)


def test_pickles_are_never_opened(path):
    document, arrays = unpack(path)
    pickled = np.empty((3, 17), dtype=object)
    pickled[:] = Bomb()
    pack(path, document, arrays | {"panels/17/coef": pickled})
    assert_refused(path, "more than|dtype")
    path.write_bytes(pickle.dumps(Bomb()))
    assert_refused(path, "not a zip")


def test_lacking_repeated_and_additional_members_are_refused(path, tmp_path):
    document, arrays = unpack(path)
    pack(tmp_path / "half", document, {"further/means": arrays["further/means"]})
    assert_refused(tmp_path / "half", "lacks panels/17/")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../model.json", "text")
    assert_refused(path, "does not belong there")
    with (
        zipfile.ZipFile(path, "a") as archive,
        pytest.warns(UserWarning, match="Duplicate"),
    ):
        archive.writestr("model.json", "{}")
    assert_refused(path, "members of the same name")


@pytest.mark.parametrize("bomb", ["json", "lists", "zeros", "strings", "bzip2"])
def test_bombs_are_refused_before_memory_is_taken(path, bomb):
    document, arrays = unpack(path)
    if bomb == "json":
        pack(path, b" " * 100_000_000, arrays)
    elif bomb == "lists":
        pack(path, b'{"a":[' + b"[]," * 4_000_000 + b"[]]}", arrays)
    elif bomb == "zeros":
        pack(path, document, arrays | {"panels/17/coef": np.zeros((3, 4_000_000))})
    elif bomb == "bzip2":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
            archive.writestr("model.json", b" " * 100_000_000)
        content = path.read_bytes()
        lie = (1000).to_bytes(4, "little")  # bytes of the member, where they stand
        path.write_bytes(content.replace((100_000_000).to_bytes(4, "little"), lie))
    else:
        many = ["x"] * 5000 + ["y" * 9000]
        pack(path, document | {"classes": many}, arrays)
    size = path.stat().st_size
    tracemalloc.start()
    try:
        assert_refused(path, "more than|at most|cannot be bounded")
        assert tracemalloc.get_traced_memory()[1] < 5e7 + size
    finally:
        tracemalloc.stop()


def test_messages_about_a_file_are_short_and_have_no_control_characters(path):
    document, arrays = unpack(path)
    pack(path, document | {"schema": 9, "optirank": "\x1b[31m" * 5000}, arrays)
    with pytest.raises(ModelFileError) as caught:
        load(path)
    assert len(str(caught.value)) < 600 + len(str(path))
    assert str(caught.value).isprintable()
