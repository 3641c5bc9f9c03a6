"""The report of a benchmark: its files, its page in a browser, and what a run may lack."""

from __future__ import annotations

import re
from importlib import util

import numpy as np
import pandas as pd
import pytest
from made_results import made_results

from browser import open_page
from optirank.benchmark.reporting import report, words
from optirank.benchmark.reporting.analysis import analyse
from optirank.benchmark.reporting.results import Results

SMALL = {"plain": ["nki_er-vdx_er", "tcga_tumours9"], "triples": ["nki_er-vdx_er-expo_er"]}
TINY = {**SMALL, "plain": ["nki_er-vdx_er"], "classifiers": ["lr", "optirank"]}
FIGURES = ["scores", "genes", "sources", "times", "wins", "ranks"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "report"
    return folder, report.write(made_results(**SMALL), folder)


@pytest.fixture
def no_figures(monkeypatch):
    """Figures take most of the time of a report."""
    monkeypatch.setattr(report.figures, "draw_all", lambda found: {})


def page_text(folder) -> str:
    text = (folder / "report.html").read_text(encoding="utf-8")
    return re.sub(r"base64,[A-Za-z0-9+/=]+", "base64,", text)


def test_tables_and_figures_are_written(written):
    folder, result = written
    assert result.figures == FIGURES
    assert result.page == folder / "report.html"
    assert {path.name for path in result.tables} == {
        path.name for path in (folder / "tables").iterdir()
    }
    for kind in ("csv", "md", "tex"):
        assert (folder / "tables" / f"summary_multi.{kind}").is_file()
    for name in FIGURES:
        for kind in ("png", "svg"):
            assert (folder / "figures" / f"{name}.{kind}").stat().st_size > 5000


def test_csv_files_give_back_every_score_to_the_last_digit(written):
    folder, _ = written
    scores = pd.read_csv(folder / "tables" / "scores.csv", float_precision="round_trip")
    expected = analyse(made_results(**SMALL)).scores
    assert len(scores) == len(expected)
    assert np.array_equal(scores["test"], expected["test"])
    assert np.array_equal(scores["fit_seconds"], expected["fit_seconds"])


def test_the_page_needs_nothing_from_outside(written):
    page = page_text(written[0])
    assert page.count('src="data:image/svg+xml;base64,') == len(FIGURES)
    targets = re.findall(r"""(?:src|href|action|url)\s*[=(]\s*["']?([^"')\s>]+)""", page)
    assert targets
    assert all(target.startswith(("data:", "#")) for target in targets)
    assert "http" not in page
    assert "@import" not in page


def test_links_within_the_page_have_a_target(written):
    page = page_text(written[0])
    targets = set(re.findall(r'href="#([^"]+)"', page))
    assert targets
    assert targets <= set(re.findall(r'id="([^"]+)"', page))


def test_problems_and_missing_tasks_are_listed(written):
    page = page_text(written[0])
    assert "broken.h5ad cannot be read: the file is cut off" in page
    assert "BRCA, TCGA" in page


_PROBE = """
<script>addEventListener("load", () => {
  const table = document.querySelector("table[data-name=settings]");
  const head = table.tHead.rows[0].cells;
  const index = [...head].findIndex(th => th.textContent.trim() === "test (%)");
  const values = () => [...table.tBodies[0].rows].map(row => Number(row.cells[index].dataset.sort));
  const seen = [values().join()];
  for (let k = 0; k < 3; k++) {
    head[index].querySelector("button").click();
    seen.push([head[index].getAttribute("aria-sort"), values().join()].join("|"));
  }
  const names = table.tHead.rows[0].cells[0].querySelector("button");
  table.closest("details").open = true;
  names.focus();
  names.click();
  Object.assign(document.body.dataset, {
    seen: seen.join(";"),
    focused: document.activeElement === names,
    tasks: [...table.tBodies[0].rows].map(row => row.cells[0].textContent).join(),
    broken: [...document.images].filter(image => !image.naturalWidth).length,
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  });
})</script></body>"""


def test_a_click_on_a_heading_sorts_the_rows(written, tmp_path):
    text = written[1].page.read_text(encoding="utf-8")
    page = tmp_path / "page.html"
    page.write_text(text.replace("</body>", _PROBE), encoding="utf-8")
    opened = open_page(page, tmp_path / "profile")
    assert opened.console == []
    data = dict(re.findall(r'data-([a-z]+)="([^"]*)"', re.search("<body[^>]*>", opened.dom)[0]))
    before, down, up, again = data["seen"].split(";")
    original = [float(value) for value in before.split(",")]
    assert original != sorted(original)
    assert _order(down) == ("descending", sorted(original, reverse=True))
    assert _order(up) == ("ascending", sorted(original))
    assert _order(again) == ("", original)
    tasks = data["tasks"].split(",")
    assert tasks == sorted(tasks)
    assert data["focused"] == "true"
    assert data["broken"] == "0"
    assert data["overflow"] == "0"


def _order(seen: str) -> tuple[str, list[float]]:
    order, values = seen.split("|")
    return order, [float(value) for value in values.split(",")]


def test_files_of_an_earlier_report_are_removed_and_no_others(tmp_path):
    report.write(made_results(["nki_er-vdx_er"], SMALL["triples"], ["lr", "rf"]), tmp_path)
    mine = [
        tmp_path / "notes.txt",
        tmp_path / "tables" / "mine.csv",
        tmp_path / "figures" / "my.png",
    ]
    for path in mine:
        path.write_text("mine")
    assert (tmp_path / "figures" / "sources.svg").exists()
    result = report.write(made_results(["tcga_tumours9"], [], ["lr", "rf"]), tmp_path)
    left = {path.name for path in (tmp_path / "tables").iterdir()}
    assert left == {path.name for path in result.tables} | {"mine.csv"}
    assert "pairwise_nki_er-vdx_er.csv" not in left
    assert not (tmp_path / "figures" / "sources.svg").exists()
    assert all(path.read_text() == "mine" for path in mine)


def test_without_the_extra_only_tables_are_written(tmp_path, monkeypatch, no_figures):
    find = util.find_spec
    report.write(made_results(**TINY), tmp_path)
    monkeypatch.setattr(util, "find_spec", lambda name: None if name == "jinja2" else find(name))
    result = report.write(made_results(**SMALL), tmp_path)
    assert result.missing == "pip install 'optirank[report]'"
    assert result.page is None
    assert result.figures == []
    assert (tmp_path / "tables" / "summary.md").is_file()
    assert not (tmp_path / "report.html").exists()


def without(results: Results, **where) -> Results:
    """Results without the rows that match."""
    drop = pd.Series(True, index=results.scores.index)
    for name, value in where.items():
        drop &= results.scores[name] == value
    return Results(results.scores[~drop], results.tasks, results.problems, results.run)


LACKING = {
    "no scores": lambda: Results(made_results().scores.iloc[:0], made_results().tasks, {}, {}),
    "no columns": lambda: Results(pd.DataFrame(), pd.DataFrame(), {"a": "why"}, {}),
    "one classifier": lambda: made_results(["nki_er-vdx_er"], [], ["optirank"]),
    "another classifier": lambda: made_results(["nki_er-vdx_er"], [], ["rf"]),
    "only triples": lambda: made_results([], TINY["triples"], TINY["classifiers"]),
    "only multi": lambda: without(
        made_results([], TINY["triples"], TINY["classifiers"]), scenario="single"
    ),
    "no optirank": lambda: made_results(**{**TINY, "classifiers": ["ANrank-lr", "lr"]}),
    "one split and class": lambda: made_results(**TINY, splits=1, classes=["a"]),
    "unfinished": lambda: without(made_results(**TINY), classifier="optirank", positive="beta"),
    "a task unknown": lambda: Results(
        made_results(**TINY).scores, made_results().tasks.iloc[:0], {}, {"profile": "quick"}
    ),
}


@pytest.mark.parametrize("lacking", LACKING)
def test_a_report_is_made_of_whatever_there_is(lacking, tmp_path):
    result = report.write(LACKING[lacking](), tmp_path)
    page = page_text(tmp_path)
    assert result.page.is_file()
    assert "nan" not in re.sub(r"<[^>]*>", " ", page.split("<script>")[0].split("</style>")[1])
    summary = re.search(r'<p id="summary">(.*?)</p>', page, re.DOTALL)[1]
    assert len(summary) > 40


def test_without_scores_the_summary_says_so():
    text = words.summarise(analyse(LACKING["no scores"]()))
    assert text == ["There are no scores yet: no unit of work has finished."]


def test_the_page_names_what_is_unfinished(tmp_path, no_figures):
    report.write(LACKING["unfinished"](), tmp_path)
    page = page_text(tmp_path)
    assert "The run is not finished" in page
    assert "nki_er-vdx_er: optirank" in page
    assert "(1)†" in page or "(2)†" in page


def test_the_quick_profile_is_no_basis_for_a_judgement(tmp_path, no_figures):
    results = made_results(["nki_er-vdx_er"], [])
    results.run["profile"] = "quick"
    report.write(results, tmp_path)
    assert "quick profile" in page_text(tmp_path)


def test_constant_scores_are_no_difference(tmp_path, no_figures):
    results = made_results(["nki_er-vdx_er"], [])
    results.scores["test"] = 0.5
    report.write(results, tmp_path)
    frame = pd.read_csv(tmp_path / "tables" / "pairwise_nki_er-vdx_er.csv")
    assert (frame["sign"] == 0).all()
    assert (frame["percent_ties"] == 100).all()


def test_another_rule_is_not_counted_as_a_classifier(no_figures, tmp_path):
    results = made_results(**TINY)
    other = results.scores[results.scores["classifier"] == "lr"].assign(classifier="lr (transfer)")
    results.scores = pd.concat([results.scores, other], ignore_index=True)
    results.run["selection"] = ["one_se", "transfer"]
    text = " ".join(words.summarise(analyse(results)))
    assert "This run compares 2 classifiers" in text
    assert "Names with (transfer) are settings chosen by another rule." in text
    report.write(results, tmp_path / "report")
    page = page_text(tmp_path / "report")
    assert "transfer: validation samples are scored as they are and on simulated" in page
    assert "the one-standard-error rule takes" in page


def test_the_summary_says_what_the_numbers_say():
    results = made_results(["nki_er-vdx_er", "tcga_tumours9"], [], ["lr", "optirank"])
    better = results.scores["classifier"] == "optirank"
    results.scores["test"] = np.where(better, 0.9, 0.7) + 0.01 * results.scores["split"]
    text = " ".join(words.summarise(analyse(results)))
    assert "compares 2 classifiers on 2 tasks with one source" in text
    assert "optirank (1.00, 92.0 %), lr (2.00, 72.0 %)" in text
    assert "higher mean than lr on 2 of 2 tasks (significantly higher on 2" in text
    assert "+20.0 points" in text
    assert "p = 0.500" in text


def test_names_from_files_are_escaped_in_the_page(tmp_path, no_figures):
    name = "<script>alert(1)</script>&"
    results = made_results(["nki_er-vdx_er"], [], classes=[name, "b"])
    results.problems["<b>"] = name
    report.write(results, tmp_path)
    page = page_text(tmp_path)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;" in page
