"""The report of a training: complete, readable, and in need of nothing from outside."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from browser import open_page
from optirank.workflow import write_report
from optirank.workflow.report import page
from optirank.workflow.train import train
from training_cases import SHORT, SINGLE, noise, small, with_obs

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")


def trained(data, label, short=SINGLE, **options):
    return train(data, label, n_jobs=2, grids=short, **options)


@pytest.fixture(scope="module")
def result():
    return trained(small(), "cell_type", SHORT, target_error=0.2, exclude=["MT-*"])


@pytest.fixture(scope="module")
def text(result):
    return page(result)


def test_the_page_says_what_how_well_and_which_genes(result, text):
    assert f"{100 * result.balanced_accuracy:.1f} %" in text
    for name in result.model.classes_:
        assert f'<td class="text">{name}</td>' in text
    for heading in ("class by class", "confidence means", "new platforms", "The genes", "Notes"):
        assert heading in text
    assert str(len(result.genes)) in text
    assert "no gene is excluded by" in text
    assert "held-out samples 2" in text or "of the labels were wrong" in text


def test_the_page_needs_nothing_from_outside(text):
    assert not re.findall(r'(?:src|href)="(?!data:)', text)
    assert "http" not in re.sub(r"base64,[A-Za-z0-9+/=]+", "", text)
    assert "<script" not in text


def test_names_from_the_data_are_text_and_not_html():
    data = noise(40, 30)
    kind = np.where(data.obs["kind"] == "c0", "<b>$x_1$", "a & b [red]")
    found = trained(with_obs(data, **{"<i>kind": kind}), "<i>kind")
    text = page(found)
    assert "<i>kind" not in text
    assert "<b>$x" not in text
    assert "&lt;b&gt;$x_1$" in text


def test_left_out_sources_are_the_guide_to_new_platforms():
    data = small()
    donors = np.array(["first", "second"])[np.arange(data.n_samples) % 2]
    found = trained(with_obs(data, donor=donors), "cell_type", batch="donor")
    text = page(found)
    assert 'id="sources"' in text
    assert '<td class="text">first</td>' in text
    assert "do not show how well" not in text
    assert "then time was up" not in text
    short = page(replace(found, by_fold=found.by_fold.head(1)))
    assert "(in 1 of 2 folds, then time was up)" in short


def test_without_sources_the_page_warns_of_new_platforms(text):
    assert 'id="sources"' not in text
    assert "do not show how well" in text


def test_uncalibrated_confidences_are_called_so():
    assert "are not calibrated" in page(trained(noise(40, 30), "kind", calibrate=False))


def test_a_fixed_reference_set_is_told():
    data = small()
    names = [str(name) for name in data.gene_names[60:70]]
    assert "was given by the user" in page(trained(data, "cell_type", include=names))


def test_the_page_opens_without_complaints(result, tmp_path):
    path = write_report(result, tmp_path / "report.html")
    opened = open_page(path, tmp_path / "profile")
    assert opened.console == []
    assert opened.dom.count("<img") == 3
    assert [entry.name for entry in tmp_path.iterdir() if entry.suffix == ".tmp"] == []
