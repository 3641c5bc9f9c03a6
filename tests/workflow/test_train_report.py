"""The report of a training: complete, readable, and in need of nothing from outside."""

from __future__ import annotations

import base64
import copy
import functools
import json
import logging
import re
import warnings
from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import pytest

from browser import open_page
from optirank import RankLogisticRegression, __version__
from optirank.model import remember_training
from optirank.workflow import figures, write_report
from optirank.workflow.report import page
from optirank.workflow.result import class_table
from optirank.workflow.train import train
from training_cases import SHORT, SINGLE, noise, small, with_obs

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")


def trained(data, label, short=SINGLE, **options):
    return train(data, label, n_jobs=2, grids=short, **options)


@pytest.fixture(scope="module")
def result():
    return trained(small(), "cell_type", SHORT, target_error=0.2, exclude=["MT-*"])


@functools.cache
def _many(n_classes):
    """A result of many classes, of which half of the samples got the label of another."""
    names = np.array([f"kind {k}" for k in range(n_classes)], dtype=object)
    rng = np.random.default_rng(0)
    y = np.repeat(names, 6)
    X = rng.normal(size=(len(y), n_classes + 10))
    model = RankLogisticRegression(l1=0.1, tol=1e-2, max_iter=50).fit(X, y.astype(str))
    remember_training(model, X, y.astype(str), genes=[f"GENE{k}" for k in range(X.shape[1])])
    given = np.where(np.arange(len(y)) % 2, np.roll(y, 6), y)
    held_out = pd.DataFrame(
        {"label": y, "predicted": given, "confidence": rng.uniform(0.5, 1, len(y)), "fold": 1}
    )
    base = trained(noise(40, 30), "kind")
    plan = replace(base.plan, n_samples=len(y), n_classes=n_classes)
    return replace(
        base,
        model=model,
        plan=plan,
        held_out=held_out,
        per_class=class_table(y, held_out, np.array(sorted(names), dtype=object)),
    )


def many(n_classes):
    found = _many(n_classes)
    return replace(found, model=copy.copy(found.model), held_out=found.held_out.copy())


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
    assert not re.findall(r'(?:src|href)="(?!data:|#)', text)
    assert "http" not in re.sub(r"base64,[A-Za-z0-9+/=]+", "", text)
    assert "<script" not in text


def test_the_title_has_the_data_the_version_and_the_date(result, text):
    day = result.model.training_summary_["date"]
    assert day == date.today().isoformat()
    title = re.search("<title>(.*?)</title>", text).group(1)
    for part in (result.source, result.label, __version__, day):
        assert part in title
    assert f"trained on {result.source}</h1>" in text


def test_at_most_ten_classes_are_named_with_care_and_the_table_has_all():
    text = page(many(30))
    care = re.search('<div class="box" id="care">(.*?)</div>', text, re.DOTALL).group(1)
    assert len(re.findall("kind [0-9]+", care)) == 10
    assert "and 20 more classes" in care
    assert '<a href="#classes">' in care
    assert text.count('<tr class="warn">') == 30
    assert 'id="classes"' in text


@pytest.mark.parametrize("n_classes", [2, 6, 100])
def test_the_confusion_matrix_is_square_with_every_class(n_classes):
    found = many(n_classes)
    found = replace(found, held_out=found.held_out[found.held_out["label"] != "kind 0"])
    (ax, *_) = figures.confusion(found).axes
    names = [str(name) for name in found.model.classes_]
    assert np.asarray(ax.images[0].get_array()).shape == (n_classes, n_classes)
    assert [one.get_text() for one in ax.get_xticklabels()] == names
    assert ax.get_yticklabels()[names.index("kind 0")].get_text() == "kind 0 (0)"
    ax.figure.canvas.draw()
    for axis, side in ((ax.xaxis, "width"), (ax.yaxis, "height")):
        texts = axis.get_ticklabels()
        assert texts[0].get_fontsize() * 96 / 72 >= 8  # pixels on the page
        if n_classes == 100:
            cell = getattr(ax.get_window_extent(), side) / n_classes
            assert all(getattr(one.get_window_extent(), side) <= cell for one in texts)


def test_labels_in_any_script_are_drawn_without_a_warning(caplog):
    found = many(2)
    given = {"kind 0": "\u7ec6\u80de", "kind 1": "\u7d30\u80de \U0001f9ec"}
    found.model.classes_ = np.array(sorted(given.values()), dtype=object)
    for column in ("label", "predicted"):
        found.held_out[column] = found.held_out[column].map(given)
    with warnings.catch_warnings(), caplog.at_level(logging.INFO, logger="optirank"):
        warnings.simplefilter("error")
        svg = figures.draw(figures.confusion, found)
        assert figures.draw(figures.confusion, found) == svg
    assert len([one for one in caplog.records if "font" in one.getMessage()]) == 1
    if "of the browser are used" in caplog.text:
        assert "\u7ec6\u80de" in svg  # as text, for which the browser finds a font


def test_figures_have_a_clear_ground_and_the_page_a_dark_form(text):
    assert "prefers-color-scheme: dark" in text
    encoded = re.findall("base64,([A-Za-z0-9+/=]+)", text)
    for one in encoded:
        svg = base64.b64decode(one).decode("utf-8")
        ground = re.search('<g id="patch_1">.*?style="(.*?)"', svg, re.DOTALL).group(1)
        assert "fill: none" in ground or "opacity: 0" in ground


# Opens a page 420 pixels wide and writes which of its tables are cut off
NARROW = """<!doctype html><html><body><iframe id="f" width="420" height="900"></iframe><script>
const f = document.getElementById("f");
f.onload = () => {
  const d = f.contentDocument, cut = (e) => e.scrollWidth > e.clientWidth + 1;
  const tables = [...d.querySelectorAll("table")];
  const ids = tables.filter((e) => cut(e.parentElement)).map((e) => e.id).join(" ");
  document.body.append(`cut: ${ids}; page: ${cut(d.documentElement)}; n: ${tables.length}`);
};
f.srcdoc = PAGE;
</script></body></html>"""


@pytest.mark.parametrize("n_classes", [6, 100])
def test_nothing_is_cut_off_on_a_narrow_page(n_classes, tmp_path):
    text = json.dumps(page(many(n_classes))).replace("</", "<\\/")
    (tmp_path / "frame.html").write_text(NARROW.replace("PAGE", text), encoding="utf-8")
    opened = open_page(tmp_path / "frame.html", tmp_path / "profile")
    assert "cut: ; page: false; n: 2" in opened.dom


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
