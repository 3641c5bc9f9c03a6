"""`optirank predict`, end to end: what it prints, what it writes, how it ends."""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import replace

import anndata
import numpy as np
import pandas as pd
import pytest
from training_cases import SINGLE, shorten_training
from typer.testing import CliRunner, Result

from example_model import N_QUERY, as_anndata, panel_names, trained_example, with_held_out
from optirank.cli.app import app
from optirank.cli.errors import BAD_INPUT
from optirank.datasets.example import make_example
from optirank.datasets.writing import write_h5ad, write_table
from optirank.model import save


def predict(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["predict", *map(str, arguments)], env={"COLUMNS": "120"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predict")
    model, query = trained_example()
    save(with_held_out(model), folder / "model.optirank")
    as_anndata(query).write_h5ad(folder / "query.h5ad")
    write_table(query, folder / "query.csv")
    (folder / "query.bin").write_bytes((folder / "query.h5ad").read_bytes())
    (folder / "torn.optirank").write_bytes((folder / "model.optirank").read_bytes()[:2000])
    (folder / "torn.h5ad").write_bytes((folder / "query.h5ad").read_bytes()[:20000])
    as_anndata(query)[:0].write_h5ad(folder / "empty.h5ad")
    write_table(query, folder / "rows.csv", "rows")
    write_table(replace(query, obs=query.obs[[]]), folder / "columns.csv")
    few = [gene for gene in query.gene_names if gene not in panel_names(model)]
    as_anndata(query.select_genes(few)).write_h5ad(folder / "other.h5ad")
    return folder


def test_a_prior_is_a_word_or_a_file(folder, tmp_path):
    query, model = folder / "query.h5ad", folder / "model.optirank"
    classes = trained_example()[0].classes_.tolist()
    shares = tmp_path / "shares.csv"
    shares.write_text("".join(f"{label},{k}\n" for k, label in enumerate(classes)))
    done = predict(query, "-m", model, "-o", tmp_path / "labels.csv", "--prior", shares)
    assert done.exit_code == 0, done.stderr
    assert "assume these shares of the classes" in done.stderr
    assert classes[0] not in set(pd.read_csv(tmp_path / "labels.csv")["label"])
    done = predict(query, "-m", model, "-o", tmp_path / "new.csv", "--prior", "fair")
    assert done.exit_code == BAD_INPUT
    assert "neither one of balanced, training nor a file" in " ".join(done.stderr.split())
    assert not (tmp_path / "new.csv").exists()


def test_labels_of_a_file(folder, tmp_path):
    out = tmp_path / "labels.csv"
    done = predict(folder / "query.h5ad", "--model", folder / "model.optirank", "--out", out)
    assert done.exit_code == 0, done.stderr
    table = pd.read_csv(out)
    assert len(table) == N_QUERY
    assert f"{out}: {N_QUERY} samples, mean confidence" in done.stdout
    assert "t cell" in done.stdout
    missing = set(panel_names(trained_example()[0])) - set(trained_example()[1].gene_names)
    for gene in missing:
        assert gene in done.stderr
    assert "Genes missing" in done.stderr


def test_the_missing_genes_can_be_had_as_a_table(folder, tmp_path):
    done = predict(
        *(folder / "query.h5ad", "-m", folder / "model.optirank", "-o", tmp_path / "labels.csv"),
        *("--missing", tmp_path / "missing.csv"),
    )
    assert done.exit_code == 0, done.stderr
    model, query = trained_example()
    table = pd.read_csv(tmp_path / "missing.csv")
    assert set(table["gene"]) == set(panel_names(model)) - set(query.gene_names)
    assert table.columns[:3].tolist() == ["gene", "role", "n_reference"]


def test_clusters_a_threshold_and_an_h5ad(folder, tmp_path):
    out = tmp_path / "labelled.h5ad"
    done = predict(
        *(folder / "query.h5ad", "-m", folder / "model.optirank", "-o", out),
        *("--clusters", "cell_type", "--threshold", "0.35", "--layer", "double"),
    )
    assert done.exit_code == 0, done.stderr
    assert "Clusters" in done.stdout
    assert "unassigned" in done.stdout
    assert "asked for a confidence of at least 0.35" in done.stderr
    assert "optirank_cluster_label" in anndata.read_h5ad(out).obs


def test_a_target_error_says_why(folder, tmp_path):
    done = predict(
        *(folder / "query.h5ad", "-m", folder / "model.optirank", "-o", tmp_path / "labels.csv"),
        *("--target-error", "0.05"),
    )
    assert done.exit_code == 0, done.stderr
    assert "on 81 held-out samples" in done.stderr


def test_a_table(folder, tmp_path):
    done = predict(
        *(folder / "query.csv", "-m", folder / "model.optirank", "-o", tmp_path / "labels.csv"),
        *("--genes-in", "columns", "--annotations", "cell_type,dataset,platform"),
    )
    assert done.exit_code == 0, done.stderr
    assert len(pd.read_csv(tmp_path / "labels.csv")) == N_QUERY


def test_a_file_whose_name_does_not_tell_its_format(folder, tmp_path):
    done = predict(
        *(folder / "query.bin", "-m", folder / "model.optirank", "-o", tmp_path / "labels.csv"),
        *("--format", "h5ad"),
    )
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize(
    ("query", "model", "options", "message"),
    [
        ("nothing.h5ad", "model.optirank", [], "nothing.h5ad does not exist"),
        ("query.h5ad", "nothing.optirank", [], "nothing.optirank"),
        ("torn.h5ad", "model.optirank", [], "torn.h5ad"),
        ("query.h5ad", "torn.optirank", [], "cannot open the model file"),
        ("query.h5ad", "query.h5ad", [], "cannot open the model file"),
        ("other.h5ad", "model.optirank", [], "Missing genes"),
        ("query.bin", "model.optirank", [], "give the format, one of h5ad"),
        ("query.csv", "model.optirank", [], "'rows' or in 'columns'"),
        ("query.csv", "model.optirank", ["--genes-in", "columns"], "query.csv"),
        ("query.h5ad", "model.optirank", ["--clusters", "louvain"], "no column 'louvain'"),
        ("query.h5ad", "model.optirank", ["--layer", "counts"], "no layer 'counts'"),
        ("query.h5ad", "model.optirank", ["--gene-column", "id"], "no gene column 'id'"),
        ("query.h5ad", "model.optirank", ["--threshold", "2"], "--threshold"),
        ("query.h5ad", "model.optirank", ["--target-error", "0"], "target error 0"),
        ("query.h5ad", "model.optirank", ["--missing", "/nowhere/x.csv"], "/nowhere"),
        ("query.h5ad", "model.optirank", ["--out", "/nowhere/x.csv"], "/nowhere"),
        ("query.h5ad", "model.optirank", ["--out", "labels.docx"], "labels.docx"),
        ("empty.h5ad", "model.optirank", [], "empty.h5ad holds no samples"),
        ("rows.csv", "model.optirank", ["--genes-in", "columns"], "use --genes-in rows"),
        ("columns.csv", "model.optirank", ["--genes-in", "rows"], "use --genes-in columns"),
    ],
)
def test_bad_input_ends_with_2_and_one_line(query, model, options, message, folder, tmp_path):
    out = [] if "--out" in options else ["--out", tmp_path / "labels.csv"]
    done = predict(folder / query, "--model", folder / model, *out, *options)
    assert done.exit_code == BAD_INPUT, done.stdout
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    if not message.startswith("--"):  # usage errors are told by the command line itself
        assert done.stderr.startswith("optirank: ")
        assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["h5ad", "table"])
def test_the_suggested_training_runs_when_pasted(kind, tmp_path, monkeypatch):
    shorten_training(monkeypatch, grids=SINGLE)
    for folder in ("data", "models", "elsewhere"):
        (tmp_path / folder).mkdir()
    reference, query = (one.select_genes(np.arange(60)) for one in make_example(80, 20))
    options = []
    if kind == "h5ad":
        reference = write_h5ad(reference, tmp_path / "models" / "the reference.h5ad")
    else:
        reference = write_table(reference, tmp_path / "models" / "reference.csv")
        options = ["--genes-in", "columns", "--annotations", "dataset,platform"]
    write_h5ad(query.select_genes(np.arange(0, 60, 4)), tmp_path / "data" / "query.h5ad")
    monkeypatch.chdir(tmp_path / "elsewhere")
    trained = ["train", reference, *options, "-l", "cell_type", "-o", "../models/m.optirank"]
    done = CliRunner().invoke(app, [*map(str, trained)])
    assert done.exit_code == 0, done.output
    done = predict("../data/query.h5ad", "-m", "../models/m.optirank", "--max-missing", "0.1")
    assert done.exit_code == BAD_INPUT, done.output
    (line,) = [line for line in done.stderr.splitlines() if "optirank train" in line]
    done = CliRunner().invoke(app, shlex.split(line)[1:])
    assert done.exit_code == 0, done.output
    assert predict("../data/query.h5ad", "-m", "for_query.optirank").exit_code == 0


def test_a_missing_extra_is_one_line(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", None)
    out = ("--out", tmp_path / "labels.csv")
    done = predict(folder / "query.h5ad", "--model", folder / "model.optirank", *out)
    assert done.exit_code == BAD_INPUT
    assert "pip install 'optirank[anndata]'" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["predict", "panel", "inspect"])
def test_help_has_examples_and_imports_nothing_heavy(command):
    code = (
        "import sys; from optirank.cli.app import app\n"
        f"try: app([{command!r}, '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'sklearn', 'numba', 'matplotlib', 'pandas'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    examples = done.stdout.partition("Examples:")[2].partition("Options:")[0]
    assert examples.count(f"optirank {command}") >= 2
