"""`optirank benchmark run --problems whole`: gaps leave a run intact, nothing is left running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmark_cases import write_sets
from optirank.benchmark.classifiers import CLASSIFIERS, WHOLE
from optirank.cli.app import app
from optirank.cli.errors import BAD_INPUT, INTERRUPTED
from whole_cases import fake_tool, script_of


@pytest.fixture(scope="module")
def sets(tmp_path_factory) -> Path:
    return write_sets(tmp_path_factory.mktemp("sets"))


@pytest.fixture
def register(tmp_path, monkeypatch):
    return partial(fake_tool, tmp_path, monkeypatch)


def options(sets: Path, out: Path, *more: object) -> list[str]:
    chosen = ("--data", sets, "--task-file", sets / "tasks.toml", "--out", out)
    return [*map(str, ("benchmark", "run", "--quick", *chosen, *more))]


def benchmark(sets: Path, out: Path, *more: object):
    return CliRunner().invoke(app, options(sets, out, *more))


def records(out: Path, design: str = "pair") -> dict[str, dict]:
    found = (out / "units" / design).glob("whole-*.json")
    return {one["tool"]: one for one in (json.loads(path.read_text()) for path in found)}


def test_tools_that_crash_or_are_killed_leave_the_run_intact(sets, tmp_path, register):
    register("good", fit="pass")
    register("broken", fit="raise RuntimeError('out of luck')")
    register("killed", fit="os.kill(os.getpid(), 9)")
    out = tmp_path / "out"
    chosen = ("--problems", "whole", "--classifiers", "broken,killed,good", "--tasks", "pair,base")
    done = benchmark(sets, out, *chosen, "--jobs", 1)
    assert done.exit_code == 0, done.output
    said = " ".join(done.stderr.split())
    assert "note: pair: broken has no result: RuntimeError: out of luck" in said
    assert "killed during fit, perhaps for lack of memory" in said
    for design in ("pair", "base"):
        found = records(out, design)
        assert found["good"]["version"] == "fake 1.0"
        assert (found["broken"]["stage"], found["killed"]["stage"]) == ("fit", "memory")
    (line,) = json.loads((out / "log.json").read_text())
    assert (line["classifiers"], line["tools"]) == ([], ["good", "broken", "killed"])

    times = {path: path.stat().st_mtime_ns for path in out.rglob("whole-good.json")}
    broken = script_of(tmp_path, "broken")
    broken.write_text(broken.read_text().replace("raise RuntimeError('out of luck')", "pass"))
    done = benchmark(sets, out, *chosen, "--jobs", 1)
    assert done.exit_code == 0, done.output
    assert "2 of them already stored" in " ".join(done.stdout.split())
    assert records(out)["broken"]["n_genes"] == records(out)["good"]["n_genes"]
    assert {path: path.stat().st_mtime_ns for path in times} == times


def test_a_tool_that_hangs_is_a_gap_after_the_time_limit(sets, tmp_path, register):
    register("hangs", fit="time.sleep(600)")
    out, chosen = tmp_path / "out", ("--classifiers", "hangs", "--tasks", "pair", "--jobs", 1)
    done = benchmark(sets, out, "--problems", "whole", *chosen, "--time-limit", "2s")
    assert done.exit_code == 0, done.output
    found = records(out)["hangs"]
    assert found["stage"] == "time"
    assert found["failed"].startswith("not finished after 2 s, during ")  # a slow start, or fit


def test_both_kinds_of_problems_share_a_folder(sets, tmp_path, register):
    register("good", fit="pass")
    out, same = tmp_path / "out", ("--tasks", "pair", "--jobs", 1)
    assert benchmark(sets, out, *same, "--classifiers", "lr").exit_code == 0
    done = benchmark(sets, out, *same, "--problems", "both", "--classifiers", "lr,good")
    assert done.exit_code == 0, done.output
    assert "10 units of work, 9 of them already stored" in " ".join(done.stdout.split())
    assert set(records(out)) == {"good"}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--problems", "whole", "--dask", "tcp://x"), "--problems whole measures tools"),
        (("--problems", "both", "--device", "cuda"), "--problems both measures tools"),
        (("--problems", "whole", "--classifiers", "ANrank-lr"), "'ANrank-lr' is not known for"),
        (("--classifiers", "CellTypist"), "'CellTypist' is not known for --problems binary"),
        (("--problems", "whole", "--peer", "x=python"), "'x' is no peer"),
        (("--peer", "singler=python"), "--peer is for tools on whole tasks: add --problems whole"),
        (("--time-limit", "2s"), "--time-limit is for tools on whole tasks"),
        (("--problems", "whole", "--time-limit", "soon"), "--time-limit soon: give a time such as"),
    ],
)
def test_wrong_options_end_before_any_work(sets, tmp_path, more, words):
    done = benchmark(sets, tmp_path / "out", *more)
    assert done.exit_code == BAD_INPUT
    assert words in " ".join(done.stderr.split())
    assert not (tmp_path / "out").exists()


def marked(mark: str) -> dict[int, str]:
    """The processes with a mark in their environment, with their command lines."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (path / "environ").read_bytes():
                found[int(path.name)] = (path / "cmdline").read_bytes().decode()
        except OSError:
            continue
    return found


def wait_until(condition, seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
    return condition()


@pytest.mark.skipif(not Path("/proc/self/environ").is_file(), reason="looks into /proc")
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_leaves_no_process_and_no_file(sets, tmp_path, jobs):
    mark, temporary, out = f"mark-{os.getpid()}-{jobs}", tmp_path / "tmp", tmp_path / "out"
    temporary.mkdir()
    chosen = ("--problems", "whole", "--tasks", "pair", "--classifiers", "optirank train,SCN")
    process = subprocess.Popen(
        [sys.executable, "-m", "optirank", *options(sets, out, *chosen, "--jobs", jobs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary), "MARK": mark},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert wait_until(lambda: any("tools/run_" in line for line in marked(mark).values()))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED, errors
    assert "the same command continues" in errors.replace("\n", " ")
    assert wait_until(lambda: not marked(mark), 20), marked(mark)
    assert not list(temporary.glob("optirank-*"))


@pytest.mark.slow
def test_the_tools_of_the_field_run_on_a_small_task(sets, tmp_path):
    """Each built-in tool as it is, in its own process."""
    ours = [name for name, one in CLASSIFIERS.items() if WHOLE in one.experiments and not one.peer]
    out = tmp_path / "out"
    chosen = ("--problems", "whole", "--tasks", "pair", "--classifiers", ",".join(ours))
    done = benchmark(sets, out, *chosen, "--jobs", 2)
    assert done.exit_code == 0, done.output
    found = records(out)
    assert set(found) == set(ours)
    for name, record in found.items():
        assert "failed" not in record, record
        assert record["test"]["pair"][0] > (0.6 if name in ("lr-log", "rf") else 0.85), name
        assert 0 < record["n_genes"][0] <= record["n_features"]
