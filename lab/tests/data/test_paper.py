"""The paper's results are there as it prints them."""

from __future__ import annotations

import pytest

from optirank_lab.benchmark.classifiers import CLASSIFIERS
from optirank_lab.benchmark.synthetic import PUBLISHED
from optirank_lab.benchmark.tasks import built_in
from optirank_lab.data.paper import ACCURACY, ACCURACY_TABLES, printed, published

TABLE = published()


def number(task, classifier, scenario="", measure=ACCURACY):
    rows = TABLE[
        (TABLE["task"] == task)
        & (TABLE["classifier"] == classifier)
        & (TABLE["scenario"] == scenario)
        & (TABLE["measure"] == measure)
    ]
    (row,) = rows.to_dict("records")
    return row


@pytest.mark.parametrize(
    ("task", "classifier", "scenario", "text"),
    [
        ("TCGA", "optirank", "", "**99.06 ± 0.26**"),
        ("TM10x-MWS", "optirank", "", "65 ± 2"),
        ("TCGA-PCAWG-met500", "optirank", "single", "**81 ± 4**"),
        ("TCGA-PCAWG-met500", "optirank", "multi", "68 ± 4"),
        ("synthetic", "optirank", "", "96 ± 0.4"),
    ],
)
def test_numbers_are_those_of_the_paper(task, classifier, scenario, text):
    row = number(task, classifier, scenario)
    assert printed(row["value"], row["plus_minus"], row["bold"]) == text


def test_every_task_and_classifier_is_one_of_the_benchmark():
    of_paper = {task.name for task in built_in() if task.paper}
    assert set(TABLE["task"]) - {"synthetic"} == of_paper
    assert set(TABLE["classifier"]) <= set(CLASSIFIERS)


def test_the_first_of_every_task_has_the_highest_accuracy():
    for table in ACCURACY_TABLES.values():
        for task, rows in TABLE[TABLE["table"] == table].groupby("task"):
            best = rows["value"].astype(float).max()
            first = rows[rows["rank"] == "1"]
            assert first["value"].astype(float).tolist() == [best], task
            assert first["bold"].tolist() == ["yes"], task


def test_stand_ins_name_a_task_of_the_paper():
    of_paper = {task.name for task in built_in() if task.paper}
    stand_ins = [task for task in built_in() if task.stands_for]
    assert stand_ins
    for task in stand_ins:
        assert task.stands_for in of_paper
        assert not task.paper


def test_the_page_of_the_synthetic_experiment_shows_the_same_numbers():
    for classifier in ("lr", "rank-lr", "optirank"):
        value = number("synthetic", classifier)["value"]
        assert PUBLISHED["in the paper"][classifier] == value
