"""Fewer classes, the panel's tables, and explanations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import (
    as_frame,
    full,
    gene_names,
    make_model,
    make_panel,
    make_samples,
    models,
    panel_models,
)
from scipy import sparse
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression

from optirank import Model, load, save
from optirank.model import deciding_pairs

multiclass = models.filter(lambda model: len(model.classes) > 2)


@settings(max_examples=25)
@given(multiclass, st.data())
def test_a_subset_chooses_among_its_classes_as_before(tmp_path_factory, model, data):
    labels = model.classes.tolist()
    kept = data.draw(st.lists(st.sampled_from(labels), min_size=2, unique=True))
    small = model.subset(kept)
    X = make_samples(0, 8, model.n_features)
    where = np.flatnonzero([label in kept for label in labels])
    assert small.classes.tolist() == [labels[k] for k in where]
    scores = model.decision_function(X)[:, where]
    np.testing.assert_array_equal(
        small.predict(X), small.classes[scores.argmax(axis=1)]
    )
    path = tmp_path_factory.mktemp("subset") / "m"
    save(small, path)
    np.testing.assert_array_equal(
        load(path).decision_function(X), small.decision_function(X)
    )


@pytest.mark.parametrize("make", [make_model, make_panel])
def test_a_wrong_choice_of_classes_is_refused(make):
    with pytest.raises(ValueError, match="no class 'type 9': its classes are"):
        make().subset(["type 0", "type 9"])
    for too_few in (["type 0"], "type 0", ["type 0", "type 0"]):
        with pytest.raises(ValueError, match="at least 2"):
            make().subset(too_few)


def test_a_subset_has_no_figures_of_the_whole_model():
    small = full(make_panel()).subset(["type 0", "type 2"])
    assert small.panel.calibration is None
    assert small.panel.likeness is None
    assert small.card.balanced_accuracy is None
    assert list(small.card.class_counts) == ["type 0", "type 2"]


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


@settings(max_examples=25)
@given(panel_models, st.integers(0, 1000))
def test_votes_of_all_pairs_sum_to_the_score_of_a_class(model, seed):
    x = make_samples(seed, 1, model.n_features)[0]
    scores = model.decision_function(x[None])[0]
    for place, label in enumerate(model.classes):
        pairs = deciding_pairs(model, x, label, n_pairs=10_000)
        score = scores[place] if np.ndim(scores) else (2 * place - 1) * scores
        assert pairs["vote"].sum() == pytest.approx(score, abs=1e-12)
        assert (np.diff(pairs["vote"].abs()) <= 1e-15).all()
        assert (pairs["value_higher"] > pairs["value_lower"]).all()
        for_class = pairs["speaks_for"].str.startswith("for ")
        assert (for_class == (pairs["vote"] > 0)).all()


def test_pairs_are_of_panel_models_and_their_classes():
    x = make_samples(0, 1, 30)[0]
    with pytest.raises(TypeError, match="only the genes of a panel model vote"):
        deciding_pairs(make_model(), x[:12], "type 0")
    with pytest.raises(ValueError, match="no class 'type 9'"):
        deciding_pairs(make_panel(), x, "type 9")
    assert len(deciding_pairs(make_panel(), x, "type 0", n_pairs=3)) == 3


def test_a_subset_of_two_classes_explains_the_score_of_each():
    model = make_model(n_classes=3, n_genes=10, n_weights=7)
    small = model.subset(["type 0", "type 2"])
    x = make_samples(0, 1, 10)[0]
    table = small.explain(x)
    assert not table.duplicated(["class", "gene"]).any()
    sums = table.groupby("class")["contribution"].sum()
    assert sums.tolist() == pytest.approx(small.bind().scores(x[None])[0])


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
    with pytest.raises(ValueError, match="one sample of 15 values"):
        model.explain(X)
    with pytest.raises(ValueError, match="NaN"):
        model.explain(np.full(15, np.nan))
