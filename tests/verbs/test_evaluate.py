"""A model on labelled samples: the figures, samples apart from the tables, and
the page.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score

from browser import open_page
from example_model import (
    LABEL,
    as_anndata,
    panel_names,
    training_result,
)
from optirank import tl
from optirank.data.opening import open_profiles
from optirank.datasets import DataError
from optirank.report import render_page, write_page
from optirank.verbs.label_files import predict_file
from optirank.verbs.options import DEFAULTS, PredictOptions
from profiles import changed, evaluate_profiles, label_profiles, take_samples


def evaluated(path, model, label, options=DEFAULTS):
    with open_profiles(path, label=[label]) as opened:
        return evaluate_profiles(opened, model, label, options)


def test_figures_are_those_of_the_labels(model, query_file):
    import anndata

    found = evaluated(query_file, model, LABEL)
    adata = anndata.read_h5ad(query_file)
    tl.annotate(adata, model)
    truth, given = adata.obs[LABEL].astype(str), adata.obs["optirank"].astype(str)
    assert found.performance.balanced_accuracy == pytest.approx(
        balanced_accuracy_score(truth, given)
    )
    assert found.samples["predicted"].tolist() == given.tolist()
    same = tl.evaluate(adata, model, LABEL)
    assert same.performance.per_class.equals(found.performance.per_class)


def test_unknown_classes_and_unlabelled_samples_are_counted_apart(model, query):
    adata = as_anndata(query)
    labels = adata.obs[LABEL].astype(object)
    labels.iloc[:3], labels.iloc[3:5] = "martian", np.nan
    adata.obs[LABEL] = labels
    found = tl.evaluate(adata, model, LABEL)
    assert found.performance.n_samples == adata.n_obs - 5
    assert found.unknown == {"martian": 3}
    assert any(
        "3 samples are of classes that the model does not have" in n
        for n in found.notes
    )
    assert any("2 samples have no cell_type" in note for note in found.notes)
    adata.obs["other"] = "martian"
    with pytest.raises(DataError, match="no value of 'other' is a class of the model"):
        tl.evaluate(adata, model, "other")
    with pytest.raises(DataError, match="no column 'absent'"):
        tl.evaluate(adata, model, "absent")


def test_samples_of_one_class_have_no_curves(model, query, tmp_path):
    one = take_samples(query, (query.obs["cell_type"] == "b cell").to_numpy())
    done = evaluate_profiles(one, model, "cell_type")
    assert len(done.performance.classes) > 1
    text = write_page(done, tmp_path / "page.html").read_text("utf-8")
    shown = re.sub(r"<style>.*?</style>|base64,[^\"]*", "", text, flags=re.DOTALL)
    assert not re.search(r"\bnan\b", shown)
    assert "area under the ROC curve</span>" not in text


def test_more_errors_than_asked_for_are_an_alarm(model, query):
    wrong = query.obs[LABEL].astype(str).to_numpy(copy=True)
    wrong[::3] = np.roll(wrong, 7)[::3]
    data = changed(query, obs=query.obs.assign(**{LABEL: wrong}))
    done = evaluate_profiles(data, model, LABEL, PredictOptions(target_error=0.1))
    assert any("asked for an error of 10.0%, found" in alarm for alarm in done.warnings)


def test_classes_of_other_names_are_mapped(model, query):
    names = query.obs[LABEL].astype(str).replace("b cell", "B lymphocyte")
    data = changed(query, obs=query.obs.assign(**{LABEL: names}))
    plain = evaluate_profiles(query, model, LABEL).performance
    mapped = evaluate_profiles(
        data, model, LABEL, mapping={"B lymphocyte": "b cell"}
    ).performance
    assert mapped.per_class.equals(plain.per_class)
    with pytest.raises(DataError, match="the model has no class 'martian'"):
        evaluate_profiles(data, model, LABEL, mapping={"B lymphocyte": "martian"})
    with pytest.raises(DataError, match="has no class 'nowhere'"):
        evaluate_profiles(data, model, LABEL, mapping={"nowhere": "b cell"})


def test_names_that_look_alike_are_named_with_the_option_that_joins_them(model, query):
    labels = query.obs[LABEL].astype(str).replace("b cell", "Cell_B")
    data = changed(query, obs=query.obs.assign(**{LABEL: labels}))
    done = evaluate_profiles(data, model, LABEL)
    n_classes = len(model.classes)
    over = f"over {n_classes - 1} of {n_classes} classes"
    assert over in done.performance.headline()
    assert over in render_page(done)
    assert any(f"{over}; without a label given: b cell" in note for note in done.notes)
    assert any("mapping={'Cell_B': 'b cell'}" in note for note in done.notes)


def test_classes_that_are_wholly_withheld_are_named(model, query):
    labels = label_profiles(query, model, PredictOptions(threshold=0.9))
    kept = query.obs[LABEL].to_numpy() != "b cell"
    data = take_samples(query, kept | labels.withheld)
    note = next(
        note
        for note in evaluate_profiles(
            data, model, LABEL, PredictOptions(threshold=0.9)
        ).notes
        if note.startswith("the accuracy is over")
    )
    assert note.endswith("without a label given: b cell")


def test_pages_show_withheld_samples_by_class_and_shares_of_all(model, query):
    done = evaluate_profiles(query, model, LABEL, PredictOptions(threshold=0.9))
    text = render_page(done)
    assert "sensitivity, of all" in text
    assert "of the labels given" in text
    assert "balanced accuracy of all samples" in text


def test_the_page_shows_no_interval_of_a_class_without_samples(model, query):
    """The column showed "–– to – %"."""
    labels = query.obs[LABEL].astype(str).replace("b cell", "t cell")
    data = changed(query, obs=query.obs.assign(**{LABEL: labels}))
    done = evaluate_profiles(data, model, LABEL, PredictOptions(threshold=0.9))
    assert done.performance.confusion["b cell"].any()
    assert "– to –" not in render_page(done)


def test_withheld_labels_are_in_no_share(model, query_file):
    options = PredictOptions(threshold=0.9)
    found = evaluated(query_file, model, LABEL, options)
    kept = found.samples[~found.samples["withheld"]]
    assert 0 < found.performance.n_withheld == found.samples["withheld"].sum()
    assert found.performance.n_right == (kept["label"] == kept["predicted"]).sum()


def test_pages_have_their_tables_and_need_nothing_else(model, query, tmp_path):
    panel = [gene for gene in panel_names(model) if gene in set(query.var_names)]
    adata = as_anndata(query)[
        :, [one for one in query.var_names if one not in panel[:2]]
    ].copy()
    found = tl.evaluate(adata, model, LABEL, report=tmp_path / "e.html")
    text = (tmp_path / "e.html").read_text("utf-8")
    for part in (
        'id="classes"',
        'id="confusion"',
        'id="roc"',
        'id="missing"',
    ):
        assert part in text
    assert f"{found.performance.n_right} of {found.performance.n_given}" in text
    text = render_page(training_result())
    for part in ('id="sizes"', 'id="genes"', 'id="card"', "optirank evaluate QUERY"):
        assert part in text
    for word in ("http://", "https://", "<script"):
        assert word not in text.replace("http://www.w3.org", "")


def test_names_out_of_files_cannot_write_html(model, query):
    adata = as_anndata(query)
    bad = "<b onclick=x>&"
    adata.obs[LABEL] = adata.obs[LABEL].astype(str).replace("b cell", bad)
    names = [bad if name == "b cell" else name for name in model.classes]
    model = replace(model, classes=np.array(names, dtype=object))
    text = render_page(tl.evaluate(adata, model, LABEL))
    assert bad not in text
    assert "&lt;b onclick" in text


@pytest.mark.slow
def test_a_browser_opens_the_pages_without_complaint(
    model, query, query_file, tmp_path
):
    write_page(training_result(), tmp_path / "training.html")
    tl.evaluate(as_anndata(query), model, LABEL, report=tmp_path / "evaluation.html")
    labelled = predict_file(query_file, model, tmp_path / "labels.csv")
    write_page(labelled, tmp_path / "labels.html")
    for name in ("training", "evaluation", "labels"):
        opened = open_page(tmp_path / f"{name}.html", tmp_path / "profile")
        assert opened.console == []
        assert "Model card" in opened.dom
