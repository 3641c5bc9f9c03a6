"""Files that are damaged, or made to do harm when opened, are refused in words."""

from __future__ import annotations

import contextlib
import json
import pickle
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_cases import assert_refused, assert_same_model, make_model, pack, unpack

from optirank.model import (
    ModelFileError,
    load,
    save,
)


@pytest.fixture
def path(tmp_path) -> Path:
    save(make_model(n_genes=20, means=True), tmp_path / "model.optirank")
    return tmp_path / "model.optirank"


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> bytes:
    file = tmp_path_factory.mktemp("good") / "m"
    save(make_model(), file)
    return file.read_bytes()


@given(data=st.data())
def test_a_truncated_file_is_refused(good, tmp_path_factory, data):
    file = tmp_path_factory.mktemp("cut") / "m"
    file.write_bytes(good[: data.draw(st.integers(0, len(good) - 1))])
    assert_refused(file, "not a zip, or was cut off")


@given(data=st.data())
def test_a_damaged_file_is_refused_or_means_the_same(good, tmp_path_factory, data):
    content = bytearray(good)
    for at in data.draw(st.lists(st.integers(0, len(good) - 1), min_size=1, max_size=4)):
        content[at] = data.draw(st.integers(0, 255))
    file = tmp_path_factory.mktemp("damaged") / "m"
    file.write_bytes(content)
    with contextlib.suppress(ModelFileError):
        assert_same_model(load(file), make_model())


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


class OpenedError(Exception):
    pass


def explode() -> None:
    raise OpenedError


class Bomb:
    def __reduce__(self):
        return explode, ()


def test_pickled_arrays_are_never_opened(path):
    document, arrays = unpack(path)
    pickled = np.empty(arrays["intercept"].shape, dtype=object)
    pickled[:] = Bomb()
    pack(path, document, arrays | {"intercept": pickled})
    assert_refused(path, "Python objects, which are never read")


def test_a_pickle_in_place_of_the_file_is_never_opened(path):
    path.write_bytes(pickle.dumps(Bomb()))
    assert_refused(path, "not a zip")


@pytest.mark.parametrize("name", ["/etc/passwd", "../model.json", "model.json.bak", "x/"])
def test_additional_members_are_refused(path, name):
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, "text")
    assert_refused(path, "which does not belong there")


def test_a_lacking_or_repeated_member_is_refused(path, tmp_path):
    with zipfile.ZipFile(tmp_path / "half", "w") as archive:
        archive.writestr("model.json", "{}")
    assert_refused(tmp_path / "half", "lacks arrays.npz")
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("model.json", "{}")
    assert_refused(path, "members of the same name")


def test_other_compressions_are_refused(path):
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    assert_refused(path, "compressed in a way that models are not")


def peak_of_refusal(path: Path, message: str) -> int:
    tracemalloc.start()
    try:
        assert_refused(path, message)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_bomb_of_json_is_refused_without_unpacking_it(path):
    _, arrays = unpack(path)
    pack(path, b" " * 100_000_000, arrays)
    assert path.stat().st_size < 200_000
    assert peak_of_refusal(path, "100000000 bytes, more than the 16777216 allowed") < 5e6


def test_a_bomb_of_zeros_is_refused_without_unpacking_it(path):
    document, arrays = unpack(path)
    pack(path, document, arrays | {"coef": np.zeros((3, 4_000_000))})
    assert path.stat().st_size < 300_000
    assert peak_of_refusal(path, "says it has 96000128 bytes, more than") < 5e6


def test_a_bomb_in_place_of_the_arrays_is_refused_without_unpacking_it(path):
    document, _ = unpack(path)
    pack(path, document, bytes(90_000_000))
    assert path.stat().st_size < 300_000
    assert peak_of_refusal(path, "says it has 90000000 bytes in [0-9]+ compressed ones") < 5e6


def test_a_member_larger_than_its_file_is_refused(path):
    document, _ = unpack(path)
    pack(path, document, bytes(90_000_000))
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        true_size = struct.pack("<L", archive.getinfo("arrays.npz").compress_size)
    assert content.count(true_size) == 2
    path.write_bytes(bytes(content).replace(true_size, struct.pack("<L", 5_000_000)))
    assert peak_of_refusal(path, "larger than itself") < 5e6


def test_an_array_of_strings_is_refused_by_the_room_it_asks_for(path):
    document, arrays = unpack(path)
    document["training_summary"] = {
        "dict": [["a", {"array": {"dtype": "str10000", "values": ["x"] * 3000}}]]
    }
    pack(path, document, arrays)
    assert path.stat().st_size < 10_000
    assert peak_of_refusal(path, "room for 30000000 characters, more than the 4194304") < 5e6


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_a_flood_of_lists_is_refused_before_they_are_made(path, compression):
    document, _ = unpack(path)
    text = json.dumps(document | {"path": "HERE"}).replace('"HERE"', f"[{'[],' * 4_000_000}[]]")
    with zipfile.ZipFile(path) as archive:
        arrays = archive.read("arrays.npz")
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("model.json", text)
        archive.writestr("arrays.npz", arrays)
    size = path.stat().st_size
    assert peak_of_refusal(path, "model.json (has more than|says it has)") < 3 * size + 5e6


def test_a_model_that_compresses_too_well_is_stored_and_opens_again(tmp_path):
    model = make_model()
    model.training_summary_ = {"held": [0] * 600_000}
    save(model, tmp_path / "m")
    with zipfile.ZipFile(tmp_path / "m") as archive:
        assert archive.getinfo("model.json").compress_type == zipfile.ZIP_STORED
    assert load(tmp_path / "m").training_summary_ == model.training_summary_


def test_a_size_that_lies_is_refused(path):
    document, arrays = unpack(path)
    pack(path, json.dumps(document).encode() + b" " * 50_000_000, arrays)
    content = bytearray(path.read_bytes())
    true_size = struct.pack("<L", len(json.dumps(document)) + 50_000_000)
    false_size = struct.pack("<L", len(json.dumps(document)))
    assert content.count(true_size) == 2
    path.write_bytes(bytes(content).replace(true_size, false_size))
    assert peak_of_refusal(path, "model.json is damaged") < 5e6


def test_a_flood_of_members_is_refused_before_they_are_listed(path):
    with zipfile.ZipFile(path, "a") as archive:
        for k in range(2000):
            archive.writestr(f"m{k}", b"")
    assert_refused(path, "more members than a model has")


def test_an_encrypted_member_is_refused(path):
    content = bytearray(path.read_bytes())
    for signature, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(signature) + at] |= 1
    path.write_bytes(content)
    assert_refused(path, "damaged")
