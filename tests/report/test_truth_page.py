"""Pages of a training and of an evaluation: what they warn of, advise and leave out."""

from __future__ import annotations

import re

import numpy as np

from example_model import LABEL, training_result
from optirank.report import render_page
from optirank.verbs.labelling import PredictOptions
from profiles import changed, evaluate_profiles, take_samples


def boxes(text: str) -> list[str]:
    return re.findall(r'<div class="box">(.*?)</div>', text, re.DOTALL)


def test_more_errors_than_asked_for_are_in_the_yellow_box(model, query):
    wrong = query.obs[LABEL].astype(str).to_numpy(copy=True)
    wrong[::3] = np.roll(wrong, 7)[::3]
    data = changed(query, obs=query.obs.assign(**{LABEL: wrong}))
    options = PredictOptions(target_error=0.1)
    text = render_page(evaluate_profiles(data, model, LABEL, options))
    assert "asked for an error of 10.0" in boxes(text)[0]


def test_an_evaluation_without_a_single_label_says_so(model, query):
    options = PredictOptions(threshold=1.0)
    text = render_page(evaluate_profiles(query, model, LABEL, options))
    assert "100.0 % of the labels are withheld" in boxes(text)[0]
    assert "No label was given." in text
    assert 'id="reliability"' not in text


def test_an_evaluation_says_how_its_labels_were_made(model, query):
    evaluation = evaluate_profiles(query, model, LABEL)
    assert evaluation.labels.record["model_sha256"] in render_page(evaluation)


def test_the_card_has_the_accuracy_with_genes_missing():
    text = render_page(training_result())
    card = text.partition("When genes are missing</h3>")[2]
    shares = re.findall(r'<td class="nowrap">(\d+) %</td>', card)
    assert shares == ["0", "10", "30", "50", "70"]


def test_classes_that_no_sample_has_are_named_but_have_no_empty_lines(model, query):
    kept = query.obs[LABEL].isin(["b cell", "monocyte"]).to_numpy()
    data = take_samples(query, kept)
    evaluation = evaluate_profiles(data, model, LABEL)
    seen = set(data.obs[LABEL]) | set(evaluation.samples["predicted"])
    text = render_page(evaluation)
    lines = text.partition('<table id="classes">')[2].partition("</table>")[0]
    assert lines.count("<tr") == 1 + len(seen)
    assert "none got the label" in text
