"""Results on disk are complete or absent, settings do not mix, and files of others
are safe.
"""

from __future__ import annotations

import os

import pytest

from optirank_lab.benchmark import results
from optirank_lab.benchmark.designs import ALL, PAPER, QUICK
from optirank_lab.benchmark.results import Storage, WorkUnit

UNIT = WorkUnit("t", "t", 0, "b", "lr")


@pytest.fixture
def storage(tmp_path):
    with Storage(tmp_path / "out").open(PAPER, 0) as storage:
        pass
    return storage


def test_what_is_saved_is_found_again_and_names_its_unit(storage):
    storage.save(UNIT, {"settings": [{"l2": 1e-6}]})
    (found,) = Storage(storage.folder).units("t")
    assert found["settings"] == [{"l2": 1e-6}]
    assert (found["problem"], found["classifier"]) == ("b", "lr")
    assert storage.has(UNIT)
    assert not storage.has(WorkUnit("t", "t", 1, "b", "lr"))


def test_names_that_read_alike_have_files_of_their_own():
    problems = ["b cell", "b_cell", "b/cell", "é", ALL, "all"]
    assert len(
        {WorkUnit("t", "t", 0, problem, "lr").path for problem in problems}
    ) == len(problems)


def test_a_damaged_unit_or_a_gap_is_run_again(storage):
    storage.save(UNIT, {"failed": "out of luck"})
    assert not storage.has(UNIT)
    storage.save(UNIT, {})
    (storage.folder / "units" / UNIT.path).write_text('{"settings": [')
    assert not storage.has(UNIT)
    assert storage.units("t") == []


def test_a_folder_of_other_settings_is_refused(storage, monkeypatch):
    for profile, seed, word in ((QUICK, 0, "other settings"), (PAPER, 1, "seed was 0")):
        with pytest.raises(ValueError, match=word):
            Storage(storage.folder).check(profile, seed)
    with pytest.raises(
        ValueError, match="experiment was 'real', now it is 'synthetic'"
    ):
        Storage(storage.folder, "synthetic").check(PAPER, 0)
    Storage(storage.folder).check(PAPER, 0)
    monkeypatch.setattr(results, "__version__", "99.0")
    with pytest.raises(ValueError, match=r"version was .*, now it is '99\.0'"):
        storage.check(PAPER, 0)


def test_two_runs_do_not_share_a_folder(storage):
    with (
        storage.open(PAPER, 0),
        pytest.raises(ValueError, match="another run is using"),
        Storage(storage.folder).open(PAPER, 0),
    ):
        pass


@pytest.mark.parametrize("name", ["notes.txt", ".hidden.tmp", "run.json/inside"])
def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    with (
        pytest.raises(ValueError, match="is not a folder of results"),
        Storage(tmp_path).open(PAPER, 0),
    ):
        pass
    assert sorted(tmp_path.rglob("*")) == before
    assert path.read_text() == "mine"


def test_files_of_others_in_a_folder_of_results_stay(storage):
    mine = [
        storage.folder / ".mine.tmp",
        storage.folder / "units" / ".notes.json.1.tmp",
    ]
    storage.save(UNIT, {})
    for path in mine:
        path.write_text("mine")
    with storage.open(PAPER, 0):
        assert all(path.read_text() == "mine" for path in mine)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a process to kill")
def test_what_a_killed_run_left_behind_is_removed(storage):
    storage.save(UNIT, {"old": 1})
    before = sorted(storage.folder.rglob("*"))
    child = os.fork()
    if child == 0:
        os.replace = lambda *paths: os._exit(9)  # as kill -9 does: nothing tidies up
        storage.save(UNIT, {"new": 1})
    os.waitpid(child, 0)
    assert len(list(storage.folder.rglob("*.tmp"))) == 1
    assert storage.units("t")[0]["old"] == 1
    with storage.open(PAPER, 0):
        assert sorted(storage.folder.rglob("*")) == before
