"""Tables of labels by level: counts, outcomes and confusions add up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optirank.model.tree import NO_LABEL, Tree
from optirank.verbs.evaluate import (
    COARSER,
    WITHHELD,
    level_confusions,
    level_outcomes,
)
from optirank.verbs.labels import level_names, tree_table

TREE = Tree(
    {"L": "", "T": "L", "CD4": "T", "CD8": "T", "B": "L", "P": ""},
    levels=("coarse", "middle"),
)


def at(*labels: str) -> np.ndarray:
    return TREE.positions(labels)


def test_words_that_are_no_labels_have_no_position():
    assert at("L", "unassigned").tolist() == [0, NO_LABEL]


def test_levels_without_a_column_are_numbered():
    assert level_names(TREE) == ["coarse", "middle", "level 3"]


def test_a_label_counts_those_below_it():
    table = tree_table(TREE, at("CD4", "T", "B", "P", "x"), np.full(5, 0.8))
    assert table["n_samples"].to_dict() == {
        "L": 3, "T": 2, "CD4": 1, "CD8": 0, "B": 1, "P": 1,
    }  # fmt: skip
    assert table.loc["T", "n_own"] == 1
    assert table.loc["L", "share"] == 0.6
    assert table.loc["L", "confidence"] == pytest.approx(0.8)
    assert np.isnan(table.loc["CD8", "confidence"])


def test_a_label_above_the_truth_is_coarse_and_one_below_it_right():
    truth = at("CD4", "CD4", "CD4", "T", "B", "P")
    got = at("CD4", "T", "CD8", "CD8", "P", "x")
    table = level_outcomes(TREE, truth, got)
    assert table[["right", "coarse", "wrong"]].sum().tolist() == [2, 1, 2]
    assert table.loc["middle", "coarse"] == 1
    assert table.loc["coarse", "wrong"] == 1  # B called P
    assert table.loc[WITHHELD, "n_samples"] == 1
    assert table["share"].sum() == pytest.approx(1)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["CD4", "CD8", "B", "P"]),
            st.sampled_from([*TREE.labels, "x"]),
        ),
        min_size=1,
    )
)
def test_every_sample_is_in_the_confusion_of_every_level_once(samples):
    truth, got = (at(*column) for column in zip(*samples, strict=True))
    for table in level_confusions(TREE, truth, got).values():
        assert table.to_numpy().sum() == len(samples)
        assert table[WITHHELD].sum() == np.sum(got == NO_LABEL)


def test_a_confusion_reads_truth_and_label_at_its_level():
    truth = at("CD4", "CD4", "B", "P", "CD8")
    got = at("CD8", "T", "L", "P", "x")
    tables = level_confusions(TREE, truth, got)
    assert tables["coarse"].loc["L", "L"] == 3
    assert tables["middle"].loc["T", "T"] == 2
    assert tables["middle"].loc["B", COARSER] == 1
    assert tables["middle"].loc["P", "P"] == 1  # a leaf stays itself further down
    assert tables["level 3"].loc["CD4", "CD8"] == 1
    assert tables["level 3"].loc["CD4", COARSER] == 1


def test_a_truth_above_a_level_is_not_in_its_confusion():
    tables = level_confusions(TREE, at("T", "B"), at("CD4", "B"))
    assert tables["level 3"].to_numpy().sum() == 1
    assert tables["middle"].loc["T", "T"] == 1
