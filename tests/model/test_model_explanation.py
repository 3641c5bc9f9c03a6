"""The panel's tables, and explanations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_cases import (
    as_frame,
    gene_names,
    make_model,
    make_panel,
    make_samples,
    models,
)
from scipy import sparse
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression

from optirank import Model


@given(models)
def test_the_panel_lists_every_gene_needed_with_its_weights(model):
    table = model.table()
    assert len(table) == model.n_genes == table["gene"].nunique()
    weights = table.filter(like="weight_")
    classes = model.classes[1:] if len(model.classes) == 2 else model.classes
    assert weights.columns.tolist() == [f"weight_{label}" for label in classes]
    assert (np.diff(weights.abs().max(axis=1)) <= 0).all()
    by_gene = table.set_index("gene")
    for place, gene in enumerate(model.genes):
        np.testing.assert_array_equal(
            by_gene.loc[gene, weights.columns], model.panel.coef[:, place]
        )
    if model.votes:
        assert "role" not in table  # all genes have both
        return
    roles = {"reference": (False, True), "weight": (True, False), "both": (True, True)}
    for role, (has_weight, is_reference) in roles.items():
        rows = table[table["role"] == role]
        assert ((rows.filter(like="weight_") != 0).any(axis=1) == has_weight).all()
        assert ((rows["n_reference"] > 0) == is_reference).all()


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("n_missing", [0, 4])
def test_the_exported_table_alone_labels_a_matrix(n_classes, n_missing, tmp_path):
    model = make_panel(n_classes=n_classes)
    model.export().to_csv(tmp_path / "panel.csv", index=False)
    X = as_frame(model, make_samples(0, 40, 30)).drop(columns=model.genes[:n_missing])
    table = pd.read_csv(tmp_path / "panel.csv")
    table = table[table["gene"].isin(X.columns)]
    k = len(table)
    ranks = (rankdata(X[table["gene"]], axis=1) - (k + 1) / 2) / k
    scores = ranks @ table.iloc[:, 1:].to_numpy()
    labels = table.columns[1:][scores.argmax(axis=1)]
    assert (labels == model.predict(X)).all()
    with pytest.raises(TypeError, match="train a panel model"):
        make_model().export()


def test_other_classifiers_have_no_model():
    classifier = LogisticRegression()
    classifier.fit(make_samples(0, 20, 10), np.arange(20) % 2)
    with pytest.raises(TypeError, match="LogisticRegression has no weights"):
        Model.from_estimator(classifier)


@given(models, st.integers(0, 1000))
def test_contributions_sum_to_the_score_and_each_gene_is_listed_once(model, seed):
    x = make_samples(seed, 1, model.n_features)[0]
    table = model.explain(x)
    scores = np.atleast_1d(model.decision_function(x[None])[0])
    sums = table.groupby("class", sort=False)["contribution"].sum()
    assert sums.index.tolist() == model.score_classes.tolist()
    np.testing.assert_allclose(sums, scores, atol=1e-9)
    genes = table[table["gene"] != "(intercept)"]
    assert (len(genes) == len(table)) == model.votes
    assert not genes.duplicated(["class", "gene"]).any()
    assert len(genes) == np.count_nonzero(model.panel.coef)
    expected = genes["weight"] * genes["rank"]
    np.testing.assert_allclose(expected, genes["contribution"], atol=1e-12)


@pytest.mark.parametrize("make", [make_model, make_panel])
def test_an_explanation_speaks_for_a_class_in_words_the_largest_first(make):
    model = make(n_classes=2)
    model = replace(model, classes=np.array(["ER negative", "ER positive"]))
    d = model.n_features
    names = gene_names(d)
    x = pd.Series(np.arange(d)[::-1] * 1.0, index=names[::-1])
    table = model.explain(x)
    assert set(table.columns) == {
        "class",
        "gene",
        "missing",
        "value",
        "rank",
        "weight",
        "contribution",
        "speaks_for",
    }
    genes = table[table["gene"] != "(intercept)"]
    assert (np.diff(genes["contribution"].abs()) <= 0).all()
    for line in genes.itertuples():
        assert line.value == x[line.gene]
        if line.contribution:
            side = "positive" if line.contribution > 0 else "negative"
            assert line.speaks_for == f"for ER {side}"
    words = make().explain(make_samples(0, 1, d)[0])["speaks_for"].str[:3]
    assert set(words) <= {"for", "aga", ""}


def test_a_sample_may_be_a_row_of_anything():
    model = make_panel(n_genes=15)
    X = make_samples(0, 3, 15)
    frame = as_frame(model, X)
    expected = model.explain(X[1])
    for row in (
        X[1:2],
        frame.iloc[1],
        frame.iloc[1:2],
        sparse.csr_array(X)[1:2],
        list(X[1]),
    ):
        pd.testing.assert_frame_equal(model.explain(row), expected)
    with pytest.raises(ValueError, match="3 samples were given"):
        model.explain(X)
    with pytest.raises(ValueError, match="NaN"):
        model.explain(np.full(15, np.nan))
