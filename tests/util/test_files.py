"""Files are complete or absent."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import subprocess
import sys

import pytest

from optirank._util import files
from optirank._util.files import (
    check_outputs,
    claimed_outputs,
    file_digest,
    replacing,
    write_bytes,
    write_text,
)
from optirank._util.work import uninterrupted


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


@pytest.mark.parametrize("kind", ["pipe", "link to a device"])
def test_a_device_or_a_pipe_is_written_into_and_stays_what_it_is(kind, tmp_path):
    path = tmp_path / "out"
    if kind == "pipe":
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    else:
        path.symlink_to(os.devnull)
    check_outputs({"the model": path}, [], force=True)
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
    with claimed_outputs({"the text": path}, [], force=False):
        write_text(path, "text")
    assert path.read_text() == "text"
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("kind", ["loop", "too long"])
def test_names_that_no_file_can_have_are_refused_before_any_work(kind, tmp_path):
    path = tmp_path / ("n" * 256)
    if kind == "loop":
        path = tmp_path / "loop"
        path.symlink_to(path)
    words = {"loop": "leads back to itself", "too long": "name that is too long"}
    with pytest.raises(ValueError, match=words[kind]):
        check_outputs({"the model": path}, [], force=True)


CLAIM = """
import sys
from optirank._util.files import claimed_outputs, write_text
try:
    with claimed_outputs({"the model": sys.argv[1]}, [], force=False):
        print("claimed", flush=True)
        if sys.stdin.readline().strip() == "die":
            import os, signal
            os.kill(os.getpid(), signal.SIGKILL)
        write_text(sys.argv[1], "by another")
except ValueError as error:
    print(error)
"""


def other_process(path):
    return subprocess.Popen(
        [sys.executable, "-c", CLAIM, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_of_two_processes_that_write_one_new_name_the_second_is_refused(tmp_path):
    path = tmp_path / "model"
    with other_process(path) as process:
        assert process.stdout.readline() == "claimed\n"
        with (
            pytest.raises(ValueError, match="is being written by another process"),
            claimed_outputs({"the model": path}, [], force=True),
        ):
            pass
        process.communicate("write\n")
    assert path.read_text() == "by another"
    assert os.listdir(tmp_path) == ["model"]
    with (
        pytest.raises(ValueError, match="exists"),
        claimed_outputs({"the model": path}, [], force=False),
    ):
        pass


def test_the_claim_of_a_process_that_died_is_taken_over(tmp_path):
    path = tmp_path / "model"
    with other_process(path) as process:
        process.stdout.readline()
        process.communicate("die\n")
    assert os.listdir(tmp_path) == [".model.claim"]
    with claimed_outputs({"the model": path}, [], force=False):
        write_text(path, "new")
    assert os.listdir(tmp_path) == ["model"]


def test_a_full_disk_is_seen_before_the_work(tmp_path, monkeypatch):
    def full(path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("optirank._util.files._to_disk", full)
    path = tmp_path / "model"
    with (
        pytest.raises(OSError, match="No space") as caught,
        claimed_outputs({"the model": path}, [], force=False),
    ):
        pytest.fail("the work began")
    assert caught.value.filename == str(path)
    assert os.listdir(tmp_path) == []


def test_the_outputs_of_a_command_get_their_names_together_last_of_all(tmp_path):
    labels, page = tmp_path / "labels.csv", tmp_path / "page.html"
    page.write_text("old page")
    outputs = {"the labels": labels, "the report": page}
    with claimed_outputs(outputs, [], force=True):
        write_text(labels, "first")
        write_text(labels, "new labels")
        assert not labels.exists()
        write_text(page, "new page")
        assert page.read_text() == "old page"
    assert (labels.read_text(), page.read_text()) == ("new labels", "new page")
    assert sorted(os.listdir(tmp_path)) == ["labels.csv", "page.html"]


@pytest.mark.parametrize("error", [ValueError("no page"), KeyboardInterrupt()])
def test_no_new_labels_are_left_beside_an_old_report(tmp_path, error):
    labels, page = tmp_path / "labels.csv", tmp_path / "page.html"
    page.write_text("old page")

    def label():
        outputs = {"the labels": labels, "the report": page}
        with claimed_outputs(outputs, [], force=True):
            write_text(labels, "new labels")
            raise error

    with pytest.raises(type(error)):
        label()
    assert os.listdir(tmp_path) == ["page.html"]
    assert page.read_text() == "old page"


SWALLOWED = """
import os, signal, sys
from optirank._util import work
from optirank._util.files import claimed_outputs, write_text
if sys.argv[2] == "ignored":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
work.remember_interrupts()
with claimed_outputs({"the text": sys.argv[1]}, [], force=True):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        pass  # as a callback of C does
    write_text(sys.argv[1], "text")
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of a terminal")
@pytest.mark.parametrize("handling", ["default", "ignored"])
def test_an_interrupt_that_was_swallowed_acts_before_outputs_get_their_names(
    handling, tmp_path
):
    path = tmp_path / "a.txt"
    done = subprocess.run(
        [sys.executable, "-c", SWALLOWED, str(path), handling],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert ("KeyboardInterrupt" in done.stderr) == (handling == "default")
    assert os.listdir(tmp_path) == ([] if handling == "default" else ["a.txt"])


def test_ctrl_c_waits_for_a_short_block():
    steps = []

    def block():
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            steps.append("done")
        steps.append("after")

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            block()
    finally:
        signal.signal(signal.SIGINT, handler)
    assert steps == ["done"]


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
