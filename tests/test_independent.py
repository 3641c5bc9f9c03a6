"""The independent test: when it may be run, and what its section says."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from optirank_lab.benchmark import sets
from optirank_lab.benchmark.tasks import BenchmarkTask

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import independent
from fill_tables import markdown
from independent import commit_of, problems_of_the_run, rows_so_far
from known_samples import known_sets, why_known
from tables_independent import NOT_RUN, STATISTICS, hypotheses, section

HEADER = "# python benchmarks/independent.py --without-tools (commit abc); x 1; DATE\n"
TOOLS = {"celltypist": "python", "singler": "python", "pysinglecellnet": "python"}


def options(out: Path, *, quick: bool = False, without_tools: bool = True) -> Namespace:
    return Namespace(out=out, quick=quick, without_tools=without_tools)


def git(folder: Path, *command: str) -> None:
    person = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "-C", str(folder), *person, *command], check=True)


@pytest.fixture
def clone(tmp_path):
    """A repository with one commit."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "code.py").write_text("x = 1\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "src")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def test_a_clean_clone_may_be_run_and_a_changed_one_may_not(clone, monkeypatch):
    monkeypatch.setattr(independent, "ROOT", clone)
    monkeypatch.setattr(independent, "RESULTS", clone / "results")
    monkeypatch.setattr(independent.optirank, "__file__", str(clone / "src/x.py"))
    args = options(clone / "results")
    assert [*problems_of_the_run(args, {})] == []
    (clone / "pyproject.toml").write_text("")
    (clone / "src" / "code.py").write_text("x = 2\n")
    (problem,) = problems_of_the_run(args, {})
    assert "uncommitted changes in src/code.py, pyproject.toml" in problem
    assert "commit or stash them" in problem
    assert [*problems_of_the_run(options(clone / "trial"), {})] == []


def test_the_commit_is_that_of_the_clone(clone, tmp_path_factory):
    commit, changed = commit_of(clone)
    assert (len(commit), changed) == (40, [])
    assert commit_of(tmp_path_factory.mktemp("none")) == ("", [])


def test_a_result_that_is_there_is_not_overwritten(tmp_path):
    (tmp_path / "independent.csv").write_text("")
    (problem,) = problems_of_the_run(options(tmp_path), {})
    assert "exists, and a result is never overwritten: move it away" in problem


def test_a_quick_run_never_goes_into_results():
    problems = [*problems_of_the_run(options(independent.RESULTS, quick=True), {})]
    assert any("--quick is a trial" in problem for problem in problems)


def test_competing_tools_take_part_or_are_left_out_on_purpose(tmp_path):
    (problem,) = problems_of_the_run(options(tmp_path, without_tools=False), {})
    assert "celltypist, singler, pysinglecellnet not installed: run make" in problem
    assert not [*problems_of_the_run(options(tmp_path, without_tools=False), TOOLS)]


def test_an_interrupted_run_goes_on_if_all_is_the_same(tmp_path):
    path = tmp_path / "rows.csv"
    pairs = pd.DataFrame({"pair": ["a to b", "c to d"], "n_genes": [100, 200]})
    assert rows_so_far(path, HEADER, pairs)[0] == HEADER
    measured = pd.DataFrame([{"part": "curve", "pair": "a to b", "k": "all"}])
    _, rows = rows_so_far(path, HEADER, pairs)
    rows = pd.concat([rows, measured])
    path.write_text(HEADER + rows.to_csv(index=False))
    tomorrow = HEADER.replace("DATE", "TOMORROW")
    header, rows = rows_so_far(path, tomorrow, pairs)
    assert header == HEADER
    assert list(rows["part"]) == ["pair", "pair", "curve"]
    for other_header, other_pairs in (
        (HEADER.replace("abc", "def"), pairs),
        (HEADER, pairs.assign(n_genes=[100, 201])),
    ):
        with pytest.raises(SystemExit, match="another command, commit, versions, pai"):
            rows_so_far(path, other_header, other_pairs)


def rows_of(pair: str, problem: str, shift: str, gain: float) -> list[dict]:
    """Rows of one pair on which the panel is ahead of the nearest class mean by
    ``gain``.
    """
    about = {"pair": pair, "tissue": problem, "shift": shift}
    curve = [
        {"method": method, "k": k, "balanced_accuracy": 0.9 - behind}
        for k in ("30", "100")
        for method, behind in (("panel", 0.0), ("nearest class mean", gain))
    ]
    missing = [
        {"model": method, "genes": 100, "missing": share, "balanced_accuracy": value}
        for method, behind in (("panel", 0.0), ("nearest class mean", gain))
        for share, value in (
            (0.0, 0.9 - behind),
            (0.3, 0.89 - behind),
            (0.5, 0.88 - behind),
        )
    ]
    product = {"confidence": 0.9, "accuracy": 0.85, "calibration_error": 0.2}
    product |= {"asked_for": "100", "genes": 100}
    agreement = [
        {"kind": kind, "size": 300, "agreement": value}
        for kind, value in (("right", 0.7), ("wrong", 0.1))
    ]
    control = {"n_query": 50, "n_wrong_of_all": 5, "error_classes_equal": 0.0}
    control |= {"target": 0.05, "can_be_shown": True, "n_given": 40, "n_wrong": 1}
    contents = {"n_reference": 60, "n_query": 50, "classes": "x, y", "n_genes": 150}
    parts = {
        "pair": [contents | {"dropped": ""}],
        "curve": [row | {"n_genes": 100} for row in curve],
        "missing": missing,
        "product": [
            product | {"adapted": adapted, "balanced_accuracy": 0.9 + 0.01 * adapted}
            for adapted in (False, True)
        ],
        "error_control": [control],
        "agreement": agreement,
    }
    return [{"part": part} | about | row for part in parts for row in parts[part]]


def section_of(tmp_path: Path, rows: list[dict]) -> dict:
    path = tmp_path / "independent.csv"
    path.write_text(HEADER + pd.DataFrame(rows).to_csv(index=False))
    tables = section(path)
    for table in tables.values():
        assert "nan" not in (table if isinstance(table, str) else markdown(table))
    return tables


def verdicts(tables: dict) -> pd.DataFrame:
    (table,) = (table for table in tables.values() if "verdict" in table)
    return table.set_index("hypothesis")


def test_until_it_is_run_the_section_says_what_is_registered(tmp_path):
    tables = section(tmp_path / "independent.csv")
    assert NOT_RUN in tables
    registered = next(iter(tables.values()))
    named = [f"{one.what} ({one.kind})" for one in hypotheses()]
    assert list(registered["hypothesis"]) == named
    assert {one.statistic for one in hypotheses()} == set(STATISTICS)
    assert "verdict" not in registered


def test_every_hypothesis_gets_a_verdict_over_problems(tmp_path):
    rows = [
        *rows_of("a to b", "one", "platform", 0.02),
        *rows_of("b to a", "one", "platform", 0.04),
        *rows_of("c to d", "two", "platform", 0.06),
        *rows_of("e to f", "three", "platform", 0.09),
    ]
    table = verdicts(section_of(tmp_path, rows))
    gains = np.array([3.0, 6.0, 9.0])
    half = 4.303 * gains.std(ddof=1) / np.sqrt(3)  # t of two degrees of freedom
    found = table["measured"].to_dict()
    names = {one.statistic: f"{one.what} ({one.kind})" for one in hypotheses()}
    ahead = names["panel_100_minus_nearest_mean_100"]
    assert found[ahead] == f"+6.0 ({6 - half:+.1f} to {6 + half:+.1f})"
    assert (6 - half > -2) == (table.loc[ahead, "verdict"] == "holds")
    few = names["panel_30_minus_nearest_mean_30"]
    assert table.loc[few, "verdict"] == ("holds" if half < 6 else "does not hold")
    assert found[names["adapted_minus_plain"]] == "+1.0 (+1.0 to +1.0)"
    assert table.loc[names["agreement_auc"], "verdict"] == "holds"
    calibration = names["calibration_error"]
    assert found[calibration] == "+20.0 (+20.0 to +20.0)"
    assert table.loc[calibration, "verdict"] == "does not hold"
    assert table.loc[calibration, "so"] == hypotheses()[-1].otherwise


def test_problems_that_share_samples_count_once(tmp_path):
    rows = [
        *rows_of("a to b", "one", "platform", 0.02),
        *rows_of("c to d", "two", "platform", 0.06),
    ]
    for row in rows:
        row["group"] = "both"
    table = verdicts(section_of(tmp_path, rows))
    assert "too few problems for an interval" in table["measured"].iloc[0]
    assert (table["verdict"].iloc[0]) == "–"


def test_sets_that_choices_were_made_on_are_known_by_their_samples(data_folder):
    golub = sets.load("golub_leukemia", BenchmarkTask("golub", "golub"), data_folder)
    known = known_sets()
    assert "is a set that choices" in why_known(golub, known)
    scaled = replace(golub, name="other", raw=2.0 * sets.dense(golub.raw) + 1.0)
    assert "golub_leukemia" in why_known(scaled, known)
    rng = np.random.default_rng(0)
    new = replace(golub, name="new", raw=rng.normal(size=golub.raw.shape))
    assert not why_known(new, known)


def test_the_section_says_what_lacks(tmp_path):
    rows = [
        *rows_of("a to b", "one", "platform", 0.02),
        *rows_of("c to d", "two", "unknown", 0.02),
    ]
    failed = {"part": "curve", "pair": "a to b", "tissue": "one", "shift": "platform"}
    rows.append(failed | {"method": "SingleR", "k": "all", "note": "no memory"})
    tables = section_of(tmp_path, rows)
    words = "".join(tables)
    assert "Run at commit abc." in words
    assert "2 pairs of 2 problems" in words
    assert "The platforms of 1 of these pairs are not known" in words
    assert "These are too few problems for an interval." in words
    assert "Not run: CellTypist, pySingleCellNet." in words
    assert "SingleR failed on a to b: no memory." in words
    assert "too few problems for an interval" in verdicts(tables)["measured"].iloc[0]


def test_a_number_of_genes_that_some_pairs_lack_is_marked(tmp_path):
    rows = rows_of("a to b", "one", "platform", 0.02)
    rows += rows_of("c to d", "two", "platform", 0.02)
    large = {"part": "curve", "pair": "a to b", "tissue": "one", "shift": "platform"}
    rows.append(large | {"method": "panel", "k": "300", "balanced_accuracy": 0.9})
    table = section_of(tmp_path, rows)["Mean over problems by number of genes:\n"]
    assert "300 (1 of 2 pairs)" in table
    assert "100" in table


def test_pairs_of_one_platform_are_shown_apart(tmp_path):
    across = rows_of("a to b", "one", "platform", 0.02)
    within = rows_of("c to d", "two", "same platform", 0.8)
    tables = section_of(tmp_path, across + within)
    measured = verdicts(tables)["measured"]
    assert measured.iloc[0].startswith("+2.0 ")
    assert any("Pairs of one platform" in words for words in tables)
    only_within = section_of(tmp_path, within)
    assert any("No pair is across platforms" in words for words in only_within)
