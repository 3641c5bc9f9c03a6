"""Passes on a cluster of dask: the same bits as here, whatever dies on the way."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from example_model import LABEL, as_anndata, reference_set, trained_example
from expression_files import write_table
from optirank import save
from optirank._util.numbers import PerSample
from optirank.data.cluster import on_cluster
from optirank.data.opening import open_profiles
from optirank.data.passes import run_pass
from optirank.data.profiles import DataError
from optirank.verbs.label_files import predict_file
from optirank.verbs.training import TrainingOptions, train

distributed = pytest.importorskip("distributed")


def start(*arguments):
    command = [sys.executable, "-m", f"distributed.cli.dask_{arguments[0]}"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    here = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    environment = os.environ | {"PYTHONPATH": here}
    return subprocess.Popen([*command, *arguments[1:]], env=environment, **quiet)


@contextlib.contextmanager
def cluster_of(folder, n_workers=2):
    """A scheduler with workers of one thread: its process and address."""
    file = folder / "scheduler.json"
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    scheduler = start("scheduler", *options, "--scheduler-file", str(file))
    started = [scheduler]
    try:
        while not file.exists() or not file.read_text().strip():
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        options = ["--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1"]
        options += ["--local-directory", str(folder)]
        started += [start("worker", address, *options) for _ in range(n_workers)]
        if n_workers:
            with distributed.Client(address, set_as_default=False) as client:
                client.wait_for_workers(n_workers, timeout=60)
        yield scheduler, address
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(20)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with cluster_of(tmp_path_factory.mktemp("dask")) as (_, address):
        yield address


@pytest.fixture
def query_file(tmp_path):
    path = tmp_path / "query.h5ad"
    as_anndata(trained_example()[1]).write_h5ad(path)
    return path


@pytest.mark.parametrize("adapt", [False, True])
def test_labels_are_the_same_bytes(adapt, address, query_file, tmp_path):
    from optirank.verbs.options import PredictOptions

    model, query = trained_example()
    table = write_table(query, tmp_path / "query.csv")
    options = PredictOptions(adapt=adapt)
    for path in (query_file, table):
        here, there = tmp_path / "here.csv", tmp_path / "there.csv"
        plain = predict_file(path, model, here, options)
        spread = predict_file(path, model, there, options, dask=address)
        assert here.read_bytes() == there.read_bytes()
        np.testing.assert_array_equal(plain.probabilities, spread.probabilities)
        here.unlink()
        there.unlink()


def test_models_are_the_same_bytes(address, tmp_path, monkeypatch):
    monkeypatch.setattr("optirank.data.passes.block_rows", lambda n_genes: 16)
    path = tmp_path / "reference.h5ad"
    as_anndata(reference_set(), "dense").write_h5ad(path)
    options = TrainingOptions(label=LABEL, n_genes=20, n_jobs=1)
    for name, place in (
        ("here", contextlib.nullcontext()),
        ("there", on_cluster(address)),
    ):
        with open_profiles(path) as profiles, place:
            save(train(profiles, options).model, tmp_path / name)
    assert (tmp_path / "here").read_bytes() == (tmp_path / "there").read_bytes()


def die_once(marker):
    def values(block):
        with contextlib.suppress(FileExistsError):
            marker.touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)
        return np.ravel(block.sum(axis=1))

    return values


def wait_for(marker):
    def values(block):
        marker.touch()
        time.sleep(1)
        return np.ravel(block.sum(axis=1))

    return values


def test_a_worker_that_dies_changes_nothing(address, query_file, tmp_path):
    seen: dict[int, int] = {}
    with open_profiles(query_file) as profiles, on_cluster(address):
        look = PerSample(die_once(tmp_path / "died"))
        run_pass(profiles, [look], size=10, progress=seen.__setitem__)
    assert (tmp_path / "died").exists()
    expected = np.ravel(trained_example()[1].X.sum(axis=1))
    np.testing.assert_array_equal(look.result(), expected)
    assert list(seen) == [10, 20, 30, 40, 50, 60]


def test_an_error_of_a_look_names_its_samples(address, query_file):
    def fail(block):
        raise ValueError("no good")

    with (
        open_profiles(query_file) as profiles,
        on_cluster(address),
        pytest.raises(DataError, match="samples 1 to 30: no good"),
    ):
        run_pass(profiles, [PerSample(fail)], size=30)


def test_a_lost_scheduler_ends_with_a_sentence(query_file, tmp_path):
    with cluster_of(tmp_path, 1) as (scheduler, address):
        marker = tmp_path / "begun"

        def kill():
            while not marker.exists():
                time.sleep(0.05)
            scheduler.kill()

        threading.Thread(target=kill).start()
        with (
            pytest.raises(DataError, match="connection to the dask scheduler is lost"),
            open_profiles(query_file) as profiles,
            on_cluster(address),
        ):
            run_pass(profiles, [PerSample(wait_for(marker))], size=2)


def test_an_address_without_a_scheduler_or_workers_is_told(tmp_path):
    nobody = on_cluster("tcp://127.0.0.1:9")
    with pytest.raises(DataError, match="no dask scheduler answers"), nobody:
        pass
    with (
        cluster_of(tmp_path, 0) as (_, address),
        pytest.raises(DataError, match="has no workers"),
        on_cluster(address),
    ):
        pass
