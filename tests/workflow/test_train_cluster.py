"""Training on a dask cluster gives what it gives here."""

from __future__ import annotations

import pandas as pd
import pytest
from typer.testing import CliRunner

from optirank import load
from optirank.cli.app import app
from optirank.datasets import DataError
from optirank.workflow.train import train
from training_cases import SHORT, shorten_training, small

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as found:
        yield found


@pytest.fixture(scope="module")
def data():
    return small(60, 40)


def test_a_cluster_finds_what_threads_find(cluster, data):
    said, steps = [], []
    options = {"grids": SHORT, "n_folds": 2}
    here = train(data, "cell_type", **options)
    with distributed.Client(cluster) as client:
        there = train(
            data,
            "cell_type",
            client=client,
            say=said.append,
            progress=lambda *step: steps.append(step),
            **options,
        )
    assert there.settings == here.settings
    assert there.path["score"].tolist() == here.path["score"].tolist()
    assert (there.model.coef_ == here.model.coef_).all()
    assert "on 2 threads of the cluster" in said[-1]
    assert steps[-1][0] == steps[-1][1]


def test_a_cluster_and_a_gpu_exclude_each_other(cluster, data, monkeypatch):
    monkeypatch.setattr("optirank.workflow.train.check_device", lambda device: None)
    with (
        distributed.Client(cluster) as client,
        pytest.raises(DataError, match="a dask cluster fits on CPUs"),
    ):
        train(data, "cell_type", client=client, device="cuda")


def test_the_command_takes_the_address_of_a_scheduler(cluster, data, tmp_path, monkeypatch):
    shorten_training(monkeypatch, grids=SHORT, n_folds=2)
    table = pd.DataFrame(data.X.toarray(), index=data.sample_names, columns=data.gene_names)
    table.insert(0, "cell_type", data.labels("cell_type").to_numpy())
    table.to_csv(tmp_path / "data.csv")
    out = tmp_path / "model.optirank"
    command = ["train", tmp_path / "data.csv", "--genes-in", "columns", "--label", "cell_type"]
    command += ["--out", out, "--dask", cluster.scheduler_address]
    result = CliRunner().invoke(app, [str(one) for one in command])
    assert result.exit_code == 0, result.output
    assert "of the cluster" in result.output
    assert len(load(out).classes_) == 5
