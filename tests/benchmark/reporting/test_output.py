"""A report removes files of an earlier report, and no others."""

from __future__ import annotations

import json

import pytest

from optirank.benchmark.reporting.output import Output


def write(folder, **files: str) -> None:
    output = Output(folder)
    for name, text in files.items():
        output.write(f"tables/{name}.csv", text)
    output.finish()


def test_only_files_of_an_earlier_report_are_removed(tmp_path):
    write(tmp_path, a="1", b="1")
    mine = [tmp_path / "tables" / name for name in ("mine.csv", "mine.tex", ".mine.csv.1.tmp")]
    for path in mine:
        path.write_text("mine")
    write(tmp_path, b="2", c="2")
    left = {path.name for path in (tmp_path / "tables").iterdir()}
    assert left == {"b.csv", "c.csv", *(path.name for path in mine)}
    assert (tmp_path / "tables" / "b.csv").read_text() == "2"
    assert all(path.read_text() == "mine" for path in mine)


def test_without_a_record_nothing_is_removed(tmp_path):
    write(tmp_path, a="1")
    (tmp_path / "files.json").unlink()
    write(tmp_path, b="2")
    assert {path.name for path in (tmp_path / "tables").iterdir()} == {"a.csv", "b.csv"}


@pytest.mark.parametrize("name", ["../outside.csv", "/outside.csv"])
def test_a_record_cannot_name_files_outside_of_the_folder(tmp_path, name):
    folder = tmp_path / "report"
    outside = tmp_path / "outside.csv"
    outside.write_text("mine")
    write(folder, a="1")
    named = str(outside) if name.startswith("/") else name
    (folder / "files.json").write_text(json.dumps([named]))
    write(folder, a="1")
    assert outside.read_text() == "mine"


def test_a_record_that_cannot_be_read_is_no_record(tmp_path):
    write(tmp_path, a="1")
    (tmp_path / "files.json").write_text("{")
    write(tmp_path, b="1")
    assert (tmp_path / "tables" / "a.csv").is_file()
