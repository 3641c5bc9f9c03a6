"""`optirank train`: from a file to a model file, and bad input of each kind in one line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from training_cases import SINGLE, shorten_training
from typer.testing import CliRunner

from optirank import load
from optirank.cli.app import app
from optirank.cli.errors import BAD_INPUT
from optirank.cli.train import parse_genes, parse_names, parse_time
from optirank.datasets.example import make_example
from optirank.datasets.writing import write_h5ad, write_table


@pytest.fixture(autouse=True)
def _one_setting(monkeypatch):
    shorten_training(monkeypatch, grids=SINGLE)


@pytest.fixture(scope="module")
def reference():
    data, _ = make_example(100, 20)
    return data.select_genes(np.arange(90))


@pytest.fixture(scope="module")
def csv(reference, tmp_path_factory):
    return write_table(reference, tmp_path_factory.mktemp("data") / "reference.csv")


TABLE = ("--genes-in", "columns", "--annotations", "dataset,platform", "--label", "cell_type")


def optirank(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_table_becomes_a_model_and_a_report(csv, tmp_path):
    out, report = tmp_path / "m.optirank", tmp_path / "report.html"
    done = optirank("train", csv, *TABLE, "--out", out, "--report", report, "--jobs", 2)
    assert done.exit_code == 0, done.output
    assert "100 samples, 90 genes, 5 classes" in done.output
    assert "dendritic cell" in done.output
    assert "Balanced accuracy" in done.output
    assert "genes needed" in done.output
    model = load(out)
    assert model.training_summary_["source"] == "reference.csv"  # not where it lay
    assert f"{len(model.coef_[0])}" == "90"
    assert "</html>" in report.read_text()
    assert str(csv.parent) not in report.read_text()
    again = optirank(
        "predict", csv, "--genes-in", "columns", "--annotations", "cell_type,dataset,platform",
        "--model", out, "--out", tmp_path / "labels.csv",
    )  # fmt: skip
    assert again.exit_code == 0, again.output
    labels = pd.read_csv(tmp_path / "labels.csv", index_col=0)["label"].to_numpy()
    truth = pd.read_csv(csv, index_col=0)["cell_type"].to_numpy()
    assert (labels == truth).mean() > 0.8


def test_genes_in_rows_with_labels_in_another_file(reference, tmp_path):
    table = write_table(reference, tmp_path / "counts.csv", genes_in="rows")
    samples = tmp_path / "samples.csv"
    reference.obs.to_csv(samples, index_label="sample")
    genes = tmp_path / "genes.txt"
    genes.write_text("gene,role\n" + "\n".join(f"{name},x" for name in reference.gene_names[:50]))
    done = optirank(
        "train", table, "--genes-in", "rows", "--samples", samples, "--label", "cell_type",
        "--genes", genes, "--out", tmp_path / "m.optirank",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "100 samples, 50 genes" in done.output


def test_an_h5ad_file_with_sources_and_a_limit_of_genes(reference, tmp_path):
    pytest.importorskip("anndata")
    from dataclasses import replace

    from optirank.datasets.writing import write_h5ad

    obs = reference.obs.assign(donor=[f"d{k % 3}" for k in range(reference.n_samples)])
    path = write_h5ad(replace(reference, obs=obs), tmp_path / "reference.h5ad")
    out = tmp_path / "m.optirank"
    done = optirank(
        "train", path, "--label", "cell_type", "--batch", "donor", "--genes", 25, "--out", out,
        "--exclude", "MT-*,RPL*", "--target-error", 0.2, "--budget", "2m",
        "--not-in-reference", ",".join(map(str, reference.gene_names[:5])),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "leave whole sources out (3)" in done.output
    model = load(out)
    assert model.genes_.sum() <= 25
    assert model.rejection_.target_error == 0.2
    in_reference = model.feature_names_in_[model.reference_.any(axis=0)]
    assert not set(in_reference) & set(reference.gene_names[:5])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--label", "nothing"], "nothing"),
        (["--label", "cell_type", "--batch", "donor"], "donor"),
        (["--label", "cell_type", "--annotations", "dataset"], "platform"),
        ([*TABLE, "--genes", "nosuch.txt"], "neither a number of genes nor a file"),
        ([*TABLE, "--genes", "1"], "at most 1 genes"),
        ([*TABLE, "--include", "NOSUCH"], "none of the reference genes"),
        ([*TABLE, "--exclude", "*"], "excluded leave 0"),
        ([*TABLE, "--reference-from", "NOSUCH"], "may be chosen from (NOSUCH)"),
        ([*TABLE, "--not-in-reference", "*"], "no gene is left that may be in the reference set"),
        ([*TABLE, "--budget", "soon"], "--budget soon"),
        ([*TABLE, "--budget", "-3"], "--budget -3"),
        ([*TABLE, "--target-error", "7"], "target error 7"),
        ([*TABLE, "--layer", "counts"], "layer"),
        ([*TABLE, "--report", "no/such/folder/report.html"], "does not exist"),
        ([*TABLE, "--batch", "dataset", "--annotations", "platform"], "single value"),
    ],
)
def test_bad_input_is_one_line_and_leaves_an_old_model_alone(csv, tmp_path, options, message):
    out = tmp_path / "m.optirank"
    out.write_text("an older model")
    base = [] if "--genes-in" in options else ["--genes-in", "columns"]
    done = optirank("train", csv, *base, *options, "--out", out, "--force")
    assert done.exit_code == BAD_INPUT, done.output
    assert message in done.output
    assert "Traceback" not in done.output
    assert out.read_text() == "an older model"


def test_files_that_cannot_be_read_or_written_are_bad_input(csv, tmp_path):
    out = tmp_path / "m.optirank"
    for file, target, message in (
        (tmp_path / "none.h5ad", out, "does not exist"),
        (csv, tmp_path, "is a folder"),
        (csv, tmp_path / "no" / "m.optirank", "does not exist"),
    ):
        done = optirank("train", file, *TABLE[:2], *TABLE[4:], "--out", target)
        assert done.exit_code == BAD_INPUT
        assert message in done.output
    (tmp_path / "bad.h5ad").write_bytes(b"not a file of this kind")
    done = optirank("train", tmp_path / "bad.h5ad", "--label", "x", "--out", out)
    assert done.exit_code == BAD_INPUT


def test_data_to_be_labelled_that_share_no_gene_are_bad_input(csv, reference, tmp_path):
    from dataclasses import replace

    names = np.array([f"other{k}" for k in range(reference.n_genes)], dtype=object)
    query = write_table(replace(reference, gene_names=names), tmp_path / "query.csv", "rows")
    rows = write_table(reference, tmp_path / "reference.csv", "rows")
    samples = tmp_path / "samples.csv"
    reference.obs.to_csv(samples, index_label="sample")
    out = tmp_path / "m.optirank"
    done = optirank(
        "train", rows, "--genes-in", "rows", "--samples", samples, "--label", "cell_type",
        "--for", query, "--out", out,
    )  # fmt: skip
    assert done.exit_code == BAD_INPUT
    assert "shares 0 genes" in done.output
    assert not out.exists()


@pytest.mark.parametrize("kind", ["csv", "h5ad"])
def test_a_table_to_be_labelled_may_have_annotations(kind, reference, tmp_path, monkeypatch):
    def stop(data, label, **options):
        assert set(options["available"]) >= set(reference.gene_names)
        assert data.n_genes == reference.n_genes
        raise ValueError("far enough")

    monkeypatch.setattr("optirank.workflow.prepare", stop)
    query = write_table(reference, tmp_path / "query.csv")
    file = query if kind == "csv" else write_h5ad(reference, tmp_path / "reference.h5ad")
    options = TABLE if kind == "csv" else (*TABLE[:2], *TABLE[4:])
    done = optirank("train", file, *options, "--for", query, "--out", tmp_path / "m")
    assert "far enough" in done.output, done.output


def test_a_table_must_say_where_its_genes_are(csv, tmp_path):
    done = optirank("train", csv, "--label", "cell_type", "--out", tmp_path / "m.optirank")
    assert done.exit_code == BAD_INPUT
    assert "rows" in done.output


def test_an_interruption_leaves_an_old_model_alone(csv, tmp_path, monkeypatch):
    def stop(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("optirank.workflow.train.final_fit", stop)
    out = tmp_path / "m.optirank"
    out.write_text("an older model")
    assert optirank("train", csv, *TABLE, "--out", out, "--force").exit_code == 130
    assert out.read_text() == "an older model"
    assert list(tmp_path.iterdir()) == [out]


def test_times_names_and_genes_are_understood(tmp_path):
    assert [parse_time(text) for text in ("90", "90s", "10m", "1.5h")] == [90, 90, 600, 5400]
    file = tmp_path / "genes.tsv"
    file.write_text('# panel\nGene\trole\nACTB\tx\n\n"GAPDH"\ty\n')
    assert parse_genes(str(file)) == (["ACTB", "GAPDH"], None)
    assert parse_genes("50") == (None, 50)
    assert parse_names([str(file), "MT-*, RPL1"]) == ["ACTB", "GAPDH", "MT-*", "RPL1"]


def test_help_has_examples():
    done = optirank("train", "--help")
    assert done.exit_code == 0
    assert "optirank train reference.h5ad" in done.output
