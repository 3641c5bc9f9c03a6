"""What may be written: inputs never, existing files with --force, standard output with -o -."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from example_model import N_QUERY, as_anndata, panel_names, trained_example
from optirank._util import files
from optirank.cli.app import app
from optirank.cli.errors import BAD_INPUT
from optirank.datasets.example import make_example
from optirank.datasets.writing import write_table
from optirank.model import load, save
from training_cases import SINGLE, shorten_training

QUERY, MODEL = "query.h5ad", "model.optirank"


def optirank(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "120"})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    model, query = trained_example()
    save(model, tmp_path / MODEL)
    as_anndata(query).write_h5ad(tmp_path / QUERY)
    reference = make_example(60, 20)[0].select_genes(np.arange(60))
    as_anndata(reference).write_h5ad(tmp_path / "reference.h5ad")
    write_table(reference, tmp_path / "reference.csv")
    (tmp_path / "genes.txt").write_text("\n".join(map(str, reference.gene_names)))
    (tmp_path / "kept.csv").write_text("of somebody else")
    monkeypatch.chdir(tmp_path)
    shorten_training(monkeypatch, grids=SINGLE)
    return tmp_path


TRAIN = ("train", "reference.h5ad", "--label", "cell_type", "--budget", "20s")
PREDICT = ("predict", QUERY, "-m", MODEL)
OUTPUTS = ("-o", "--missing", "--report", "--figure", "--save")
INPUTS = [
    (*TRAIN, "-o", "reference.h5ad"),
    (*TRAIN, "-o", "m", "--report", "reference.h5ad"),
    (*TRAIN, "-o", "genes.txt", "--genes", "genes.txt"),
    (*TRAIN, "-o", QUERY, "--for", QUERY),
    ("predict", QUERY, "-m", "model.csv", "-o", "model.csv"),
    (*PREDICT, "-o", QUERY),
    (*PREDICT, "-o", "labels.csv", "--missing", MODEL),
    ("panel", MODEL, "-o", MODEL),
    ("panel", MODEL, "--figure", MODEL),
    ("panel", MODEL, "--max-genes", 9, "--data", "reference.h5ad", "--save", "reference.h5ad"),
    ("inspect", MODEL, "--explain", QUERY, "-o", QUERY),
]


@pytest.mark.parametrize("link", ["", "symbolic", "hard"])
@pytest.mark.parametrize("command", INPUTS, ids=lambda one: f"{one[0]}-{one[-1]}")
def test_an_output_that_is_an_input_is_refused_even_with_force(folder, command, link):
    os.link(MODEL, "model.csv")
    command = [*command]
    target = command[-1]
    if command[-2] == "--for":
        target = command[command.index("-o") + 1]
    elif command[-2] == "--genes":
        target = "genes.txt"
    before = (folder / target).read_bytes()
    if link:
        other = f"other{os.path.splitext(target)[1]}"
        (os.symlink if link == "symbolic" else os.link)(target, other)
        place = max(k for k, word in enumerate(command) if word in OUTPUTS)
        command[place + 1] = other
    done = optirank(*command, "--force")
    assert done.exit_code == BAD_INPUT, done.output
    assert "is an input too" in done.stderr
    assert (folder / target).read_bytes() == before


@pytest.mark.parametrize(
    "command",
    [
        (*TRAIN, "-o", "kept.csv"),
        (*TRAIN, "-o", "m.optirank", "--report", "kept.csv"),
        (*PREDICT, "-o", "kept.csv"),
        (*PREDICT, "-o", "labels.csv", "--missing", "kept.csv"),
        ("panel", MODEL, "-o", "kept.csv"),
        ("inspect", MODEL, "--explain", QUERY, "-o", "kept.csv"),
    ],
    ids=lambda one: f"{one[0]}{one[-2]}",
)
def test_a_file_that_exists_is_kept_without_force(folder, command):
    done = optirank(*command)
    assert done.exit_code == BAD_INPUT, done.output
    assert "kept.csv exists" in done.stderr
    assert "--force" in done.stderr
    assert (folder / "kept.csv").read_text() == "of somebody else"
    assert not (folder / "m.optirank").exists()
    assert not (folder / "labels.csv").exists()


def test_force_replaces_what_exists(folder):
    assert optirank("panel", MODEL, "-o", "kept.csv", "--force").exit_code == 0
    assert set(pd.read_csv("kept.csv")["gene"]) == set(panel_names(trained_example()[0]))


def test_two_outputs_are_two_files(folder):
    done = optirank(*PREDICT, "-o", "both.csv", "--missing", "both.csv")
    assert done.exit_code == BAD_INPUT
    assert "both.csv is named for" in done.stderr


def test_the_example_keeps_files_of_the_same_name(folder):
    before = (folder / "reference.h5ad").read_bytes()
    done = optirank("datasets", "example", ".")
    assert done.exit_code == BAD_INPUT
    assert "reference.h5ad exists" in done.stderr
    assert (folder / "reference.h5ad").read_bytes() == before
    assert optirank("datasets", "example", ".", "--force").exit_code == 0


def test_labels_on_standard_output_are_the_file_and_nothing_else(folder):
    done = optirank(*PREDICT, "-o", "-")
    assert done.exit_code == 0, done.stderr
    assert len(pd.read_csv(io.StringIO(done.stdout))) == N_QUERY
    assert "Labels" in done.stderr
    assert optirank(*PREDICT, "-o", "labels.csv", "--quiet").stdout == ""
    assert done.stdout == (folder / "labels.csv").read_text()
    assert optirank(*PREDICT, "-o", "-", "--quiet").stdout == done.stdout
    assert not (folder / "-").exists()


def test_panels_contributions_and_models_go_to_standard_output(folder):
    done = optirank("panel", MODEL, "-o", "-")
    assert set(pd.read_csv(io.StringIO(done.stdout))["gene"]) == set(panel_names(load(MODEL)))
    done = optirank("inspect", MODEL, "--explain", QUERY, "-o", "-")
    assert "contribution" in pd.read_csv(io.StringIO(done.stdout))
    done = optirank(*TRAIN, "-o", "-")
    assert done.exit_code == 0, done.stderr
    (folder / "piped.optirank").write_bytes(done.stdout_bytes)
    assert len(load("piped.optirank").classes_) == 5
    assert "Balanced accuracy" in done.stderr


def test_quiet_leaves_errors_and_warnings(folder):
    for command in (["--quiet", "panel", MODEL], ["panel", MODEL, "-q"]):
        done = optirank(*command)
        assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    done = optirank("panel", "nothing.optirank", "--quiet")
    assert done.exit_code == BAD_INPUT
    assert "nothing.optirank" in done.stderr
    assert optirank("panel", MODEL).stdout != ""


def test_more_jobs_than_processors_are_lowered_and_reported(folder):
    done = optirank(*TRAIN, "-o", "m.optirank", "-j", 3000)
    assert done.exit_code == 0, done.stderr
    assert "note: --jobs 3000" in done.stderr
    assert load("m.optirank").classes_.size == 5


@pytest.mark.parametrize("command", [(*TRAIN, "-o", "out.csv"), ("panel", MODEL, "-o", "out.csv")])
def test_a_full_disk_is_no_unexpected_failure(folder, command, monkeypatch):
    def full(path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "_to_disk", full)
    done = optirank(*command)
    assert done.exit_code == BAD_INPUT
    assert "out.csv: no space left on device (make room" in done.stderr
    assert "unexpected" not in done.stderr
    assert not [name for name in os.listdir() if "out.csv" in name]


def piped(*arguments: object, lines: int) -> tuple[int, str]:
    """Exit code and errors of a command whose reader leaves after some lines."""
    command = [sys.executable, "-m", "optirank", *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        for _ in range(lines):
            process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
    return process.returncode, errors


def test_a_reader_that_leaves_is_no_error_and_the_work_is_done(folder):
    for arguments in (["--help"], ["panel", MODEL], ["panel", MODEL, "-o", "-"]):
        code, errors = piped(*arguments, lines=1)
        assert code == 0, errors
        assert "Error" not in errors
    code, errors = piped("panel", MODEL, "-o", "panel.csv", lines=1)
    assert code == 0, errors
    assert (folder / "panel.csv").exists()


def test_completion_can_be_installed_and_shown():
    done = optirank("--help")
    assert "--install-completion" in done.stdout
    done = subprocess.run(
        [sys.executable, "-m", "optirank"],
        env={**os.environ, "_OPTIRANK_COMPLETE": "complete_bash", "COMP_WORDS": "optirank pre",
             "COMP_CWORD": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["predict"]
