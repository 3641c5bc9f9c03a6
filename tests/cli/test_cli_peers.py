"""`optirank benchmark run --peer`: tools of others that are missing or crash leave a run intact."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fake_peers
from benchmark_cases import write_sets
from optirank.cli.app import app
from optirank.cli.errors import BAD_INPUT
from whole_cases import fake_tool

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the made-up Pythons are shell scripts")


@pytest.fixture(scope="module")
def sets(tmp_path_factory) -> Path:
    return write_sets(tmp_path_factory.mktemp("sets"))


@pytest.fixture(autouse=True)
def good(tmp_path, monkeypatch) -> None:
    fake_tool(tmp_path, monkeypatch, "good")


def benchmark(sets: Path, out: Path, *more: object):
    chosen = ("--data", sets, "--task-file", sets / "tasks.toml", "--out", out, "--jobs", 1)
    tools = ("--problems", "whole", "--tasks", "triple", "--classifiers", "good,peers")
    command = ("benchmark", "run", "--quick", *chosen, *tools, *more)
    return CliRunner().invoke(app, [*map(str, command)])


def records(out: Path) -> dict[tuple[str, str], dict]:
    found = [*(out / "units").rglob("whole-*.json")]
    return {
        (path.parent.name, one["tool"]): one
        for path, one in ((path, json.loads(path.read_text())) for path in found)
    }


def test_missing_and_crashing_peers_are_named_gaps_and_the_run_is_intact(sets, tmp_path):
    crashing = fake_peers.make_peer(tmp_path / "crashing", "singler", fake_peers.CRASHES)
    nothing = tmp_path / "nothing" / "python"
    same = ("--peer", f"celltypist={nothing}", "--peer", f"pysinglecellnet={crashing}")
    out = tmp_path / "out"
    done = benchmark(sets, out, *same, "--peer", f"singler={crashing}")
    assert done.exit_code == 0, done.output
    found = records(out)
    designs = {design for design, _ in found}
    assert designs == {"triple.single", "triple.multi"}
    for design in designs:
        assert "failed" not in found[design, "good"]
        assert found[design, "SingleR"]["stage"] == "fit"
        assert "does not exist" in found[design, "CellTypist"]["failed"]
        assert "pip install pySingleCellNet" in found[design, "pySingleCellNet"]["failed"]
    said = " ".join(done.stderr.split())
    assert said.count(f"{nothing} does not exist") == 1  # said once, not for every task
    assert (out / "report" / "report.html").is_file()


@pytest.mark.parametrize(
    ("given", "words"),
    [("celltypist", "write NAME=PYTHON"), ("scanpy=python", "'scanpy' is no peer")],
)
def test_a_wrong_peer_is_refused_before_any_work(sets, tmp_path, given, words):
    done = benchmark(sets, tmp_path / "out", "--peer", given)
    assert done.exit_code == BAD_INPUT
    assert words in " ".join(done.stderr.split())
