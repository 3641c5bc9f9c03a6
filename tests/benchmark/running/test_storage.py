"""Results on disk are complete or absent, settings do not mix, and files of others are safe."""

from __future__ import annotations

import json
import os

import pytest

from optirank.benchmark.profiles import PAPER, QUICK
from optirank.benchmark.running import storage as storage_module
from optirank.benchmark.running.storage import Storage, Unit
from optirank.benchmark.synthetic import EXTENDED_GRID, PAPER_GRID

UNIT = Unit("t", "", 0, 0, "b", "lr")


@pytest.fixture
def storage(tmp_path):
    with Storage(tmp_path / "out").open(PAPER, 0) as storage:
        pass
    return storage


def test_what_is_saved_is_loaded_again(storage):
    storage.save(UNIT, {"settings": [{"l2": 1e-6}], "cosine": [None]})
    assert Storage(storage.folder).load(UNIT) == {"settings": [{"l2": 1e-6}], "cosine": [None]}
    assert storage.load(Unit("t", "", 1, 0, "b", "lr")) is None


def test_a_damaged_unit_counts_as_missing(storage):
    storage.save(UNIT, {})
    (storage.folder / "units" / UNIT.path).write_text('{"settings": [')
    assert not storage.has(UNIT)


def test_a_folder_of_other_settings_is_refused(storage):
    with pytest.raises(ValueError, match="other settings"):
        Storage(storage.folder).check(QUICK, 0)
    with pytest.raises(ValueError, match="seed was 0"):
        Storage(storage.folder).check(PAPER, 1)
    with pytest.raises(ValueError, match="experiment was 'real', now it is 'synthetic'"):
        Storage(storage.folder, "synthetic").check(PAPER, 0)
    Storage(storage.folder).check(PAPER, 0)


def test_the_grids_of_the_synthetic_experiment_do_not_mix(tmp_path):
    with Storage(tmp_path, "synthetic").open(EXTENDED_GRID, 0) as storage:
        pass
    with pytest.raises(ValueError, match="profile was 'extended'"):
        storage.check(PAPER_GRID, 0)


def test_results_of_another_version_are_refused(storage, monkeypatch):
    monkeypatch.setattr(storage_module, "__version__", "99.0")
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
    with pytest.raises(ValueError, match="is not a folder of results"):
        Storage(tmp_path).check(PAPER, 0)
    with (
        pytest.raises(ValueError, match="is not a folder of results"),
        Storage(tmp_path).open(PAPER, 0),
    ):
        pass
    assert sorted(tmp_path.rglob("*")) == before
    assert path.read_text() == "mine"


def test_an_empty_folder_is_taken(tmp_path):
    with Storage(tmp_path).open(PAPER, 0) as storage:
        assert storage.record()["experiment"] == "real"


def test_files_of_others_in_a_folder_of_results_stay(storage):
    mine = [storage.folder / ".mine.tmp", storage.folder / "units" / ".notes.json.1.tmp"]
    storage.save(UNIT, {})
    for path in mine:
        path.write_text("mine")
    with storage.open(PAPER, 0):
        assert all(path.read_text() == "mine" for path in mine)


def test_what_a_killed_run_left_behind_is_removed(storage, monkeypatch):
    storage.save(UNIT, {"old": 1})
    before = sorted(storage.folder.rglob("*"))

    def killed(*paths):
        os._exit(9)  # as kill -9 does: nothing tidies up

    child = os.fork()
    if child == 0:
        os.replace = killed
        storage.save(UNIT, {"new": 1})
    os.waitpid(child, 0)
    assert len(list(storage.folder.rglob("*.tmp"))) == 1
    assert storage.load(UNIT) == {"old": 1}
    with storage.open(PAPER, 0):
        assert sorted(storage.folder.rglob("*")) == before


def test_a_run_is_logged_once_with_its_latest_facts(storage):
    storage.log("now", {"units": 1})
    storage.log("now", {"units": 2})
    storage.log("later", {"units": 0})
    lines = json.loads((storage.folder / "log.json").read_text())
    assert lines == [{"start": "now", "units": 2}, {"start": "later", "units": 0}]
