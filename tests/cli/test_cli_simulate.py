"""`optirank simulate` and `optirank demo` from start to end, on a small setting."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from browser import open_page
from optirank.benchmark.splits import FOLDS
from optirank.benchmark.synthetic import EXTENDED_GRID, classifier_names
from optirank.cli.errors import BAD_INPUT, INTERRUPTED, UNEXPECTED

CLASSIFIERS = classifier_names()
GRID = EXTENDED_GRID.grids
UNITS = len(CLASSIFIERS) * (FOLDS + 1)  # of one repeat
SMALL = ("--genes", "14", "--perturbed", "4", "--samples", "100", "--sweeps", "none")


def heed_interrupts() -> None:
    """Ctrl-C counts in the child also where the tests run in the background, which ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from optirank.cli import main; main()", *arguments]


def optirank(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=600, check=False
    )


def unit_times(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in (folder / "units").rglob("*.json")}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[Path, str]:
    """The folder and the screen of a small run with two repeats."""
    folder = tmp_path_factory.mktemp("simulation") / "out"
    done = optirank("simulate", *SMALL, "--repeats", "2", "--jobs", "2", "--out", str(folder))
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_the_screen_shows_the_table_and_the_path_of_the_report(finished):
    folder, screen = finished
    for name in CLASSIFIERS:
        assert name in screen
    assert "cosine" in screen
    assert f"Report: {folder / 'report.html'}" in screen.replace("\n", "")


def test_every_file_is_there(finished):
    folder, _ = finished
    for name in ("table.csv", "table.md", "fits.csv", "selected.csv", "summary.csv", "report.html"):
        assert (folder / name).stat().st_size > 0
    for name in ("picture", "default"):
        assert (folder / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / "figures" / f"{name}.svg").read_text()
    assert not list(folder.rglob("*.tmp"))


def test_the_csv_of_fits_has_a_row_for_every_fit(finished):
    fits = pd.read_csv(finished[0] / "fits.csv")
    settings = {"optirank": len(GRID["l2"]) * len(GRID["n_reference"])}
    for name in CLASSIFIERS:
        rows = fits[fits["classifier"] == name]
        assert len(rows) == 2 * FOLDS * settings.get(name, len(GRID["l2"]))
        assert rows["validation_balanced_accuracy"].between(0, 1).all()
    selected = pd.read_csv(finished[0] / "selected.csv")
    assert len(selected) == 2 * 2 * len(CLASSIFIERS)  # repeats, grids
    assert selected["test_balanced_accuracy"].between(0, 1).all()


@pytest.mark.slow  # the benchmark's tests run the same engine
def test_a_rerun_computes_nothing_again_and_more_repeats_only_add(finished):
    folder, _ = finished
    before = unit_times(folder)
    assert len(before) == 2 * UNITS
    again = optirank("simulate", *SMALL, "--repeats", "2", "--out", str(folder))
    assert again.returncode == 0, again.stderr
    assert unit_times(folder) == before
    assert "here, paper grid" in again.stdout
    more = optirank("simulate", *SMALL, "--repeats", "3", "--jobs", "1", "--out", str(folder))
    assert more.returncode == 0, more.stderr
    after = unit_times(folder)
    assert len(after) == 3 * UNITS
    assert {name: after[name] for name in before} == before


def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path):
    mine = tmp_path / "table.csv"
    mine.write_text("mine")
    done = optirank("simulate", *SMALL, "--repeats", "1", "--out", str(tmp_path))
    assert done.returncode == BAD_INPUT
    assert "is not a folder of results" in done.stderr
    assert mine.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [mine]


@pytest.mark.parametrize("changed", [("--seed", "1", "seed"), ("--grid", "paper", "profile")])
def test_other_settings_in_the_same_folder_are_refused(finished, changed):
    done = optirank("simulate", *SMALL, *changed[:2], "--out", str(finished[0]))
    assert done.returncode == BAD_INPUT
    assert "holds results of other settings" in done.stderr
    assert f"({changed[2]} was" in done.stderr


def test_the_page_opens_without_complaint_and_shows_its_images(finished, tmp_path):
    page = tmp_path / "page.html"
    count = (
        "<script>addEventListener('load', () => { document.body.dataset.broken ="
        " [...document.images].filter(i => !i.naturalWidth).length; })</script></body>"
    )
    text = (finished[0] / "report.html").read_text(encoding="utf-8")
    page.write_text(text.replace("</body>", count), encoding="utf-8")
    opened = open_page(page, tmp_path / "profile")
    assert opened.console == []
    assert 'data-broken="0"' in opened.dom


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.slow  # the benchmark's tests run the same engine
def test_ctrl_c_keeps_finished_units_and_leaves_no_process(tmp_path):
    folder = tmp_path / "out"
    arguments = ("simulate", *SMALL, "--jobs", "2", "--out", str(folder))
    process = subprocess.Popen(
        command(*arguments, "--repeats", "500"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_interrupts,
    )
    try:
        deadline = time.monotonic() + 120
        while not unit_times(folder) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: everyone in the group gets it
        _, stderr = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == INTERRUPTED, stderr
    assert f"Finished units are kept in {folder}" in stderr.replace("\n", "")
    assert stderr.strip().endswith("optirank: interrupted")
    assert _members(process.pid) == []
    kept = unit_times(folder)
    assert kept
    assert not list(folder.rglob("*.tmp"))
    again = optirank(*arguments, "--repeats", "1")
    assert again.returncode == 0, again.stderr
    assert unit_times(folder).items() >= kept.items()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.slow
@pytest.mark.parametrize("victim", ["worker", "parent"])
def test_a_process_killed_from_outside_takes_the_others_with_it(tmp_path, victim):
    folder = tmp_path / "out"
    process = subprocess.Popen(
        command("simulate", *SMALL, "--jobs", "2", "--out", str(folder), "--repeats", "500"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_interrupts,
    )
    try:
        deadline = time.monotonic() + 120
        while not unit_times(folder) and time.monotonic() < deadline:
            time.sleep(0.05)
        target = process.pid if victim == "parent" else _workers(process.pid)[0]
        os.kill(target, signal.SIGKILL)
        _, stderr = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert _members(process.pid) == []
    assert unit_times(folder)
    if victim == "worker":
        assert process.returncode == UNEXPECTED
        assert "worker process was ended from outside" in stderr
        assert "Traceback" not in stderr


def _workers(parent: int) -> list[int]:
    """Return the process ids of the workers of a run."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [
        int(child)
        for child in children
        if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text()
    ]


def _members(session: int) -> list[str]:
    """Return the command lines of the processes of a session, after a moment to leave."""
    deadline = time.monotonic() + 5
    while True:
        members = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == session and fields[0] != "Z":
                    members.append((folder / "cmdline").read_text())
            except (FileNotFoundError, ProcessLookupError):
                continue
        if not members or time.monotonic() > deadline:
            return members
        time.sleep(0.1)


@pytest.mark.slow
def test_the_demo_shows_table_picture_and_report(tmp_path):
    folder = tmp_path / "demo"
    done = optirank("demo", "--out", str(folder))
    assert done.returncode == 0, done.stderr
    assert "in the paper" in done.stdout
    assert (folder / "figures" / "picture.png").is_file()
    assert str(folder / "report.html") in done.stdout.replace("\n", "")


@pytest.mark.timing
def test_the_demo_takes_under_a_minute(tmp_path):
    start = time.perf_counter()
    done = optirank("demo", "--out", str(tmp_path / "demo"))
    assert done.returncode == 0, done.stderr
    assert time.perf_counter() - start < 60
