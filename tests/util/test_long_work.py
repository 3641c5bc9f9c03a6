"""Numbers of workers, progress, and schedulers that do not answer."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from optirank._util.work import progress_bar, threads, worker_count
from optirank.data.cluster import connect


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
    with progress_bar("fitting", 4) as update:
        update(4, text="fitted")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "fitted" in shown.err
    assert "100%" in shown.err
    with progress_bar("fitting", shown=False) as update:
        update(4, 4)
    assert capsys.readouterr().err == ""


def test_no_further_work_is_begun_after_an_interrupt():
    begun = []

    def work(number):
        begun.append(number)
        time.sleep(0.05)
        if number == 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), threads(2) as threaded:
        list(threaded(work, range(100)))
    assert len(begun) < 10


def test_an_address_without_a_scheduler_is_refused(monkeypatch):
    distributed = pytest.importorskip("distributed")

    def refuse(*_, **__):
        raise OSError("timed out")

    monkeypatch.setattr(distributed.Client, "start", refuse)
    with pytest.raises(ValueError, match="no dask scheduler answers at"):
        connect("tcp://127.0.0.1:1").__enter__()
