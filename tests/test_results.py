"""Numbers on the pages are those of results/, and every table there names its
command.
"""

from __future__ import annotations

import re
import sys
from importlib.resources import as_file, files
from pathlib import Path

import pandas as pd
import pytest

from optirank import PanelClassifier

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "benchmarks"))

from fill_tables import MARKED, NUMBER, filled, markdown, pages  # noqa: E402
from tables import (  # noqa: E402
    NUMBERS,
    RESULTS,
    TABLES,
    across_platforms,
    mean_over_tissues,
    read,
)
from tables_paper import accuracy_cells  # noqa: E402


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_marked_tables_have_the_numbers_of_results(page):
    text = page.read_text("utf-8")
    names = {found[2] for found in MARKED.finditer(text)}
    assert names <= {*TABLES}, (
        f"no table is called {names - {*TABLES}}: see benchmarks/tables_*.py"
    )
    numbers = {found[2] for found in NUMBER.finditer(text)}
    assert numbers <= {*NUMBERS}, f"no number is called {numbers - {*NUMBERS}}"
    assert filled(page) == page.read_text("utf-8"), (
        "run python benchmarks/fill_tables.py"
    )


def test_a_wrong_number_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    right = f"Text.\n\n<!-- results: rivals -->\n{markdown(TABLES['rivals']())}\nMore text.\n"
    page.write_text(right, "utf-8")
    assert filled(page) == right
    wrong = re.sub(r"\d\.\d \|", "0.0 |", right, count=1)
    page.write_text(wrong, "utf-8")
    assert filled(page) == right != wrong


def test_numbers_of_sentences_are_filled(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!--n-tissues-->0<!--/--> and <!--pairs--><!--/--> pairs.\n")
    pairs = across_platforms(read("curve"))["pair"].nunique()
    assert filled(page).endswith(f"and <!--pairs-->{pairs}<!--/--> pairs.\n")
    assert f"<!--n-tissues-->{NUMBERS['n-tissues']()}<!--/-->" in filled(page)


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_numbers_are_numbers(name):
    assert re.search(r"\d", NUMBERS[name]())


def test_an_empty_mark_is_filled(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- results: missing -->\n\nText.\n", "utf-8")
    assert filled(page).startswith("<!-- results: missing -->\n| method | genes |")
    assert filled(page).endswith(" |\n\nText.\n")


@pytest.mark.parametrize("name", sorted(TABLES))
def test_tables_are_text_without_holes(name):
    table = TABLES[name]()
    assert len(table) > 1
    text = markdown(table)
    assert "nan" not in text.lower()
    assert len({line.count("|") for line in text.splitlines()}) == 1


def test_cells_of_wide_tables_are_the_means_of_their_rows():
    rows = across_platforms(read("curve"))
    means = mean_over_tissues(rows[rows["k"] == "100"], ["method", "k"])
    table = TABLES["rivals"]().set_index("method")
    assert table.loc["panel", "mean over problems"].iloc[0] == (
        f"{100 * means['panel', '100']:.1f}"
    )


def test_the_pairs_are_those_of_the_project():
    with as_file(files("optirank_lab.data").joinpath("pairs.csv")) as path:
        table = pd.read_csv(path)
    named = {
        f"{row.reference} to {row.query}": (row.problem, row.platform)
        for row in table.itertuples()
    }
    shifts = {
        "same": "same platform",
        "other": "platform",
        "scaled": "trained on standardised values",
    }
    pairs = read("curve").drop_duplicates("pair")
    assert set(pairs["pair"]) == set(named)
    for row in pairs.itertuples():
        problem, platform = named[row.pair]
        assert (row.tissue, row.shift) == (problem, shifts[platform])


def test_nothing_in_the_panel_model_depends_on_a_seed():
    assert "random_state" not in PanelClassifier().get_params()


TABLES_OF_RESULTS = sorted(
    path for path in RESULTS.glob("*.csv") if path.name != "independent-trials.csv"
)  # a log has no command of its own


@pytest.mark.parametrize("path", TABLES_OF_RESULTS, ids=lambda path: path.name)
def test_every_csv_names_its_command_versions_and_date(path):
    first = path.read_text("utf-8").splitlines()[0]
    found = re.fullmatch(
        r"# (.*); (optirank \S+, Python \S+, .*numpy \S+); (\d{4}-\d{2}-\d{2})", first
    )
    assert found, first
    command = found[1].split()
    if command[0] == "python":
        assert (ROOT / command[1]).is_file()
        assert "--quick" not in command
    else:
        assert command[0] in ("optirank", "optirank-lab")
        assert command[1:3] == ["benchmark", "curve"]


def test_lines_of_stand_ins_have_bold_marks_of_three_values_or_more():
    rows = pd.DataFrame(
        [
            {"problem": "p", "part": 0, "split": k, "classifier": name, "test": value}
            for name, scores in {
                "optirank": [0.9, 0.92, 0.94, 0.91],
                "lr": [0.8, 0.83, 0.84, 0.82],
                "rf": [0.9, 0.91, 0.95, 0.9],
            }.items()
            for k, value in enumerate(scores)
        ]
    )
    cells = accuracy_cells(rows)
    assert cells["optirank"] == "**91.8**"
    assert cells["rf"].startswith("**")
    assert cells["lr"] == "82.2"
    assert set(accuracy_cells(rows[rows["split"] < 2]).values()) == {
        "91.0",
        "81.5",
        "90.5",
    }
