"""Labels of samples: joined, side by side, with a tree and ids; words and donors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from optirank._util.words import collected_notes
from optirank.data.profiles import DataError
from optirank.verbs.options import TrainingOptions
from optirank.verbs.samples import (
    counts_by_file,
    joined_labels,
    labelled_samples,
    labels_of_samples,
    read_pairs,
)


def obs_of(**columns) -> pd.DataFrame:
    frame = pd.DataFrame(columns)
    return frame.set_index(frame.index.map("cell {}".format))


def options(**asked) -> TrainingOptions:
    return TrainingOptions(**{"label": "type"} | asked)


def test_labels_of_files_stand_side_by_side():
    labels = ["ductal"] * 3 + [None, "alpha", "alpha"] + ["alpha"] * 4 + ["epsilon"]
    obs = obs_of(type=labels, file=["one"] * 6 + ["two"] * 5)
    counts = counts_by_file(obs, options(), "data")
    assert counts.index.tolist() == ["alpha", "ductal", "epsilon"]
    assert counts.loc["alpha"].to_dict() == {"one": 2, "two": 4}
    assert counts.to_numpy().sum() == 10


def test_joining_is_what_was_asked_for_and_nothing_else():
    obs = obs_of(type=["b", None, "B", "C"])

    def joined(mapping):
        return joined_labels(obs, options(mapping=mapping), "data")["type"]

    assert joined({"b": "B"}).fillna("").tolist() == ["B", "", "B", "C"]
    with pytest.raises(DataError, match="no set has the label 'x'"):
        joined({"x": "B"})
    with pytest.raises(DataError, match="itself renamed"):
        joined({"b": "B", "B": "C"})


def test_a_tree_is_read_from_a_table_of_two_columns(tmp_path):
    path = tmp_path / "tree.csv"
    path.write_text("cell label,parent\nCD4 T cell,lymphocyte\nB cell, lymphocyte\n")
    obs = obs_of(type=["CD4 T cell"] * 3 + ["B cell"] * 3 + ["tumour"] * 3)
    _, tree, ids = labels_of_samples(obs, options(tree=path), "data")
    assert tree.path("B cell") == ("lymphocyte", "B cell")
    assert tree.path("tumour") == ("tumour",)
    assert ids == {}
    path.write_text("label;parent\n'B cell';lymphocyte\n")
    assert read_pairs(path, "two") == [("'B cell'", "lymphocyte")]
    pytest.importorskip("pyarrow")
    numbers = tmp_path / "numbers.parquet"
    pd.DataFrame({"parent": [1.5]}, ["B cell"]).to_parquet(numbers)
    with pytest.raises(DataError, match=r"numbers\.parquet"):
        read_pairs(numbers, "two")
    path.write_text("label,parent,more\nCD4 T cell,a,b\n")
    with pytest.raises(DataError, match="has 3 columns: give two, a label and its"):
        labels_of_samples(obs, options(tree=path), "data")


def test_ids_of_labels_are_those_of_a_table(tmp_path):
    path = tmp_path / "ids.tsv"
    path.write_text("label\tid\na\tCL:0000236\nz\tCL:0000084\nb\t\n")
    obs = obs_of(type=["a"] * 3 + ["b"] * 3)
    with collected_notes() as said:
        samples = labelled_samples(obs, options(ontology=path), "data")
    assert samples.terms == {"a": "CL:0000236"}
    assert "1 of 2 labels have an id; without one: b" in said.notes


def test_a_tree_in_which_no_label_is_above_another_is_left_out():
    obs = obs_of(type=["a"] * 3 + ["b"] * 3)
    with collected_notes() as said:
        _, tree, _ = labels_of_samples(obs, options(tree={"a": "", "b": ""}), "data")
    assert tree is None
    assert "no label stands above another" in said.notes[0]


def test_columns_that_are_not_nested_name_the_samples():
    obs = obs_of(a=["x", "x", "y"], b=["1", "2", "1"])
    with pytest.raises(ValueError, match=r"not nested: '1'.*such as cell"):
        labels_of_samples(obs, options(label=["a", "b"]), "data")


def test_words_for_no_label_are_named():
    obs = obs_of(type=["a"] * 4 + ["Unknown"] * 3 + ["NA"] * 3)
    with collected_notes() as said:
        labelled_samples(obs, options(), "data")
    (note,) = said.notes
    assert "samples labelled 'NA' (3), 'Unknown' (3) are used as a class" in note


@pytest.mark.parametrize(
    ("name", "values", "noted"),
    [
        ("donor_id", list("aabbcc"), True),
        ("sampleDonor", list("aabbcc"), True),
        ("donor", list("abcdef"), False),
        ("donor", list("aaaaaa"), False),
        ("outpatient_clinic", list("aabbcc"), False),
        ("patient_status", list("aabbcc"), True),
        ("kind", list("aabbcc"), False),
    ],
)
def test_donors_have_several_samples_each(name, values, noted):
    obs = obs_of(type=["x"] * 3 + ["y"] * 3, **{name: values})
    with collected_notes() as said:
        labelled_samples(obs, options(), "data")
    assert any("looks like that of donors" in text for text in said.notes) == noted


def test_folds_leave_sources_out_whole():
    obs = obs_of(
        type=list("ababab") * 2 + ["c"] * 3,
        source=["one"] * 4 + ["two"] * 4 + ["three"] * 4 + ["one"] * 3,
    )
    with collected_notes() as said:
        samples = labelled_samples(obs, options(batch="source"), "data")
    assert len(np.unique(samples.fold_of)) == 3
    for source in ("one", "two", "three"):
        assert len(np.unique(samples.fold_of[samples.sources == source])) == 1
    assert any("samples there are not counted: c" in text for text in said.notes)
