"""`optirank-lab benchmark` from start to end: resumed runs, bad input, one's own folder,
the report.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from benchmark_cases import FIRST, SECOND, THIRD, make_set, write_sets
from fake_peers import GOOD, make_peer
from optirank.cli.command import BAD_INPUT, UNEXPECTED
from optirank_lab.benchmark.tasks import built_in
from optirank_lab.cli import app
from optirank_lab.data.conversion import write_h5ad

TIMES = ["fit_seconds", "predict_seconds", "unit_seconds"]
PAIR, TRIPLE = f"{FIRST}-{SECOND}", f"{FIRST}-{SECOND}-{THIRD}"


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


def benchmark(*arguments: object) -> Done:
    """The command in this process, which has everything imported."""
    done = CliRunner().invoke(app, ["benchmark", *map(str, arguments)])
    return Done(done.exit_code, done.stdout, " ".join(done.stderr.split()))


@pytest.fixture(scope="module")
def sets(tmp_path_factory) -> Path:
    return write_sets(tmp_path_factory.mktemp("sets"))


@pytest.fixture(autouse=True)
def _data(sets, monkeypatch):
    monkeypatch.setenv("OPTIRANK_DATA", str(sets))


def options(out: Path, *more: object) -> list[object]:
    return ["run", "--quick", "--jobs", 1, "--out", out, *more]


def scores(out: Path) -> pd.DataFrame:
    """What must be equal however a run came to its end: all but times."""
    return pd.read_csv(out / "report" / "tables" / "scores.csv").drop(columns=TIMES)


def unit_times(out: Path) -> dict[str, int]:
    return {
        str(path): path.stat().st_mtime_ns for path in (out / "units").rglob("*.json")
    }


def test_built_in_tasks_run_resume_and_are_reported_again(tmp_path):
    out = tmp_path / "out"
    chosen = ("--tasks", PAIR, "--classifiers", "lr,rank-lr,ANrank-lr")
    done = benchmark(*options(out, *chosen))
    assert done.returncode == 0, done.stderr
    assert f"Report: {out / 'report' / 'report.html'}" in done.stdout.replace("\n", "")
    table = scores(out)
    assert set(table["task"]) == {PAIR}
    assert set(table["classifier"]) == {"lr", "rank-lr"}  # there is no second source
    before = unit_times(out)
    again = benchmark(*options(out, *chosen))
    assert "already stored" in again.stdout
    assert unit_times(out) == before
    (out / "report" / "report.html").unlink()
    assert benchmark("report", out).returncode == 0
    pd.testing.assert_frame_equal(scores(out), table)
    assert benchmark("report", out, "--selection", "best").returncode == 0
    assert (out / "report-best" / "report.html").is_file()


def test_run_paper_is_the_papers_tasks_and_their_stand_ins(sets, tmp_path):
    """Two of the four sets of a stand-in's shape are there: what can be run is run."""
    folder = tmp_path / "sets"
    folder.mkdir()
    for number, name in enumerate(("nci60_p53", "baron_h1", "segerstolpe_1000g")):
        (folder / f"{name}.h5ad").write_bytes(
            (sets / f"{(FIRST, SECOND, THIRD)[number]}.h5ad").read_bytes()
        )
    run = ("run", "paper", "--quick", "--data", folder, "--jobs", 1)
    done = benchmark(*run, "--classifiers", "lr", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert set(scores(tmp_path / "out")["task"]) == {
        "nci60_p53",
        "baron_h1-segerstolpe_1000g",
    }
    tests = pd.read_csv(tmp_path / "out" / "report" / "tables" / "tests.csv")
    assert "better" in tests
    refused = benchmark(*run, "--tasks", "TCGA", "--out", tmp_path / "other")
    assert refused.returncode == BAD_INPUT
    assert "run paper has its own tasks" in refused.stderr


def test_the_pairs_of_ones_own_folder_are_run_whole(tmp_path):
    sets, out = write_sets(tmp_path / "sets"), tmp_path / "out"
    (sets / f"{THIRD}.h5ad").unlink()
    (sets / "damaged.h5ad").write_bytes(b"damaged")
    chosen = ("--data", sets, "--classifiers", "centroid,lr-ranks,SingleR")
    python = make_peer(tmp_path, "singler", GOOD)
    done = benchmark(*options(out, *chosen, "--peer", f"singler={python}"))
    assert done.returncode == BAD_INPUT  # for the damaged set
    assert "damaged cannot be run" in done.stderr
    table = scores(out)
    assert len(table["task"].unique()) == 2
    assert set(table["group"]) == {"All classes at once"}
    assert set(table["classifier"]) == {"centroid", "lr-ranks", "SingleR"}
    page = (out / "report" / "report.html").read_text()
    assert "damaged" in page
    refused = benchmark(
        *options(tmp_path / "x", "--data", sets, "--problems", "binary")
    )
    assert refused.returncode == BAD_INPUT
    assert "--problems whole only" in refused.stderr


def test_a_peer_that_is_not_there_is_a_gap_and_no_failure(tmp_path):
    out = tmp_path / "out"
    chosen = (
        "--tasks",
        PAIR,
        "--problems",
        "whole",
        "--classifiers",
        "centroid,SingleR",
    )
    done = benchmark(*options(out, *chosen, "--peer", "singler=/nowhere/python"))
    assert done.returncode == 0, done.stderr
    assert "SingleR has no result: /nowhere/python cannot be run" in done.stderr
    assert set(scores(out)["classifier"]) == {"centroid"}
    assert "What has no result" in (out / "report" / "report.html").read_text()


def test_quick_runs_a_few_tasks(tmp_path):
    done = benchmark(*options(tmp_path / "out", "--classifiers", "lr"))
    assert done.returncode == 0, done.stderr
    assert set(scores(tmp_path / "out")["task"]) == {
        PAIR
    }  # of the quick ones, this has data


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (("--tasks", "nothing"), "no task is called 'nothing'"),
        (("--classifiers", "svm"), "classifier 'svm' is not known"),
        (("--classifiers", "oracle"), "classifier 'oracle' is not known"),
        (("--jobs", 2, "--dask", "tcp://x"), "--jobs and --dask"),
        (("--data", "/nowhere"), "/nowhere"),
        (("--label", "subtype"), "name a folder of your sets by --data"),
        (("--peer", "singler=x"), "--problems whole or both"),
        (("--tasks", PAIR, "--classifiers", "ANrank-lr"), "auxiliary set"),
        (("--tasks", "BRCA"), "optirank-lab datasets fetch brca"),
    ],
)
def test_wrong_options_end_before_any_work(tmp_path, more, word):
    out = tmp_path / "out"
    done = benchmark(*options(out, *more))
    assert done.returncode == BAD_INPUT
    assert word in done.stderr
    assert not out.exists()


def test_tasks_that_cannot_run_are_named_first_and_the_others_complete(
    tmp_path, monkeypatch
):
    sets, out = write_sets(tmp_path / "sets"), tmp_path / "out"
    damaged = make_set(THIRD, 72)
    damaged.obs["cell_type"] = "a"
    write_h5ad(damaged, sets / f"{THIRD}.h5ad")
    monkeypatch.setenv("OPTIRANK_DATA", str(sets))
    names = f"{PAIR},{FIRST}-{THIRD},TCGA"
    done = benchmark(*options(out, "--tasks", names, "--classifiers", "lr"))
    assert done.returncode == BAD_INPUT
    assert f"{FIRST}-{THIRD} cannot be run: 1 common classes" in done.stderr
    assert "TCGA cannot be run" in done.stderr
    assert set(scores(out)["task"]) == {PAIR}


def test_a_failing_classifier_is_said_and_ends_with_an_error(tmp_path, monkeypatch):
    from optirank_lab.benchmark import engine

    def fail(*_, **options):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(engine, "run_unit", fail)
    done = benchmark(*options(tmp_path / "out", "--tasks", PAIR, "--classifiers", "lr"))
    assert done.returncode == UNEXPECTED
    assert done.stderr.count("out of luck") == 1


def test_folders_that_cannot_be_used_are_refused_and_left_alone(tmp_path):
    mine = tmp_path / "mine"
    mine.write_text("mine")
    for out, word in ((mine, "is a file"), (tmp_path, "is not a folder of results")):
        done = benchmark(*options(out))
        assert done.returncode == BAD_INPUT
        assert word in done.stderr
    assert [*tmp_path.iterdir()] == [mine]
    done = benchmark("report", tmp_path)
    assert done.returncode == BAD_INPUT
    assert "holds no results" in done.stderr


def test_nothing_to_run_is_an_error(tmp_path):
    (tmp_path / "empty").mkdir()
    done = benchmark("run", "--out", tmp_path / "out", "--data", tmp_path / "empty")
    assert done.returncode == BAD_INPUT
    assert "no task can be run" in done.stderr


def test_list_says_what_is_ready(sets):
    done = benchmark("list")
    assert done.returncode == 0, done.stderr
    for name in (
        "BRCA",
        "TCGA-PCAWG-met500",
        "baron_h1-segerstolpe_1000g-xin_980g",
        PAIR,
    ):
        assert name in done.stdout
    folder = {path.stem for path in sets.glob("*.h5ad")}
    ready = [task for task in built_in() if task.train and folder.issuperset(task.sets)]
    assert f"{len(ready)} of {len(built_in())} tasks are ready" in done.stdout
    assert len(ready) == 4
    assert "optirank-lab datasets fetch tcga" in done.stdout
    own = benchmark("list", "--data", sets).stdout
    assert own.index(f"{FIRST} to {SECOND}") < own.index("Tasks of the paper")


def test_the_curve_is_written_with_its_figure(tmp_path):
    sets, out = write_sets(tmp_path / "sets"), tmp_path / "new"
    (sets / f"{THIRD}.h5ad").unlink()  # two pairs are left
    done = benchmark("curve", "--data", sets, "--out", out, "--jobs", 1)
    assert done.returncode == 0, done.stderr
    assert "panel" in done.stdout
    text = (out / "curve.csv").read_text()
    assert text.startswith("# optirank-lab benchmark curve")
    assert (out / "curve.png").is_file()


@pytest.mark.slow
def test_a_real_pair_from_data_to_report(data_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("OPTIRANK_DATA", str(data_folder))
    done = benchmark(*options(tmp_path, "--tasks", TRIPLE, "--classifiers", "lr,panel"))
    assert done.returncode == 0, done.stderr
    mean = scores(tmp_path).groupby(["scenario", "classifier"])["test"].mean()
    assert mean["multi", "panel"] > 0.75
    assert mean["single", "lr"] == pytest.approx(
        0.5, abs=0.02
    )  # log-ratios against intensities
