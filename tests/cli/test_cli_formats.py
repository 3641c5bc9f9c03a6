"""Every format of file gives the same model and the same labels, by the command line."""

from __future__ import annotations

import warnings
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from expression_files import to_anndata, write_tenx_folder, write_tenx_h5
from optirank import load
from optirank.cli.app import app
from optirank.datasets.example import make_example
from optirank.datasets.writing import write_table
from training_cases import SINGLE, shorten_training

FORMATS = ("csr.h5ad", "csc.h5ad", "dense.h5ad", "cells.zarr", "v3.zarr", "tenx", "tenx_v2")
FORMATS += ("tenx.h5", "tenx_v2.h5", "columns.csv", "rows.tsv", "rows.csv.gz")


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    shorten_training(monkeypatch, grids=SINGLE, n_folds=2)


def optirank(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def write(data, path: Path) -> Path:
    """Write data in the format that the name says."""
    storage, kind = path.name.split(".")[0], path.suffix
    version = 2 if storage == "tenx_v2" else 3
    if storage == "rows":
        rows = write_table(data, path.with_name("wide.csv"), genes_in="rows")
        frame = pd.read_csv(rows, index_col=0)
        frame.to_csv(path, sep="\t" if kind == ".tsv" else ",")
    elif storage == "columns":
        write_table(data, path)
    elif kind == ".h5":
        write_tenx_h5(data, path, version)
    elif kind in (".h5ad", ".zarr"):
        adata = to_anndata(data, storage if storage in ("csc", "dense") else "csr")
        if kind == ".h5ad":
            adata.write_h5ad(path)
        else:
            with anndata.settings.override(zarr_write_format=3 if storage == "v3" else 2):
                _write_zarr(adata, path)
    else:
        write_tenx_folder(data, path, version)
    return path


def _write_zarr(adata: anndata.AnnData, path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what anndata will do when writing some day
        adata.write_zarr(path)


def reading(path: Path) -> list[str]:
    """The options that the format needs."""
    if path.name == "columns.csv":
        return ["--genes-in", "columns", "--annotations", "cell_type,dataset,platform"]
    return ["--genes-in", "rows"] if path.name.startswith("rows") else []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A reference and a query in every format, and the labels of the reference as a table."""
    folder = tmp_path_factory.mktemp("formats")
    reference, query = make_example(120, 40)
    kinds = reference.labels("cell_type").isin(["b cell", "t cell"]).to_numpy()
    reference = reference.select_samples(kinds)
    genes = [name for name in reference.gene_names[:100] if name in set(query.gene_names)]
    for name, data in (("reference", reference), ("query", query)):
        (folder / name).mkdir()
        part = data.select_genes(genes)
        for one in FORMATS:
            write(part, folder / name / one)
        part.obs.to_csv(folder / f"{name}.csv", index_label="sample")
    return folder


def trained(folder: Path, name: str, out: Path):
    path = folder / "reference" / name
    beside = ["--samples", folder / "reference.csv"] if "columns" not in name else []
    done = optirank(
        "train", path, "--label", "cell_type", "--out", out, *beside, *reading(path), "-j", 1
    )
    assert done.exit_code == 0, done.output
    return load(out)


@pytest.fixture(scope="module")
def expected(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("expected")
    with pytest.MonkeyPatch.context() as patch:
        shorten_training(patch, grids=SINGLE, n_folds=2)
        model = trained(folder, FORMATS[0], out / "model.optirank")
    done = optirank(
        *("predict", folder / "query" / FORMATS[0], "--model", out / "model.optirank"),
        *("--out", out / "labels.csv"),
    )
    assert done.exit_code == 0, done.output
    return model, out


@pytest.mark.parametrize("name", FORMATS)
def test_the_model_is_the_same_from_every_format(name, folder, expected, tmp_path):
    model = trained(folder, name, tmp_path / "model.optirank")
    np.testing.assert_array_equal(model.coef_, expected[0].coef_)
    np.testing.assert_array_equal(model.intercept_, expected[0].intercept_)
    np.testing.assert_array_equal(model.reference_weights_, expected[0].reference_weights_)
    np.testing.assert_array_equal(model.mean_ranks_, expected[0].mean_ranks_)
    assert model.feature_names_in_.tolist() == expected[0].feature_names_in_.tolist()
    assert model.training_summary_["source"] == name


@pytest.mark.parametrize("name", FORMATS)
def test_the_labels_are_the_same_from_every_format(name, folder, expected, tmp_path):
    path, out = folder / "query" / name, tmp_path / "labels.csv"
    done = optirank(
        *("predict", path, "--model", expected[1] / "model.optirank", "--out", out),
        *reading(path),
    )
    assert done.exit_code == 0, done.output
    assert out.read_bytes() == (expected[1] / "labels.csv").read_bytes()


def test_parquet_and_h5ad_hold_what_the_csv_holds(folder, expected, tmp_path):
    pytest.importorskip("pyarrow")
    query, model = folder / "query" / "csr.h5ad", expected[1] / "model.optirank"
    for out in ("labels.parquet", "labelled.h5ad"):
        done = optirank("predict", query, "--model", model, "--out", tmp_path / out)
        assert done.exit_code == 0, done.output
    table = pd.read_csv(expected[1] / "labels.csv")
    frame = pd.read_parquet(tmp_path / "labels.parquet")
    pd.testing.assert_frame_equal(frame.round(6), table)
    adata = anndata.read_h5ad(tmp_path / "labelled.h5ad")
    assert adata.obs["optirank"].astype(str).tolist() == table["label"].tolist()
    probabilities = frame.filter(like="probability_").to_numpy()
    np.testing.assert_array_equal(adata.obsm["optirank_proba"], probabilities)


def test_genes_of_a_query_in_any_format_can_be_trained_for(folder, tmp_path):
    for name in ("cells.zarr", "tenx", "tenx.h5"):
        done = optirank(
            *("train", folder / "reference" / "csr.h5ad", "--label", "cell_type"),
            *("--for", folder / "query" / name, "--out", tmp_path / "model.optirank", "--force"),
        )
        assert done.exit_code == 0, done.output
        assert "genes are used: those that the data to be labelled have" in done.output
