"""`optirank labels`: labels side by side, their terms, and the table to correct."""

from __future__ import annotations

import pandas as pd
import pytest
from typer.testing import CliRunner

from optirank.cli.app import app


@pytest.fixture
def sets(tmp_path):
    for name, labels in {"a": ["B cell", "NK"], "b": ["b_cells", "breast"]}.items():
        table = pd.DataFrame({"G1": [1.0, 2], "type": labels}, index=["s1", "s2"])
        table.to_csv(tmp_path / f"{name}.csv")
    return tmp_path


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
