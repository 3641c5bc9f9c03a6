"""`optirank models`, and the other commands with a model's name instead of its file."""

from __future__ import annotations

import re

import anndata
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from example_model import trained_example
from optirank import save
from optirank.cli import app
from optirank.cli.common import BAD_INPUT
from optirank.model import load
from optirank.model.file import known_models


def optirank(*arguments: object, columns: int = 80) -> Result:
    return CliRunner().invoke(
        app, [*map(str, arguments)], env={"COLUMNS": str(columns)}
    )


@pytest.fixture
def pair(tmp_path, monkeypatch):
    """A folder with the generated cells."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPTIRANK_MODELS", raising=False)
    done = optirank("example", "pair")
    assert done.exit_code == 0, done.output
    assert "islets.h5ad" in done.stdout
    return tmp_path


def test_models_are_listed_within_80_columns():
    done = optirank("models")
    assert done.exit_code == 0
    for name in known_models():
        assert f" {name} " in done.stdout
    assert "…" not in done.stdout  # nothing is cut off
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_card_names_use_sets_classes_and_missing_genes():
    done = optirank("models", "pancreas-human", columns=80)
    assert done.exit_code == 0
    for words in (
        *(
            "Not for tumours",
            "species:",
            "GSE84133",
            "xin_980g",
            "alpha",
        ),
        *("missing at random", "30 %", "checksum:", "optirank 0.1.0", "unknown types:"),
    ):
        assert words in " ".join(done.stdout.split())
    assert "…" not in done.stdout
    assert optirank("inspect", "pancreas-human", columns=80).stdout == done.stdout


def test_other_models_are_listed_and_damaged_ones_named(tmp_path, monkeypatch):
    save(trained_example()[0], tmp_path / "mine.optirank")
    (tmp_path / "broken.optirank").write_text("x")
    monkeypatch.setenv("OPTIRANK_MODELS", str(tmp_path))
    done = optirank("models")
    assert done.exit_code == 0
    assert " mine " in done.stdout
    assert " pancreas-human " in done.stdout
    assert "broken.optirank" in done.stderr
    monkeypatch.setenv("OPTIRANK_MODELS", str(tmp_path / "absent"))
    assert optirank("models").exit_code == 0  # the shipped ones are there all the same


def test_commands_take_a_name(pair):
    cells = "pair/islets.h5ad"
    done = optirank("predict", cells, "--model", "pancreas-human", "-o", "labels.csv")
    assert done.exit_code == 0, done.output + done.stderr
    labels = pd.read_csv("labels.csv")
    assert len(labels) == 300
    done = optirank("evaluate", cells, "-m", "pancreas-human", "--label", "cell_type")
    assert done.exit_code == 0, done.output + done.stderr
    assert re.search(r"Balanced accuracy (9\d|100)\.\d %", done.stdout)
    done = optirank("panel", "pancreas-human", "--genes", 50, "-o", "small.optirank")
    assert done.exit_code == 0, done.output + done.stderr
    assert load("small.optirank").n_genes == 50
    card = optirank("inspect", "small.optirank").stdout
    assert "xin_980g" not in card  # what was measured with 200 genes is not said of 50
    name = labels["sample"][0]
    done = optirank("inspect", "pancreas-human", cells, "--explain", name)
    assert done.exit_code == 0, done.output + done.stderr
    assert name in done.stdout
    done = optirank("predict", cells, "--model", "pancreas-humn", "-o", "other.csv")
    assert done.exit_code == BAD_INPUT
    assert "close names are pancreas-human" in done.stderr


def test_missing_genes_do_not_send_the_user_to_files_that_are_not_there(pair):
    genes = load("pancreas-human").path_genes
    cells = anndata.read_h5ad("pair/islets.h5ad")
    strange = [
        f"X{k}" if name in genes[1:] else name for k, name in enumerate(cells.var_names)
    ]
    cells.var_names = strange
    cells.write_h5ad("few.h5ad")
    done = optirank("predict", "few.h5ad", "--model", "pancreas-human", "-o", "x.csv")
    assert done.exit_code == BAD_INPUT
    assert "Missing genes" in done.stderr
    assert "optirank train REFERENCE --label LABEL --for few.h5ad" in done.stderr


def test_the_example_is_not_written_over(pair):
    before = (pair / "pair/islets.h5ad").read_bytes()
    assert optirank("example", "pair").exit_code == BAD_INPUT
    assert optirank("example", "pair", "--force").exit_code == 0
    assert (pair / "pair/islets.h5ad").read_bytes() == before
