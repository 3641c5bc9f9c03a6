"""Files are complete or absent."""

from __future__ import annotations

import errno
import os

import pytest

from optirank._util.files import replacing, write_bytes, write_text


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
    write_bytes(link, b"new")
    assert link.is_symlink()
    assert there.read_text() == "new"
