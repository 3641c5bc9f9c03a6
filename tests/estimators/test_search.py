"""Running a search: any joblib backend, a cluster that loses a worker, interrupts, the bar."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from optirank import OptirankClassifierCV
from optirank.datasets import make_unstable_ranks
from optirank.estimators import _search


@pytest.fixture(scope="module")
def data():
    return make_unstable_ranks(120, 20, 12, random_state=0)


@pytest.fixture(scope="module")
def alone(data):
    return grid().fit(data.X, data.y)


def grid(**options):
    options = {"cv": 3, **options}
    return OptirankClassifierCV((2, 4, 0.5, 1.0), (0.0, 3e-3), (1e-4, 1e-2), **options)


def assert_same(model, other):
    assert model.best_params_ == other.best_params_
    np.testing.assert_array_equal(model.coef_, other.coef_)
    for key, values in other.cv_results_.items():
        if "score" in key and "time" not in key:
            np.testing.assert_array_equal(model.cv_results_[key], values)


def test_two_threads_change_nothing(data, alone):
    assert_same(grid(n_jobs=2).fit(data.X, data.y), alone)


@pytest.mark.parametrize("backend", ["sequential", "threading", "loky", "multiprocessing"])
def test_any_backend_gives_the_same_result(data, alone, backend):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert_same(grid().fit(data.X, data.y), alone)


def test_the_threads_of_blas_are_given_back(data):
    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = threads()
        grid(n_jobs=2).fit(data.X, data.y)
        assert threads() == before


def test_no_bar_unless_asked_for_and_then_on_stderr(data, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    grid().fit(data.X, data.y)
    silent = capsys.readouterr()
    assert silent.out == silent.err == ""
    grid(verbose=1).fit(data.X, data.y)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "grid" in shown.err
    assert "100%" in shown.err


_LONG = """
import joblib, sys
from optirank import OptirankClassifierCV
from optirank.datasets import make_unstable_ranks

if __name__ == "__main__":
    data = make_unstable_ranks(600, 60, 50, random_state=0)
    sizes = tuple(range(2, 60))
    print("started", flush=True)
    with joblib.parallel_config(backend=sys.argv[1], n_jobs=2):
        OptirankClassifierCV(sizes, (0.0, 1e-4, 1e-3), (1e-5, 1e-4, 1e-3)).fit(data.X, data.y)
    print("finished", flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of a terminal")
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_an_interrupt_leaves_no_process_behind(backend, tmp_path):
    psutil = pytest.importorskip("psutil")
    (tmp_path / "long.py").write_text(_LONG)
    with subprocess.Popen(
        [sys.executable, "long.py", backend],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # a process group of its own, which Ctrl-C goes to
        text=True,
    ) as process:
        assert process.stdout.readline() == "started\n"
        time.sleep(5)
        started = psutil.Process(process.pid).children(recursive=True)
        assert bool(started) == (backend == "loky")
        os.killpg(process.pid, signal.SIGINT)
        process.wait(30)
        assert "finished" not in process.stdout.read()
    assert process.returncode != 0
    _, alive = psutil.wait_procs(started, timeout=20)
    assert not alive


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of dask's, about the worker that dies
def test_a_cluster_that_loses_a_worker_gives_the_same_result(data, alone, monkeypatch):
    distributed = pytest.importorskip("distributed")
    done = []

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        victim = min(client.run(os.getpid).values())

        @contextmanager
        def kill_in_the_middle(text, total, shown):
            def advance():
                done.append(total)
                if len(done) == 4:
                    os.kill(victim, signal.SIGKILL)

            yield SimpleNamespace(advance=advance)

        monkeypatch.setattr(_search, "progress_bar", kill_in_the_middle)
        with joblib.parallel_config(backend="dask"):
            model = grid().fit(data.X, data.y)
        assert victim not in client.run(os.getpid).values()
    assert done == [12] * 12
    assert_same(model, alone)
