"""The declared tasks, and what a file of tasks may say."""

from __future__ import annotations

import pytest

from optirank.benchmark.tasks import load_tasks
from optirank.datasets.registry import find_entry

PAPER = {
    *("BRCA", "TCGA", "PCAWG", "met-500", "Baron-Murano", "Baron-Segerstolpe", "MWS-TM10x"),
    *("MWS-TMfacs", "TM10x-MWS", "TM10x-TMfacs", "TMfacs-MWS"),
}
TRIPLES = {"TCGA-PCAWG-met500", "Baron-Segerstolpe-Murano", "MWS-TMfacs-TM10x"}
GOOD = {
    "name": '"mine"',
    "title": '"a task"',
    "kind": '"bulk"',
    "shift": '"none"',
    "train": '["one"]',
    "test": '"two"',
    "scheme": '"folds"',
}


def write_task(path, **changes):
    lines = [f"{key} = {value}" for key, value in {**GOOD, **changes}.items() if value is not None]
    path.write_text("[[task]]\n" + "\n".join(lines))
    return path


def test_the_papers_tasks_are_all_declared():
    file = load_tasks()
    paper = {name for name, task in file.tasks.items() if task.paper}
    assert paper == PAPER | TRIPLES
    assert {name for name in paper if file.tasks[name].auxiliary} == TRIPLES


def test_every_set_of_a_paper_task_is_registered():
    file = load_tasks()
    for task in file.tasks.values():
        if task.paper:
            for name in file.sets_of(task):
                assert find_entry(name).name == name


def test_kinds_of_shift_are_the_papers():
    shifts = {name: task.shift for name, task in load_tasks().tasks.items()}
    assert shifts["BRCA"] == shifts["TCGA"] == "none"
    assert shifts["PCAWG"] == "batch"
    assert shifts["met-500"] == "biological"
    assert all(shifts[name] == "platform" for name in PAPER if "-" in name and name != "met-500")


def test_the_sets_of_a_task_that_tests_other_models_include_their_training_sets():
    file = load_tasks()
    assert file.sets_of(file.tasks["PCAWG"]) == ("tcga", "pcawg")


def test_tasks_of_the_shared_folder_have_their_data(data_folder):
    file = load_tasks()
    for task in file.tasks.values():
        if not task.paper:
            for name in file.sets_of(task):
                assert (data_folder / f"{name}.h5ad").is_file()


def test_a_file_adds_tasks(tmp_path):
    file = load_tasks(write_task(tmp_path / "own.toml"))
    assert file.tasks["mine"].train == ("one",)
    assert "BRCA" in file.tasks


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"shift": '"odd"'}, "shift is 'odd'"),
        ({"kind": '"odd"'}, "kind is 'odd'"),
        ({"scheme": '"odd"'}, "scheme is 'odd'"),
        ({"colour": '"red"'}, "'colour'"),
        ({"title": None}, "lacks 'title'"),
        ({"train": None}, "either train or models_of"),
        ({"test": None}, "need a data set under test"),
        ({"scheme": '"nested"'}, "hold-out and nested"),
        ({"name": '"a/b"'}, "folder"),
        ({"name": '"BRCA"'}, "built-in"),
        ({"train": None, "models_of": '"nowhere"'}, "must name a task"),
        ({"train": None, "models_of": '"PCAWG"'}, "must name a task"),
        ({"test": None, "scheme": '"nested"', "auxiliary": '"three"'}, "auxiliary"),
        ({"test": '"one"'}, "test itself"),
        ({"train": '"one"'}, "train = 'one' is of a wrong kind"),
        ({"train": "[]"}, "wrong kind"),
        ({"merge": '"x"'}, "merge = 'x' is of a wrong kind"),
        ({"merge": '{ A = "z" }'}, "looked up as 'a'"),
        ({"name": '"brca"'}, "built-in"),
        ({"name": "3"}, "wrong kind"),
    ],
)
def test_a_wrong_task_is_named(tmp_path, changes, word):
    with pytest.raises(ValueError, match=word):
        load_tasks(write_task(tmp_path / "own.toml", **changes))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[[task", "not valid TOML"),
        ("[other]", "'other'"),
        ("[task]", "two brackets"),
        ('[values]\nx = "odd"', "values of x"),
    ],
)
def test_a_wrong_file_is_named(tmp_path, text, word):
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=word):
        load_tasks(path)


def test_two_tasks_of_one_name_are_refused(tmp_path):
    path = write_task(tmp_path / "own.toml")
    path.write_text(path.read_text() + "\n" + path.read_text().replace("mine", "MINE"))
    with pytest.raises(ValueError, match="same name"):
        load_tasks(path)


def test_an_unknown_name_is_told():
    with pytest.raises(ValueError, match="'nothing'"):
        load_tasks().choose(["nothing"])
