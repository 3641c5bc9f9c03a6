"""`optirank benchmark` from start to end: resumed runs, bad input, the report."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from benchmark_cases import TASKS, make_set, write_sets
from optirank.cli.app import app
from optirank.cli.errors import BAD_INPUT, INTERRUPTED, UNEXPECTED
from optirank.datasets.writing import write_h5ad

TIMES = ("fit_seconds", "unit_seconds")


def command(*arguments: object) -> list[str]:
    code = "from optirank.cli import main; main()"
    return [sys.executable, "-c", code, "benchmark", *map(str, arguments)]


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


def benchmark(*arguments: object) -> Done:
    """The command in this process, which has everything imported."""
    done = CliRunner().invoke(app, ["benchmark", *map(str, arguments)])
    return Done(done.exit_code, done.stdout, done.stderr)


def options(sets: Path, out: Path, *more: object) -> list[object]:
    chosen = ("--data", sets, "--task-file", sets / "tasks.toml", "--out", out)
    return ["run", "--quick", *chosen, *more]


def scores(out: Path) -> pd.DataFrame:
    """What must be equal however a run came to its end: all but times."""
    table = pd.read_csv(out / "report" / "tables" / "scores.csv")
    columns = [name for name in table if name not in TIMES]
    return table[columns].sort_values(["task", "scenario", "positive", "classifier", "split"])


def unit_times(out: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in (out / "units").rglob("*.json")}


@pytest.fixture(scope="module")
def sets(tmp_path_factory) -> Path:
    return write_sets(tmp_path_factory.mktemp("sets"))


@pytest.fixture(scope="module")
def finished(sets, tmp_path_factory) -> Path:
    """Results of all tasks whose data are there, with all classifiers."""
    out = tmp_path_factory.mktemp("benchmark") / "out"
    done = benchmark(*options(sets, out, "--jobs", 1))
    assert done.returncode == 0, done.stderr
    assert f"Report: {out / 'report' / 'report.html'}" in done.stdout.replace("\n", "")
    return out


def test_every_task_and_classifier_is_in_the_results(finished):
    table = scores(finished)
    assert set(table["task"]) == {"pair", "triple", "base", "elsewhere", "inside"}
    assert set(table["scenario"].dropna()) >= {"single", "multi"}
    for scenario in ("single", "multi"):
        part = table[table["scenario"] == scenario]
        assert set(part["classifier"]) == {"ANrank-lr", "SCN", "lr", "optirank", "rank-lr", "rf"}
    plain = table[table["task"] == "pair"]
    assert set(plain["classifier"]) == {"SCN", "lr", "optirank", "rank-lr", "rf"}
    assert table.groupby("classifier")["test"].mean()["optirank"] > 0.9


def test_a_second_run_computes_nothing_again(finished, sets):
    before = unit_times(finished)
    done = benchmark(*options(sets, finished, "--jobs", 1))
    assert done.returncode == 0, done.stderr
    assert "already stored" in done.stdout
    assert unit_times(finished) == before


def test_the_report_is_made_again(finished):
    page = finished / "report" / "report.html"
    before = scores(finished)
    page.unlink()
    done = benchmark("report", finished)
    assert done.returncode == 0, done.stderr
    assert page.is_file()
    pd.testing.assert_frame_equal(scores(finished), before)


def start(*arguments: object) -> subprocess.Popen:
    return subprocess.Popen(
        command(*arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Ctrl-C counts in the child also where the tests run in the background, which ignores it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for_units(process: subprocess.Popen, out: Path, n: int) -> None:
    deadline = time.monotonic() + 120
    while len(unit_times(out)) < n:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_killed_run_goes_on_and_ends_with_the_same_tables(sets, tmp_path):
    chosen = ("--tasks", "pair,base", "--classifiers", "lr,optirank,rank-lr")
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert benchmark(*options(sets, whole, *chosen, "--jobs", 1)).returncode == 0
    process = start(*options(sets, out, *chosen, "--jobs", 2))
    wait_for_units(process, out, 5)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = unit_times(out)
    assert len(kept) < len(unit_times(whole))
    done = benchmark(*options(sets, out, *chosen, "--jobs", 1))
    assert done.returncode == 0, done.stderr
    after = unit_times(out)
    assert {path: after[path] for path in kept} == kept
    pd.testing.assert_frame_equal(
        scores(out).reset_index(drop=True), scores(whole).reset_index(drop=True)
    )
    assert not list(out.rglob("*.tmp"))


def test_an_interrupt_keeps_what_is_finished(sets, tmp_path):
    out = tmp_path / "out"
    process = start(*options(sets, out, "--jobs", 2))
    wait_for_units(process, out, 1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=180)
    assert process.returncode == INTERRUPTED, errors
    assert "the same command continues" in errors.replace("\n", " ")
    assert (out / "log.json").is_file()


def write_damaged(folder: Path) -> dict[str, str]:
    """Tasks that cannot run, one for each kind of damage, and the words that must be said."""
    sets = {name: make_set("second", 72, 38) for name in ("unlabelled", "one_class", "foreign")}
    sets["unlabelled"].obs.rename(columns={"cell_type": "type"}, inplace=True)
    sets["one_class"].obs["cell_type"] = "a"
    sets["foreign"].gene_names[:] = [f"other{j}" for j in range(38)]
    for name, data in sets.items():
        write_h5ad(data, folder / f"{name}.h5ad")
    content = (folder / "second.h5ad").read_bytes()
    (folder / "truncated.h5ad").write_bytes(content[:1000])
    words = {
        "unlabelled": "no column 'cell_type'",
        "one_class": "1 common classes",
        "foreign": "0 common genes",
        "truncated": "truncated.h5ad",
        "absent": "no data set is called 'absent'",
    }
    task = TASKS.split("[[task]]")[1]
    with (folder / "tasks.toml").open("a") as file:
        for name in words:
            own = task.replace('"pair"', f'"to {name}"').replace('"second"', f'"{name}"')
            file.write(f"[[task]]{own}")
    return words


def test_tasks_that_cannot_run_are_named_first_and_the_others_complete(tmp_path):
    sets, out = write_sets(tmp_path / "sets"), tmp_path / "out"
    words = write_damaged(sets)
    names = ",".join([*(f"to {name}" for name in words), "base"])
    done = benchmark(*options(sets, out, "--tasks", names, "--classifiers", "lr", "--jobs", 1))
    assert done.returncode == BAD_INPUT
    before_work = done.stderr.splitlines()[: len(words)]
    page = (out / "report" / "report.html").read_text()
    for name, word in words.items():
        (said,) = [line for line in before_work if line.startswith(f"to {name} cannot be run: ")]
        assert word in said
        assert f"to {name}" in page
    assert "Traceback" not in done.stderr
    assert set(scores(out)["task"]) == {"base", "elsewhere"}


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (("--tasks", "nothing"), "no task is called 'nothing'"),
        (("--classifiers", "svm"), "classifier 'svm' is not known"),
        (("--classifiers", "oracle"), "classifier 'oracle' is not known"),
        (("--jobs", 2, "--dask", "tcp://x"), "--jobs and --dask"),
        (("--data", "/nowhere"), "/nowhere"),
        (("--task-file", "/nowhere.toml"), "/nowhere.toml"),
    ],
)
def test_wrong_options_end_before_any_work(sets, tmp_path, more, word):
    out = tmp_path / "out"
    done = benchmark(*options(sets, out, *more))
    assert done.returncode == BAD_INPUT
    assert word in " ".join(done.stderr.split())
    assert not out.exists()


def test_a_file_as_the_folder_is_refused(sets, tmp_path):
    out = tmp_path / "out"
    out.write_text("mine")
    done = benchmark(*options(sets, out))
    assert done.returncode == BAD_INPUT
    assert out.read_text() == "mine"


def test_a_folder_of_something_else_is_refused_and_left_alone(sets, tmp_path):
    mine = [tmp_path / "report" / "tables" / "mine.csv", tmp_path / ".mine.tmp"]
    for path in mine:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    done = benchmark(*options(sets, tmp_path, "--tasks", "base", "--classifiers", "lr"))
    assert done.returncode == BAD_INPUT
    assert "is not a folder of results" in " ".join(done.stderr.split())
    assert [path for path in sorted(tmp_path.rglob("*")) if path.is_file()] == sorted(mine)


def test_files_of_others_in_a_folder_of_results_stay(sets, tmp_path):
    out, chosen = tmp_path / "out", ("--tasks", "base", "--classifiers", "lr", "--jobs", 1)
    assert benchmark(*options(sets, out, *chosen)).returncode == 0
    names = ("report/tables/mine.csv", "report/figures/mine.png", ".mine.tmp", "units/.mine.tmp")
    for name in names:
        (out / name).write_text("mine")
    assert benchmark(*options(sets, out, *chosen)).returncode == 0
    assert benchmark("report", out).returncode == 0
    assert all((out / name).read_text() == "mine" for name in names)


def test_a_folder_without_results_has_no_report(tmp_path):
    done = benchmark("report", tmp_path)
    assert done.returncode == BAD_INPUT
    assert "holds no results" in done.stderr


def test_a_failing_unit_is_said_and_the_others_complete(sets, tmp_path, monkeypatch):
    from optirank.benchmark.running import runner

    def compute(unit, work):
        if unit.classifier == "rank-lr":
            raise RuntimeError("out of luck")
        return run_unit(unit, work)

    run_unit = runner.compute
    monkeypatch.setattr(runner, "compute", compute)
    out, chosen = tmp_path / "out", ("--tasks", "base", "--classifiers", "lr,rank-lr", "--jobs", 1)
    alone = ("--tasks", "base", "--classifiers", "rank-lr", "--jobs", 1)
    assert benchmark(*options(sets, tmp_path / "none", *alone)).returncode == UNEXPECTED
    done = benchmark(*options(sets, out, *chosen))
    assert done.returncode == UNEXPECTED
    assert done.stderr.count("out of luck") == 1
    assert "base failed: rank-lr, a, split 0" in done.stderr
    assert set(scores(out)["classifier"]) == {"lr"}
    monkeypatch.setattr(runner, "compute", run_unit)
    assert benchmark(*options(sets, out, *chosen)).returncode == 0
    assert set(scores(out)["classifier"]) == {"lr", "rank-lr"}
    path = next((out / "units" / "base").glob("*-lr.json"))
    whole = path.read_text()
    path.write_text(whole[:30])  # a damaged unit is computed again
    assert benchmark(*options(sets, out, *chosen)).returncode == 0
    assert len(path.read_text()) > 100


def test_data_that_no_gene_of_passes_are_found_before_fitting(tmp_path):
    sets, out = write_sets(tmp_path / "sets"), tmp_path / "out"
    data = make_set("first")
    write_h5ad(replace(data, X=-data.X - 0.5 * (data.X > 0)), sets / "first.h5ad")
    done = benchmark(*options(sets, out, "--tasks", "pair", "--jobs", 1))
    assert done.returncode == BAD_INPUT
    assert "pair cannot be run: none of the" in done.stderr
    assert not out.exists()


def test_anrank_lr_alone_needs_a_second_source(sets, tmp_path):
    chosen = ("--tasks", "pair", "--classifiers", "ANrank-lr")
    done = benchmark(*options(sets, tmp_path / "out", *chosen))
    assert done.returncode == BAD_INPUT
    assert "auxiliary set" in done.stderr


def test_nothing_to_run_is_an_error(tmp_path):
    (tmp_path / "empty").mkdir()
    done = benchmark("run", "--out", tmp_path / "out", "--data", tmp_path / "empty")
    assert done.returncode == BAD_INPUT
    assert "no task can be run" in " ".join(done.stderr.split())


def test_list_says_what_is_here(sets):
    done = benchmark("list", "--data", sets, "--task-file", sets / "tasks.toml")
    assert done.returncode == 0, done.stderr
    for name in ("BRCA", "TCGA-PCAWG-met500", "baron_h1-segerstolpe_1000g-xin_980g", "triple"):
        assert name in done.stdout
    assert "5 of 37 tasks can be run" in done.stdout
    assert "optirank datasets fetch tcga" in done.stdout


def test_a_reader_that_leaves_is_no_error():
    with start("list") as process:
        process.stdout.close()
        assert process.stderr.read() == ""


def test_a_real_pair_from_data_to_report(data_folder, tmp_path):
    out = tmp_path / "out"
    chosen = ("--tasks", "nki_er-vdx_er-expo_er", "--data", data_folder, "--out", out)
    done = benchmark("run", "--quick", *chosen, "--jobs", 1, "--classifiers", "lr,optirank")
    assert done.returncode == 0, done.stderr
    table = scores(out)
    assert set(table["scenario"]) == {"single", "multi"}
    mean = table.groupby(["scenario", "classifier"])["test"].mean()
    assert mean["multi", "optirank"] > 0.8
    assert mean["single", "lr"] == pytest.approx(0.5, abs=0.02)  # log-ratios against intensities
    assert np.isfinite(table["test"]).all()


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same_tables(finished, sets, tmp_path):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
    ):
        out = tmp_path / "out"
        done = benchmark(*options(sets, out, "--dask", cluster.scheduler_address))
    assert done.returncode == 0, done.stderr
    pd.testing.assert_frame_equal(
        scores(out).reset_index(drop=True), scores(finished).reset_index(drop=True)
    )
    assert os.path.isfile(out / "report" / "report.html")
