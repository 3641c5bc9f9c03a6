"""A dask cluster gives the labels and models of one machine; what is wrong is said."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest

import optirank
from example_model import (
    LABEL,
    as_anndata,
    panel_names,
    reference_set,
    telling_model,
    telling_pair,
    trained_example,
)
from optirank._util.matrices import PerSample
from optirank.io import cluster as engine_module
from optirank.io import passes
from optirank.io.cluster import (
    Cluster,
    ClusterError,
    Parts,
    check_versions,
    cluster_at,
    connect,
    installed,
    parts_folder,
)
from optirank.io.data import DataError
from optirank.io.objects import join, profiles_of
from optirank.io.passes import run_pass
from optirank.io.reading import (
    ChangedFileError,
    open_file,
    read_expression,
    write_h5ad,
)
from optirank.verbs import query as query_pass
from optirank.verbs.label_files import predict_file
from optirank.verbs.predict import label_profiles
from optirank.verbs.training import TrainingOptions, train
from profiles import values

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore:Writing zarr v2"),
]
SIZE = 7  # samples of a block
CALLS: list[slice] = []
FAULTS: dict[str, object] = {}


@pytest.fixture(scope="module")
def local():
    """A cluster of two threads in this process."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def address(local):
    return local.scheduler_address


@pytest.fixture
def client(address):
    with connect(address) as client:
        yield client


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    for module in (query_pass, passes):
        monkeypatch.setattr(module, "block_rows", lambda n_genes: SIZE)
    CALLS.clear()
    FAULTS.clear()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The query in four formats, and the reference set."""
    folder = tmp_path_factory.mktemp("cluster")
    query = as_anndata(trained_example()[1])
    query.write_h5ad(folder / "query.h5ad")
    as_anndata(trained_example()[1], "csc").write_h5ad(folder / "by_genes.h5ad")
    as_anndata(trained_example()[1], "dense").write_zarr(folder / "dense.zarr")
    query.write_zarr(folder / "query.zarr")
    reference = as_anndata(reference_set())
    reference.write_h5ad(folder / "reference.h5ad")
    reference[::2].write_h5ad(folder / "one.h5ad")
    reference[1::2].write_h5ad(folder / "two.h5ad")
    return folder


class Sums(PerSample):
    """What tasks do here: the sum of each sample, and the faults that a test asks
    for.
    """

    def __init__(self, n_samples):
        super().__init__(n_samples, lambda block: np.asarray(block.sum(axis=1)).ravel())

    def add(self, block, rows):
        CALLS.append(rows)
        fault = FAULTS.get("at")
        if fault is not None and rows.start == fault:
            FAULTS["do"]()
        super().add(block, rows)


def run(profiles, client, parts=None):
    sums = Sums(profiles.n_obs)
    run_pass(profiles, [sums], size=SIZE, cluster=Cluster(client, parts))
    return sums.result()


@pytest.mark.parametrize(
    "name", ["query.h5ad", "by_genes.h5ad", "query.zarr", "dense.zarr"]
)
def test_labels_are_those_of_one_machine(name, folder, address, tmp_path):
    model = trained_example()[0]
    alone = predict_file(folder / name, model, tmp_path / "alone.csv")
    there = predict_file(folder / name, model, tmp_path / "there.csv", dask=address)
    assert (tmp_path / "alone.csv").read_bytes() == (
        tmp_path / "there.csv"
    ).read_bytes()
    assert (alone.probabilities == there.probabilities).all()
    assert alone.notes == there.notes
    assert not parts_folder(tmp_path / "there.csv").exists()


def test_the_agreement_is_that_of_one_machine_and_of_a_lazy_query(
    address, tmp_path, monkeypatch
):
    monkeypatch.setattr(query_pass, "_BLOCK_SAMPLES", 16)
    model, query = telling_model(), telling_pair()[1]
    write_h5ad(query, tmp_path / "query.h5ad")
    alone = predict_file(tmp_path / "query.h5ad", model, tmp_path / "alone.csv")
    there = predict_file(
        tmp_path / "query.h5ad", model, tmp_path / "there.csv", dask=address
    )
    lazy = anndata.experimental.read_lazy(tmp_path / "query.h5ad")
    for labels in (there, label_profiles(profiles_of(lazy), model)):
        assert labels.record["agreement"] == alone.record["agreement"]
        assert (labels.probabilities == alone.probabilities).all()


@pytest.mark.parametrize("names", [["reference.h5ad"], ["one.h5ad", "two.h5ad"]])
def test_a_model_has_the_bytes_of_one_machine(names, folder, address, tmp_path):
    options = TrainingOptions(label=LABEL, n_genes=20, n_jobs=1)
    paths = [folder / name for name in names]
    for where in (None, address):
        with contextlib.ExitStack() as stack, cluster_at(where) as cluster:
            profiles = join([stack.enter_context(open_file(path)) for path in paths])
            result = train(profiles, options, source="x", cluster=cluster)
        optirank.save(result.model, tmp_path / f"{where is None}.optirank")
    contents = [
        (tmp_path / f"{alone}.optirank").read_bytes() for alone in (True, False)
    ]
    assert contents[0] == contents[1]


def test_a_run_that_is_interrupted_goes_on_where_it_stopped(folder, address, tmp_path):
    model = trained_example()[0]
    out = tmp_path / "labels.csv"
    counted = []

    def interrupt(done, total):
        counted.append(done)
        if done > total // 2 and FAULTS.get("interrupt"):
            raise KeyboardInterrupt

    FAULTS["interrupt"] = True
    with pytest.raises(KeyboardInterrupt):
        predict_file(
            folder / "query.zarr", model, out, dask=address, progress=interrupt
        )
    assert not out.exists()
    stored = {path.name for path in parts_folder(out).glob("*.npz")}
    assert len(stored) >= 4
    FAULTS.clear()
    written = []
    save = Parts.save
    monkey = pytest.MonkeyPatch()
    monkey.setattr(Parts, "save", lambda *a: written.append(a[1]) or save(*a))
    with monkey.context():
        predict_file(folder / "query.zarr", model, out, dask=address)
    monkey.undo()
    assert {f"{number:08}.npz" for number in written}.isdisjoint(stored)
    assert not parts_folder(out).exists()
    predict_file(folder / "query.zarr", model, tmp_path / "alone.csv")
    assert out.read_bytes() == (tmp_path / "alone.csv").read_bytes()


def test_parts_of_another_run_and_damaged_ones_are_not_used(tmp_path):
    groups = [
        (4, [{"_starts": [0], "_parts": [np.arange(4)], "_n_samples": 6}]),
        (6, [{"_starts": [4], "_parts": [np.arange(2)]}]),
    ]
    Parts(tmp_path / "parts", {"model": "a"}).save(3, groups)
    again = Parts(tmp_path / "parts", {"model": "a"})
    stored = again.load(3, 1)
    assert [stop for stop, _ in stored] == [4, 6]
    assert stored[0][1][0]["_n_samples"] == 6
    parts = [gathered["_parts"][0].tolist() for _, (gathered,) in stored]
    assert parts == [[0, 1, 2, 3], [0, 1]]
    assert again.load(2, 1) is None
    (tmp_path / "parts" / "00000003.npz").write_bytes(b"PK damaged")
    assert again.load(3, 1) is None
    assert Parts(tmp_path / "parts", {"model": "b"}).load(3, 1) is None
    assert [path.name for path in (tmp_path / "parts").iterdir()] == ["run.json"]


def test_a_block_that_fails_every_time_is_named_and_the_others_are_kept(
    folder, client, tmp_path
):
    def fail():
        raise ValueError("a value is missing")

    FAULTS.update(at=2 * SIZE, do=fail)
    with open_file(folder / "query.h5ad") as opened:
        parts = Parts(tmp_path / "parts", {})
        place = f"samples {2 * SIZE + 1} to {3 * SIZE}: a value is missing"
        with pytest.raises(DataError, match=f"{place}; all other blocks are kept"):
            run(opened, client, parts)
        assert CALLS.count(slice(2 * SIZE, 3 * SIZE)) == 1 + engine_module.RETRIES
        FAULTS.clear()
        CALLS.clear()
        sums = run(opened, client, Parts(tmp_path / "parts", {}))
        assert [slice(2 * SIZE, 3 * SIZE)] == CALLS
        np.testing.assert_array_equal(sums, np.asarray(opened.X[:].sum(axis=1)).ravel())


def test_a_block_that_fails_once_such_as_on_a_full_disk_is_done_again(folder, client):
    def fail_once():
        FAULTS.clear()
        raise OSError(errno.ENOSPC, "No space left on device")

    FAULTS.update(at=SIZE, do=fail_once)
    with open_file(folder / "query.h5ad") as opened:
        assert len(run(opened, client)) == opened.n_obs
    assert CALLS.count(slice(SIZE, 2 * SIZE)) == 2


def test_many_failures_end_the_run(folder, client, monkeypatch):
    monkeypatch.setattr(engine_module, "_MOST_FAILURES", 2)

    def fail():
        raise OSError(errno.ENOSPC, "No space left on device")

    class Everywhere(dict):
        def get(self, key):
            return CALLS[-1].start if key == "at" else None

    faults = Everywhere(do=fail)
    monkeypatch.setitem(globals(), "FAULTS", faults)
    with (
        open_file(folder / "query.h5ad") as opened,
        pytest.raises(DataError, match=r"2 groups fail every time.*No space left"),
    ):
        run(opened, client)


def test_a_store_that_changes_while_it_is_read_ends_the_run(client, tmp_path):
    as_anndata(trained_example()[1]).write_zarr(tmp_path / "query.zarr")
    chunk = next(path for path in (tmp_path / "query.zarr/X/data").glob("[0-9c]*"))

    def change():
        os.utime(chunk.parent, ns=(1, 1))
        chunk.with_name("new").write_bytes(b"")

    FAULTS.update(at=SIZE, do=change)
    with (
        open_file(tmp_path / "query.zarr") as opened,
        pytest.raises(ChangedFileError, match="has changed while it was being read"),
    ):
        run(opened, client)


def test_no_scheduler_and_no_workers_are_refused_at_once(folder, tmp_path, monkeypatch):
    model = trained_example()[0]
    out = tmp_path / "labels.csv"
    for wrong, message in {
        "tcp://127.0.0.1:1": "no dask scheduler answers at .*start one",
        "somewhere": "write its address as tcp://HOST:PORT",
        "tcp://127.0.0.1:99999": "no dask scheduler answers",
    }.items():
        with monkeypatch.context() as patch:
            patch.setattr(engine_module, "_CONNECT_SECONDS", 1.0)
            with pytest.raises(ValueError, match=message):
                predict_file(folder / "query.h5ad", model, out, dask=wrong)
    with distributed.LocalCluster(
        n_workers=0, processes=False, dashboard_address=":0"
    ) as empty:
        there = empty.scheduler_address
        with pytest.raises(
            ValueError, match=r"has no workers: start some \(dask worker"
        ):
            predict_file(folder / "query.h5ad", model, out, dask=there)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "somewhere", "x://y:1"])
def test_a_client_that_cannot_start_is_closed(address, monkeypatch):
    monkeypatch.setattr(engine_module, "_CONNECT_SECONDS", 1.0)
    gc.disable()
    try:
        with pytest.raises(ValueError, match="no dask scheduler"), connect(address):
            pass
        clients = [
            one for one in gc.get_objects() if issubclass(type(one), distributed.Client)
        ]
        assert {client.status for client in clients} <= {"closed"}
    finally:
        gc.enable()


class FakeClient:
    """Says what the members of a cluster would say."""

    def __init__(self, seen, scheduler=None):
        self.seen = seen
        self.scheduler = scheduler

    def run_on_scheduler(self, function):
        return function() | (self.scheduler or {})

    def run(self, function, on_error):
        return {"tcp://w": self.seen()}


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ({"numpy": "1.0"}, "has numpy 1.0, and here it is"),
        ({"python": "3.8"}, "has python 3.8, and here it is"),
        ({"optirank": "0.1.0 (source abc)"}, r"has optirank 0.1.0 \(source abc\), and"),
    ],
)
def test_other_versions_are_refused(versions, message):
    check_versions(FakeClient(installed))
    with pytest.raises(ClusterError, match=f"the worker tcp://w {message}"):
        check_versions(FakeClient(lambda: installed() | versions))
    with pytest.raises(ClusterError, match=f"the scheduler {message}"):
        check_versions(FakeClient(installed, versions))
    missing = ModuleNotFoundError("No module named 'optirank'")
    with pytest.raises(ClusterError, match=r"tcp://w has no optirank, or another one"):
        check_versions(FakeClient(lambda: missing))


def test_a_copy_with_the_same_number_and_other_source_is_another_optirank(tmp_path):
    code = "from optirank.io.cluster import installed; print(installed()['optirank'])"
    source = Path(optirank.__file__).parents[1]
    shutil.copytree(source, tmp_path / "src")
    answers = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONPATH": str(tmp_path / "src")},
            capture_output=True,
            text=True,
            check=True,
        )
        answers.append(done.stdout.strip())
        with open(tmp_path / "src/optirank/ranks/scoring.py", "a") as file:
            file.write("# changed\n")
    assert answers[0] == installed()["optirank"]
    assert answers[1] != answers[0]
    assert answers[1].split()[0] == optirank.__version__


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of dask's, about the scheduler that is gone
def test_a_scheduler_that_is_lost_ends_with_what_to_do(folder, tmp_path):
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    )

    def lose(done, total):
        cluster.close()

    with pytest.raises(ClusterError, match=r"scheduler is lost: start it again, then"):
        predict_file(
            folder / "query.zarr",
            trained_example()[0],
            tmp_path / "labels.csv",
            dask=cluster.scheduler_address,
            progress=lose,
        )
    assert list(parts_folder(tmp_path / "labels.csv").glob("*.npz"))


def test_workers_without_the_file_or_with_another_are_refused(folder, client, tmp_path):
    path = tmp_path / "query.h5ad"
    shutil.copy(folder / "query.h5ad", path)
    with open_file(path) as opened:
        path.write_bytes(path.read_bytes() + b" ")
        message = r"query\.h5ad has changed .*, or is another file on .*: put one file"
        with pytest.raises(ChangedFileError, match=message):
            run(opened, client)
        path.unlink()
        message = r"query\.h5ad cannot be read on .*: put it where all workers see it"
        with pytest.raises(ChangedFileError, match=message):
            run(opened, client)
    with pytest.raises(DataError, match="is not an opened file"):
        run(read_expression(folder / "query.h5ad"), client)


@pytest.mark.parametrize(
    "name", ["query.h5ad", "by_genes.h5ad", "query.zarr", "dense.zarr"]
)
def test_a_worker_opens_the_matrix_by_the_name_of_the_file(name, folder):
    genes = panel_names(trained_example()[0])[:5]
    with open_file(folder / name, label="leiden", layer="double") as opened:
        store = pickle.loads(pickle.dumps(opened.uns["optirank"]["store"]))
        here = values(opened, genes, 9)
    with contextlib.ExitStack() as stack:
        there = values(store.open(stack), genes, 9)
    np.testing.assert_array_equal(there, here)


@pytest.mark.parametrize("name", ["query.h5ad", "query.zarr"])
@pytest.mark.filterwarnings("ignore:.*(xarray|Dataset2D|lazy)")
def test_a_lazy_anndata_is_annotated_as_one_in_memory(name, folder):
    pytest.importorskip("xarray")
    model = trained_example()[0]
    read = {".h5ad": anndata.read_h5ad, ".zarr": anndata.read_zarr}
    adata = read[Path(name).suffix](folder / name)
    optirank.tl.annotate(adata, model, clusters="leiden")
    lazy = anndata.experimental.read_lazy(str(folder / name))
    optirank.tl.annotate(lazy, model, clusters="leiden")
    obs = lazy.obs.to_memory()
    for column in [column for column in adata.obs if column.startswith("optirank")]:
        assert (
            obs[column].astype(str).tolist() == adata.obs[column].astype(str).tolist()
        )


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of dask's, about the worker that dies
def test_a_worker_that_is_killed_changes_nothing(folder, tmp_path):
    model = trained_example()[0]
    predict_file(folder / "query.zarr", model, tmp_path / "alone.csv")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:
        with connect(cluster.scheduler_address) as client:
            victim = min(client.run(os.getpid).values())
        killed = threading.Event()

        def kill(done, total):
            if not killed.is_set():
                killed.set()
                os.kill(victim, signal.SIGKILL)

        there = tmp_path / "there.csv"
        predict_file(
            folder / "query.zarr",
            model,
            there,
            dask=cluster.scheduler_address,
            progress=kill,
        )
    assert killed.is_set()
    assert there.read_bytes() == (tmp_path / "alone.csv").read_bytes()


def test_several_files_are_labelled_as_each_alone(folder, address, tmp_path):
    model = trained_example()[0]
    files = [folder / "one.h5ad", folder / "two.h5ad"]
    alone = []
    for file in files:
        predict_file(file, model, tmp_path / "alone.csv")
        table = pd.read_csv(tmp_path / "alone.csv", keep_default_na=False)
        alone.append(table.assign(file=file.stem))
    for where in (None, address):
        labels = predict_file(files, model, tmp_path / "both.csv", dask=where)
        both = pd.read_csv(tmp_path / "both.csv", keep_default_na=False)
        pd.testing.assert_frame_equal(both, pd.concat(alone, ignore_index=True))
    assert set(labels.record["files"]) == {"one", "two"}
    with pytest.raises(DataError, match="is named twice: name each file once"):
        predict_file([files[0], files[0]], model, tmp_path / "both.csv")
    with pytest.raises(
        DataError, match="would be a copy of one query, and there are 2"
    ):
        predict_file(files, model, tmp_path / "both.h5ad")


def test_labels_are_written_as_an_anndata_without_values(folder, tmp_path):
    model = trained_example()[0]
    labels = predict_file(folder / "query.zarr", model, tmp_path / "labels.zarr")
    adata = anndata.read_zarr(tmp_path / "labels.zarr")
    assert adata.X is None
    assert adata.obs["optirank"].astype(str).tolist() == labels.labels.tolist()
    assert (adata.obsm["optirank_proba"].to_numpy() == labels.probabilities).all()
    assert adata.uns["optirank"]["model_sha256"] == labels.record["model_sha256"]
    with pytest.raises(ValueError, match="is a folder: name a file"):
        predict_file(folder / "query.zarr", model, tmp_path / "labels.zarr")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_tables_are_written_some_samples_at_a_time(
    ending, folder, tmp_path, monkeypatch
):
    model = trained_example()[0]
    read = {".csv": pd.read_csv, ".parquet": pd.read_parquet}[ending]
    predict_file(folder / "query.h5ad", model, tmp_path / f"whole{ending}")
    monkeypatch.setattr("optirank.verbs.label_files._ROWS", 13)
    predict_file(folder / "query.h5ad", model, tmp_path / f"some{ending}")
    whole, some = (read(tmp_path / f"{name}{ending}") for name in ("whole", "some"))
    pd.testing.assert_frame_equal(whole, some)


def test_the_commands_take_the_address_of_a_scheduler(folder, address, tmp_path):
    from typer.testing import CliRunner

    from optirank.cli import app

    def command(*words):
        done = CliRunner().invoke(app, [str(word) for word in words])
        assert done.exit_code == 0, done.output

    contents = []
    for name, dask in {"here": [], "there": ["--dask", address]}.items():
        (tmp_path / name).mkdir()
        model = tmp_path / name / "model.optirank"
        reference = [folder / "reference.h5ad", "--label", LABEL]
        command("train", *reference, "--genes", 20, "-o", model, *dask)
        out = tmp_path / name / "labels.csv"
        command("predict", folder / "query.zarr", "-m", model, "-o", out, *dask)
        command("evaluate", *reference, "-m", model, *dask)
        contents.append([file.read_bytes() for file in (model, out)])
    assert contents[0] == contents[1]
    done = CliRunner().invoke(
        app, ["predict", "x.h5ad", "-m", str(model), "--dask", "tcp://127.0.0.1:1"]
    )
    assert done.exit_code == 2
