"""The commands of a model, end to end: train, predict, evaluate, inspect, export."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from example_model import (
    N_QUERY,
    as_anndata,
    panel_names,
    reference_set,
    trained_example,
)
from expression_files import write_h5ad, write_table
from optirank.cli import app
from optirank.cli.command import BAD_INPUT, INTERRUPTED
from optirank.model import load, save
from optirank.model.file import known_models
from profiles import take_samples

QUERY, MODEL = "query.h5ad", "model.optirank"
TRAIN = (
    *("train", "reference.h5ad", "--label", "cell_type"),
    *("--n-genes", 20, "--n-jobs", 1),
)
PREDICT = ("predict", QUERY, "-m", MODEL)
EVALUATE = ("evaluate", QUERY, "-m", MODEL, "-l", "cell_type")


def optirank(*words: object, columns: int = 80) -> Result:
    return CliRunner().invoke(app, [*map(str, words)], env={"COLUMNS": str(columns)})


def good(*words: object) -> Result:
    done = optirank(*words)
    assert done.exit_code == 0, done.output + done.stderr
    return done


@pytest.fixture
def folder(tmp_path, monkeypatch):
    model, query = trained_example()
    reference = reference_set()
    save(model, tmp_path / MODEL)
    as_anndata(query).write_h5ad(tmp_path / QUERY)
    write_h5ad(reference, tmp_path / "reference.h5ad")
    write_table(query, tmp_path / "query.csv")
    (tmp_path / "genes.txt").write_text("\n".join(map(str, reference.var_names[:60])))
    (tmp_path / "kept.csv").write_text("of somebody else")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPTIRANK_MODELS", raising=False)
    return tmp_path


def test_from_a_file_to_a_model_a_page_and_labels(folder):
    done = good(*TRAIN, "-o", "m.optirank", "--report", "page.html", "--name", "mine")
    assert "Panels on held-out samples" in done.stdout
    assert done.stdout.count("chosen") == 1
    assert "Balanced accuracy of held-out samples" in done.stdout
    card = load("m.optirank").card
    assert card.source == "reference.h5ad"
    assert card.name == "mine"
    assert card.command == (
        "optirank train reference.h5ad --label cell_type --n-genes 20 -o m.optirank "
        "--report page.html --name mine"
    )  # without --n-jobs, which changes no result
    assert "</html>" in (folder / "page.html").read_text("utf-8")
    good("predict", QUERY, "-m", "m.optirank", "-o", "labels.csv")
    labels = pd.read_csv("labels.csv")
    assert len(labels) == N_QUERY
    truth = trained_example()[1].obs["cell_type"].to_numpy()
    assert (labels["label"] == truth).mean() > 0.7


def test_genes_are_asked_for_by_name_pattern_file_and_query(folder):
    genes = ("--include", "CD3E,CD2*", "--exclude", "CD4*,CD8A", "--query", QUERY)
    good(*TRAIN, *genes, "-o", "m.optirank")
    panel = panel_names(load("m.optirank"))
    assert "CD3E" in panel
    assert not {"CD4", "CD8A"} & set(panel)
    done = optirank(*TRAIN, "-o", "x.optirank", "--include", "CD3E,CD33E,NOTHING")
    assert done.exit_code == BAD_INPUT
    assert "lacks 2 of the genes" in done.stderr
    assert re.search(r"CD33E \(close: .*CD3E", done.stderr)
    good(*TRAIN, "-f", "--include", "genes.txt", "-o", "m.optirank")
    listed = (folder / "genes.txt").read_text().split()
    assert set(panel_names(load("m.optirank"))) <= set(listed)


def test_texts_may_be_longer_than_the_name_of_a_file(folder):
    genes = ",".join(reference_set().var_names[:60])
    texts = ("--include", genes, "--description", f"{'long ' * 60}/ {'text ' * 60}")
    good(*TRAIN[:4], "--n-genes", 70, "--n-jobs", 1, *texts, "-o", "long.optirank")
    assert load("long.optirank").card.command.count("long ") == 60


def test_several_files_are_held_out_in_turn(folder):
    reference = reference_set()
    half = np.arange(reference.n_obs) % 2 == 0
    for name, rows in (("one", half), ("two", ~half)):
        write_h5ad(take_samples(reference, rows), folder / f"{name}.h5ad")
    done = good("train", "one.h5ad", "two.h5ad", *TRAIN[2:], "-o", "m.optirank")
    assert done.stdout.index("Samples of each label") < done.stdout.index("held-out")
    assert load("m.optirank").card.source == "one.h5ad, two.h5ad"


def test_labels_by_level_from_train_to_evaluate(folder):
    tree = folder / "tree.csv"
    tree.write_text("label,parent\nb cell,lymphoid\nt cell,lymphoid\nlymphoid,\n")
    reference = as_anndata(reference_set())
    kinds = reference.obs["cell_type"].astype(str)
    reference.obs["kind"] = kinds.replace("nk cell", "nk")
    reference.write_h5ad("levels.h5ad")
    words = ("train", "levels.h5ad", "--n-genes", 20, "-o", "m.optirank")
    good(*words, "--label", "kind", "--tree", tree, "--map", "nk=nk cell")
    model = load("m.optirank")
    assert "nk cell" in model.tree.leaves
    assert str(folder) not in model.card.command
    good("predict", QUERY, "-m", "m.optirank", "-o", "labels.csv")
    assert {"leaf", "leaf_confidence"} <= set(pd.read_csv("labels.csv"))
    done = good("evaluate", QUERY, "-m", "m.optirank", *EVALUATE[-2:], "-o", "all.json")
    assert "right but coarse" in " ".join(done.stdout.split())
    tables = json.loads(Path("all.json").read_text())["tables"]
    assert "levels" in tables
    good(*words, "--label", "kind,cell_type", "-f")
    assert load("m.optirank").tree.parents["nk cell"] == "nk"
    done = optirank(*words, "--label", "kind", "--map", "nk", "-f")
    assert "write 'THEIRS=OURS'" in done.stderr


def test_clusters_a_threshold_a_layer_and_an_h5ad(folder):
    options = ("--clusters", "leiden", "--threshold", 0.9, "--layer", "double")
    done = good(*PREDICT, "-o", "labelled.h5ad", *options)
    assert "Clusters" in done.stdout
    assert "unassigned" in done.stdout
    assert "optirank" in anndata.read_h5ad("labelled.h5ad").obs


def test_an_evaluation_is_printed_and_written(folder):
    done = good(*EVALUATE, "-o", "classes.csv", "--report", "page.html")
    for words in ("95 % intervals", "sensitivity", "Balanced accuracy"):
        assert words in done.stdout
    table = pd.read_csv("classes.csv", index_col="class")
    good(*EVALUATE, "-o", "all.json", "--threshold", 0.9)
    written = json.loads((folder / "all.json").read_text("utf-8"))
    assert [*table.index] == written["tables"]["per_class"]["index"]
    assert written["n_samples"] == N_QUERY == len(written["tables"]["samples"]["data"])
    assert written["n_withheld"] > 0
    low, high = written["interval"]
    assert 0 < low < written["balanced_accuracy"] < high <= 1
    printed = good(*EVALUATE, "-o", "-")
    assert printed.stdout == (folder / "classes.csv").read_text("utf-8")
    refused = optirank(*EVALUATE, "-o", "tables.xlsx")
    assert refused.exit_code == BAD_INPUT
    assert "written as .csv" in refused.stderr


def test_an_evaluation_takes_other_names_of_classes(folder):
    adata = as_anndata(trained_example()[1])
    names = adata.obs["cell_type"].astype(str).replace("b cell", "B lymphocyte")
    adata.obs["theirs"] = names.where(np.arange(adata.n_obs) > 2)
    adata.write_h5ad("theirs.h5ad")
    command = ("evaluate", "theirs.h5ad", "-m", MODEL, "-l", "theirs")
    done = good(*command, "--map", "B lymphocyte=b cell")
    assert "3 samples have no theirs" in done.stderr
    assert "not have" not in done.stderr
    assert "B lymphocyte" in good(*command).stderr  # a class that the model lacks


def test_the_table_of_classes_fits_in_80_columns_and_has_the_classes_with_samples(
    folder,
):
    query = as_anndata(trained_example()[1])
    query[query.obs["cell_type"] != "b cell"].copy().write_h5ad(folder / "some.h5ad")
    lines = good("evaluate", "some.h5ad", *EVALUATE[2:]).stdout.splitlines()
    rows = [line for line in lines if re.search(r"\d \(\d+-\d+\)", line)]
    assert len(rows) == 4
    for row in rows:  # the interval of the sensitivity and of the PPV, on one line
        assert re.search(r"\w .*\d \(\d+-\d+\) .*\d \(\d+-\d+\) ", row)
    assert "b cell" not in "".join(rows)


def test_quiet_prints_errors_alone_before_and_after_the_command(folder):
    reference = reference_set()
    mine = reference.obs["cell_type"].to_numpy() == "b cell"
    few = take_samples(reference, ~mine | (np.cumsum(mine) <= 5))
    write_h5ad(few, folder / "few.h5ad")
    command = ("train", "few.h5ad", *TRAIN[2:], "-o", "m.optirank")
    assert "WARNING: classes of fewer than 10 samples" in good(*command).stderr
    before = (folder / "m.optirank").read_bytes()
    for words in (("--quiet", *command, "--force"), (*command, "--force", "-q")):
        done = good(*words)
        assert (done.stdout, done.stderr) == ("", "")
    assert (folder / "m.optirank").read_bytes() == before
    done = optirank("--quiet", *command)
    assert done.exit_code == BAD_INPUT
    assert "m.optirank exists" in done.stderr


def test_a_model_is_described_and_gives_smaller_ones_and_its_genes(folder):
    done = good("inspect", MODEL)
    for words in ("30 genes of 200", "sensitivity", "Panels on held-out samples"):
        assert words in done.stdout
    done = good("inspect", MODEL, "--n-genes", 20, "-o", "small.optirank")
    assert "20 genes of 200" in done.stdout
    assert len(panel_names(load("small.optirank"))) == 20
    done = optirank("inspect", MODEL, "--n-genes", 17)
    assert done.exit_code == BAD_INPUT
    assert "there are panels of 10, 20, 30 genes" in done.stderr
    good("export", MODEL, "-o", "genes.csv")
    model = trained_example()[0]
    assert set(pd.read_csv("genes.csv")["gene"]) == set(panel_names(model))
    assert good("export", MODEL, "-o", "-", "-q").stdout.startswith("gene,")
    good("export", MODEL, "-o", "page.html")
    assert "</html>" in (folder / "page.html").read_text("utf-8")
    done = optirank("export", MODEL, "-o", "order.txt")
    assert done.exit_code == BAD_INPUT
    assert "written as .html" in done.stderr


def test_models_are_listed_within_80_columns_and_damaged_ones_named(
    folder, monkeypatch
):
    names = [*known_models(), "model"]
    monkeypatch.setenv("OPTIRANK_MODELS", str(folder))
    (folder / "broken.optirank").write_text("x")
    done = good("models")
    for name in names:
        assert f" {name} " in done.stdout
    assert "…" not in done.stdout  # nothing is cut off
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "broken.optirank" in done.stderr


def test_a_shipped_model_has_a_card_and_labels_by_its_name(folder):
    done = good("models", "pancreas-human")
    for words in ("Not for tumours", "GSE84133", "missing at random", "unknown types"):
        assert words in " ".join(done.stdout.split())
    assert "…" not in done.stdout
    assert good("inspect", "pancreas-human").stdout == done.stdout
    model = load("pancreas-human")
    genes = [*model.genes]
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.poisson(5.0, (20, len(genes))), columns=genes)
    table.to_csv("cells.csv", index_label="sample")
    words = ("predict", "cells.csv", "--genes-in", "columns")
    good(*words, "-m", "pancreas-human", "-o", "labels.csv")
    assert set(pd.read_csv("labels.csv")["label"]) <= set(model.classes)
    done = optirank(*words, "-m", "pancreas-humn", "-o", "other.csv")
    assert done.exit_code == BAD_INPUT
    assert "close names are pancreas-human" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("predict", "nothing.h5ad", "-m", MODEL), "nothing.h5ad does not exist"),
        (("predict", QUERY, "-m", "nothing.optirank"), "nothing.optirank"),
        (("predict", QUERY, "-m", QUERY), "cannot open the model file"),
        ((*PREDICT, "--clusters", "louvain"), "no column 'louvain'"),
        ((*PREDICT, "--layer", "counts"), "no 'counts' (layer=)"),
        ((*PREDICT, "--threshold", "2"), "threshold=2.0: use a share"),
        ((*PREDICT, "-o", "/nowhere/x.csv"), "/nowhere"),
        ((*PREDICT, "-o", "labels.docx"), "labels.docx"),
        ((*TRAIN, "-o", "x.optirank", "--n-genes", "1"), "1 genes: give at least 2"),
        ((*TRAIN, "-o", "x.optirank", "--n-genes", 0), "0 genes: give at least 2"),
        ((*TRAIN, "-o", "x.optirank", "-j", 0), "n_jobs=0 leaves no worker"),
        ((*PREDICT, "--report", "-"), "- is standard output, and takes the labels"),
        ((*TRAIN, "-o", "x", "--report", "-"), "takes the model alone: name a file"),
        ((*PREDICT, "-j", 0), "n_jobs=0 leaves no worker"),
        ((*PREDICT, "--target-error", 1), "target_error=1.0: use a share"),
        ((*TRAIN, "-o", "x.optirank", "--n-genes", 5000), "5000"),
        ((*TRAIN, "-o", "x.optirank", "--label", "absent"), "no column 'absent'"),
        ((*EVALUATE, "-l", "absent"), "no column 'absent'"),
    ],
)
def test_bad_input_ends_with_2_and_one_line(words, message, folder):
    before = sorted(folder.iterdir())
    done = optirank(*words)
    assert done.exit_code == BAD_INPUT, done.stdout
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    "words",
    [
        (*TRAIN, "-o", "reference.h5ad"),
        (*TRAIN, "-o", "m", "--report", "reference.h5ad"),
        (*PREDICT, "-o", QUERY),
        (*PREDICT, "-o", "m.csv", "--report", MODEL),
        (*EVALUATE, "--report", QUERY),
        ("inspect", MODEL, "-o", MODEL),
    ],
    ids=lambda one: f"{one[0]}-{one[-1]}",
)
def test_an_output_that_is_an_input_is_refused_even_with_force(folder, words):
    before = (folder / words[-1]).read_bytes()
    done = optirank(*words, "--force")
    assert done.exit_code == BAD_INPUT, done.output
    assert "is an input too" in done.stderr
    assert (folder / words[-1]).read_bytes() == before


@pytest.mark.parametrize(
    "words",
    [(*TRAIN, "-o"), (*PREDICT, "-o"), (*PREDICT, "--report"), ("export", MODEL, "-o")],
)
def test_a_file_that_exists_is_kept_without_force(folder, words):
    done = optirank(*words, "kept.csv")
    assert done.exit_code == BAD_INPUT, done.output
    assert "kept.csv exists" in done.stderr
    assert (folder / "kept.csv").read_text() == "of somebody else"
    assert not (folder / "labels.csv").exists()


def test_results_go_to_standard_output_and_messages_do_not(folder):
    done = good(*PREDICT, "-o", "-", "--report", "page.html")
    good(*PREDICT, "-o", "labels.csv", "--report", "again.html")
    assert done.stdout == (folder / "labels.csv").read_text("utf-8")
    assert "\nLabels: 60 samples, mean confidence" in done.stderr
    assert "Report: page.html" in done.stderr
    page = (folder / "page.html").read_bytes()
    assert (folder / "again.html").read_bytes() == page


def test_ctrl_c_leaves_nothing_half_written(folder, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    before = sorted(folder.iterdir())
    monkeypatch.setattr("os.replace", interrupted)
    done = optirank(*PREDICT, "-o", "labels.csv")
    assert done.exit_code == INTERRUPTED
    assert "interrupted" in done.stderr
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("module", "words", "extra"),
    [
        ("pyarrow", ("-o", "labels.parquet"), "parquet"),
        ("jinja2", ("-o", "labels.csv", "--report", "page.html"), "report"),
    ],
)
def test_a_missing_extra_is_one_line_before_any_work(
    module, words, extra, folder, monkeypatch
):
    before = sorted(folder.iterdir())
    monkeypatch.setitem(sys.modules, module, None)
    done = optirank(*PREDICT, *words)
    assert done.exit_code == BAD_INPUT
    assert f"pip install 'optirank[{extra}]'" in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(folder.iterdir()) == before


def test_the_record_of_labels_is_an_output_too(folder):
    (folder / "labels.csv.json").write_text("of somebody else")
    done = optirank(*PREDICT, "-o", "labels.csv")
    assert done.exit_code == BAD_INPUT
    assert "labels.csv.json exists" in done.stderr
    good(*PREDICT, "-o", "labels.csv", "--layer", "double", "--force")
    record = json.loads((folder / "labels.csv.json").read_text())
    assert record["options"] == {"layer": "double"}


def test_file_names_that_are_no_utf_8_are_written_as_escapes(folder):
    name = os.fsdecode(b"caf\xe9.h5ad")
    os.rename("query.h5ad", name)
    good("predict", name, "-m", MODEL, "-o", "labelled.h5ad", "--report", "page.html")
    record = anndata.read_h5ad("labelled.h5ad").uns["optirank"]
    assert record["query"] == "caf\\udce9.h5ad"
    assert "caf\\udce9.h5ad" in (folder / "page.html").read_text("utf-8")
    os.rename("reference.h5ad", name)
    good("train", name, *TRAIN[2:], "-o", "m.optirank", "--report", "training.html")
    assert load("m.optirank").card.source == "caf\\udce9.h5ad"


def test_raw_is_read_if_asked_for(folder):
    adata = as_anndata(trained_example()[1])
    few = adata[:, ~adata.var_names.isin(panel_names(load(MODEL))[:5])].copy()
    few.raw = adata
    few.write_h5ad("few.h5ad")
    done = good("predict", "few.h5ad", "-m", MODEL, "-o", "few.csv")
    assert "raw is read: X has 25 of the 30 genes" in done.stderr
    good("predict", "few.h5ad", "-m", MODEL, "-o", "raw.csv", "--layer", "raw")
    assert Path("few.csv").read_text() == Path("raw.csv").read_text()
    good(*PREDICT, "-o", "labels.csv")
    assert (folder / "raw.csv").read_text() == (folder / "labels.csv").read_text()


def test_the_demo_trains_labels_evaluates_and_writes_reports(tmp_path, monkeypatch):
    pytest.importorskip("jinja2")
    monkeypatch.chdir(tmp_path)
    done = good("demo", "-o", "here")
    for command in ("example", "train", "predict", "evaluate"):
        assert f"$ optirank {command} here" in done.stdout
    assert "Balanced accuracy of held-out samples" in done.stdout
    for name in ("train.html", "predict.html", "evaluate.html", "labels.csv"):
        assert (tmp_path / "here" / name).exists()
    before = (tmp_path / "here" / "reference.h5ad").read_bytes()
    assert optirank("example", "here").exit_code == BAD_INPUT
    assert (tmp_path / "here" / "reference.h5ad").read_bytes() == before
    assert good("demo", "-o", "here").stdout == done.stdout
    assert "file exists" in optirank("example", "here/labels.csv").stderr
