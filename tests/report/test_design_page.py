"""The page of a panel for an assay: what it shows, and what it leaves out."""

from __future__ import annotations

import re
from dataclasses import replace

from browser import open_page
from design_cases import chosen, scored
from optirank.report import render_page, write_page


def figures(text: str) -> set[str]:
    return set(re.findall(r'<figure id="([\w-]+)"', text))


def test_a_chosen_panel_has_all_figures_and_its_query():
    text = render_page(chosen())
    expected = {
        "conditions",
        "classes",
        "confusion",
        "test-confusion",
        "sizes",
        "dots",
    }
    assert figures(text) == expected
    assert "test adata" in text
    for gene in chosen().genes["gene"]:
        assert f">{gene}<" in text


def test_a_scored_list_has_one_size():
    text = render_page(scored())
    assert figures(text) == {"conditions", "classes", "confusion", "dots"}


def test_names_of_classes_may_break_after_an_underscore():
    pairs = chosen().confusions.iloc[:1].assign(labelled="<b>Hippocampus_Excitatory")
    text = render_page(replace(chosen(), confusions=pairs))
    assert "&lt;b&gt;Hippocampus_<wbr>Excitatory</td>" in text


def test_excluded_genes_are_listed_and_escaped():
    text = render_page(replace(chosen(), left_out=("RPL3", "<b>")))
    assert "2 genes were excluded" in text
    assert "RPL3, &lt;b&gt;" in text


def test_the_page_opens_without_a_complaint(tmp_path):
    path = write_page(chosen(), tmp_path / "panel.html")
    opened = open_page(path, tmp_path / "profile")
    assert opened.console == []
    assert 'id="pairs"' in opened.dom
