"""`optirank labels`: labels side by side, their terms, and the table to correct."""

from __future__ import annotations

import json

import anndata
import pandas as pd
import pytest
from typer.testing import CliRunner

from optirank import load
from optirank.cli import app
from optirank.datasets.example import write_example


@pytest.fixture
def sets(tmp_path):
    for name, labels in {"a": ["B cell", "NK"], "b": ["b_cells", "breast"]}.items():
        table = pd.DataFrame({"G1": [1.0, 2], "type": labels}, index=["s1", "s2"])
        table.to_csv(tmp_path / f"{name}.csv")
    return tmp_path


def optirank(*arguments: object):
    return CliRunner().invoke(app, [*map(str, arguments)])


def run(folder, *arguments: str):
    words = ["labels", str(folder / "a.csv"), str(folder / "b.csv")]
    words += ["--label", "type", "--genes-in", "columns", *arguments]
    return CliRunner().invoke(app, words)


def test_labels_of_two_files_are_shown_with_their_terms(sets):
    done = run(sets)
    assert done.exit_code == 0, done.output
    assert "CL:0000623" in done.output
    assert "--map 'b_cells=B cell'" in done.output
    assert "3 of 4 labels have a term of the Cell Ontology v20" in done.output


def test_a_corrected_table_is_given_back(sets):
    out = sets / "terms.csv"
    assert run(sets, "-o", str(out)).exit_code == 0
    out.write_text(out.read_text().replace("NK,1,CL:0000623", "NK,1,CL:0000236"))
    done = run(sets, "--ontology", str(out))
    assert done.exit_code == 0, done.output
    assert "'B cell', 'NK', 'b_cells' look like one class" in done.output


def test_a_wrong_id_is_refused_with_its_line(sets):
    table = sets / "terms.csv"
    table.write_text("label,cell_type_ontology_term_id\nNK,CL:99\n")
    done = run(sets, "--ontology", str(table))
    assert done.exit_code == 2
    assert "line 2: 'CL:99'" in done.output


def test_an_existing_table_is_not_replaced(sets):
    out = sets / "terms.csv"
    out.write_text("mine")
    assert run(sets, "-o", str(out)).exit_code == 2
    assert out.read_text() == "mine"


def test_labels_by_level_from_train_to_evaluate(tmp_path):
    write_example(tmp_path, 150, 60)
    reference = anndata.read_h5ad(tmp_path / "reference.h5ad")
    tree = tmp_path / "tree.csv"
    tree.write_text("label,parent\nb cell,lymphoid\nt cell,lymphoid\nlymphoid,\n")
    reference.obs["kind"] = reference.obs["cell_type"].astype(str)
    reference.obs.loc[reference.obs["kind"] == "nk cell", "kind"] = "nk"
    reference[::2].copy().write_h5ad(tmp_path / "a.h5ad")
    reference[1::2].copy().write_h5ad(tmp_path / "b.h5ad")
    done = optirank(
        "train", tmp_path / "a.h5ad", tmp_path / "b.h5ad", "--label", "kind",
        "--tree", tree, "--map", "nk=nk cell", "--genes", 20, "-o", tmp_path / "m.optirank",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert done.output.index("Samples of each label") < done.output.index("genes")
    model = load(tmp_path / "m.optirank")
    assert "nk cell" in model.tree.leaves
    assert str(tmp_path) not in model.card.command
    query = tmp_path / "query.h5ad"
    labels = tmp_path / "labels.csv"
    done = optirank(
        "predict", query, "-m", tmp_path / "m.optirank", "--levels", "-o", labels
    )
    assert done.exit_code == 0, done.output
    table = pd.read_csv(labels)
    assert {"leaf", "leaf_confidence", "level_1", "level_2"} <= set(table)
    done = optirank(
        "evaluate", query, "-m", tmp_path / "m.optirank", "--label", "cell_type",
        "-o", tmp_path / "figures.json",
    )  # fmt: skip
    assert "right but coarse" in done.output
    tables = json.loads((tmp_path / "figures.json").read_text())["tables"]
    assert {"levels", "confusion of level 1"} <= set(tables)
    done = optirank(
        "train", tmp_path / "a.h5ad", "--label", "kind,cell_type", "-f",
        "-o", tmp_path / "n.optirank", "--genes", 20,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    tree = load(tmp_path / "n.optirank").tree
    assert tree.parents["nk cell"] == "nk"
    assert tree.parents["b cell"] == "", "a label that repeats its parent is one label"
