"""Logistic regression on log values (lr): trained, saved and used as the models on ranks are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import optirank
from example_model import as_anndata
from optirank.datasets.errors import DataError
from optirank.datasets.example import make_example
from optirank.model import Predictor, explain
from optirank.preprocessing import LogCPM
from optirank.workflow import write_report
from optirank.workflow.explain import describe_model
from optirank.workflow.predict import predict_file
from optirank.workflow.train import train

OPTIONS = {"method": "lr", "n_folds": 2, "budget": 600}


@pytest.fixture(scope="module")
def pair():
    return make_example(100, 60)


@pytest.fixture(scope="module")
def result(pair):
    return train(pair[0], "cell_type", **OPTIONS)


def logs(data):
    return replace(data, X=LogCPM(1e4).transform(data.X))


def scores_of(model, X):
    """Scores as the estimator has them."""
    X = X.toarray() if hasattr(X, "toarray") else X
    return model.decision_function(pd.DataFrame(X, columns=model.feature_names_in_))


def test_counts_are_scaled_and_their_logarithms_used(pair, result):
    model = result.model
    assert type(model).__name__ == "ElasticNetLogisticRegression"
    assert model.target_sum == 1e4
    assert set(result.settings) == {"l1", "l2"}
    assert len(result.genes) == pair[0].n_genes  # all of them are in the total
    y = pair[0].labels("cell_type").to_numpy()
    plain = type(model)(**result.settings).fit(logs(pair[0]).X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_)
    assert result.balanced_accuracy > 0.8
    assert "transfer_score" in result.path  # chosen by the same rule
    assert result.accuracy_elsewhere() is not None


def test_logarithms_are_used_as_they_are_and_need_only_genes_with_a_weight(pair):
    found = train(logs(pair[0]), "cell_type", **OPTIONS)
    assert found.model.target_sum is None
    assert len(found.genes) == (found.model.coef_ != 0).any(axis=0).sum() < pair[0].n_genes


def test_a_model_file_predicts_as_the_model_does(pair, result, tmp_path):
    query = pair[1]
    optirank.save(result.model, tmp_path / "model.optirank")
    again = optirank.load(tmp_path / "model.optirank")
    expected = Predictor(result.model, query.gene_names).predict(query.X)
    found = Predictor(again, query.gene_names).predict(query.X)
    np.testing.assert_allclose(found.scores, expected.scores)
    np.testing.assert_allclose(found.probabilities, expected.probabilities)
    assert again.calibration_ == result.model.calibration_
    assert again.experience_.margin == result.model.experience_.margin
    assert again.training_summary_["balanced_accuracy"] == result.balanced_accuracy
    truth = query.labels("cell_type").to_numpy()
    assert (found.labels == truth).mean() > 0.6
    path = tmp_path / "query.h5ad"
    as_anndata(query).write_h5ad(path)
    done = predict_file(path, again, tmp_path / "labels.csv", adapt=True, block_size=7)
    adapted = Predictor(again, query.gene_names, adapt=True).predict(query.X)
    assert pd.read_csv(tmp_path / "labels.csv")["label"].tolist() == adapted.labels.tolist()
    assert not any("look like" in note for note in done.notes)


def test_the_predictor_scores_as_the_estimator_does(pair, result):
    data = pair[0]
    for X in (data.X, data.X.toarray(), data.X.tocsc()):
        expected = scores_of(result.model, X)
        np.testing.assert_allclose(Predictor(result.model).scores(X), expected)


def test_a_missing_gene_has_its_mean_value(pair):
    data = logs(pair[0])
    model = train(data, "cell_type", **OPTIONS).model
    gone = int(np.abs(model.coef_).sum(axis=0).argmax())
    kept = np.delete(np.arange(data.n_genes), gone)
    scores = Predictor(model, data.gene_names[kept]).scores(data.X[:, kept])
    filled = data.X.toarray()
    k = 0
    filled[:, gone] = model.mean_ranks_[k, gone]
    np.testing.assert_allclose(scores[:, k], scores_of(model, filled)[:, k])
    y = data.labels("cell_type").to_numpy()
    of_class = [data.X.toarray()[y == c, gone].mean() for c in model.classes_]
    rest = data.X.toarray()[y != model.classes_[k], gone].mean()
    np.testing.assert_allclose(model.mean_ranks_[k, gone], (of_class[k] + rest) / 2)


def test_contributions_sum_to_the_score(pair, result):
    data = pair[0]
    table = explain(result.model, data.X[:1], data.gene_names)
    sums = table.groupby("class", sort=False)["contribution"].sum()
    expected = scores_of(result.model, data.X[:1])[0]
    np.testing.assert_allclose(sums[result.model.classes_], expected)
    used = table[table["role"] != "intercept"]
    np.testing.assert_allclose(used["contribution"], used["value"] * used["weight"])
    assert used["relative_rank"].isna().all()


def test_classes_can_be_left_out(pair, result, tmp_path):
    first, second, *_ = result.model.classes_
    small = result.model.subset([first, second])
    scores = scores_of(result.model, pair[0].X)
    expected = (scores[:, 1] - scores[:, 0]) / 2
    np.testing.assert_allclose(Predictor(small).scores(pair[0].X), expected)
    np.testing.assert_allclose(scores_of(small, pair[0].X), expected)
    optirank.save(small, tmp_path / "small.optirank")
    again = optirank.load(tmp_path / "small.optirank")
    np.testing.assert_allclose(Predictor(again).scores(pair[0].X), expected)


def test_a_query_on_another_scale_is_reported(pair, result, tmp_path):
    query = pair[1]
    on_logs = train(logs(pair[0]), "cell_type", **OPTIONS).model
    files = {"counts": query, "logs": logs(query)}
    for name, data in files.items():
        as_anndata(data).write_h5ad(tmp_path / f"{name}.h5ad")
    found = {
        (model, name): predict_file(tmp_path / f"{name}.h5ad", fitted, tmp_path / "out.csv").notes
        for model, fitted in (("counts", result.model), ("logs", on_logs))
        for name in files
    }
    said = {key: [note for note in notes if "look like" in note] for key, notes in found.items()}
    assert said["counts", "counts"] == said["logs", "logs"] == []
    assert (
        "look like logarithms, and those of the training data like counts"
        in said["counts", "logs"][0]
    )
    assert "look like counts (whole numbers, some large), and" in said["logs", "counts"][0]


def test_negative_values_are_refused_by_a_model_of_counts(pair, result):
    query = logs(pair[1])
    centred = query.X.toarray() - query.X.toarray().mean(axis=0)
    with pytest.raises(ValueError, match=r"is negative \(-.*trained on counts"):
        Predictor(result.model, query.gene_names).predict(centred)


def test_the_report_and_the_description_speak_of_values(result, tmp_path):
    text = write_report(result, tmp_path / "report.html").read_text()
    assert "counts scaled to 10000 per sample" in text
    assert "a high value speaks" in text
    assert "reference set of" not in text
    assert dict(describe_model(result.model).lines)["model"] == "ElasticNetLogisticRegression"


@pytest.mark.parametrize("method", ["lr", "rank-lr"])
@pytest.mark.parametrize("option", ["include", "reference_from", "not_in_reference"])
def test_a_say_in_the_reference_is_refused_where_there_is_none(pair, method, option):
    with pytest.raises(DataError, match=f"method='{method}'.*leave them out"):
        train(pair[0], "cell_type", method=method, **{option: ["MT-*"]})
