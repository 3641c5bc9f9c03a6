"""Classes of shipped models at the finest level that other studies can tell apart."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from model_levels import (
    Judgement,
    leaves_of,
    level_counts,
    shipped_tree,
    verdicts,
)

from optirank.model import Tree

TREE = Tree({"L": "", "T": "L", "CD4": "T", "CD8": "T", "B": "L", "M": "", "DC": "M",
             "mono": "M"})  # fmt: skip
TRUTH = ["CD4"] * 20 + ["CD8"] * 20 + ["B"] * 20 + ["mono"] * 20


def judged(study: str, wrong_cd8: int, name: str = "") -> Judgement:
    given = [*TRUTH]
    given[20 : 20 + wrong_cd8] = ["CD4"] * wrong_cd8
    return Judgement(name or study, study, TRUTH, given)


def test_counts_of_a_label_are_those_of_all_below_it():
    table = level_counts(TREE, [judged("one", 5)]).set_index("label")
    assert table.loc["CD8", ["right", "n", "false", "n_others"]].tolist() == [
        15, 20, 0, 60,
    ]  # fmt: skip
    assert table.loc["CD4", "false"] == 5
    assert table.loc["T", ["right", "n"]].tolist() == [40, 40]


def test_a_coarse_truth_says_nothing_of_finer_labels():
    truth, given = ["T"] * 30, ["CD4"] * 30
    table = level_counts(TREE, [Judgement("x", "x", truth, given)]).set_index("label")
    assert table.loc["T", "right"] == 30
    assert table.loc["CD4", ["n", "n_others"]].tolist() == [0, 0]
    assert table.loc["B", "n_others"] == 30


def test_labels_that_two_studies_tell_apart_stay():
    table = level_counts(TREE, [judged("one", 2), judged("two", 3), judged("x", 9)])
    assert verdicts(table).loc["CD8"].tolist() == [3, 2]
    assert shipped_tree(TREE, table) == TREE


def test_labels_that_fail_become_their_parent_together():
    table = level_counts(TREE, [judged("one", 2), judged("two", 9)])
    smaller = shipped_tree(TREE, table)
    assert set(smaller.leaves) == {"T", "B", "DC", "mono"}
    assert leaves_of(smaller, TREE, ["CD4", "B", "L"]) == ["T", "B", "L"]


def test_two_sets_of_one_study_are_one_judge():
    sets = [judged("one", 2, "a"), judged("one", 1, "b"), judged("two", 9)]
    assert "CD8" not in shipped_tree(TREE, level_counts(TREE, sets)).parents


def test_a_label_that_few_can_judge_stays():
    table = level_counts(TREE, [judged("one", 0), judged("two", 0)])
    assert verdicts(table).loc["DC"].tolist() == [0, 0]
    assert "DC" in shipped_tree(TREE, table).leaves
