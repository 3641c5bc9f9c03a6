"""The page of labels: numbers, figure, clusters, missing genes, and names out
of files.
"""

from __future__ import annotations

import base64
import html
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from example_model import (
    LABEL,
    as_anndata,
    panel_names,
    telling_model,
    telling_pair,
)
from optirank import PanelClassifier
from optirank.data.objects import profiles_of
from optirank.model import Model
from optirank.report import render_page
from optirank.verbs.labelling import PredictOptions
from optirank.verbs.labels import label_table
from profiles import label_profiles, take_samples


def labelled(adata, model, **options):
    return label_profiles(profiles_of(adata), model, PredictOptions(**options))


def rows(text: str, table: str) -> list[list[str]]:
    """The cells of a table of a page."""
    body = text.partition(f'<table id="{table}">')[2].partition("</table>")[0]
    lines = re.findall(r"<tr>(.*?)</tr>", body.partition("<tbody>")[2], re.DOTALL)
    return [re.findall(r"<td[^>]*>(.*?)</td>", line, re.DOTALL) for line in lines]


def tiles(text: str) -> list[tuple[str, str]]:
    return re.findall(r'<div class="card"><b>(.*?)</b><span>(.*?)</span>', text)


def figure(text: str) -> str:
    found = re.search(r'<figure id="labels">.*?base64,([^"]*)"', text, re.DOTALL)
    return base64.b64decode(found[1]).decode("utf-8")


def test_labels_are_counted_by_confidence():
    table = label_table(
        ["b", "a", "a", "none", "none", "none"],
        [0.5, 0.95, 0.3, 0.1, 0.99, 0.2],
        "none",
    )
    assert table.index.tolist() == ["a", "b", "none"]
    assert table["n_samples"].tolist() == [2, 1, 3]
    np.testing.assert_allclose(table["share"], [1 / 3, 1 / 6, 1 / 2])
    np.testing.assert_allclose(table["confidence"], [0.625, 0.5, 0.43])
    steps = table[["≥ 0.95", "0.8–0.95", "0.5–0.8", "< 0.5", "withheld"]]
    assert steps.to_numpy().tolist() == [
        [1, 0, 0, 1, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 0, 0, 3],
    ]


def test_the_page_has_the_numbers_of_the_labels(model, query):
    found = labelled(as_anndata(query), model)
    text = render_page(found)
    assert "labelled by the model “example”; 0 labels are withheld." in text
    n, n_genes = len(found.chosen), len(panel_names(model))
    assert tiles(text)[:3] == [
        (str(n), "samples labelled"),
        (f"{found.confidence.mean():.3f}", "mean confidence"),
        (f"{n_genes - len(found.missing)} of {n_genes}", "genes of the panel found"),
    ]
    assert {row[0]: row[1] for row in rows(text, "labels-table")} == {
        name: str(count) for name, count in found.counts().items()
    }
    for name, _, share, sure in rows(text, "labels-table"):
        mine = found.labels == name
        assert share == f"{100 * mine.mean():.1f} %"
        assert sure == f"{found.confidence[mine].mean():.3f}"
        assert f">{name}</text>" in figure(text)
        assert f">{mine.sum()} ({share})</text>" in figure(text)
    for part in ('id="card"', "no true classes", "optirank evaluate"):
        assert part in text
    for part in (
        'id="classes"',
        'id="confusion"',
        "balanced accuracy of",
        'id="clusters"',
    ):
        assert part not in text
    for word in ("http://", "https://", "<script"):
        assert word not in text
    assert render_page(labelled(as_anndata(query), model)) == text


def test_a_model_of_two_classes_has_two_bars(query):
    two = (
        (query.obs[LABEL] == "b cell").map({True: "b cell", False: "other"}).to_numpy()
    )
    adata = as_anndata(query)
    fitted = PanelClassifier(10).fit(adata.to_df(), two)
    found = labelled(adata, Model.from_estimator(fitted))
    text = render_page(found)
    assert [row[0] for row in rows(text, "labels-table")] == list(found.counts())
    assert "labelled by the model; " in text
    assert "not calibrated" in text


def test_labels_withheld_come_last_and_are_counted_apart(model, query):
    found = labelled(as_anndata(query), model, threshold=0.97)
    text, hidden = render_page(found), int(found.withheld.sum())
    assert 1 < hidden < len(found.chosen)
    assert f"{hidden} labels are withheld." in text
    given = len(found.chosen) - hidden
    assert tiles(text)[0] == (str(given), f"samples labelled, of {len(found.chosen)}")
    assert rows(text, "labels-table")[-1][:2] == ["unassigned", str(hidden)]
    assert ">withheld</text>" in figure(text)
    all_hidden = render_page(labelled(as_anndata(query), model, threshold=1.0))
    assert [row[0] for row in rows(all_hidden, "labels-table")] == ["unassigned"]
    assert "No sample got the label b cell" in all_hidden


def test_clusters_and_missing_genes_have_their_tables(model, query):
    panel = [gene for gene in panel_names(model) if gene in set(query.var_names)]
    adata = as_anndata(query)[
        :, [one for one in query.var_names if one not in panel[:3]]
    ].copy()
    found = labelled(adata, model, clusters="leiden")
    text = render_page(found)
    assert [(row[0], row[2]) for row in rows(text, "clusters")] == [
        (one.cluster, one.label) for one in found.clusters.itertuples()
    ]
    assert (
        f"{len(found.missing)} of the {len(panel_names(model))} genes of the panel"
        in text
    )
    assert panel[0] in text
    for note in found.notes:
        assert note in html.unescape(text)


@pytest.mark.parametrize("n_classes", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_many_classes_with_odd_names_are_all_there(n_classes, model, query):
    names = np.array(
        [f"<b onclick=x>& {'long ' * 40} {k}" for k in range(n_classes)], object
    )
    found = labelled(as_anndata(query), model)
    codes = np.arange(3 * n_classes) % n_classes
    coef = np.zeros((n_classes, model.n_genes))
    panels = {model.n_genes: replace(model.panel, coef=coef, likeness=None)}
    columns = {"label": names[codes], "confidence": 0.9, "withheld_because": ""}
    found = replace(
        found,
        model=replace(found.model, classes=names, panels=panels, further=None),
        samples=pd.DataFrame(columns),
        chosen=codes,
    )
    text = render_page(found)
    assert "<b onclick" not in text
    assert text.count("&lt;b onclick") == 2 * n_classes  # the labels, and the card
    assert "<b onclick" not in figure(text)
    assert figure(text).count("3 (") == n_classes
    assert tiles(text)[-1] == (
        f"{n_classes} of {n_classes}",
        "classes among the labels",
    )


def test_the_yellow_box_has_alarms_and_says_when_most_labels_are_withheld(model, query):
    labels = labelled(as_anndata(query), model, threshold=1.0)
    labels = replace(
        labels, warnings=["these samples do not look like the training data"]
    )
    boxes = re.findall(r'<div class="box">(.*?)</div>', render_page(labels), re.DOTALL)
    assert "do not look like the training data" in boxes[0]
    assert "100.0 % of the labels are withheld" in boxes[1]
    assert rows(render_page(labels), "withheld") == [
        ["confidence below the threshold", str(len(labels.chosen)), "100.0 %"]
    ]


def test_the_page_says_how_labels_were_made_and_how_many_were_changed(model, query):
    labels = labelled(as_anndata(query), model, adapt=True)
    text = render_page(labels)
    n_changed = labels.record["n_changed"]
    assert (f"{n_changed} of {len(labels.chosen)}", tiles(text)[3][1]) == tiles(text)[3]
    assert "learning from the query (adapt=True)" in tiles(text)[3][1]
    made = text.partition('<dl id="provenance">')[2].partition("</dl>")[0]
    for part in ("model_sha256", "optirank_version"):
        assert str(labels.record[part]) in made
    assert "&#34;adapt&#34;: true" in made


def test_a_page_of_one_sample_is_a_report_for_one_patient(model, query):
    sample = as_anndata(query)[3:4].copy()
    labels = labelled(sample, model)
    text = html.unescape(render_page(labels))
    assert f"<h1>Sample {sample.obs_names[0]}</h1>" in text
    assert tiles(text)[0] == (str(labels.labels[0]), "label")
    shown = rows(text.replace(' class="chosen"', ""), "probabilities")
    order = np.argsort(-labels.probabilities[0], kind="stable")
    assert [row[0] for row in shown] == labels.classes[order].tolist()
    table = labels.explanation
    assert set(table["class"]) == {labels.labels[0]}
    score = model.decision_function(sample.to_df())[0].max()
    np.testing.assert_allclose(table["contribution"].sum(), score)
    assert rows(text, "contributions")[0][0] == table["gene"][0]
    assert "How these labels were made" in text


def test_a_withheld_label_of_one_sample_comes_with_its_reason(model, query):
    text = render_page(labelled(as_anndata(query)[:1].copy(), model, threshold=1.0))
    assert "the label is withheld: confidence below the threshold" in text
    assert tiles(text)[0] == ("no label", "withheld")


def test_the_page_shows_the_agreement_of_other_genes_or_why_there_is_none():
    model, query = telling_model(), telling_pair()[1]
    labels = label_profiles(query, model)
    text = render_page(labels)
    agreement = f"{labels.record['agreement']:.2f}"
    assert (agreement, "agreement of genes outside the panel") in tiles(text)
    assert "genes that had no part in the labels" in text
    assert '<figure id="agreement">' in text
    alone = render_page(label_profiles(take_samples(query, [0]), model))
    checked = alone.partition('<p id="checked">')[2].partition("</p>")[0]
    assert (
        "cannot be checked by other genes: a check takes two labels with at" in checked
    )
    assert '<figure id="agreement">' not in alone
