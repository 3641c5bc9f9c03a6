"""`optirank design`: the panel, its model and the summary; errors before any work."""

from __future__ import annotations

from pathlib import Path

import anndata
import pandas as pd
import pytest
from typer.testing import CliRunner

from optirank.cli import app
from optirank.datasets.example import write_example
from optirank.model import load

LINEAGE = {"b cell": "lymphoid", "t cell": "lymphoid", "nk cell": "lymphoid"}


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("pair")
    write_example(folder, 150, 60)
    return folder


def design(*words: object):
    return CliRunner().invoke(app, ["design", *map(str, words)])


def test_the_panel_the_model_and_the_summary(pair, tmp_path):
    out, model = tmp_path / "panel.csv", tmp_path / "panel.optirank"
    reference, query = pair / "reference.h5ad", pair / "query.h5ad"
    words = [reference, "--label", "cell_type", "--n-genes", 12, "--include", "CD3E"]
    words += ["--exclude", "RP*", "--query", query, "--test", query]
    done = design(*words, "-o", out, "--model", model)
    assert done.exit_code == 0, done.output
    table = pd.read_csv(out)
    assert len(table) == 12
    assert "CD3E" in set(table["gene"])
    assert sorted(load(model).genes) == sorted(table["gene"])
    assert "A panel of 12 genes is chosen, 1 of them required" in done.output
    assert "query" in done.output
    assert len(done.output.splitlines()) < 50
    again = design(reference, "-l", "cell_type", "--gene-list", out, "-o", "-")
    assert again.exit_code == 0, again.output
    assert again.stdout.startswith("gene,speaks_for,weight,rank,path")
    assert "A list of 12 genes is scored as it is" in again.stderr


def test_genes_are_asked_for_by_level(pair, tmp_path):
    cells = anndata.read_h5ad(pair / "reference.h5ad")
    lineage = cells.obs["cell_type"].astype(str).replace(LINEAGE)
    cells.obs["lineage"] = lineage
    cells.write_h5ad(tmp_path / "levels.h5ad")
    out, model = tmp_path / "panel.csv", tmp_path / "panel.optirank"
    words = [tmp_path / "levels.h5ad", "-l", "lineage,cell_type", "--n-genes", 24]
    done = design(*words, "--per-class", 2, "-o", out, "--model", model)
    assert done.exit_code == 0, done.output
    tree = load(model).tree
    table = pd.read_csv(out, keep_default_na=False)
    labels, _ = tree.contrasts(load(model).classes)
    assert set(table["tells"]) <= set(labels)
    assert [tree.parents[name] for name in table["tells"]] == table["below"].tolist()
    assert {"", "lymphoid"} <= set(table["below"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--gene-list", "nothing.txt"], "'nothing.txt' does not exist"),
        (["--gene-list", "LIST"], "lacks 1 of the genes asked for"),
        (["--query", "nothing.txt"], "nothing.txt does not exist"),
        (["--min-mean", "5", "--max-mean", "1"], "means from 5 to 1"),
    ],
)
def test_bad_input_ends_with_one_line(words, message, pair, tmp_path):
    listed = tmp_path / "list.txt"
    listed.write_text("gene\nCD3E\nCD3F\n")
    words = [str(listed) if word == "LIST" else word for word in words]
    out = tmp_path / "panel.csv"
    done = design(pair / "reference.h5ad", "-l", "cell_type", "-o", out, *words)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())
    assert not out.exists()


def test_an_input_is_never_overwritten(pair, tmp_path):
    reference = pair / "reference.h5ad"
    done = design(reference, "-l", "cell_type", "-o", reference, "--force")
    assert done.exit_code == 2
