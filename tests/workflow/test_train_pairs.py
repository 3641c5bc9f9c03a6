"""k-TSP trained by the workflow: folds, number of pairs, calibration, report, model file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import optirank
from optirank.datasets.errors import DataError
from optirank.datasets.example import make_example
from optirank.model import Predictor
from optirank.workflow import write_report
from optirank.workflow.explain import describe_model
from optirank.workflow.train import train
from optirank.workflow.voting import SIZES

OPTIONS = {"method": "k-tsp", "n_folds": 3, "budget": 600}


@pytest.fixture(scope="module")
def pair():
    return make_example(100, 60)


@pytest.fixture(scope="module")
def result(pair):
    return train(pair[0], "cell_type", **OPTIONS)


def two_classes(data):
    labels = data.labels("cell_type")
    return data.select_samples(labels.isin(labels.unique()[:2]).to_numpy())


def test_the_model_is_fitted_to_all_samples_with_the_chosen_number_of_pairs(pair, result):
    model = result.model
    assert isinstance(model, optirank.TopScoringPairsClassifier)
    assert result.settings == {"k_max": model.k_max}
    X, y = pair[0].X, pair[0].labels("cell_type").to_numpy()
    plain = optirank.TopScoringPairsClassifier(model.k_max).fit(X, y)
    np.testing.assert_array_equal(model.pairs_, plain.pairs_)
    assert result.genes == model.feature_names_in_[model.genes_].tolist()
    assert result.balanced_accuracy > 0.7
    assert len(result.by_fold) == 3


def test_held_out_scores_are_those_of_models_that_did_not_see_the_samples(pair, result):
    from optirank.workflow.preparation import prepare

    prepared = prepare(pair[0], "cell_type", n_folds=3)
    train_rows, test_rows = prepared.folds[0]
    model = optirank.TopScoringPairsClassifier(result.model.k_max)
    model.fit(prepared.X[train_rows], prepared.y[train_rows])
    names = prepared.samples[test_rows]
    scores = result.held_out.loc[names, [f"score_{one}" for one in model.classes_]]
    np.testing.assert_allclose(scores, model.decision_function(prepared.X[test_rows]))


def test_all_numbers_of_pairs_are_compared(result):
    assert result.path["k_max"].tolist() == list(SIZES)
    assert result.path["selected"].sum() == 1
    by_size = result.path.sort_values("k_max")
    assert (np.diff(by_size["n_genes"]) > 0).all()


def test_few_genes_can_be_preferred(pair, result):
    small = train(pair[0], "cell_type", prefer="genes", **OPTIONS)
    assert len(small.genes) <= len(result.genes)
    best = result.path["score"].max()
    assert small.path.loc[small.path["selected"], "score"].item() >= best - 0.1


def test_two_classes_are_trained_saved_reported_and_used(pair, tmp_path):
    data, query = (two_classes(one) for one in pair)
    found = train(data, "cell_type", target_error=0.1, **OPTIONS)
    assert len(found.model.k_) == 1
    write_report(found, tmp_path / "report.html")
    assert "The majority of the votes" in (tmp_path / "report.html").read_text()
    optirank.save(found.model, tmp_path / "model.optirank")
    again = optirank.load(tmp_path / "model.optirank")
    labels = Predictor(again, query.gene_names).predict(query.X).labels
    assert (labels == query.labels("cell_type").to_numpy()).mean() > 0.7


def test_the_model_is_calibrated_saved_and_reported(pair, result, tmp_path):
    assert hasattr(result.model, "calibration_")
    assert hasattr(result.model, "experience_")
    write_report(result, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert f"in {result.model.k_.sum()} pairs" in text
    assert "speaks for" in text
    optirank.save(result.model, tmp_path / "model.optirank")
    again = optirank.load(tmp_path / "model.optirank")
    about = describe_model(again, tmp_path / "model.optirank")
    assert about.pairs is not None
    query = pair[1]
    expected = Predictor(result.model, query.gene_names).predict(query.X)
    found = Predictor(again, query.gene_names, adapt=True).predict(query.X)
    assert (expected.labels == query.labels("cell_type").to_numpy()).mean() > 0.5
    assert found.labels.shape == expected.labels.shape


def test_sources_are_left_out(pair):
    data = pair[0]
    obs = data.obs.assign(donor=np.array(["x", "y", "z"])[np.arange(len(data.obs)) % 3])
    found = train(replace(data, obs=obs), "cell_type", batch="donor", **OPTIONS)
    assert found.by_fold["left_out"].tolist() == ["x", "y", "z"]


def test_a_class_that_a_fold_lacks_has_no_probability_there(pair):
    labels = pair[0].labels("cell_type").to_numpy()
    rare = labels[0]
    source = np.where((labels == rare) | (np.arange(len(labels)) % 2 == 0), "one", "two")
    data = replace(pair[0], obs=pair[0].obs.assign(source=source))
    found = train(data, "cell_type", batch="source", calibrate=False, **OPTIONS).held_out
    assert np.isneginf(found[f"score_{rare}"]).any()
    assert found["confidence"].between(0, 1).all()


def test_a_short_time_gives_fewer_folds(pair, monkeypatch):
    from optirank.workflow import voting

    monkeypatch.setattr(voting, "_PART", 0.0)
    found = train(pair[0], "cell_type", **OPTIONS)
    assert len(found.by_fold) == 1
    assert any("there was time for 1 of 3 folds" in note for note in found.notes)


@pytest.mark.parametrize("option", ["include", "reference_from", "not_in_reference"])
def test_a_reference_set_means_nothing(pair, option):
    with pytest.raises(DataError, match="compares the genes of pairs"):
        train(pair[0], "cell_type", **{option: ["CD3*"]}, **OPTIONS)


def test_anndata_is_trained_on_and_annotated(pair):
    import anndata
    import pandas as pd

    reference, query = (
        anndata.AnnData(one.X, obs=one.obs.copy(), var=pd.DataFrame(index=one.gene_names))
        for one in pair
    )
    model = optirank.tl.train(reference, "cell_type", method="k-tsp", budget=60)
    optirank.tl.annotate(query, model)
    assert set(query.obs["optirank"]) <= set(reference.obs["cell_type"])


def test_a_cluster_is_refused(pair):
    with pytest.raises(DataError, match="in this process alone"):
        train(pair[0], "cell_type", client=object(), **OPTIONS)
