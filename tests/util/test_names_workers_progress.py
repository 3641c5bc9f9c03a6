"""Lists of names, numbers of workers, progress."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optirank._util import work
from optirank._util.matrices import product
from optirank._util.names import counted, printable, some
from optirank._util.work import hide_progress, progress_bar, worker_count
from optirank.io.cluster import connect


@given(st.lists(st.integers()), st.integers(1, 12))
def test_a_list_shows_its_first_names_and_counts_the_others(names, limit):
    text = some(iter(names), limit)
    shown, _, more = text.partition(" and ")
    assert shown == (", ".join(map(str, names[:limit])) or "none")
    assert more == (f"{len(names) - limit} more" if len(names) > limit else "")


def test_printable_escapes_what_moves_the_cursor_and_leaves_other_scripts():
    assert printable("T\x1b[31m cell\x9b2J\u202e") == "T\\x1b[31m cell\\x9b2J\\u202e"
    assert printable("Zelle ä 細胞 α\n") == "Zelle ä 細胞 α\n"
    assert printable("x" * 50, 10) == "xxxxxxxxxx... (50 characters)"
    assert (
        some(["a\x1b", "b" * 200], 8) == "a\\x1b, " + "b" * 100 + "... (200 characters)"
    )


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

    monkeypatch.setattr(distributed, "Client", refuse)
    with pytest.raises(ValueError, match="no dask scheduler answers at"):
        connect("tcp://127.0.0.1:1").__enter__()


def test_words_agree_with_their_number():
    assert counted(1, "sample is", "samples are") == "1 sample is"
    assert counted(0, "sample is", "samples are") == "0 samples are"
    assert counted(2, "sample is", "samples are") == "2 samples are"


def test_a_product_of_finite_numbers_never_warns_and_hides_no_overflow():
    class Flagged(np.ndarray):  # raises the flag as BLAS can
        def __matmul__(self, other):
            np.array([np.inf]) - np.array([np.inf])
            return np.asarray(self) @ np.asarray(other)

    a, b = np.arange(6.0).reshape(2, 3), np.arange(3.0)
    np.testing.assert_array_equal(product(a.view(Flagged), b), a @ b)
    with pytest.warns(RuntimeWarning, match="overflow"):
        product(np.full((1, 2), 1e308), np.full(2, 1e308))
