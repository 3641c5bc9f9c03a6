"""A child process may crash, hang or be killed: each gives a gap with a reason, and no orphans."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from optirank.benchmark.running.children import run_child

posix = pytest.mark.skipif(os.name != "posix", reason="process groups are those of POSIX")


def child(tmp_path, code: str, limit: float = 60.0, python: str = sys.executable) -> dict:
    script = tmp_path / "script.py"
    script.write_text("import sys, pathlib, os, time\nfolder = pathlib.Path(sys.argv[1])\n" + code)
    return run_child([python, str(script)], tmp_path, limit)


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return not state.stdout.startswith("Z")


def ended(pid: int) -> bool:
    deadline = time.monotonic() + 20
    while runs(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not runs(pid)


def test_a_result_comes_back(tmp_path):
    found = child(tmp_path, '(folder / "result.json").write_text(\'{"version": "a 1"}\')')
    assert found == {"version": "a 1"}


def test_a_crash_is_a_gap_with_its_last_words(tmp_path):
    found = child(tmp_path, '(folder / "stage.txt").write_text("fit")\nraise KeyError("genes")')
    assert found["stage"] == "fit"
    assert "exit code 1" in found["failed"]
    assert "KeyError: 'genes'" in found["failed"]


def test_a_child_that_says_nothing_is_a_gap(tmp_path):
    found = child(tmp_path, "os._exit(0)")
    assert found == {"failed": "ended with exit code 0 and without a result", "stage": "start"}


def test_a_damaged_result_is_a_gap(tmp_path):
    found = child(tmp_path, '(folder / "result.json").write_text("{")')
    assert found["failed"].startswith("its result cannot be read")


@posix
def test_a_killed_child_is_a_gap_of_memory(tmp_path):
    found = child(tmp_path, '(folder / "stage.txt").write_text("fit")\nos.kill(os.getpid(), 9)')
    assert found["stage"] == "memory"
    assert "killed during fit" in found["failed"]


@posix
def test_a_child_that_hangs_is_ended_with_its_own_children(tmp_path):
    code = (
        "import subprocess\n"
        'one = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])\n'
        '(folder / "pid.tmp").write_text(str(one.pid))\n'
        '(folder / "pid.tmp").rename(folder / "pid")\n'
        '(folder / "stage.txt").write_text("predict")\n'
        "time.sleep(600)\n"
    )
    start = time.monotonic()
    found = child(tmp_path, code, limit=3)
    assert time.monotonic() - start < 30
    assert found == {"failed": "not finished after 3 s, during predict", "stage": "time"}
    assert ended(int((tmp_path / "pid").read_text()))


def test_a_python_that_is_not_there_is_a_gap(tmp_path):
    found = child(tmp_path, "", python=str(tmp_path / "no" / "python"))
    assert found["stage"] == "start"
    assert "cannot be run" in found["failed"]


def test_thread_pools_are_held_to_one_thread(tmp_path):
    code = (
        "import json\nfound = {key: os.environ[key] for key in "
        '("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS")}\n'
        '(folder / "result.json").write_text(json.dumps(found))'
    )
    assert set(child(tmp_path, code).values()) == {"1"}


@posix
def test_a_child_ends_with_the_process_that_started_it(tmp_path):
    """Also after SIGKILL, which leaves the parent no time for anything."""
    tool = tmp_path / "tool.py"
    tool.write_text(
        "import os, pathlib, sys, time\n"
        "from optirank.benchmark.tools.harness import _end_with_parent\n"
        "_end_with_parent()\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        '(folder / "pid.tmp").write_text(str(os.getpid()))\n'
        '(folder / "pid.tmp").rename(folder / "pid")\n'
        "time.sleep(600)\n"
    )
    code = (
        "import pathlib\nfrom optirank.benchmark.running.children import run_child\n"
        f"run_child([{sys.executable!r}, {str(tool)!r}], pathlib.Path({str(tmp_path)!r}), 600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 60
    while not (tmp_path / "pid").is_file():
        assert parent.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    pid = int((tmp_path / "pid").read_text())
    assert runs(pid)
    parent.kill()
    parent.wait()
    assert ended(pid)
