"""The recipes of CONTRIBUTING.md work as written."""

from __future__ import annotations

import contextlib
import inspect
import os
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import optirank_lab
from benchmark_cases import FIRST, SECOND, write_sets
from optirank import pl, tl
from optirank import save as optirank_save
from optirank.cli import app as product
from optirank.cli.train import train as train_command
from optirank.datasets import DataError, read_expression
from optirank.datasets.example import write_example
from optirank.io.data import make_profiles
from optirank.io.formats import Format
from optirank.io.reading import FORMATS
from optirank.verbs.labels import Labels
from optirank.verbs.train import TrainingOptions, train
from optirank_lab.cli import app as lab


def test_a_column_of_predict_is_one_entry_for_every_format(monkeypatch, tmp_path):
    columns_there = Labels.further

    def further(labels, rows=slice(None)):
        margin = np.arange(len(labels.names)) / 4
        return columns_there(labels, rows) | {"margin": margin[rows]}

    monkeypatch.setattr(Labels, "further", further)
    write_example(tmp_path, 60, 20)
    model, query = tmp_path / "m.optirank", tmp_path / "query.h5ad"
    optirank_save(train_file(tmp_path / "reference.h5ad", n_genes=10).model, model)
    for name in ("labels.csv", "labels.parquet", "labels.h5ad"):
        optirank("predict", query, "--model", model, "--out", tmp_path / name)
    want = np.arange(20) / 4
    assert pd.read_csv(tmp_path / "labels.csv")["margin"].tolist() == want.tolist()
    assert (
        pd.read_parquet(tmp_path / "labels.parquet")["margin"].tolist() == want.tolist()
    )
    obs = anndata.read_h5ad(tmp_path / "labels.h5ad").obs
    assert obs["optirank_margin"].tolist() == want.tolist()


def train_file(path, **options):
    options = TrainingOptions(label="cell_type", **options)
    return train(read_expression(path, label="cell_type"), options)


@contextlib.contextmanager
def open_arrays(path, options):
    """A toy format: an archive of arrays, or a folder of them."""
    file = path / "all.npz" if path.is_dir() else path
    with np.load(file, allow_pickle=False) as arrays:
        obs = pd.DataFrame({"cell_type": arrays["labels"]}, arrays["samples"])
        var = pd.DataFrame(index=arrays["genes"])
        yield make_profiles(arrays["X"], obs, var, str(path))


def test_a_file_format_is_one_entry(monkeypatch, tmp_path):
    toy = Format(
        "toy",
        (".npz",),
        open_arrays,
        is_folder=lambda folder: (folder / "all.npz").exists(),
    )
    monkeypatch.setitem(FORMATS, "toy", toy)
    write_example(tmp_path, 60, 20)
    query = read_expression(tmp_path / "query.h5ad")
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in (tmp_path / "query.npz", folder / "all.npz"):
        np.savez(
            path,
            X=query.X.toarray(),
            labels=query.obs["cell_type"].to_numpy(str),
            samples=query.obs_names.to_numpy(str),
            genes=query.var_names.to_numpy(str),
        )
    model = tmp_path / "m.optirank"
    optirank_save(train_file(tmp_path / "reference.h5ad", n_genes=10).model, model)
    for path in (tmp_path / "query.npz", folder):
        assert read_expression(path, label="cell_type").n_obs == 20
        optirank("predict", path, "--model", model, "--out", f"{path}.csv")
    for_h5ad = tmp_path / "labels.csv"
    optirank("predict", tmp_path / "query.h5ad", "--model", model, "--out", for_h5ad)
    for path in (tmp_path / "query.npz.csv", tmp_path / "folder.csv"):
        assert path.read_bytes() == for_h5ad.read_bytes()
    with pytest.raises(DataError, match=r"layer.* is for h5ad, zarr, loom, not toy"):
        read_expression(folder, layer="counts")
    (tmp_path / "damaged.npz").write_bytes(b"PK")
    with pytest.raises(DataError, match=r"damaged\.npz cannot be read"):
        read_expression(tmp_path / "damaged.npz")


def test_every_format_is_named_where_a_user_looks():
    help_text = optirank("predict", "--help")
    for name in FORMATS:
        assert name in help_text
        assert f'"{name}"' in read_expression.__doc__


def test_an_option_of_train_is_a_field_a_flag_and_a_parameter():
    flags = inspect.signature(train_command).parameters
    parameters = inspect.signature(tl.train).parameters
    names = {field.name for field in fields(TrainingOptions)}
    for name in names - {"query_genes"} | {"query"}:  # whose genes the product takes
        assert name in flags, name
        assert name in parameters, name
    help_text = " ".join(optirank("train", "--help").split())
    assert "--gene-list FILE" in help_text
    assert "Use these genes, one per line" in help_text


def test_a_plot_is_a_function_that_pl_names():
    for name in pl.__all__:
        assert name in dir(pl)
        assert callable(getattr(pl, name))


def optirank(*arguments: object) -> str:
    app = lab if arguments[0] in ("benchmark", "simulate") else product
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.stdout


# A table of the laboratory: a task, a data set


@pytest.fixture
def laboratory(tmp_path):
    """A copy of the laboratory, whose tables can be changed, and its commands."""
    home = tmp_path / "copy" / "optirank_lab"
    source = Path(optirank_lab.__file__).parent
    shutil.copytree(source, home, ignore=shutil.ignore_patterns("__pycache__"))

    def run(*arguments: object) -> str:
        paths = [str(home.parent), *sys.path]
        done = subprocess.run(
            [sys.executable, "-m", "optirank_lab", *map(str, arguments)],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return home, run


def append(path: Path, table: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(table)


TOY_TASK = f"""
[[task]]
name = "toy"
tissue = "breast"
title = "a toy"
kind = "bulk"
shift = "technology"
train = ["{FIRST}"]
test = "{SECOND}"
scheme = "cells"
"""


def test_a_task_is_one_table(laboratory, tmp_path):
    home, run = laboratory
    tables = home / "benchmark" / "tasks.toml"
    content = tables.read_text("utf-8")
    first = content.index("[[task]]")
    tables.write_text(content[:first] + TOY_TASK + "\n" + content[first:], "utf-8")
    sets = write_sets(tmp_path / "sets")
    listed = run("benchmark", "list", "--data", sets)
    (line,) = (line for line in listed.splitlines() if "a toy" in line)
    assert "toy" in line.split()


TOY_SET = """
[toy]
title = "a toy"
accession = "none"
organism = "human"
modality = "bulk"
technology = "RNA-Seq"
source = "https://example.org"
licence = "CC0"
n_samples = 8
n_genes = 2
files = [{ name = "toy.csv", url = "https://example.org/toy.csv" }]

[toy.read]
matrix = "toy.csv"
genes_in = "columns"
annotations = ["type"]
label = "type"
"""


def test_a_data_set_is_one_table(laboratory, tmp_path):
    home, run = laboratory
    append(home / "data" / "stand_ins.toml", TOY_SET)
    raw = tmp_path / "raw"
    raw.mkdir()
    values = pd.DataFrame({"type": ["a", "b"] * 4, "TP53": range(8), "MYC": range(8)})
    values.index = [f"s{i}" for i in range(8)]
    values.to_csv(raw / "toy.csv", index_label="sample")
    run("datasets", "fetch", "toy", "--data", tmp_path / "sets", "--from", raw)
    data = read_expression(tmp_path / "sets" / "toy.h5ad", label="cell_type")
    assert sorted(data.var_names) == ["MYC", "TP53"]
    assert data.obs["cell_type"].tolist() == ["a", "b"] * 4
