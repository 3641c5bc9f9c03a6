"""Labels of several sets side by side: what is alike, what joins it, who has it."""

from __future__ import annotations

import gzip

import pandas as pd
import pytest

from optirank.io.data import DataError
from optirank.ontology import cell_ontology, term_ids
from optirank.verbs.options import TrainingOptions
from optirank.verbs.sources import (
    LabelSets,
    given_tree,
    labelled_samples,
    labels_of_files,
)

SETS = {
    "one": ["B cell"] * 5 + ["ductal"] * 3 + [None, "alpha", "alpha"],
    "two": ["b_cells"] * 7 + ["Ductal"] * 2 + ["alpha"] * 4 + ["epsilon"],
}


def test_labels_stand_side_by_side_with_their_counts():
    counts = LabelSets(SETS, cell_ontology()).counts
    assert counts.loc["alpha"].tolist() == [2, 4]
    assert counts.index[0] == "alpha"  # which both sets have
    assert counts.loc["epsilon"].tolist() == [0, 1]
    assert counts.to_numpy().sum() == 10 + 14


def test_labels_that_look_alike_are_named_with_the_line_that_joins_them():
    notes = LabelSets(SETS, cell_ontology()).notes()
    assert any("mapping={'B cell': 'b_cells'}" in note for note in notes)
    assert any("mapping={'Ductal': 'ductal'}" in note for note in notes)


def test_labels_of_one_set_alone_are_named_unless_they_look_like_another():
    notes = LabelSets(SETS, cell_ontology()).notes()
    only = [note for note in notes if "alone has" in note]
    assert only == ["two alone has 1 class that no other set can judge: epsilon"]


def test_the_terms_of_the_user_win():
    sets = LabelSets(
        SETS, cell_ontology(), {"ductal": "CL:0000171", "alpha": "CL:0000171"}
    )
    assert ("alpha", "ductal") in sets.alike
    given = {term.label: term.how for term in sets.terms}
    assert given["alpha"] == "given"


def test_joining_is_what_was_asked_for_and_nothing_else():
    obs = pd.DataFrame({"type": ["b", None, "B", "C"]})

    def joined(mapping):
        options = TrainingOptions(label="type", mapping=mapping)
        return labelled_samples(obs, options, "data", [], several=False)[0]

    labels = joined({"b": "B"})
    assert labels.fillna("").tolist() == ["B", "", "B", "C"]
    with pytest.raises(DataError, match="no set has the label 'x'"):
        joined({"x": "B"})
    with pytest.raises(DataError, match="itself renamed"):
        joined({"b": "B", "B": "C"})


def test_labels_of_files_are_read_by_their_names(tmp_path):
    table = pd.DataFrame({"G1": [1.0, 2], "type": ["x", "y"]}, index=["s1", "s2"])
    for name in ("a", "b"):
        table.to_csv(tmp_path / f"{name}.csv")
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    sets = labels_of_files(paths, "type", genes_in="columns")
    assert sets == {"a": ["x", "y"], "b": ["x", "y"]}


COUNTS = {"CD4 T cell": 5, "B cell": 4, "tumour": 3}


def test_a_tree_is_read_from_a_table_of_two_columns(tmp_path):
    path = tmp_path / "tree.csv"
    path.write_text("label,parent\nCD4 T cell,lymphocyte\nB cell, lymphocyte\n")
    tree = given_tree(path, COUNTS, {})
    assert tree.path("B cell") == ("lymphocyte", "B cell")
    assert tree.path("tumour") == ("tumour",)
    packed = tmp_path / "tree.csv.gz"
    packed.write_bytes(gzip.compress(b"label;parent\n\nB cell;lymphocyte\n"))
    assert given_tree(packed, COUNTS, {}).path("B cell") == ("lymphocyte", "B cell")
    path.write_text("label,parent\nCD4 T cell\n")
    with pytest.raises(DataError, match="line 2 has 1 columns"):
        given_tree(path, COUNTS, {})


def test_terms_make_a_tree_of_the_labels_at_hand():
    ids = {
        "CD4 T cell": "CL:0000624",
        "B cell": "CL:0000236",
        "lymphocyte": "CL:0000542",  # of the user's table, above the two
        "astrocyte": "CL:0000127",  # above none of them
    }
    tree = given_tree("ontology", COUNTS, ids)
    assert tree.parents == {
        "CD4 T cell": "lymphocyte",
        "B cell": "lymphocyte",
        "lymphocyte": "",
        "tumour": "",
    }


def test_labels_without_a_term_are_unknown_to_cellxgene():
    ids = term_ids(["B cell", "unassigned"], {"B cell": "CL:0000236"})
    assert ids == ["CL:0000236", "unknown"]
