"""Fewer classes, the panel's tables, and explanations."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import (
    as_input,
    make_model,
    make_panel,
    make_samples,
    models,
    weights_of,
)
from scipy import sparse
from scipy.stats import rankdata

from optirank import PanelClassifier, SingleCellNetClassifier, load, save
from optirank.model import Predictor, explain, export_table, panel_table
from rank_definition import ranks_by_definition

multiclass = models.filter(lambda model: len(model.classes_) > 2)


@settings(max_examples=25)
@given(multiclass, st.data())
def test_a_subset_chooses_among_its_classes_as_before(tmp_path_factory, model, data):
    labels = model.classes_.tolist()
    kept = data.draw(st.lists(st.sampled_from(labels), min_size=2, unique=True))
    small = model.subset(kept)
    X = make_samples(0, 8, model.n_features_in_)
    where = np.flatnonzero([label in kept for label in labels])
    assert small.classes_.tolist() == [labels[k] for k in where]
    scores = model.decision_function(as_input(model, X))[:, where]
    found = Predictor(small).predict(X)
    np.testing.assert_array_equal(found.labels, small.classes_[scores.argmax(axis=1)])
    path = tmp_path_factory.mktemp("subset") / "m"
    save(small, path)
    np.testing.assert_array_equal(Predictor(load(path)).scores(X), found.scores)


@pytest.mark.parametrize("make", [make_model, make_panel])
def test_a_wrong_choice_of_classes_is_refused(make):
    with pytest.raises(ValueError, match="no class 'type 9': its classes are"):
        make().subset(["type 0", "type 9"])
    with pytest.raises(ValueError, match="at least"):
        make().subset(["type 0"])


@given(models)
def test_the_panel_lists_every_gene_needed_with_its_weights(model):
    table = panel_table(model)
    assert len(table) == model.genes_.sum() == table["gene"].nunique()
    weights = table.filter(like="weight_")
    classes = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    assert weights.columns.tolist() == [f"weight_{label}" for label in classes]
    assert (np.diff(weights.abs().max(axis=1)) <= 0).all()
    names = getattr(
        model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)]
    )
    by_gene = table.set_index("gene")
    for j in np.flatnonzero(model.genes_):
        np.testing.assert_array_equal(
            by_gene.loc[names[j], weights.columns], model.coef_[:, j]
        )
    if isinstance(model, PanelClassifier):
        assert "role" not in table  # all genes have both
        return
    roles = {"reference": (False, True), "weight": (True, False), "both": (True, True)}
    for role, (has_weight, is_reference) in roles.items():
        rows = table[table["role"] == role]
        assert ((rows.filter(like="weight_") != 0).any(axis=1) == has_weight).all()
        assert ((rows["n_reference"] > 0) == is_reference).all()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_exported_table_alone_labels_a_matrix(n_classes, tmp_path):
    model = make_panel(n_classes=n_classes)
    export_table(model).to_csv(tmp_path / "panel.csv", index=False)
    table = pd.read_csv(tmp_path / "panel.csv")
    assert table["gene"].iloc[-1] == "(intercept)"
    np.testing.assert_allclose(table["mean_rank"][:-1], model.mean_ranks_)
    X = as_input(model, make_samples(0, 40, 30))
    genes, W = table["gene"][:-1], table.iloc[:, 2:]
    ranks = (rankdata(X[genes], axis=1) - 1) / len(genes)
    scores = ranks @ W.to_numpy()[:-1] + W.to_numpy()[-1]
    assert (W.columns[scores.argmax(axis=1)] == model.predict(X)).all()
    with pytest.raises(TypeError, match="PanelClassifier"):
        export_table(make_model())


def test_other_classifiers_have_no_panel():
    model = SingleCellNetClassifier(n_trees=2, n_top_genes=2, random_state=0)
    model.fit(make_samples(0, 20, 10), np.arange(20) % 2)
    with pytest.raises(TypeError, match="SingleCellNetClassifier has no weights"):
        panel_table(model)


@given(models, st.integers(0, 1000))
def test_contributions_sum_to_the_score_and_each_gene_is_listed_once(model, seed):
    x = make_samples(seed, 1, model.n_features_in_)[0]
    table = explain(model, x)
    scores = np.atleast_1d(model.decision_function(as_input(model, x[None]))[0])
    classes = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    sums = table.groupby("class", sort=False)["contribution"].sum()
    assert sums.index.tolist() == classes.tolist()
    np.testing.assert_allclose(sums, scores, atol=1e-9)
    genes = table[table["gene"] != "(intercept)"]
    assert not genes.duplicated(["class", "gene"]).any()
    assert len(genes) == np.count_nonzero(model.coef_)
    expected = genes["weight"] * (genes["relative_rank"] - genes["mean_rank"])
    np.testing.assert_allclose(expected, genes["contribution"], atol=1e-12)


def test_a_subset_of_two_classes_explains_the_score_of_each():
    model = make_model(n_classes=3, n_genes=10, n_weights=7).subset(
        ["type 0", "type 2"]
    )
    x = make_samples(0, 1, 10)[0]
    table = explain(model, x)
    assert not table.duplicated(["class", "gene"]).any()
    found = table.groupby("class")["contribution"].sum()
    assert found.tolist() == pytest.approx(Predictor(model).scores(x[None])[0])


@pytest.mark.parametrize("make", [make_model, make_panel])
def test_an_explanation_speaks_for_a_class_in_words_the_largest_first(make):
    model = make(n_classes=2)
    model.classes_ = np.array(["ER negative", "ER positive"])
    d = model.n_features_in_
    x = pd.Series(np.arange(d)[::-1] * 1.0, index=model.feature_names_in_[::-1])
    table = explain(model, x)
    assert table.columns.tolist() == [
        "class", "gene", "missing", "value", "relative_rank", "mean_rank", "weight",
        "contribution", "speaks_for",
    ]  # fmt: skip
    assert table["gene"][0] == "(intercept)"
    assert (np.diff(table["contribution"][1:].abs()) <= 0).all()
    values = x[model.feature_names_in_].to_numpy()
    coef, references, ties = weights_of(model)
    ranks = (
        ranks_by_definition(values[None], references[0], ties)[0] / references[0].sum()
    )
    for line in table[1:].itertuples():
        j = model.feature_names_in_.tolist().index(line.gene)
        assert line.value == values[j]
        assert line.relative_rank == pytest.approx(ranks[j])
        assert line.weight == coef[0, j]
        side = "positive" if line.contribution > 0 else "negative"
        assert line.speaks_for == f"for ER {side}"
    assert set(explain(make(), make_samples(0, 1, d)[0])["speaks_for"].str[:3]) <= {
        "for", "aga", ""
    }  # fmt: skip


def test_a_sample_may_be_a_row_of_anything():
    model = make_panel(n_genes=15)
    X = make_samples(0, 3, 15)
    frame = as_input(model, X)
    expected = explain(model, X[1])
    for row in (
        X[1:2],
        frame.iloc[1],
        frame.iloc[1:2],
        sparse.csr_array(X)[1:2],
        list(X[1]),
    ):
        pd.testing.assert_frame_equal(explain(model, row), expected)
    with pytest.raises(ValueError, match="one sample of 15 values"):
        explain(model, X)
    with pytest.raises(ValueError, match="NaN"):
        explain(model, np.full(15, np.nan))
