"""Contents that are wrong or of another version are refused in words, and run nothing."""

from __future__ import annotations

import contextlib
import io
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_cases import assert_refused, make_model, pack, unpack

from optirank import OptirankClassifierCV
from optirank.model import (
    ModelFileError,
    fit_calibration,
    fit_rejection,
    load,
    save,
)


@pytest.fixture
def path(tmp_path) -> Path:
    save(make_model(n_genes=20, means=True), tmp_path / "model.optirank")
    return tmp_path / "model.optirank"


@pytest.fixture(scope="module")
def full_documents(tmp_path_factory) -> dict:
    """Documents with everything a model can carry, for a model and for a search."""
    rng = np.random.default_rng(0)
    model = make_model(means=True)
    model.set_params(class_weight={"type 0": 2.0})
    y = model.classes_[np.arange(30) % 3]
    model.training_summary_ = {"n_samples": 30, "counts": {1: 2}}
    model.calibration_ = fit_calibration(rng.normal(size=(30, 3)), y, model.classes_)
    model.rejection_ = fit_rejection(rng.uniform(size=30), np.arange(30) > 0, 0.2)
    search = OptirankClassifierCV()
    search.best_estimator_ = model
    search.best_params_, search.best_index_, search.best_score_ = {"l1": 0.1}, 0, 0.9
    search.folds_ = [(np.arange(3), np.arange(2))]
    search.cv_results_ = {"params": [{"l1": 0.1}], "mean_test_score": np.array([0.9])}
    search.classes_ = model.classes_
    file = tmp_path_factory.mktemp("full") / "m"
    documents = {}
    for one in (model, search):
        save(one, file)
        documents[type(one).__name__] = unpack(file)
    return documents


def test_a_newer_schema_is_refused_with_the_versions(path):
    document, arrays = unpack(path)
    document |= {"schema": 3, "optirank": "9.1"}
    pack(path, document, arrays)
    assert_refused(path, r"schema version 3, written by optirank '9.1'.*update optirank")


@pytest.mark.parametrize("schema", [0, -1, "1", 1.0, None, True, [1]])
def test_a_schema_that_is_none_is_refused(path, schema):
    document, arrays = unpack(path)
    pack(path, document | {"schema": schema}, arrays)
    assert_refused(path, "does not say that it is an optirank model")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "celltypist"}, "does not say"),
        ({"class": "os.system"}, "class 'os.system', which is not known"),
        ({"class": "SingleCellNetClassifier"}, "not known"),
        ({"class": ["OptirankClassifier"]}, "not known"),
        ({"parameters": {"l3": 1}}, "no parameter 'l3'"),
        ({"parameters": [1]}, "no parameters of the right type"),
        ({"parameters": {"ties": "sideways"}}, "ties='sideways'"),
        ({"parameters": {"ties": ["average"]}}, "cannot open"),
        ({"parameters": {"l1": {"call": "os.system"}}}, "unknown kind 'call'"),
        ({"parameters": {"l1": {"float": "1", "tuple": []}}}, "an object with keys"),
        ({"parameters": {"l1": {"dict": [[[], 1]]}}}, "key that cannot be one"),
        ({"parameters": {"l1": {"dict": [1]}}}, "not a list of pairs"),
        ({"classes": {"dtype": "str6", "values": ["type 0", "type 1"]}}, "do not fit 2 classes"),
        ({"classes": {"dtype": "str6", "values": ["type 0"]}}, "two or more distinct"),
        ({"classes": {"dtype": "str6", "values": ["type 0"] * 3}}, "two or more distinct"),
        ({"classes": {"dtype": "str999999999", "values": ["a", "b"]}}, "unknown dtype"),
        ({"classes": {"dtype": "str20000", "values": ["a", "b", "c"]}}, "no str20000"),
        ({"classes": {"dtype": "str1", "values": ["aa", "b", "c"]}}, "no str1"),
        ({"classes": {"dtype": "int8", "values": [1, 2, 300]}}, "cannot open"),
        ({"classes": {"dtype": "int64", "values": [1, 2, "c"]}}, "another type"),
        ({"classes": {"dtype": "object", "values": [1, 2, 3]}}, "list of strings"),
        ({"classes": {"dtype": "O", "values": ["a", "b", "c"]}}, "unknown dtype"),
        ({"classes": None}, "without dtype and values"),
        ({"n_features": 19}, "20 gene names for 19 genes"),
        ({"n_features": 2}, "are no model"),
        ({"n_features": -1}, "are no model"),
        ({"n_features": 20.0}, "no n_features of the right type"),
        ({"n_features": 10**12, "genes": None}, "are no model"),
        ({"n_features": 2_000_000, "genes": None}, "2000000 genes without names, more than"),
        ({"n_rows": 0}, "are no model"),
        ({"n_rows": 4}, "do not fit 3 classes"),
        ({"n_rows": 15}, "do not fit 3 classes"),
        ({"n_rows": 6}, "has shape"),
        ({"n_panel": 3}, "array 'panel' has shape"),
        ({"n_panel": 0}, "are no model"),
        ({"genes": ["GENE0"] * 20}, "'GENE0' is there more than once"),
        ({"genes": list(range(20))}, "list of strings"),
        ({"genes": ["x" * 20_000] + ["y"] * 19}, "20000 characters"),
        ({"path": None}, "no path of the right type"),
        ({"training_summary": [1]}, "not a dictionary"),
        ({"calibration": {"method": "sigmoid", "curves": []}}, "one curve per problem"),
        ({"calibration": 3}, "calibration is incomplete"),
        ({"rejection": {"threshold": 0.5}}, "incomplete"),
    ],
)
def test_a_wrong_document_is_refused_with_the_reason(path, change, message):
    document, arrays = unpack(path)
    pack(path, document | change, arrays)
    assert_refused(path, message)


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["dict", "tuple", "array", "float", "dtype", "values", "method"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=6,
)


def replace_somewhere(document: object, draw) -> object:
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


@pytest.mark.parametrize("cls", ["OptirankClassifier", "OptirankClassifierCV"])
@given(data=st.data())
def test_any_document_is_a_model_or_is_refused(full_documents, tmp_path_factory, cls, data):
    document, arrays = full_documents[cls]
    file = tmp_path_factory.mktemp("any") / "m"
    pack(file, replace_somewhere(document, data.draw), arrays)
    with contextlib.suppress(ModelFileError):
        assert len(load(file).classes_) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not JSON"),
        (b"[]", "not an object"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 200_000, "nested too deeply|not JSON"),
        (b'{"a":' * 200_000, "nested too deeply|not JSON"),
        (b'{"schema": NaN}', "number NaN"),
        (b'{"schema": -Infinity}', "number -Infinity"),
        (b'{"schema": ' + b"9" * 10_000 + b"}", "not JSON"),
    ],
)
def test_json_that_is_none_is_refused(path, text, message):
    _, arrays = unpack(path)
    pack(path, text, arrays)
    assert_refused(path, message)


def test_deeply_nested_parameters_do_no_harm(path):
    document, arrays = unpack(path)
    text = json.dumps(document | {"parameters": {"l1": "HERE"}})
    nested = '{"tuple":[' * 900 + "0" + "]}" * 900
    pack(path, text.replace('"HERE"', nested).encode(), arrays)
    with contextlib.suppress(ModelFileError):  # where the interpreter's stack is smaller
        assert isinstance(load(path).l1, tuple)


def with_array(name: str, change):
    return lambda arrays: arrays | {name: change(arrays[name])}


def set_first(value):
    def change(array):
        array = array.copy()
        array.flat[0] = value
        return array

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_array("coef", set_first(np.nan)), "'coef' has NaN or infinite"),
        (with_array("coef", set_first(-np.inf)), "'coef' has NaN or infinite"),
        (with_array("intercept", set_first(np.nan)), "'intercept' has NaN"),
        (with_array("mean_ranks", set_first(np.nan)), "'mean_ranks' has NaN"),
        (with_array("objective", set_first(np.inf)), "'objective' has NaN"),
        (with_array("coef", lambda a: a.astype(np.float32)), "'coef' is of float32, not float64"),
        (with_array("coef", lambda a: a.astype(complex)), "more than|'coef' is of complex128"),
        (with_array("coef", lambda a: a.astype("U3")), "more than|'coef' is of <U3"),
        (with_array("coef", lambda a: a.astype(">f4")), "'coef' is of >f4"),
        (with_array("panel", lambda a: a.astype(np.int64)), "'panel' is of int64"),
        (with_array("coef", lambda a: a[:, :-1]), r"'coef' has shape \(3, "),
        (with_array("coef", lambda a: a.ravel()), "'coef' has shape"),
        (with_array("coef", lambda a: a[None]), "'coef' has shape"),
        (with_array("coef", lambda a: a[:0]), "'coef' has shape"),
        (with_array("intercept", lambda a: a[:1]), "'intercept' has shape"),
        (with_array("panel", lambda a: a[::-1]), "not increasing"),
        (with_array("panel", set_first(-1)), "not increasing positions"),
        (with_array("panel", lambda a: a + 10), "not increasing positions"),
        (with_array("panel", lambda a: np.full_like(a, 3)), "not increasing positions"),
        (with_array("reference", lambda a: a & False), "no reference genes"),
        (with_array("reference", lambda a: a * 1.5), r"outside \[0, 1\]"),
        (with_array("reference", lambda a: a * -1.0), r"outside \[0, 1\]"),
        (lambda a: {k: v for k, v in a.items() if k != "coef"}, "lacks the array 'coef'"),
        (lambda a: a | {"more": np.zeros(3)}, "holds 'more', which is not known"),
    ],
)
def test_wrong_arrays_are_refused_with_the_reason(path, change, message):
    document, arrays = unpack(path)
    pack(path, document, change(arrays))
    assert_refused(path, message)


def npy(header: bytes, content: bytes = b"") -> bytes:
    header = header.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (b"", "damaged header"),
        (b"\x93NUMPY\x09\x00", "damaged header"),
        (npy(b"__import__('os').abort()"), "damaged header"),
        (npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }"), "damaged header"),
        (npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), "), "damaged header"),
        (npy(b"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,), }"), "damaged"),
        (npy(b"{'descr': '<q8', 'fortran_order': False, 'shape': (3,), }"), "damaged header"),
        (npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", b"\0" * 8), "damaged"),
        (
            npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"),
            r"has shape \(1000000000000,\)",
        ),
    ],
)
def test_a_header_that_lies_is_refused(path, member, message):
    document, arrays = unpack(path)
    buffer = io.BytesIO()
    del arrays["intercept"]
    np.savez(buffer, **arrays)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("intercept.npy", member)
    pack(path, document, buffer.getvalue())
    assert_refused(path, message)


def test_booleans_other_than_0_and_1_are_refused(path):
    document, arrays = unpack(path)
    strange = arrays["reference"].astype(np.uint8) * 7
    pack(path, document, arrays | {"reference": strange.view(bool)})
    assert_refused(path, "neither true nor false")


def test_messages_about_a_file_are_short_and_have_no_control_characters(path):
    document, arrays = unpack(path)
    pack(path, document | {"class": "\x1b[31m" * 5000}, arrays)
    with pytest.raises(ModelFileError) as caught:
        load(path)
    message = str(caught.value)
    assert len(message) < 600 + len(str(path))
    assert message.isprintable()
    assert "\\x1b[31m" in message
