"""The report of whole tasks: means over common tasks, named gaps, figures, page and files."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from made_results import made_results
from made_whole import TOOLS, record, write_run
from typer.testing import CliRunner

from browser import open_page
from optirank.benchmark.reporting import (
    latex,
    markdown,
    report,
    whole_figures,
    whole_tables,
    whole_words,
)
from optirank.benchmark.reporting.analysis import analyse
from optirank.benchmark.reporting.labels import label_points
from optirank.benchmark.reporting.results import collect
from optirank.benchmark.reporting.style import new_figure, style
from optirank.benchmark.reporting.whole_analysis import analyse_whole
from optirank.benchmark.running.storage import WholeUnit
from optirank.cli.app import app
from optirank.cli.errors import BAD_INPUT

PAIRS = ["baron_h1-xin_980g", "nki_er-vdx_er", "vdx_er-expo_er"]
TRIPLE = "nki_er-vdx_er-expo_er"
FEW = ("optirank", "rank-lr", "CellTypist")
NOT_THERE = ("install", "CellTypist is not installed: pip install 'optirank[peers]' | <here>")
FIGURES = ["whole_scores", "whole_genes", "whole_times", "whole_ranks"]


def analysed(folder, *options, **more):
    results = collect(write_run(folder, *options, **more))
    return analyse_whole(results.whole, analyse(results).tasks)


def tables_of(found) -> dict:
    return {table.name: table for table in whole_tables.build(found)}


def cells(table, heading: str) -> dict[str, str]:
    column = [one.text for one in table.columns].index(heading)
    return {row[0].text: row[column].text for row in table.rows}


def without_figures(monkeypatch) -> None:
    monkeypatch.setattr(report.whole_figures, "draw_whole", lambda found: {})
    monkeypatch.setattr(report.figures, "draw_all", lambda found: {})


@pytest.fixture(scope="module")
def all_tools(tmp_path_factory):
    """All tools on 17 tasks, with gaps of several kinds."""
    folder = tmp_path_factory.mktemp("run")
    gaps = {("nki_er-vdx_er", "CellTypist"): ("fit", "ValueError: expect log1p values")}
    gaps["tcga_crc_msi", "SCN"] = ("time", "took more than 900 s")
    gaps[f"{TRIPLE}.multi", "rf"] = ("memory", "was killed")
    gaps["nci60_p53", "centroid"] = None
    for task in ("nki_er-vdx_er", "vdx_er-expo_er", "baron_h1-xin_980g", "tcga_tumours9"):
        gaps[task, "pySingleCellNet"] = ("install", "not installed")
    results = collect(write_run(folder, gaps=gaps))
    return folder, results, report.write(results, folder / "report")


def test_every_number_of_a_record_is_in_the_results(tmp_path):
    scores = [0.5, 0.75, 1.0]
    storage = write_run(tmp_path, PAIRS[:1], [], ["optirank"], splits=3)
    changed = {"validation": [0.8, None, 0.9], "n_genes": [10, 20, 30], "fit_seconds": [1, 2, 6]}
    made = record(PAIRS[0], "optirank", scores, **changed)
    made["predict_seconds"] = {PAIRS[0]: [0.25, 0.5, 0.75]}
    storage.save(WholeUnit(PAIRS[0], "", "optirank"), made)
    results = collect(storage)
    (row,) = analyse_whole(results.whole, analyse(results).tasks).summary.itertuples()
    assert (row.mean, row.n, row.rank) == (0.75, 3, 1)
    assert row.se == pytest.approx(0.25 / np.sqrt(3))
    assert row.validation == pytest.approx(0.85)
    assert (row.n_genes, row.fit_seconds) == (20, 3)
    assert row.predict_1000 == pytest.approx(0.5 / 250 * 1000)
    assert (row.peak_bytes, row.version) == (400_000_000, "optirank 1.2.3")


def test_means_are_over_the_tasks_that_all_ranked_tools_have(tmp_path):
    tools = ("optirank", "rank-lr", "lr-log", "CellTypist")
    tasks = [*PAIRS, "tcga_tumours9", "tcga_crc_cms"]
    gaps = {(task, "CellTypist"): NOT_THERE for task in tasks[:3]}
    gaps[tasks[4], "lr-log"] = ("fit", "no reason")
    found = analysed(tmp_path, tasks, [], tools, gaps=gaps)
    overall = found.overall.set_index("tool")
    assert overall["tasks"].to_dict() == {
        "optirank": 4, "rank-lr": 4, "lr-log": 4, "CellTypist": 2
    }  # fmt: skip
    assert overall["gaps"].to_dict() == {"optirank": 0, "rank-lr": 0, "lr-log": 1, "CellTypist": 3}
    assert found.overall["tool"].iloc[-1] == "CellTypist"
    for tool in tools[:3]:
        assert overall["mean"][tool] == pytest.approx(found.means.loc[tasks[:4], tool].mean())
    own = found.means.loc[tasks[3:]]
    assert overall["mean"]["CellTypist"] == pytest.approx(own["CellTypist"].mean())
    assert overall["ours"]["CellTypist"] == pytest.approx(own["optirank"].mean())
    assert np.isnan(overall["mean_rank"]["CellTypist"])
    table = tables_of(found)["whole_overall"]
    assert cells(table, "accuracy (%)")["CellTypist"].endswith("†")
    assert "mean over 4 tasks (not tcga_crc_cms, where" in table.caption
    assert "† Has no score on some of these tasks" in table.caption
    difference = 100 * (own["CellTypist"] - own["optirank"]).mean()
    shown = cells(table, "against optirank (points)")
    assert float(shown["CellTypist"].replace("−", "-")) == pytest.approx(difference, abs=0.051)
    assert shown["optirank"] == "–"


def test_a_task_with_two_scenarios_counts_once(tmp_path):
    found = analysed(tmp_path, PAIRS[:1], [TRIPLE], FEW)
    assert list(found.means.index) == [PAIRS[0], TRIPLE]
    assert len(tables_of(found)["whole_scores"].rows) == 3
    single = found.summary[(found.summary["scenario"] == "single")].set_index("tool")["mean"]
    assert found.means.loc[TRIPLE].to_dict() == single.to_dict()


def test_gaps_are_named_cells_with_footnotes(tmp_path):
    gaps = {
        (PAIRS[0], "CellTypist"): NOT_THERE,
        (PAIRS[1], "CellTypist"): NOT_THERE,
        (PAIRS[1], "rank-lr"): ("fit", "out of cheese. " * 40),
        (PAIRS[2], "rank-lr"): None,
        (PAIRS[2], "CellTypist"): ("another", "an unknown stage"),
    }
    found = analysed(tmp_path, PAIRS, [], FEW, gaps=gaps)
    tables = tables_of(found)
    scores = tables["whole_scores"]
    assert cells(scores, "CellTypist") == {
        PAIRS[0]: "not installed (a)",
        PAIRS[1]: "not installed (a)",
        PAIRS[2]: "failed (c)",
    }
    assert cells(scores, "rank-lr")[PAIRS[1]] == "failed in training (b)"
    assert cells(scores, "rank-lr")[PAIRS[2]] == "not run"
    assert "(a) CellTypist: CellTypist is not installed: pip install" in scores.caption
    assert scores.caption.count("out of cheese") < 20
    reasons = cells(tables["whole_gaps"], "reason")
    assert reasons["CellTypist"] == "an unknown stage"
    assert len(tables["whole_gaps"].rows) == 4
    assert cells(tables["whole_genes"], "CellTypist")[PAIRS[0]] == "not installed"
    for table in tables.values():
        assert "nan" not in markdown.render(table)
        assert "nan" not in latex.render(table)


def test_equal_scores_share_the_better_rank_in_a_task_and_their_mean_over_tasks(tmp_path):
    storage = write_run(tmp_path, PAIRS[:2], [], FEW, splits=2)
    for task in PAIRS[:2]:
        for tool, score in zip(FEW, (0.75, 0.75, 0.5), strict=True):
            storage.save(WholeUnit(task, "", tool), record(task, tool, [score, score]))
    results = collect(storage)
    found = analyse_whole(results.whole, analyse(results).tasks)
    assert cells(tables_of(found)["whole_scores"], "rank-lr")[PAIRS[0]] == "75.0 ± 0.0 (1)"
    assert cells(tables_of(found)["whole_overall"], "rank")["optirank"] == "1.50"
    assert found.overall.set_index("tool")["first"]["rank-lr"] == 2
    (row,) = (one for one in tables_of(found)["whole_against"].rows if one[0].text == "rank-lr")
    assert [cell.text for cell in row[1:6]] == ["2", "0", "0", "2", "+0.0"]


def test_optirank_is_compared_with_tools_before_and_behind_it_in_the_order(tmp_path):
    found = analysed(tmp_path, PAIRS, [], ("SCN", "optirank", "rank-lr"))
    table = tables_of(found)["whole_against"]
    for row in table.rows:
        difference = (found.means["optirank"] - found.means[row[0].text]).dropna()
        assert int(row[2].text) == (difference > 0).sum()
        assert int(row[3].text) == (difference < 0).sum()
        shown = float(row[5].text.replace("−", "-"))
        assert shown == pytest.approx(100 * difference.mean(), abs=0.051)


def test_the_files_of_all_tools(all_tools):
    folder, results, written = all_tools
    assert written.figures == FIGURES
    names = {path.name for path in (folder / "report" / "tables").iterdir()}
    for name in (*whole_tables.whole_task_tables.BY_TASK, "whole_overall", "whole_scores"):
        assert {f"{name}.csv", f"{name}.md", f"{name}.tex"} <= names
    splits = pd.read_csv(folder / "report" / "tables" / "whole_splits.csv")
    assert len(splits) == len(results.whole.scores)
    assert set(splits["tool"]) == set(TOOLS)
    assert [table.name for table in written.summaries] == ["whole_overall"]


_PROBE = """
<script>addEventListener("load", () => {
  Object.assign(document.body.dataset, {
    broken: [...document.images].filter(image => !image.naturalWidth).length,
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    images: document.images.length,
  });
})</script></body>"""


def test_the_page_of_all_tools_in_a_browser(all_tools, tmp_path):
    text = all_tools[2].page.read_text(encoding="utf-8")
    plain = re.sub(r"base64,[A-Za-z0-9+/=]+", "base64,", text)
    assert "not installed (" in plain
    assert "Tasks that share a training set or a test set are not independent" in plain
    body = plain.split("</style>")[1].split("<script>")[0]
    assert "nan" not in re.sub(r"<[^>]*>", " ", body).replace("nano", "")
    targets = set(re.findall(r'href="#([^"]+)"', plain))
    assert targets <= set(re.findall(r'id="([^"]+)"', plain))
    page = tmp_path / "page.html"
    page.write_text(text.replace("</body>", _PROBE), encoding="utf-8")
    opened = open_page(page, tmp_path / "profile")
    assert opened.console == []
    data = dict(re.findall(r'data-([a-z]+)="([^"]*)"', re.search("<body[^>]*>", opened.dom)[0]))
    assert data == {"broken": "0", "overflow": "0", "images": str(len(FIGURES))}


def everywhere(stage: tuple[str, str] | None) -> dict:
    return {(task, tool): stage for task in PAIRS for tool in FEW}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"plain": PAIRS, "tools": ("optirank",)}, "optirank is trained on all"),
        ({"plain": PAIRS[:1], "tools": FEW}, "over 1 task:"),
        ({"plain": PAIRS[:1], "tools": ("CellTypist",), "splits": 1}, "CellTypist has a mean"),
        ({"plain": PAIRS, "tools": FEW, "gaps": everywhere(NOT_THERE)}, "no scores: every tool"),
        ({"plain": PAIRS, "tools": FEW, "gaps": everywhere(None)}, "no scores: every tool"),
        ({"plain": PAIRS, "tools": FEW, "gaps": {(PAIRS[0], "rank-lr"): None}}, "rank-lr (1 task)"),
    ],
    ids=["one tool", "one task", "one split", "gaps only", "nothing run", "one gap"],
)
def test_a_report_is_made_of_whatever_there_is(tmp_path, options, words):
    results = collect(write_run(tmp_path, triples=[], **options))
    written = report.write(results, tmp_path / "report")
    page = re.sub(r"base64,[A-Za-z0-9+/=]+", "", written.page.read_text(encoding="utf-8"))
    assert words in " ".join(page.split())
    body = page.split("</style>")[1].split("<script>")[0]
    assert "nan" not in re.sub(r"<[^>]*>", " ", body)
    assert '<p id="summary">' not in page


def test_both_kinds_of_problems_are_in_one_report(tmp_path, monkeypatch):
    without_figures(monkeypatch)
    results = made_results(PAIRS, [], ["lr", "optirank"])
    whole = collect(write_run(tmp_path, PAIRS, [], FEW))
    results.whole = whole.whole
    written = report.write(results, tmp_path / "report")
    page = written.page.read_text(encoding="utf-8")
    assert [table.name for table in written.summaries] == ["summary", "whole_overall"]
    assert page.index('id="whole"') < page.index('id="scores"')
    assert "one class against the rest, and" in " ".join(page.split())


@pytest.mark.parametrize("gaps", [{}, everywhere(NOT_THERE)], ids=["scores", "gaps only"])
def test_the_command_prints_the_tools_over_tasks(tmp_path, monkeypatch, gaps):
    without_figures(monkeypatch)
    write_run(tmp_path, PAIRS, [], FEW, gaps=gaps)
    done = CliRunner().invoke(app, ["benchmark", "report", str(tmp_path)])
    assert done.exit_code == 0
    lines = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line.strip()}
    assert lines["CellTypist"][1] == ("0" if gaps else "3")
    assert "Balanced accuracy by task" not in done.stdout
    assert (tmp_path / "report" / "report.html").is_file()


def test_a_folder_in_which_nothing_was_asked_for_has_no_report(tmp_path):
    write_run(tmp_path, PAIRS, [], [])
    done = CliRunner().invoke(app, ["benchmark", "report", str(tmp_path)])
    assert done.exit_code == BAD_INPUT
    assert "contains no finished problem yet" in done.stderr


def test_a_tool_of_another_version_is_shown(tmp_path, monkeypatch):
    without_figures(monkeypatch)
    storage = write_run(tmp_path, PAIRS, [], FEW)
    for task in PAIRS:
        made = record(task, "a new <tool>", [0.9, 0.8])
        storage.save(WholeUnit(task, "", "new"), made)
    results = collect(storage)
    assert cells(tables_of(analyse_whole(results.whole, results.tasks))["whole_tools"], "what")[
        "a new <tool>"
    ] == "–"  # fmt: skip
    page = report.write(results, tmp_path / "report").page.read_text(encoding="utf-8")
    assert "a new &lt;tool&gt;" in page


def test_an_old_folder_without_tools_in_its_log_is_read(tmp_path):
    storage = write_run(tmp_path, PAIRS, [], FEW, gaps=everywhere(None))
    line = storage.log_lines()[0]
    del line["tools"]
    storage.log(line["start"], line)
    assert not collect(storage).whole


def test_sentences_say_what_the_numbers_say(tmp_path):
    storage = write_run(tmp_path, PAIRS, [], FEW, gaps={(PAIRS[0], "CellTypist"): NOT_THERE})
    for task in PAIRS:
        storage.save(WholeUnit(task, "", "optirank"), record(task, "optirank", [0.9, 1.0]))
        storage.save(WholeUnit(task, "", "rank-lr"), record(task, "rank-lr", [0.7, 0.8]))
    results = collect(storage)
    text = " ".join(whole_words.summarise_whole(analyse_whole(results.whole, results.tasks)))
    assert "Each of 3 tools is trained on all classes of a task at once, on 3 tasks." in text
    assert "optirank (1.00, 95.0 %)" in text
    assert "CellTypist (1 task)" in text


def test_sentences_count_the_tasks_of_an_unfinished_run(tmp_path):
    gaps = {(task, tool): None for task in PAIRS[1:] for tool in FEW}
    found = analysed(tmp_path, PAIRS, [], FEW, gaps=gaps)
    assert "on 3 tasks; 1 of them has scores." in whole_words.summarise_whole(found)[0]
    assert set(cells(tables_of(found)["whole_scores"], "optirank").values()) > {"not run"}


def test_quartiles_of_the_scatter(tmp_path):
    found = analysed(tmp_path, PAIRS, [], FEW)
    points = whole_figures.spreads(found, "n_genes").set_index("tool")
    rows = found.summary[found.summary["tool"] == "optirank"]
    assert points["x_middle"]["optirank"] == rows["n_genes"].median()
    assert points["y_low"]["optirank"] == pytest.approx(100 * rows["mean"].quantile(0.25))
    assert set(points.index) == set(FEW)


@pytest.mark.parametrize("kind", ["spread", "crowded"])
def test_names_beside_points_do_not_overlap(kind):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    rng = np.random.default_rng(0)
    x, y = rng.random((2, 13)) * (1.0 if kind == "spread" else 0.12)
    with style():
        figure = new_figure(8.6, 5.4)
        ax = figure.subplots()
        ax.set(xlim=(-0.3, 1.2), ylim=(-0.1, 1.1))
        label_points(ax, x, y, list(TOOLS))
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    boxes = {text.get_text(): text.get_window_extent(canvas.get_renderer()) for text in ax.texts}
    assert sorted(boxes) == sorted(TOOLS)
    for (first, one), (second, other) in combinations(boxes.items(), 2):
        assert not one.overlaps(other), (first, second)
    marks = ax.transData.transform(np.column_stack([x, y]))
    assert not any(box.contains(*mark) for box in boxes.values() for mark in marks)
    assert all(ax.bbox.x0 <= box.x0 and box.x1 <= ax.bbox.x1 for box in boxes.values())
