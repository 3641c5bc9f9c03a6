"""Tools of others run in child processes; one that is not there or fails is a gap with
a reason.
"""

from __future__ import annotations

import ast
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import fake_peers
from benchmark_cases import designs, write_sets
from fake_peers import make_peer
from optirank_lab.baselines.peers import SCRIPT
from optirank_lab.baselines.tools.run_tool import TOOLS, linear, log1p_scaled
from optirank_lab.benchmark.classifiers import CLASSIFIERS
from optirank_lab.benchmark.designs import ALL, Profile
from optirank_lab.benchmark.work import run_unit

pytestmark = pytest.mark.skipif(
    os.name != "posix", reason="the made-up Pythons are shell scripts"
)


@pytest.fixture(scope="module")
def design(tmp_path_factory):
    return designs(write_sets(tmp_path_factory.mktemp("sets")), "found")[0]


def run(design, python: object, tool: str = "SingleR", seconds: float = 60.0) -> dict:
    peers = {CLASSIFIERS[tool].peer: str(python)}
    profile = Profile("test", n_genes=50, peer_seconds=seconds)
    return run_unit(design, design.splits[0], ALL, tool, profile, peers=peers)


def test_every_peer_of_the_registry_is_one_of_the_script():
    assert {one.peer for one in CLASSIFIERS.values() if one.peer} == set(TOOLS)


def test_the_script_needs_neither_optirank_nor_a_new_python():
    nodes = [*ast.walk(ast.parse(SCRIPT.read_text(), feature_version=(3, 9)))]
    modules = {
        one.name for node in nodes if isinstance(node, ast.Import) for one in node.names
    }
    modules |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert not [one for one in modules if one.split(".")[0] == "optirank"]


def test_a_peer_is_run_by_the_python_that_is_named_and_gets_the_preselected_genes(
    design, tmp_path
):
    record = run(design, make_peer(tmp_path, "singler", fake_peers.GOOD, "0.77"))
    assert record["version"] == "singler 0.77"
    assert record["test"]["found"][0] > 0.8
    assert record["n_genes"] == [3]
    assert record["n_features"] == 50
    assert record["unlabelled"] == [0.0]
    assert record["fit_seconds"][0] >= 0


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (fake_peers.CRASHES, "exit code -11"),
        (fake_peers.RAISES, "ValueError: bad values"),
        (fake_peers.OTHER_INTERFACE, "has no attribute 'train_single'"),
        (fake_peers.BROKEN_IMPORT, "a_package_that_is_not_there"),
        (fake_peers.RUBBISH, "its labels are not one per sample"),
    ],
    ids=["crashes", "raises", "another version", "broken import", "rubbish"],
)
def test_a_peer_that_fails_is_a_gap_that_says_why(design, tmp_path, code, words):
    record = run(design, make_peer(tmp_path, "singler", code))
    assert words in record["failed"]
    assert "\n" not in record["failed"]
    assert "test" not in record


def test_the_first_calls_of_a_peer_are_not_counted_and_may_fail(design, tmp_path):
    slow = """
    import time
    def first_call():
        began = time.process_time()
        while time.process_time() - began < 0.5:
            pass
        globals()["first_call"] = lambda: None
        raise ValueError("of the example only")
    """
    code = (slow + fake_peers.GOOD).replace(
        "return Built", "first_call(); return Built"
    )
    record = run(design, make_peer(tmp_path, "singler", code))
    assert record["fit_seconds"][0] < 0.4


def test_a_peer_that_hangs_is_ended_with_all_that_it_started(design, tmp_path):
    python = make_peer(tmp_path, "singler", fake_peers.HANGS)
    record = run(design, python, seconds=4.0)
    assert "not finished after 4 s" in record["failed"]
    started = tmp_path / "packages" / "singler" / "pid"
    if not started.is_file():
        pytest.skip(
            "the machine is so busy that the tool was ended before it started a process"
        )
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


def test_a_peer_that_is_not_installed_is_a_gap_that_says_how_to_get_it(
    design, tmp_path
):
    reason = run(design, make_peer(tmp_path, "another", ""))["failed"]
    assert reason.startswith("singler is not installed for ")
    assert "(--peer singler=PYTHON), or pip install 'optirank[peers]'" in reason


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "cannot be run (No such file or directory)"),
        (lambda path: path.mkdir(), "cannot be run (Permission denied)"),
        (
            lambda path: script(path, "echo hello"),
            "exit code 0 and without a result: hello",
        ),
        (
            lambda path: script(path, "echo no >&2; exit 3"),
            "exit code 3 and without a result: no",
        ),
    ],
    ids=["missing", "folder", "another program", "fails"],
)
def test_a_python_that_is_none_is_a_gap_with_words(design, tmp_path, make, words):
    make(tmp_path / "python")
    assert words in run(design, tmp_path / "python")["failed"]


def script(path: Path, code: str) -> None:
    path.write_text(f"#!/bin/sh\n{code}\n")
    path.chmod(0o755)


@pytest.mark.slow
@pytest.mark.parametrize(
    "tool", [name for name, one in CLASSIFIERS.items() if one.peer]
)
def test_the_real_peer_learns_a_simple_pair(design, tool):
    peer = CLASSIFIERS[tool].peer
    python = os.environ.get(f"OPTIRANK_PEER_{peer.upper()}", sys.executable)
    record = run(design, python, tool, seconds=300.0)
    if "is not installed" in record.get("failed", ""):
        pytest.skip(record["failed"])
    assert record.get("failed") is None
    assert record["version"].lower().startswith(peer)
    assert record["test"]["found"][0] > 0.6


# The scales that tools ask for


def part(X, kind: str) -> SimpleNamespace:
    return SimpleNamespace(X=sp.csr_matrix(np.asarray(X, dtype=float)), kind=kind)


@given(arrays(np.int64, (4, 6), elements=st.integers(0, 50)))
def test_counts_get_the_asked_for_sum_per_sample_and_are_not_changed(X):
    one = part(X, "counts")
    found = log1p_scaled(one).toarray()
    np.testing.assert_array_equal(one.X.toarray(), X)
    total = X.sum(axis=1)
    np.testing.assert_allclose(
        np.expm1(found).sum(axis=1), np.where(total > 0, 1e4, 0.0)
    )
    expected = np.log1p(1e4 * X / np.maximum(total, 1)[:, None])
    np.testing.assert_allclose(found, expected)


def test_negative_intensities_count_as_nothing():
    np.testing.assert_array_equal(
        linear(part([[-5, 2], [3, 4]], "linear")).toarray(), [[0, 2], [3, 4]]
    )


@pytest.mark.parametrize("kind", ["linear", "counts"])
def test_values_that_are_not_logarithms_stay(kind):
    np.testing.assert_array_equal(
        linear(part([[0, 2], [3, 4]], kind)).toarray(), [[0, 2], [3, 4]]
    )


def test_logarithms_of_arrays_are_undone():
    np.testing.assert_allclose(
        linear(part([[-1, 2], [3, 1]], "log")).toarray(), [[0.5, 4], [8, 2]]
    )


def test_log_ratios_keep_their_zeros_as_values():
    np.testing.assert_allclose(
        linear(part([[-1, 0], [0, 0]], "log")).toarray(), [[0.5, 1], [1, 1]]
    )


def test_what_was_not_seen_in_a_cell_stays_zero():
    np.testing.assert_allclose(
        linear(part([[0, 2], [3, 0]], "log")).toarray(), [[0, 3], [7, 0]]
    )
