"""The report: one set of tables, figures and one page for all kinds of results."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from browser import open_page
from optirank_lab.benchmark.report import write
from optirank_lab.benchmark.results import SCORES, Results
from optirank_lab.benchmark.text import (
    by_task_text,
    duration,
    markdown,
    standings_text,
    wins_text,
)

HOSTILE = "<script>alert('x')</script> & _100%"


def made(groups=("Each class against the rest", "All classes at once")) -> Results:
    """Results of three classifiers on six tasks of five tissues; "panel" lacks
    one task.
    """
    random = np.random.default_rng(0)
    rows = []
    for group in groups:
        for k, task in enumerate(["one", "two", "three", "four", "five", HOSTILE]):
            for name, level in (("panel", 0.9), ("optirank", 0.85), ("lr", 0.6)):
                if (name, task) == ("panel", HOSTILE):
                    continue
                for split in range(3):
                    row = {
                        "group": group,
                        "task": task,
                        "tissue": f"tissue {max(1, k)}",
                        "kind": "bulk",
                        "problem": "a",
                        "classifier": name,
                        "part": 0,
                        "split": split,
                        "test": level + random.normal(0, 0.01),
                        "n_genes": 30,
                    }
                    rows.append(dict.fromkeys(SCORES, 1.0) | row)
    scores = pd.DataFrame(rows)
    gaps = pd.DataFrame(
        [{"task": HOSTILE, "classifier": "panel", "reason": "out of <luck>"}]
    )
    tasks = pd.DataFrame(
        {"task": ["one", HOSTILE], "title": ["x", HOSTILE], "tissue": "pancreas"}
    )
    run = {
        "profile": "quick",
        "settings chosen by": "one_se",
        "seed": 0,
        "classifiers": {"lr": "logistic regression"},
        "cpu_seconds": 90.0,
        "python": "3.12",
        "platform": "Linux",
        "version": "1.0",
        "missing": ["TCGA"],
    }
    return Results(scores, tasks, gaps, run)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return folder, write(made(), folder)


def test_the_page_opens_with_its_answer(written):
    page = written[1].page.read_text("utf-8")
    first = re.search(r'<div class="card"><b>(.*?)</b><span>(.*?)</span>', page)
    assert first[1] == "optirank"  # of those that have all tasks
    assert "has the best mean" in first[2]
    assert page.index('class="card"') < page.index("<table")
    assert "points above lr" in page
    assert re.search(r"<b>6 / 0 / 0</b><span>tasks won, tied and lost against lr", page)
    for words in (
        "Each class against the rest",
        "All classes at once",
        "bootstrap over tissues",
        "Mean over tasks with its 95 % interval.",
        "<b>6 tasks</b><span>of 5 tissues</span>",
        "Settings: quick profile",
        "share their test samples",
        "What has no result",
        "TCGA",
        "1.5 minutes of CPU time",
    ):
        assert words in page


def test_an_interval_of_few_tissues_is_not_shown(tmp_path):
    results = made()
    results.scores["tissue"] = "pancreas"
    page = write(results, tmp_path).page.read_text("utf-8")
    assert "95 % interval " not in page.split("<table")[0]
    assert "with its 95 % interval" not in page
    assert "<span>of 1 tissue</span>" in page
    assert "Fewer than 5 tissues show too little for a 95 % interval" in page


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(2.34, "2.3 seconds"), (90, "1.5 minutes"), (9000, "2.5 hours")],
)
def test_a_time_has_the_unit_that_suits_it(seconds, words):
    assert duration(seconds) == words


def test_names_from_files_cannot_change_the_page(written):
    page = written[1].page.read_text("utf-8")
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "out of &lt;luck&gt;" in page


@pytest.mark.slow
def test_the_page_opens_without_complaint_and_fits_a_phone(written, tmp_path):
    page = tmp_path / "page.html"
    check = (
        "<script>addEventListener('load', () => { document.body.dataset.broken ="
        " [...document.images].filter(i => !i.naturalWidth).length; })</script></body>"
    )
    text = written[1].page.read_text("utf-8")
    page.write_text(text.replace("</body>", check), encoding="utf-8")
    opened = open_page(page, tmp_path / "profile")
    assert opened.console == []
    assert 'data-broken="0"' in opened.dom
    assert 'name="viewport"' in text
    assert "prefers-color-scheme: dark" in text


def test_tables_and_figures_are_files_too(written):
    folder, _ = written
    for name in ("scores", "standings", "wins", "tests", "gaps", "tasks"):
        assert len(pd.read_csv(folder / "tables" / f"{name}.csv"))
    for name in ("standings", "wins", "by_task"):
        assert "| --- |" in (folder / "tables" / f"{name}.md").read_text()
        assert r"\toprule" in (folder / "tables" / f"{name}.tex").read_text()
    assert r"\_100\%" in (folder / "tables" / "by_task.tex").read_text()
    for name in ("means-1", "tasks-1", "genes-2"):
        assert (folder / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / "figures" / f"{name}.svg").read_text()
    assert not list(folder.rglob("*.tmp"))


def test_the_tables_say_what_the_statistics_found(written):
    group = written[1].comparisons[0]
    text = standings_text(group).set_index("classifier")
    assert text.loc["optirank", "tasks"] == "6"
    assert text.loc["panel", "tasks"] == "5"
    assert text.loc["optirank", ["won", "tied", "lost"]].tolist() == ["6", "0", "5"]
    assert float(text.loc["optirank", "mean"]) == pytest.approx(85, abs=1.5)
    assert " to " in text.loc["optirank", "95 % interval"]
    assert wins_text(group).set_index("").loc["panel", "lr"] == "5/0/0"
    rows = by_task_text(group).set_index("task")
    assert rows.loc["one", "panel"].endswith("*")
    assert not rows.loc["one", "lr"].endswith("*")
    assert rows.loc[HOSTILE, "panel"] == "–"


def test_markdown_by_hand():
    frame = pd.DataFrame({"a": ["x|y"], "b": ["1"]})
    assert markdown(frame) == "| a | b |\n| --- | ---: |\n| x\\|y | 1 |\n"
