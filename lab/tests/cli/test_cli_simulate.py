"""`optirank-lab simulate`."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from optirank.cli.command import BAD_INPUT
from optirank_lab.benchmark import synthetic
from optirank_lab.benchmark.synthetic import Point
from optirank_lab.cli import app


def optirank(*arguments: object):
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture
def _small(monkeypatch):
    """A default point that takes seconds."""
    small = synthetic.Settings

    def settings(**options):
        return small(**{"base": Point(14, 4, 100), **options})

    monkeypatch.setattr(synthetic, "Settings", settings)


@pytest.mark.usefixtures("_small")
def test_simulate_shows_the_table_and_the_report_and_refuses_other_settings(tmp_path):
    out = tmp_path / "out"
    chosen = (
        "simulate",
        "--sweeps",
        "none",
        "--grid",
        "paper",
        "--jobs",
        1,
        "--out",
        out,
    )
    done = optirank(*chosen, "--repeats", 1)
    assert done.exit_code == 0, done.stderr
    for name in ("lr", "rank-lr", "optirank", "oracle"):
        assert name in done.stdout
    assert str(out / "report.html") in done.stdout.replace("\n", "")
    assert (out / "tables" / "scores.csv").is_file()
    units = {path: path.stat().st_mtime_ns for path in (out / "units").rglob("*.json")}
    assert len(units) == 5 * 6
    again = optirank(*chosen, "--repeats", 1)
    assert again.exit_code == 0
    assert units == {
        path: path.stat().st_mtime_ns for path in (out / "units").rglob("*.json")
    }
    for changed in (("--seed", 1), ("--grid", "extended")):
        refused = optirank(*chosen, *changed)
        assert refused.exit_code == BAD_INPUT
        assert "holds results of other settings" in refused.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("_small")
def test_a_sweep_prints_its_table(tmp_path, monkeypatch):
    short = synthetic.SWEEPS["tau"]._replace(values=(0.0, 0.5))
    monkeypatch.setitem(synthetic.SWEEPS, "tau", short)
    chosen = ("--sweeps", "tau", "--grid", "paper", "--repeats", 1, "--jobs", 1)
    done = optirank("simulate", *chosen, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    shown = done.stdout[done.stdout.index("along the sweeps") :]
    for words in ("size of the shift", "rank-lr", "oracle", "0.5"):
        assert words in shown


def test_wrong_options_end_before_any_work(tmp_path):
    mine = tmp_path / "table.csv"
    mine.write_text("mine")
    done = optirank("simulate", "--out", tmp_path)
    assert done.exit_code == BAD_INPUT
    assert "is not a folder of results" in done.stderr
    assert [*tmp_path.iterdir()] == [mine]
    assert "no sweep is called 'x'" in optirank("simulate", "--sweeps", "x").stderr


@pytest.mark.usefixtures("without_gpu")
def test_a_gpu_that_is_not_there_is_an_error_before_any_work(tmp_path):
    out = tmp_path / "results"
    done = optirank("simulate", "--device", "cuda", "--out", out)
    assert done.exit_code != 0
    assert "optirank-lab[gpu]" in done.stderr
    assert not out.exists()
