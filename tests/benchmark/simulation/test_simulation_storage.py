"""Results on disk are whole or not there, and settings do not mix."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optirank._util.files import write_text
from optirank.benchmark.simulation import storage as storage_module
from optirank.benchmark.simulation.settings import PAPER_GRID, Settings
from optirank.benchmark.simulation.storage import Storage

SETTINGS = Settings()
UNIT = SETTINGS.units()[0]


def test_what_is_saved_is_loaded_again(tmp_path):
    result = {"fits": [{"l2": 1e-6, "cosine": None}], "selected": []}
    Storage(tmp_path, SETTINGS).open().save(UNIT, result)
    assert Storage(tmp_path, SETTINGS).open().load(UNIT) == result
    assert Storage(tmp_path, SETTINGS).load(SETTINGS.units()[1]) is None


def test_more_repeats_and_other_sweeps_share_a_folder(tmp_path):
    Storage(tmp_path, SETTINGS).open()
    Storage(tmp_path, replace(SETTINGS, repeats=9, sweeps=())).open()


@pytest.mark.parametrize("changed", [{"seed": 3}, {"grid": PAPER_GRID}])
def test_other_settings_are_refused_by_name(tmp_path, changed):
    Storage(tmp_path, SETTINGS).open()
    with pytest.raises(ValueError, match=f"other settings \\({next(iter(changed))} was"):
        Storage(tmp_path, replace(SETTINGS, **changed)).open()


def test_results_of_another_version_are_refused(tmp_path, monkeypatch):
    Storage(tmp_path, SETTINGS).open()
    monkeypatch.setattr(storage_module, "__version__", "99.0")
    with pytest.raises(ValueError, match=r"version was .*, now it is 99\.0"):
        Storage(tmp_path, SETTINGS).open()


def test_a_damaged_unit_counts_as_missing(tmp_path):
    storage = Storage(tmp_path, SETTINGS).open()
    storage.save(UNIT, {})
    (path,) = (tmp_path / "units").iterdir()
    path.write_text('{"fits": [')
    assert storage.load(UNIT) is None


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "file.txt"
    write_text(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "new \ud800")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
