"""Every script in benchmarks/ runs, with --quick and on small generated sets."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
HELPERS = {
    "timing",
    "studies",
    "tables",
    "model_rivals",
    "model_levels",
    "known_samples",
}
HELPERS |= {path.stem for path in FOLDER.glob("tables_*.py")}
ALL = {
    "run",
    "make_results",
    "draw_curve",
    "draw_differences",
    "draw_problems",
    "draw_sweeps",
    "make_models",
    "make_peers",
    "record_routes",
}  # run the others, or write elsewhere
STUDIES = sorted(
    path.stem for path in FOLDER.glob("*.py") if "from studies" in path.read_text()
)
SPEED = sorted(path.stem for path in FOLDER.glob("bench_*.py"))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Two sets of each of two tissues, of three classes, and the three sets of the
    small tasks.
    """
    anndata = pytest.importorskip("anndata")
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    base = rng.normal(5.0, 1.0, 150)
    effects = rng.normal(0.0, 1.5, (4, 150)) * (rng.random((4, 150)) < 0.3)

    def write(name: str, **labels: list[str]) -> None:
        codes = np.arange(60) % max(len(one) for one in labels.values())
        X = (
            base
            + rng.normal(0, 0.5, 150)
            + effects[codes]
            + rng.normal(0, 0.5, (60, 150))
        )
        obs = pd.DataFrame(
            {key: [one[k % len(one)] for k in codes] for key, one in labels.items()},
            index=[f"s{k}" for k in range(60)],
        )
        var = pd.DataFrame(index=[f"G{k}" for k in range(150)])
        anndata.AnnData(X.astype(np.float32), obs=obs, var=var).write_h5ad(
            folder / f"{name}.h5ad"
        )

    types = ["alpha", "beta", "ductal"]  # the last beside the other two in a tree
    for name in (
        *("baron_h1", "segerstolpe_1000g", "xin_980g"),
        *("golub_leukemia", "armstrong_leukemia"),
    ):
        write(name, cell_type=types)
    write("nci60_p53", cell_type=["p53 mut", "p53 wt"])
    write("tcga_tumours9", cell_type=["kidney", "lung", "liver"])
    write(
        "tcga_crc", cell_type=["colorectal"], cms=["CMS1", "CMS2"], msi=["MSI-H", "MSS"]
    )
    (folder / "pairs.csv").write_text(
        "reference,query,problem\nbaron_h1,xin_980g,pancreas\n"
        "golub_leukemia,armstrong_leukemia,leukaemia\n"
    )
    return folder


def test_every_script_is_tried_here():
    scripts = {path.stem for path in FOLDER.glob("*.py")}
    assert scripts == {*STUDIES, *SPEED, *HELPERS, *ALL, "fill_tables"}


def run(name: str, *options: str) -> str:
    """Run a script with one thread; what it prints."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(FOLDER / f"{name}.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", SPEED)
def test_speed_benchmarks_run(name):
    assert run(name, "--quick")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*STUDIES} - ALL - {"independent"}))
def test_studies_write_their_tables(name, data, tmp_path):
    out = run(
        name, "--quick", "--jobs", "1", "--data", str(data), "--out", str(tmp_path)
    )
    written = sorted(tmp_path.glob("*.csv"))
    assert written
    for path in written:
        assert str(path) in out
        assert len(pd.read_csv(path, comment="#"))


@pytest.mark.slow
def test_the_independent_test_names_the_commit_and_goes_on(data, tmp_path):
    unknown = tmp_path / "unknown"
    unknown.mkdir()
    lines = ["reference,query,problem,reference_study,query_study"]
    known = (("baron_h1", "xin_980g"), ("golub_leukemia", "armstrong_leukemia"))
    for number, sets in enumerate(known):
        names = [f"reference_{number}", f"query_{number}"]
        for own, name in zip(sets, names, strict=True):
            shutil.copy(data / f"{own}.h5ad", unknown / f"{name}.h5ad")
        lines.append(f"{','.join(names)},question {number},one,two")
    (unknown / "pairs.csv").write_text("\n".join(lines) + "\n")
    options = ("--jobs", "1", "--without-tools", "--data", str(unknown))
    out = run("independent", *options, "--out", str(tmp_path))
    path = tmp_path / "independent.csv"
    assert str(path) in out
    text = path.read_text()
    assert " (commit " in text.splitlines()[0]
    table = pd.read_csv(path, skiprows=1, dtype=str, keep_default_na=False)
    assert list(table["part"].unique()) == [
        "pair",
        "curve",
        "missing",
        "agreement",
        "product",
        "error_control",
    ]
    assert "300" not in set(table["k"])  # the sets have 150 genes
    second = table["pair"].unique()[1]
    begun = table[(table["part"] == "pair") | (table["pair"] != second)]
    first_line = text.splitlines()[0] + "\n"
    unfinished = tmp_path / "independent-unfinished.csv"
    unfinished.write_text(first_line + begun.to_csv(index=False))
    path.unlink()
    run("independent", *options, "--out", str(tmp_path))
    assert path.read_text() == text
    assert not unfinished.exists()


@pytest.mark.slow
def test_the_independent_test_lists_all_problems_and_writes_nothing(data, tmp_path):
    pairs = tmp_path / "pairs.csv"
    lines = "baron_h1,xin_980g,\nbaron_h1,nothing,two\nbaron_h1,nci60_p53,three\n"
    pairs.write_text(f"reference,query,problem\n{lines}")
    command = [sys.executable, str(FOLDER / "independent.py"), "--quick"]
    command += ["--data", str(data), "--pairs", str(pairs)]
    before = sorted((FOLDER.parent / "results").iterdir())
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode
    assert done.stderr.startswith("The independent test cannot be run:\n- ")
    assert "Traceback" not in done.stderr
    assert "--quick is a trial" in done.stderr
    assert "pair 1: the column problem is empty" in done.stderr
    assert "no data set is called 'nothing'" in done.stderr
    assert sorted((FOLDER.parent / "results").iterdir()) == before


def test_results_go_on_where_they_were_interrupted(tmp_path):
    sys.path.append(str(FOLDER))
    from make_results import Progress

    data = tmp_path / "data"
    data.mkdir()
    (data / "one.h5ad").write_bytes(b"values")
    args = SimpleNamespace(out=tmp_path, data=data, quick=False, tools=False)
    done = []
    first = Progress.of(args)
    assert not first.resumed
    first.do("curve", lambda: done.append("curve"))
    second = Progress.of(args)
    assert second.resumed
    second.do("curve", lambda: done.append("again"))
    second.do("next", lambda: done.append("next"))
    assert done == ["curve", "next"]
    (data / "one.h5ad").write_bytes(b"others")
    assert not Progress.of(args).resumed
    assert Progress.of(args).finished == []


def test_rows_of_competing_tools_keep_their_versions_and_their_date(tmp_path):
    sys.path.append(str(FOLDER))
    from make_results import line_of_tools, lines_of_tools

    line = line_of_tools(["celltypist", "pysinglecellnet"])
    assert "celltypist 1.7.1, pySingleCellNet 0.1.5; 20" in line
    older = line.replace("; 20", "; 19")
    (tmp_path / "curve.csv").write_text(f"# optirank-lab\n{older}a,b\n1,2\n")
    assert lines_of_tools(tmp_path / "curve.csv") == older


@pytest.mark.slow
def test_tables_are_listed():
    assert "rivals: " in run("fill_tables", "--list")
