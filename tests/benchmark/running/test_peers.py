"""Tools of others run in child processes; one that is not there or fails is a gap with a reason."""

from __future__ import annotations

import ast
import os
import sys
import time
from pathlib import Path

import pytest

import fake_peers
from benchmark_cases import write_sets
from fake_peers import make_peer
from optirank.benchmark import tools
from optirank.benchmark.classifiers import CLASSIFIERS
from optirank.benchmark.real import RealTasks
from optirank.benchmark.running.peers import PACKAGES, peer_environment, peer_python, why_no_peer
from optirank.benchmark.running.whole import run_whole

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the made-up Pythons are shell scripts")


@pytest.fixture(scope="module")
def design(tmp_path_factory):
    sets = write_sets(tmp_path_factory.mktemp("sets"))
    return RealTasks(sets, sets / "tasks.toml").designs("pair")[0]


def run(design, python: object, tool: str = "SingleR", seconds: float = 60.0) -> dict:
    classifier = CLASSIFIERS[tool]
    peers = {classifier.peer: str(python)}
    return run_whole(design, classifier, n_splits=2, time_limit=seconds, peers=peers)


def test_every_peer_of_the_registry_has_a_package_and_a_script():
    peers = {one.peer: one for one in CLASSIFIERS.values() if one.peer}
    assert set(peers) == set(PACKAGES)
    assert {one.script for one in peers.values()} == {f"run_{name}.py" for name in PACKAGES}


@pytest.mark.parametrize("name", ["harness", "scales", *(f"run_{peer}" for peer in PACKAGES)])
def test_a_script_of_a_peer_needs_neither_optirank_nor_a_new_python(name):
    code = Path(tools.__file__).with_name(f"{name}.py").read_text()
    tree = ast.parse(code, feature_version=(3, 9))
    nodes = [*ast.walk(tree)]
    modules = {one.name for node in nodes if isinstance(node, ast.Import) for one in node.names}
    modules |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert not [one for one in modules if one.split(".")[0] == "optirank"]


def test_a_peer_is_run_by_the_python_that_is_named_and_its_version_is_recorded(design, tmp_path):
    record = run(design, make_peer(tmp_path, "singler", fake_peers.GOOD, "0.77"))
    assert record["version"] == "singler 0.77"
    assert record["tool"] == "SingleR"
    assert min(record["validation"]) > 0.8
    assert record["n_genes"] == [3, 3]
    assert record["unassigned"] == {"pair": [0.0, 0.0]}
    assert all(seconds >= 0 for seconds in record["fit_seconds"])


@pytest.mark.parametrize(
    ("code", "stage", "words"),
    [
        (fake_peers.CRASHES, "fit", "exit code -11"),
        (fake_peers.RAISES, "fit", "ValueError: bad values"),
        (fake_peers.OTHER_INTERFACE, "fit", "has no attribute 'train_single'"),
        (fake_peers.BROKEN_IMPORT, "install", "a_package_that_is_not_there"),
        (fake_peers.RUBBISH, "predict", "7 labels for"),
    ],
    ids=["crashes", "raises", "another version", "broken import", "rubbish"],
)
def test_a_peer_that_fails_is_a_gap_that_says_where(design, tmp_path, code, stage, words):
    record = run(design, make_peer(tmp_path, "singler", code))
    assert record["stage"] == stage
    assert words in record["failed"]
    assert "\n" not in record["failed"]
    assert "test" not in record


def test_what_the_first_calls_of_a_peer_cost_is_not_counted(design, tmp_path):
    slow = """
    import time
    def first_call():
        began = time.process_time()
        while time.process_time() - began < 0.5:
            pass
        globals()["first_call"] = lambda: None
    """
    code = (slow + fake_peers.GOOD).replace("return Built", "first_call(); return Built")
    record = run(design, make_peer(tmp_path, "singler", code))
    assert max(record["fit_seconds"]) < 0.4


def test_an_example_that_a_peer_cannot_fit_does_no_harm(design, tmp_path):
    code = fake_peers.GOOD.replace("print(", "assert len(ref_features) != 200\n        print(")
    record = run(design, make_peer(tmp_path, "singler", code))
    assert record["n_genes"] == [3, 3]


def test_a_peer_that_hangs_is_ended_with_all_that_it_started(design, tmp_path):
    python = make_peer(tmp_path, "singler", fake_peers.HANGS)
    record = run(design, python, seconds=4.0)
    assert record["stage"] == "time"
    started = tmp_path / "packages" / "singler" / "pid"
    if not started.is_file():
        pytest.skip("the machine is so busy that the tool was ended before it started a process")
    pid = int(started.read_text())
    deadline = time.monotonic() + 10.0
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_celltypist_beside_a_new_scikit_learn_is_a_gap_with_the_remedy(design, tmp_path):
    python = make_peer(tmp_path, "celltypist", "")
    make_module(tmp_path, "sklearn", "__version__ = '1.8.0'")
    record = run(design, python, "CellTypist")
    assert record["stage"] == "install"
    assert "scikit-learn 1.8.0" in record["failed"]
    assert "--peer celltypist=PYTHON" in record["failed"]


def make_module(folder: Path, name: str, code: str) -> None:
    (folder / "packages" / f"{name}.py").write_text(code)


def test_a_peer_that_is_not_installed_is_a_gap_that_says_how_to_get_it(design, tmp_path):
    python = make_peer(tmp_path, "singler", "")
    record = run(design, python, "pySingleCellNet")
    assert record["stage"] == "install"
    assert f"pySingleCellNet is not installed for {python}" in record["failed"]
    assert f"{python} -m pip install pySingleCellNet" in record["failed"]


def test_a_peer_that_this_python_lacks_is_a_gap_that_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(make_peer(tmp_path, "singler", "")))
    reason = why_no_peer("pysinglecellnet", sys.executable)
    assert "pySingleCellNet is not installed: pip install 'optirank[peers]'" in reason
    assert "--peer pysinglecellnet=PYTHON" in reason


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.mkdir(), "is a folder: name the Python in it"),
        (lambda path: path.write_text("#!/bin/sh\n"), "may not be run"),
        (lambda path: script(path, "echo hello"), "is not a Python that works (hello)"),
        (lambda path: script(path, "echo no >&2; exit 3"), "is not a Python that works (no)"),
        (lambda path: script(path, "echo @ 3 8"), "is Python 3.8"),
        (lambda path: path.write_bytes(b"\x00\x01") and path.chmod(0o755), "cannot be run"),
    ],
    ids=["missing", "folder", "not executable", "another program", "fails", "old", "no program"],
)
def test_a_python_that_is_none_is_a_gap_with_words(design, tmp_path, make, words):
    python = tmp_path / "python"
    make(python)
    record = run(design, python)
    assert record["stage"] == "install"
    assert words in record["failed"]


def script(path: Path, code: str) -> None:
    path.write_text(f"#!/bin/sh\n{code}\n")
    path.chmod(0o755)


def test_a_relative_python_is_that_of_the_folder_the_command_is_run_in(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert peer_python("singler", {"singler": "env/bin/python"}) == str(tmp_path / "env/bin/python")
    assert peer_python("singler", {"singler": "python3"}) == "python3"
    assert peer_python("singler", {}) == sys.executable


def test_another_python_does_not_see_the_packages_of_this_one(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "here")
    assert "PYTHONPATH" not in peer_environment("/elsewhere/python")
    assert peer_environment(sys.executable)["PYTHONPATH"] == "here"


REAL = [(tool, one.peer) for tool, one in CLASSIFIERS.items() if one.peer]


@pytest.mark.slow
@pytest.mark.parametrize(("tool", "peer"), REAL)
def test_the_real_peer_learns_a_simple_pair(design, tool, peer):
    python = os.environ.get(f"OPTIRANK_PEER_{peer.upper()}", sys.executable)
    if reason := why_no_peer(peer, python):
        pytest.skip(reason)
    record = run(design, python, tool, seconds=300.0)
    if record.get("stage") == "install":
        pytest.skip(record["failed"])
    assert record.get("failed") is None
    assert record["version"].startswith(PACKAGES[peer])
    assert min(record["validation"]) > 0.6
    assert 0 < max(record["n_genes"]) <= record["n_features"]
    if peer != "pysinglecellnet":
        assert record["unassigned"] == {"pair": [0.0, 0.0]}
