"""From a real reference to a query of another platform, by the commands a user would type."""

from __future__ import annotations

import shlex

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score
from typer.testing import CliRunner

from optirank.cli.app import app
from optirank.cli.errors import BAD_INPUT
from optirank.datasets import read_expression
from optirank.datasets.writing import write_h5ad
from optirank.workflow.grids import Grid
from training_cases import shorten_training

KINDS = ("activated stellate", "alpha", "beta", "delta", "ductal", "endothelial", "gamma")


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    shorten_training(monkeypatch, grids=(Grid.of((0.02,), (2e-2,), (1e-2,)),), n_folds=2)


def optirank(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def score(labels, query):
    """Balanced accuracy over the classes that the labels know."""
    given = pd.read_csv(labels, index_col="sample")["label"].to_numpy()
    truth = read_expression(query).labels("cell_type").to_numpy()
    known = np.isin(truth, given)
    return balanced_accuracy_score(truth[known], given[known])


@pytest.fixture(scope="module")
def pancreas(data_folder, tmp_path_factory):
    """A few cells of each kind of baron_h1, with all genes."""
    baron = read_expression(data_folder / "baron_h1.h5ad")
    kinds = baron.labels("cell_type").to_numpy()
    rows = [np.flatnonzero(kinds == kind)[:40] for kind in KINDS]
    path = tmp_path_factory.mktemp("pancreas") / "reference.h5ad"
    return write_h5ad(baron.select_samples(np.sort(np.concatenate(rows))), path)


def test_a_query_of_few_genes_is_refused_with_commands_that_go_on(data_folder, pancreas, tmp_path):
    query, model = data_folder / "segerstolpe_1000g.h5ad", tmp_path / "model.optirank"
    done = optirank("train", pancreas, "--label", "cell_type", "--out", model, "-j", 2)
    assert done.exit_code == 0, done.output
    out = tmp_path / "labels.csv"
    refused = optirank("predict", query, "--model", model, "--out", out)
    assert refused.exit_code == BAD_INPUT
    assert not out.exists()
    assert "activated stellate (" in refused.stderr
    lines = [line.strip() for line in refused.stderr.splitlines()]
    (drop,) = (line for line in lines if line.endswith("--drop-classes"))
    assert any(line.startswith("optirank train reference.h5ad --label cell_t") for line in lines)
    again = optirank(*shlex.split(drop)[1:])
    assert again.exit_code == 0, again.output
    assert "LEFT OUT" in again.stderr
    assert "activated stellate" not in pd.read_csv(out)["label"].to_numpy()
    assert score(out, query) > 0.9


def test_a_model_trained_for_the_query_lacks_nothing(data_folder, pancreas, tmp_path):
    query, model = data_folder / "segerstolpe_1000g.h5ad", tmp_path / "model.optirank"
    done = optirank(
        *("train", pancreas, "--label", "cell_type", "--for", query, "--out", model, "-j", 2)
    )
    assert done.exit_code == 0, done.output
    assert "969 of 20125 genes are used" in done.output
    done = optirank("predict", query, "--model", model, "--out", tmp_path / "labels.csv")
    assert done.exit_code == 0, done.output
    assert "missing" not in done.output
    assert score(tmp_path / "labels.csv", query) > 0.9


def test_leukaemia_on_an_array_that_lacks_a_sixth_of_the_genes(data_folder, tmp_path):
    query, model = data_folder / "armstrong_leukemia.h5ad", tmp_path / "model.optirank"
    reference = data_folder / "golub_leukemia.h5ad"
    done = optirank("train", reference, "--label", "cell_type", "--out", model, "-j", 2)
    assert done.exit_code == 0, done.output
    done = optirank("predict", query, "--model", model, "--out", tmp_path / "labels.csv")
    assert done.exit_code == 0, done.output
    assert "genes are missing: " in done.stderr
    assert score(tmp_path / "labels.csv", query) > 0.8
