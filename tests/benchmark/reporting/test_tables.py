"""The tables as CSV, Markdown and LaTeX."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_results import made_results

from optirank.benchmark.reporting import latex, layout, markdown, tables
from optirank.benchmark.reporting.analysis import analyse
from optirank.benchmark.reporting.layout import Cell, Column, Table

UNSAFE = re.compile(r"(?<!\\)[#$%&_^~{}]|\\(?![a-zA-Z#$%&_{},])")


@pytest.fixture(scope="module")
def found():
    return analyse(made_results())


@pytest.fixture(scope="module")
def built(found):
    return {table.name: table for table in tables.build(found)}


def row_of(table: Table, first: str) -> dict[str, Cell]:
    row = next(row for row in table.rows if row[0].text == first)
    return {column.text: cell for column, cell in zip(table.columns, row, strict=True)}


def body(text: str) -> list[str]:
    """Lines of a LaTeX table between its rules."""
    lines = text.splitlines()
    start = len(lines) - 1 - lines[::-1].index(r"\midrule")
    return [line for line in lines[start + 1 : lines.index(r"\bottomrule")] if line != r"\endhead"]


def test_every_table_is_there(built):
    names = {name for name in built if not name.startswith("pairwise")}
    assert names == {
        *("summary", "summary_single", "summary_multi", "standings", "over_tasks", "wilcoxon"),
        *("genes", "genes_single", "genes_multi", "runtimes", "grid_times", "multi_vs_single"),
        *("settings", "tasks"),
    }
    assert sum(name.startswith("pairwise_") for name in built) == 15 + 2 * 2
    assert "pairwise_nki_er-vdx_er-expo_er_multi" in built


def test_a_score_has_its_error_its_rank_and_bold(found, built):
    frame = found.summary[found.summary["scenario"] == ""].set_index(["task", "classifier"])
    for name in ("lr", "optirank", "rank-lr"):
        expected = frame.loc[("nki_er-vdx_er", name)]
        cell = row_of(built["summary"], "nki_er-vdx_er")[name]
        score = f"{100 * expected['mean']:.1f} ± {100 * expected['se']:.1f}"
        assert cell.text == f"{score} ({expected['rank']:.0f})"
        assert cell.bold == expected["bold"]
        assert cell.sort == expected["mean"]


def test_plain_tasks_have_five_columns_and_triples_six(built):
    assert "ANrank-lr" not in [column.text for column in built["summary"].columns]
    assert "ANrank-lr" in [column.text for column in built["summary_multi"].columns]


def test_the_matrix_has_signs_below_and_percentages_above(found, built):
    table = built["pairwise_nci60_p53"]
    frame = found.pairwise[found.pairwise["task"] == "nci60_p53"].set_index(["row", "column"])
    names = [column.text for column in table.columns[1:]]
    for i, first in enumerate(names):
        for j, second in enumerate(names):
            cell = table.rows[i][j + 1]
            if i == j:
                assert cell.text == ""
                continue
            row = frame.loc[(first, second)]
            if i < j:
                assert cell.text == f"{row['percent_better']:.0f}"
            else:
                assert cell.text == {1: "+", -1: "−", 0: ""}[row["sign"]]
            assert cell.tone == {1: "better", -1: "worse", 0: ""}[row["sign"]]


def test_genes_are_laid_out_as_in_the_paper(built):
    plain = [column.text for column in built["genes"].columns]
    assert plain[-2:] == ["optirank ≤ lr (%)", "lr ≤ optirank (%)"]
    multi = [column.text for column in built["genes_multi"].columns]
    names = ("optirank", "ANrank-lr", "lr")
    assert multi[-3:] == [f"{name} ≤ others (%)" for name in names]


def test_markdown_tables_have_as_many_cells_in_every_row(built):
    for table in built.values():
        lines = [line for line in markdown.render(table).splitlines() if line.startswith("|")]
        assert len(lines) == len(table.rows) + 2
        assert {line.count("|") for line in lines} == {len(table.columns) + 1}


def test_latex_tables_have_rules_between_kinds_of_shift(built):
    text = latex.render(built["summary"])
    assert text.count(r"\hline") == 3
    assert r"\begin{tabular}{|l|ccccc|}" in text
    assert re.search(r"\$\\mathbf\{\d+\.\d \\pm \d+\.\d\}\$ \\textbf\{\(1\)\}", text)


def test_latex_is_balanced_and_every_row_has_as_many_cells(built):
    for table in built.values():
        text = latex.render(table)
        ends = re.findall(r"\\end\{(\w+)\}", text)
        assert sorted(re.findall(r"\\begin\{(\w+)\}", text)) == sorted(ends)
        assert _depth(text) == 0
        assert text.replace(r"\$", "").count("$") % 2 == 0
        assert text.isascii()
        shown = sum(column.in_latex for column in table.columns)
        rows = [line for line in body(text) if line != r"\hline"]
        assert len(rows) == len(table.rows)
        assert all(line.endswith(r" \\") for line in rows)
        assert {len(re.findall(r"(?<!\\)&", line)) for line in rows} == {shown - 1}


def _depth(text: str) -> int:
    text = text.replace(r"\{", "").replace(r"\}", "")
    return text.count("{") - text.count("}")


def test_latex_names_the_packages_it_needs(built):
    assert "xcolor" in latex.render(built["pairwise_nci60_p53"]).splitlines()[0]
    assert "xcolor" not in latex.render(built["summary"]).splitlines()[0]
    settings = latex.render(built["settings"])
    assert "longtable" in settings.splitlines()[0]
    assert r"\begin{longtable}" in settings


@given(st.text(max_size=30))
def test_any_text_is_safe_in_latex(words):
    escaped = latex.escape(words)
    plain = re.sub(r"\$[^$]*\$", "", escaped.replace(r"\$", ""))
    plain = plain.replace("{[}", "").replace("{*}", "")
    assert "[" not in plain
    assert "*" not in plain
    plain = re.sub(r"\\text\w+\{\}|\\ldots\{\}", "", plain)
    assert not UNSAFE.search(plain)
    assert _depth(escaped) == 0
    assert "\n" not in escaped


def test_bad_names_are_escaped_everywhere():
    found = analyse(made_results(["50%_&_#1 {x}|y*"], [], classes=("a_b", "β~^\\")))
    for table in tables.build(found):
        for line in body(latex.render(table)):
            plain = re.sub(r"\$[^$]*\$|\\text\w+\{\}", "", line.replace(r"\$", ""))
            assert not re.search(r"(?<!\\)[#%_^~]", plain)
        rows = [line for line in markdown.render(table).splitlines() if line.startswith("|")]
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in rows} == {len(table.columns) + 1}
    assert latex.escape("β") == r"$\beta$"
    assert "/" not in tables.scenario_name("pairwise_a/b c", "multi")


def test_csv_frames_keep_full_precision(found, built):
    frame = built["summary"].frame
    assert np.array_equal(frame["mean"], found.summary[found.summary["scenario"] == ""]["mean"])


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (135.4, 37.9, "135 ± 38"),
        (10.04, 1.06, "10.0 ± 1.1"),
        (1.5, np.nan, "1.50"),
        (0.25, 0.01, "0.250 ± 0.010"),
        (0.0123, 0.001, "0.0123 ± 0.0010"),
        (np.nan, np.nan, "–"),
    ],
)
def test_seconds_have_about_three_digits(value, error, shown):
    assert layout.seconds(value, error) == shown


def test_p_values_are_never_zero():
    assert layout.p_value(1e-9).text == "<0.001"
    assert layout.p_value(0.04999).text == "0.050"
    assert layout.p_value(np.nan).text == "–"


def test_markdown_shows_text_as_it_is():
    assert markdown.escape("a_b*c|d`e<f") == r"a_b\*c\|d\`e\<f"
    assert markdown.escape("_x_") == r"\_x\_"
    table = Table("t", "T", "c", [Column("a")], [[Cell("1", tone="worse")]], None)
    assert "| *1* |" in markdown.render(table)
