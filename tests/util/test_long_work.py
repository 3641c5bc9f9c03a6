"""Numbers of workers, progress, and schedulers that do not answer."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from optirank._util import work
from optirank._util.work import hide_progress, progress_bar, worker_count
from optirank.io.cluster import connect


def test_worker_counts_follow_the_usual_convention():
    assert worker_count(None) == 1
    assert worker_count(3) == 3
    assert worker_count(-1) >= 1
    assert worker_count(-1000) == 1
    with pytest.raises(ValueError, match="n_jobs=0"):
        worker_count(0)


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system has no affinity"
)
def test_only_processors_that_the_process_may_use_are_counted():
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        "from optirank._util.work import worker_count; print(worker_count(-1))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "1"


def test_a_bar_is_drawn_on_a_terminal_and_hidden_on_request(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    with progress_bar("[fitting]", 4) as bar:
        bar.advance(4)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "[fitting]" in shown.err
    assert "100%" in shown.err
    with progress_bar("fitting", 4, shown=False) as bar:
        bar.advance(4)
    hide_progress()
    try:
        with progress_bar("fitting", 4, lines=True) as bar:
            bar.advance(4)
    finally:
        hide_progress(False)
    assert capsys.readouterr().err == ""


def test_without_a_terminal_there_is_one_line_per_minute(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(work.time, "monotonic", lambda: now[0])
    with progress_bar("units", 10, lines=True) as bar:
        for now[0] in (30.0, 61.0, 90.0, 122.0):
            bar.advance()
    assert capsys.readouterr().err.splitlines() == [
        "units, time left: 4 min",
        "units, time left: 3 min",
    ]


def test_the_time_left_counts_from_the_first_report_on(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(work.time, "monotonic", lambda: now[0])
    with progress_bar("training", 100, shown=False) as bar:
        for now[0] in (50.0, 50.5, 51.0):  # files were opened, loops compiled
            bar.advance()
        assert bar.left() == ""
        for now[0] in (51.5, 52.0, 52.5):
            bar.advance()
        assert bar.left() == "47 s"


def test_an_address_without_a_scheduler_is_refused(monkeypatch):
    distributed = pytest.importorskip("distributed")

    def refuse(*_, **__):
        raise OSError("timed out")

    monkeypatch.setattr(distributed.Client, "start", refuse)
    with pytest.raises(ValueError, match="no dask scheduler answers at"):
        connect("tcp://127.0.0.1:1").__enter__()
