"""Files are complete or absent."""

from __future__ import annotations

import errno
import hashlib
import os

import pytest

from optirank._util import files
from optirank._util.files import (
    check_outputs,
    file_digest,
    replacing,
    write_text,
)


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_after_an_error_the_old_file_is_there_and_nothing_else(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def write_half():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(type(error)):
        write_half()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_an_error_of_the_system_names_the_file(tmp_path):
    path = tmp_path / "a.txt"
    with pytest.raises(OSError, match="No space") as caught, replacing(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == str(path)
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(FileNotFoundError) as caught:
        write_text(tmp_path / "nowhere" / "a.txt", "text")
    assert caught.value.filename == str(tmp_path / "nowhere" / "a.txt")


def test_a_link_stays_a_link(tmp_path):
    there, link = tmp_path / "there.txt", tmp_path / "link.txt"
    there.write_text("old")
    link.symlink_to(there)
    write_text(link, "new")
    assert link.is_symlink()
    assert there.read_text() == "new"


@pytest.mark.parametrize("kind", ["pipe", "link to a device"])
def test_a_device_or_a_pipe_is_written_into_and_stays_what_it_is(kind, tmp_path):
    path = tmp_path / "out"
    if kind == "pipe":
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    else:
        path.symlink_to(os.devnull)
    check_outputs({"the model": path}, [], force=False)
    write_text(path, "content")
    if kind == "pipe":
        assert os.read(reader, 100) == b"content"
        os.close(reader)
        assert path.is_fifo()
    else:
        assert path.is_char_device()
    assert os.listdir(tmp_path) == ["out"]


def test_a_name_of_250_bytes_is_written(tmp_path):
    path = tmp_path / ("ä" * 123 + ".txt")
    write_text(path, "text")
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("folder", "is a folder"),
        ("nowhere/a.csv", "does not exist: make it first"),
        ("kept.csv", "kept.csv exists"),
        ("query.csv", "is an input too"),
        ("link.csv", "is an input too"),
        ("inputs/a.csv", "is an input too"),
    ],
)
def test_outputs_that_cannot_or_must_not_be_written_are_refused(
    name, message, tmp_path
):
    (tmp_path / "folder").mkdir()
    (tmp_path / "inputs").mkdir()
    for one in ("kept.csv", "query.csv"):
        (tmp_path / one).write_text("of somebody else")
    (tmp_path / "link.csv").symlink_to("query.csv")
    inputs = [tmp_path / "query.csv", tmp_path / "inputs", "pancreas-human", None]
    with pytest.raises(ValueError, match=message):
        check_outputs({"the labels": tmp_path / name}, inputs, force=False)


def test_one_file_is_no_two_outputs(tmp_path):
    path = tmp_path / "a.csv"
    with pytest.raises(ValueError, match="for the labels and for the report: name two"):
        check_outputs({"the labels": path, "the report": path}, [], force=True)


def test_a_store_of_zarr_is_replaced_as_a_whole_and_other_folders_never(tmp_path):
    store = tmp_path / "labels.zarr"
    store.mkdir()
    with pytest.raises(ValueError, match="is a folder"):
        check_outputs({"the labels": store}, [], force=True)
    (store / "zarr.json").write_text("{}")
    (store / "old").write_text("old")
    check_outputs({"the labels": store}, [], force=True)
    with replacing(store) as temporary:
        temporary.mkdir()
        (temporary / "new").write_text("new")
    assert os.listdir(store) == ["new"]
    assert os.listdir(tmp_path) == ["labels.zarr"]


def test_an_input_that_is_a_link_to_itself_is_no_output(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    check_outputs({"the labels": tmp_path / "labels.csv"}, [loop], force=False)


def test_a_file_is_known_by_its_content_and_a_large_one_by_size_and_date(
    tmp_path, monkeypatch
):
    (tmp_path / "a.txt").write_text("a", "utf-8")
    digest = hashlib.sha256(b"a").hexdigest()
    assert file_digest(tmp_path / "a.txt") == f"SHA-256 {digest}"
    whole = file_digest(tmp_path)
    (tmp_path / "b.txt").write_text("a", "utf-8")
    assert file_digest(tmp_path) != whole
    monkeypatch.setattr(files, "_HASHED", 0)
    os.utime(tmp_path / "a.txt", (0, 0))
    assert file_digest(tmp_path / "a.txt") == "1 bytes, 1970-01-01 00:00:00 UTC"


def test_a_store_is_there_until_the_new_one_can_take_its_name(tmp_path):
    store = tmp_path / "x.zarr"
    for content in ("old", "new"):
        with replacing(store) as temporary:
            temporary.mkdir()
            (temporary / "zarr.json").write_text(content)
    assert [file.read_text() for file in tmp_path.rglob("*.json")] == ["new"]
    assert os.listdir(tmp_path) == ["x.zarr"]
    with pytest.raises(FileNotFoundError), replacing(store):
        pass
    assert [file.read_text() for file in tmp_path.rglob("*.json")] == ["new"]
