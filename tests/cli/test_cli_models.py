"""The commands of a model, end to end: train, predict, evaluate, panel, inspect."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from datetime import date
from io import StringIO
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from typer.testing import CliRunner, Result

from example_model import (
    N_QUERY,
    as_anndata,
    panel_names,
    reference_set,
    telling_model,
    telling_pair,
    trained_example,
)
from optirank._util import files
from optirank._util.files import claimed_outputs
from optirank.cli import app
from optirank.cli.common import BAD_INPUT, INTERRUPTED, in_flags, tidy
from optirank.cli.outputs import show_table
from optirank.io.reading import write_h5ad, write_table
from optirank.model import load, save
from profiles import changed, take_genes, take_samples

QUERY, MODEL = "query.h5ad", "model.optirank"
TRAIN = ("train", "reference.h5ad", "--label", "cell_type", "--genes", 20, "--jobs", 1)
PREDICT = ("predict", QUERY, "-m", MODEL)
EVALUATE = ("evaluate", QUERY, "-m", MODEL, "-l", "cell_type")


def optirank(*arguments: object, columns: int = 120) -> Result:
    return CliRunner().invoke(
        app, [*map(str, arguments)], env={"COLUMNS": str(columns)}
    )


def good(*arguments: object) -> Result:
    done = optirank(*arguments)
    assert done.exit_code == 0, done.output + done.stderr
    return done


@pytest.fixture
def folder(tmp_path, monkeypatch):
    model, query = trained_example()
    reference = reference_set()
    save(model, tmp_path / MODEL)
    as_anndata(query).write_h5ad(tmp_path / QUERY)
    write_h5ad(reference, tmp_path / "reference.h5ad")
    write_table(reference, tmp_path / "reference.csv")
    write_table(query, tmp_path / "query.csv")
    (tmp_path / "genes.txt").write_text("\n".join(map(str, reference.var_names[:60])))
    (tmp_path / "kept.csv").write_text("of somebody else")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_from_a_file_to_a_model_a_page_and_labels(folder):
    done = good(*TRAIN, "-o", "m.optirank", "--report", "page.html", "--name", "mine")
    assert "150 samples, 200 genes, 5 classes, 5 folds" in done.stdout
    assert "Panels on held-out samples" in done.stdout
    assert done.stdout.count("chosen") == 1
    assert "Balanced accuracy of held-out samples" in done.stdout
    card = load("m.optirank").card
    assert card.source == "reference.h5ad"
    assert card.name == "mine"
    assert card.command.startswith("optirank train reference.h5ad")
    assert "--label cell_type" in card.command
    assert "--jobs" not in card.command  # it changes no result
    assert "</html>" in (folder / "page.html").read_text("utf-8")
    good("predict", QUERY, "-m", "m.optirank", "-o", "labels.csv")
    labels = pd.read_csv("labels.csv")
    assert len(labels) == N_QUERY
    truth = trained_example()[1].obs["cell_type"].to_numpy()
    assert (labels["label"] == truth).mean() > 0.7


def test_tables_lists_and_queries_at_training(folder):
    table = ("--genes-in", "columns", "--annotations", "dataset,platform", "--jobs", 1)
    done = good(
        *(
            "train",
            "reference.csv",
            "-l",
            "cell_type",
            *table,
            "--gene-list",
            "genes.txt",
        ),
        *(
            "--include",
            "CD3E",
            "--exclude",
            "CD4*,CD8A",
            "--genes",
            15,
            "-o",
            "m.optirank",
        ),
        *("--for", QUERY, "--for", QUERY),
    )
    assert "60 of" in done.stdout or "genes are used" in done.stdout
    genes = panel_names(load("m.optirank"))
    assert "CD3E" in genes
    assert len(genes) == 15
    assert set(genes) <= set(reference_set().var_names[:60]) - {"CD4", "CD8A"}


def test_several_files_are_held_out_in_turn(folder):
    reference = reference_set()
    half = np.arange(reference.n_obs) % 2 == 0
    for name, rows in (("one", half), ("two", ~half)):
        write_h5ad(take_samples(reference, rows), folder / f"{name}.h5ad")
    options = ("--label", "cell_type", "--genes", 20, "-o", "m.optirank", "--jobs", 1)
    done = good("train", "one.h5ad", "two.h5ad", *options, "--report", "page.html")
    assert "2 folds" in done.stdout
    page = (folder / "page.html").read_text("utf-8")
    card = page[page.index("Model card") :]
    for name, rows in (("one", half), ("two", ~half)):
        assert f'<td class="text">{name}</td>' in card
        assert f'<td class="nowrap">{rows.sum()}</td>' in card
    assert load("m.optirank").card.source == "one.h5ad, two.h5ad"


def test_a_target_error_of_the_training_acts_at_prediction(folder):
    done = good(*TRAIN, "-o", "m.optirank", "--target-error", 0.2)
    assert "withholds: labels" in " ".join(good("inspect", "m.optirank").stdout.split())
    done = good("predict", QUERY, "-m", "m.optirank", "-o", "labels.csv")
    assert "withheld" in done.stderr
    table = pd.read_csv("labels.csv")
    limit = json.loads((folder / "labels.csv.json").read_text())["threshold"]
    assert limit >= load("m.optirank").panel.error_control.at(0.2).threshold
    hidden = table["label"] == "unassigned"
    assert (
        hidden == (table["confidence"] < limit)
    ).mean() > 0.95  # four digits in a CSV
    assert f"{hidden.sum()} labels withheld" in done.stdout


def test_clusters_a_threshold_a_layer_and_an_h5ad(folder):
    options = ("--clusters", "leiden", "--threshold", 0.9, "--layer", "double")
    done = good(*PREDICT, "-o", "labelled.h5ad", *options)
    assert "Clusters" in done.stdout
    assert "unassigned" in done.stdout
    assert "asked for a confidence of at least 0.9" in done.stderr
    assert "optirank_cluster_label" in anndata.read_h5ad("labelled.h5ad").obs


def test_tables_are_labelled_and_evaluated_too(folder):
    table = (
        "query.csv",
        "-m",
        MODEL,
        "--genes-in",
        "columns",
        "--annotations",
        "dataset,platform",
    )
    good("predict", *table, "--clusters", "cell_type", "-o", "labels.csv")
    assert "cluster_label" in pd.read_csv("labels.csv")
    done = good("evaluate", *table, "-l", "cell_type")
    assert done.stdout.splitlines()[-1] == good(*EVALUATE).stdout.splitlines()[-1]


def test_an_evaluation_prints_its_tables(folder):
    done = good(*EVALUATE, "--report", "page.html", "--prevalence", "b cell=0.5")
    assert "95 % intervals" in done.stdout
    assert "sensitivity" in done.stdout
    assert "labels given" in done.stdout
    assert "Balanced accuracy" in done.stdout
    assert "b cell 50.0" in (folder / "page.html").read_text("utf-8")


def test_an_evaluation_is_written_as_a_table_or_with_all_its_tables(folder):
    good(*EVALUATE, "-o", "classes.csv")
    table = pd.read_csv("classes.csv", index_col="class")
    done = good(*EVALUATE, "-o", "all.json", "--threshold", 0.9)
    assert "Tables: all.json" in done.stdout
    written = json.loads((folder / "all.json").read_text("utf-8"))
    assert set(table.index) == {row["class"] for row in written["tables"]["per_class"]}
    assert written["n_samples"] == N_QUERY == len(written["tables"]["samples"])
    assert written["n_withheld"] > 0
    assert 0 < written["low"] < written["balanced_accuracy"] < written["high"] <= 1
    printed = good(*EVALUATE, "-o", "-")
    assert printed.stdout == (folder / "classes.csv").read_text("utf-8")
    refused = optirank(*EVALUATE, "-o", "tables.xlsx")
    assert refused.exit_code == BAD_INPUT
    assert "written as .csv" in refused.stderr


def test_a_report_has_the_date_where_asked(folder):
    pages = []
    for name, options in (("a", ()), ("b", ()), ("c", ("--dated",))):
        report = ("--report", f"{name}.html")
        good(*PREDICT, "-o", f"{name}.csv", *report, *options)
        pages.append((folder / f"{name}.html").read_text("utf-8"))
    today = date.today().isoformat()
    assert pages[0] == pages[1]
    assert [today in page for page in pages] == [False, False, True]
    refused = optirank(*PREDICT, "-o", "d.csv", "--dated")
    assert "name one (--report PAGE.html)" in refused.stderr


def test_without_a_page_there_are_no_new_labels(folder, monkeypatch):
    def fail(*_, **__):
        raise KeyboardInterrupt

    (folder / "page.html").write_text("old page")
    before = sorted(folder.iterdir())
    monkeypatch.setattr("optirank.report.page", fail)
    outputs = ("-o", "labels.csv", "--report", "page.html", "--force")
    assert optirank(*PREDICT, *outputs).exit_code == INTERRUPTED
    assert sorted(folder.iterdir()) == before
    assert (folder / "page.html").read_text() == "old page"


def test_messages_name_parameters_and_the_command_spells_its_options(folder):
    done = optirank(
        *TRAIN[:4], "--method", "optirank", "--genes", 5, "-o", "m.optirank"
    )
    assert done.exit_code == BAD_INPUT
    assert "leave out --include and --genes" in done.stderr
    done = optirank(
        "design", *TRAIN[1:4], "--min-mean", 2, "--max-mean", 1, "-o", "p.csv"
    )
    assert "(--min-mean, --max-mean)" in done.stderr
    assert "--method optirank" in in_flags("use method='optirank'")
    assert in_flags("use_raw=True reads it") == "--use-raw reads it"
    assert in_flags("genes_in='two words'") == "--genes-in 'two words'"
    assert in_flags("train it with query=") == "train it with --for"
    assert in_flags("(annotations=['age', 'stage'])") == "(--annotations age,stage)"
    joined = "mapping={'T': 'T cells', 'B': 'B'}"
    assert in_flags(joined) == "--map 'T=T cells' --map B=B"
    for text in ("a gene 'label=x'", "the unknown=1 stays"):
        assert in_flags(text) == text


def test_warnings_of_readers_name_options(capsys):
    with tidy():
        logging.getLogger("optirank.io").warning("%s: say so (invert=)", "Ct.csv")
    assert capsys.readouterr().err == "Ct.csv: say so (--invert)\n"


def test_columns_of_numbers_stand_on_the_right(capsys):
    rows = [("a", "7SK", "12,345", "92.1 (88.0 to 95.2)", "+0.3")]
    rows.append(("bb", "CD3E", "", "- ", "missing"))
    show_table("T", ("name", "gene", "samples", "share", "value"), rows)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.strip()]
    head, first, second = lines[1], lines[3], lines[4]
    assert head.index("samples") + len("samples") == first.index("12,345") + 6
    assert first.index("7SK") == second.index("CD3E") == head.index("gene")


def test_the_table_of_classes_fits_in_80_columns_and_has_the_classes_with_samples(
    folder,
):
    query = as_anndata(trained_example()[1])
    query[query.obs["cell_type"] != "b cell"].copy().write_h5ad(folder / "some.h5ad")
    done = optirank("evaluate", "some.h5ad", *EVALUATE[2:], columns=80)
    assert done.exit_code == 0, done.stderr
    lines = (
        done.stdout.partition("Labels against")[2]
        .partition("Withholding")[0]
        .splitlines()
    )
    rows = [line for line in lines if re.search(r"\d+\.\d", line)]
    assert len(rows) == 4
    for row in (
        rows
    ):  # the interval of the sensitivity and of the PPV, on the line of the class
        assert re.search(r"\w .*\d \(\d+-\d+\) .*\d \(\d+-\d+\) ", row)
    assert "b cell" not in "".join(rows)


def test_quiet_prints_errors_alone(folder):
    reference = reference_set()
    mine = reference.obs["cell_type"].to_numpy() == "b cell"
    write_h5ad(
        take_samples(reference, ~mine | (np.cumsum(mine) <= 5)), folder / "few.h5ad"
    )
    command = ("train", "few.h5ad", *TRAIN[2:], "-o", "m.optirank")
    assert "WARNING: classes of fewer than 10 samples" in good(*command).stderr
    done = good("--quiet", *command, "--force")
    assert (done.stdout, done.stderr) == ("", "")
    done = optirank("--quiet", *command)
    assert done.exit_code == BAD_INPUT
    assert "m.optirank" in done.stderr
    done = optirank(*EVALUATE, "--prevalence", "half")
    assert done.exit_code == BAD_INPUT
    assert "write CLASS=SHARE" in done.stderr


def test_a_panel_lists_sizes_and_gives_smaller_models(folder):
    done = good("panel", MODEL, "-o", "genes.csv")
    assert "Panels on held-out samples" in done.stdout
    model = trained_example()[0]
    table = pd.read_csv("genes.csv")
    assert set(table["gene"]) == set(panel_names(model))  # votes have no intercept
    good("panel", MODEL, "--genes", 20, "-o", "small.optirank")
    assert len(panel_names(load("small.optirank"))) == 20
    assert "20 genes of 200" in good("inspect", "small.optirank").stdout
    done = optirank("panel", MODEL, "--genes", 17, "-o", "x.optirank")
    assert done.exit_code == BAD_INPUT
    assert "there are panels of 10, 20, 30 genes" in done.stderr


def test_a_model_is_described_and_a_label_explained(folder):
    done = good("inspect", MODEL)
    assert "30 genes of 200" in done.stdout
    assert "sensitivity" in done.stdout
    assert "When genes are missing" in done.stdout
    sample = trained_example()[1].obs_names[0]
    done = good("inspect", MODEL, QUERY, "--explain", sample)
    assert sample in done.stdout
    assert "contribution" in done.stdout
    done = good("inspect", MODEL, QUERY, "--explain", sample, "--class", "b cell")
    assert "The score of b cell" in done.stdout
    for arguments, message in (
        ((MODEL, "--explain", sample), "name the file and the sample"),
        ((MODEL, QUERY, "--explain", "nobody"), "no sample 'nobody'"),
        ((MODEL, QUERY, "--explain", sample, "--class", "x"), "no class 'x'"),
    ):
        done = optirank("inspect", *arguments)
        assert done.exit_code == BAD_INPUT
        assert message in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predict", "nothing.h5ad", "-m", MODEL), "nothing.h5ad does not exist"),
        (("predict", QUERY, "-m", "nothing.optirank"), "nothing.optirank"),
        (("predict", QUERY, "-m", QUERY), "cannot open the model file"),
        (("predict", "query.csv", "-m", MODEL), "'rows' or in 'columns'"),
        ((*PREDICT, "--clusters", "louvain"), "no column 'louvain'"),
        ((*PREDICT, "--layer", "counts"), "no layer 'counts'"),
        ((*PREDICT, "--threshold", "2"), "--threshold"),
        ((*PREDICT, "-o", "/nowhere/x.csv"), "/nowhere"),
        ((*PREDICT, "-o", "labels.docx"), "labels.docx"),
        ((*TRAIN, "-o", "x.optirank", "--genes", "1"), "--genes"),
        ((*TRAIN, "-o", "x.optirank", "--genes", 5000), "5000"),
        ((*TRAIN, "-o", "x.optirank", "--label", "absent"), "no column 'absent'"),
        ((*TRAIN, "-o", "x.optirank", "--method", "magic"), "--method"),
        ((*EVALUATE, "-l", "absent"), "no column 'absent'"),
        (("train", "reference.h5ad", "-o", "x.optirank"), "--label"),
    ],
)
def test_bad_input_ends_with_2_and_one_line(arguments, message, folder):
    before = sorted(folder.iterdir())
    done = optirank(*arguments)
    assert done.exit_code == BAD_INPUT, done.stdout
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(folder.iterdir()) == before


def test_missing_genes_come_with_commands_that_can_be_pasted(folder):
    model, query = trained_example()
    panel = [gene for gene in panel_names(model) if gene in set(query.var_names)]
    gone = set(panel[1:])
    kept = [gene for gene in query.var_names if gene not in gone]
    as_anndata(take_genes(query, kept)).write_h5ad("few.h5ad")
    made_by = "optirank train reference.h5ad --out old.optirank --label cell_type --exclude 'CD*'"
    card = replace(model.card, source="reference.h5ad", command=made_by)
    save(replace(model, card=card), MODEL, overwrite=True)
    done = optirank("predict", "few.h5ad", "-m", MODEL)
    assert done.exit_code == BAD_INPUT
    lines = [
        line.strip()
        for line in done.stderr.splitlines()
        if line.startswith("  optirank ")
    ]
    training = next(line for line in lines if line.startswith("optirank train"))
    assert "--exclude 'CD*'" in training  # the options that the model was made with
    good(*shlex.split(training)[1:], "--genes", 20)
    good("predict", "few.h5ad", "-m", "for_query.optirank", "-o", "labels.csv")


@pytest.mark.parametrize("link", ["", "symbolic"])
@pytest.mark.parametrize(
    "command",
    [
        (*TRAIN, "-o", "reference.h5ad"),
        (*TRAIN, "-o", "m", "--report", "reference.h5ad"),
        (*PREDICT, "-o", QUERY),
        (*PREDICT, "-o", "m.csv", "--report", MODEL),
        (*EVALUATE, "--report", QUERY),
        ("panel", MODEL, "-o", MODEL),
    ],
    ids=lambda one: f"{one[0]}-{one[-1]}",
)
def test_an_output_that_is_an_input_is_refused_even_with_force(folder, command, link):
    command, target = [*command], command[-1]
    before = (folder / target).read_bytes()
    if link:
        command[-1] = f"other{os.path.splitext(target)[1]}"
        os.symlink(target, command[-1])
    done = optirank(*command, "--force")
    assert done.exit_code == BAD_INPUT, done.output
    assert "is an input too" in done.stderr
    assert (folder / target).read_bytes() == before


@pytest.mark.parametrize(
    "command",
    [(*TRAIN, "-o"), (*PREDICT, "-o"), (*PREDICT, "--report"), ("panel", MODEL, "-o")],
)
def test_a_file_that_exists_is_kept_without_force(folder, command):
    done = optirank(*command, "kept.csv")
    assert done.exit_code == BAD_INPUT, done.output
    assert "kept.csv exists" in done.stderr
    assert (folder / "kept.csv").read_text() == "of somebody else"
    assert not (folder / "labels.csv").exists()
    if command[0] == "panel":
        good(*command, "kept.csv", "--force")
        assert "gene" in (folder / "kept.csv").read_text()


def test_results_go_to_standard_output_and_messages_do_not(folder):
    done = good(*PREDICT, "-o", "-")
    good(*PREDICT, "-o", "labels.csv")
    assert done.stdout == (folder / "labels.csv").read_text("utf-8")
    assert "\nLabels: 60 samples, mean confidence" in done.stderr
    assert good("--quiet", *PREDICT, "-o", "quiet.csv").stdout == ""
    assert good("-q", "panel", MODEL, "-o", "-").stdout.startswith("gene,")


def test_labels_have_a_page_that_is_the_same_each_time(folder):
    done = good(*PREDICT, "-o", "-", "--report", "page.html", "--clusters", "leiden")
    assert done.stdout.startswith("sample,label,confidence")
    assert "Report: page.html" in done.stderr
    assert (
        "Report: again.html"
        in good(
            *(
                *PREDICT,
                "-o",
                "labels.csv",
                "--report",
                "again.html",
                "--clusters",
                "leiden",
            )
        ).stdout
    )
    text = (folder / "page.html").read_text("utf-8")
    assert (folder / "again.html").read_text("utf-8") == text
    assert f"Labels of {QUERY}" in text
    done = optirank(*PREDICT, "-o", "same.csv", "--report", "same.csv")
    assert done.exit_code == BAD_INPUT
    assert "is named for the labels and for the report" in done.stderr


def test_a_full_disk_and_ctrl_c_leave_nothing_half_written(folder, monkeypatch):
    def full(path):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = sorted(folder.iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(files, "_to_disk", full)
        done = optirank(*PREDICT, "-o", "labels.csv")
    assert done.exit_code == BAD_INPUT
    assert "make room" in done.stderr
    assert sorted(folder.iterdir()) == before

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("optirank.verbs.training.TrainingSet", interrupted)
    done = optirank(*TRAIN, "-o", "m.optirank")
    assert done.exit_code == INTERRUPTED
    assert "interrupted" in done.stderr
    assert sorted(folder.iterdir()) == before


def test_a_missing_extra_is_one_line(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = optirank(*PREDICT, "-o", "labels.parquet")
    assert done.exit_code == BAD_INPUT
    assert "pip install 'optirank[parquet]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_a_page_needs_is_looked_for_before_any_label(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    done = optirank(*PREDICT, "-o", "labels.csv", "--report", "page.html")
    assert done.exit_code == BAD_INPUT
    assert "pip install 'optirank[report]'" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (folder / "labels.csv").exists()
    good(*PREDICT, "-o", "labels.csv")


@pytest.mark.parametrize(
    "command", ["train", "predict", "evaluate", "panel", "inspect", "demo"]
)
def test_help_has_headings_and_examples_and_imports_nothing_heavy(command):
    code = (
        "import sys; from optirank.cli import app\n"
        f"try: app([{command!r}, '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'sklearn', 'numba', 'matplotlib', 'pandas'} & "
        "set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    text, _, options = done.stdout.partition("\nOptions:")
    examples = [
        line for line in text.splitlines() if line.startswith(f"    optirank {command}")
    ]
    assert len(examples) >= 2
    assert "<list" not in done.stdout
    assert "--debug" not in options
    for line in examples:  # each is whole, on a line of its own
        known = {
            word.split("=")[0] for word in shlex.split(line) if word.startswith("--")
        }
        assert all(word in options for word in known), line


def test_of_two_trainings_to_one_name_the_second_is_refused(folder):
    with claimed_outputs({"the model": folder / "m.optirank"}, [], force=False):
        done = optirank(*TRAIN, "-o", "m.optirank", "--force")
    assert done.exit_code == BAD_INPUT
    assert "is being written by another process" in done.stderr
    assert not (folder / "m.optirank").exists()


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


def test_links_that_lead_to_themselves_are_named(folder):
    os.symlink("loop.h5ad", "loop.h5ad")
    done = optirank("predict", "loop.h5ad", "-m", MODEL, "-o", "labels.csv")
    assert done.exit_code == BAD_INPUT
    assert "loop.h5ad is a link that leads back to itself" in done.stderr


def test_too_little_memory_is_one_line(folder, monkeypatch):
    def too_much(*_, **__):
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr("optirank.verbs.training.TrainingSet", too_much)
    done = optirank(*TRAIN, "-o", "m.optirank")
    assert done.exit_code == BAD_INPUT
    assert "not enough memory (Unable to allocate 9 TiB)" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_explanation_takes_the_options_of_prediction(folder):
    good(*PREDICT, "-o", "labels.csv", "--threshold", 0.9)
    labels = pd.read_csv("labels.csv").set_index("sample")
    name = labels.index[labels["label"] == "unassigned"][0]
    done = good("inspect", MODEL, QUERY, "--explain", name, "--threshold", 0.9)
    assert "withheld: confidence below the threshold" in done.stdout
    assert f"confidence {labels['confidence'][name]:.3f}" in done.stdout
    done = good("inspect", MODEL, QUERY, "--explain", name, "--adapt")
    assert "learning from the query changed" in done.stderr


@pytest.fixture
def unlike(folder):
    """Files of a model that stores further genes, of a query, and of a scrambled one."""
    save(telling_model(), "telling.optirank")
    query = telling_pair()[1]
    write_h5ad(query, "right.h5ad")
    rng = np.random.default_rng(0)
    X = np.array([rng.permutation(row) for row in query.X.toarray()])
    write_h5ad(changed(query, X=csr_matrix(X)), "wrong.h5ad")


@pytest.mark.usefixtures("unlike")
def test_strict_writes_labels_withheld_with_their_alarm_and_ends_with_an_error():
    wrong = ("predict", "wrong.h5ad", "-m", "telling.optirank", "-o", "-")
    done = good(*wrong)
    table = pd.read_csv(StringIO(done.stdout))
    assert table["alarm"].str.contains("may all be wrong").all()
    assert (table["label"] != "unassigned").all()
    done = optirank(*wrong, "--strict")
    assert done.exit_code == BAD_INPUT
    assert "--strict: the labels may all be wrong" in done.stderr
    assert (pd.read_csv(StringIO(done.stdout))["label"] == "unassigned").all()
    right = ("predict", "right.h5ad", "-m", "telling.optirank", "-o", "-", "--strict")
    done = good(*right)
    assert "alarm" not in pd.read_csv(StringIO(done.stdout))
    assert done.stderr.count("note: agreement of other genes") == 1


@pytest.mark.usefixtures("unlike")
def test_adapt_stands_alone_or_with_auto_wherever_it_is():
    for words, learns in (
        (("--adapt", "right.h5ad"), True),
        (("right.h5ad", "--adapt", "auto"), True),
        (("wrong.h5ad", "--adapt"), True),
        (("--adapt", "auto", "wrong.h5ad"), False),
    ):
        done = good("predict", *words, "-m", "telling.optirank", "-o", "-")
        assert ("learning from the query changed" in done.stderr) == learns
        assert ("nothing is learned from the query" in done.stderr) == (not learns)


@pytest.mark.usefixtures("unlike")
def test_an_evaluation_has_the_agreement_beside_the_accuracy():
    command = ("evaluate", "right.h5ad", "-m", "telling.optirank", "-l", "cell_type")
    done = good(*command, "-o", "figures.json")
    found = json.loads(Path("figures.json").read_text())
    assert found["agreement"] > 0.6
    assert f"agreement of other genes {found['agreement']:.2f}" in done.stdout


def test_one_patient_per_file_is_labelled_and_clinical_columns_are_not_guessed(folder):
    model, query = trained_example()
    frame = as_anndata(query).to_df()
    frame.iloc[[0]].round().to_csv("patient.csv", index_label="sample")
    table = ("--genes-in", "columns", "-o", "labels.csv", "--force")
    good("predict", "patient.csv", "-m", MODEL, *table)
    logs = np.log1p(frame)
    logs[panel_names(model)[0]] = 70.0  # of the panel, whatever it looks like
    logs.to_csv("logs.csv", index_label="sample")
    good("predict", "logs.csv", "-m", MODEL, *table)
    logs.assign(months=np.arange(len(logs)) + 50.0).to_csv("clinical.csv")
    good("predict", "clinical.csv", "-m", MODEL, *table)  # it is no gene of the panel
    labels = as_anndata(query).obs["cell_type"].astype(str)
    logs.assign(cell_type=labels, months=50.0).to_csv("reference2.csv")
    command = ("train", "reference2.csv", "--label", "cell_type", "--genes", 20)
    options = ("--genes-in", "columns", "-o", "m.optirank", "--jobs", 1)
    done = optirank(*command, *options)
    assert done.exit_code == BAD_INPUT
    assert "months look like clinical data" in " ".join(done.stderr.split())
    assert "--all-genes" in done.stderr
    good(*command, *options, "--all-genes")


def test_an_evaluation_takes_other_names_of_classes_and_options_of_labels(folder):
    adata = as_anndata(trained_example()[1])
    names = adata.obs["cell_type"].astype(str).replace("b cell", "B lymphocyte")
    adata.obs["theirs"] = names.where(np.arange(adata.n_obs) > 2)
    adata.write_h5ad("theirs.h5ad")
    options = ("--unknown-rate", 0.01, "--threshold", 0.6, "--drop-classes")
    mapped = ("--map", "B lymphocyte=b cell")
    command = ("evaluate", "theirs.h5ad", "-m", MODEL, "-l", "theirs")
    done = good(*command, *mapped, *options)
    assert "3 samples have no theirs" in done.stderr
    assert "asked for a confidence of at least 0.6" in done.stderr
    assert "not have" not in done.stderr
    assert "B lymphocyte" in good(*command).stderr  # a class that the model lacks


def test_a_panel_is_written_as_its_name_says_or_refused(folder):
    for name in ("order.txt", "order"):
        done = optirank("panel", MODEL, "-o", name)
        assert done.exit_code == BAD_INPUT
        assert "is written as .csv" in done.stderr
        assert not (folder / name).exists()


def test_every_gene_that_must_be_there_and_is_not_is_named_with_close_names(folder):
    done = optirank(*TRAIN, "-o", "m.optirank", "--include", "CD3E,CD33E,NOTHING")
    assert done.exit_code == BAD_INPUT
    assert "lacks 2 of the genes" in done.stderr
    assert re.search(r"CD33E \(close: .*CD3E", done.stderr)
    assert "NOTHING" in done.stderr
    assert "the query" not in done.stderr


def test_raw_is_read_if_asked_for(folder):
    adata = as_anndata(trained_example()[1])
    few = adata[:, ~adata.var_names.isin(panel_names(load(MODEL))[:5])].copy()
    few.raw = adata
    few.write_h5ad("few.h5ad")
    done = good("predict", "few.h5ad", "-m", MODEL, "-o", "few.csv")
    assert "raw is read: X has 25 of the 30 genes of the model" in done.stderr
    good("predict", "few.h5ad", "-m", MODEL, "-o", "raw.csv", "--use-raw")
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
    for name in ("training.html", "labels.html", "evaluation.html", "labels.csv"):
        assert (tmp_path / "here" / name).exists()
    again = good("demo", "-o", "here")
    assert again.stdout == done.stdout
