"""Tables of labels by level: counts and outcomes add up."""

from __future__ import annotations

import numpy as np
import pytest

from optirank.model.tree import NO_LABEL, Tree
from optirank.verbs.evaluation import (
    WITHHELD,
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
