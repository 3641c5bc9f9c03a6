"""What happens when genes of a model are missing: a stated rule, a report, a limit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_cases import (
    gene_names,
    make_model,
    make_panel,
    make_samples,
    named_models,
    weights_of,
)

from optirank.model import (
    MissingGenesError,
    Predictor,
    bind,
    describe_training,
    explain,
)
from optirank.ranks.relative import TIES
from rank_definition import ranks_by_definition


def scores_by_definition(model, x, here) -> np.ndarray:
    """The rule, written out: ranks among the reference genes that are there, stand-ins."""
    coef, references, ties = weights_of(model)
    _, offset = TIES[ties]
    scores = []
    for row, (w, gamma) in enumerate(zip(coef, references, strict=True)):
        left = np.where(here, gamma, 0.0)
        ranks = ranks_by_definition(x[None], left, ties)[0] / left.sum()
        stand_in = np.full(len(x), 0.5 - offset / left.sum())
        if hasattr(model, "panel_"):
            stand_in[model.panel_] = model.mean_ranks_
        elif hasattr(model, "mean_ranks_"):
            stand_in = model.mean_ranks_[row]
        scores.append(w @ np.where(here, ranks, stand_in) + model.intercept_[row])
    return np.array(scores)


@given(named_models, st.data())
def test_scores_with_missing_genes_follow_the_rule(model, data):
    d = model.n_features_in_
    here = np.array(data.draw(st.lists(st.booleans(), min_size=d, max_size=d)))
    x = make_samples(1, 1, d)[0]
    names = model.feature_names_in_[here]
    if (weights_of(model)[1][:, here].sum(axis=1) == 0).any():
        with pytest.raises(MissingGenesError):
            Predictor(model, names, max_missing=1)
        return
    found = Predictor(model, names, max_missing=1).scores(x[None, here])
    expected = scores_by_definition(model, x, here)
    np.testing.assert_allclose(np.atleast_1d(found[0]), expected, atol=1e-9)


@given(named_models)
def test_nothing_is_lost_where_nothing_is_missing(model):
    bound = bind(model, model.feature_names_in_)
    losses = bound.loss_table()[["n_missing", "weight_lost", "reference_lost"]]
    assert not losses.to_numpy().any()
    assert bound.notes() == []


def two_class_model():
    model = make_model(n_classes=2, n_genes=8)
    model.coef_[:] = [[3.0, -1.0, 0, 0, 0, 0, 2.0, 0]]
    model.reference_weights_[:] = [[0, 1, 1, 1, 1, 0, 0, 0]]
    return model


def test_genes_and_weights_are_counted_apart():
    bound = bind(two_class_model(), [f"GENE{j}" for j in (1, 2, 3, 6, 7)])
    (loss,) = bound.losses
    assert (loss.label, loss.n_genes, loss.n_missing) == ("type 1", 6, 2)
    assert loss.weight_lost == pytest.approx(3 / 6)
    assert loss.reference_lost == pytest.approx(1 / 4)
    assert bound.notes() == [
        "2 of 6 genes are missing: GENE0, GENE4",
        "most is lost for type 1 (2 of 6 genes, 50% of the weights)",
    ]


def test_above_half_of_a_class_s_genes_the_model_refuses():
    model = make_panel(n_genes=10, sizes=(10,))
    for row in model.coef_:  # all genes weigh the same
        row[:] = 1.0
    bind(model, gene_names(10)[:5])
    with pytest.raises(MissingGenesError) as caught:
        bind(model, gene_names(10)[:4])
    assert "more than 50% of the genes or weights of 3 classes are missing" in str(
        caught.value
    )
    assert "type 0 (6 of 10 genes, 60% of the weights)" in str(caught.value)
    assert caught.value.enough == pytest.approx(0.6)
    bind(model, gene_names(10)[:4], max_missing=0.6)
    with pytest.raises(ValueError, match="max_missing=50"):
        bind(model, gene_names(10), max_missing=50)


def test_a_class_that_loses_most_of_its_weight_with_few_genes_is_refused():
    model = make_panel(n_genes=10, sizes=(10,))
    model.coef_[0] = [9.0, *[0.5] * 9]
    model.coef_[1:] = 1.0
    with pytest.raises(MissingGenesError) as caught:
        bind(model, gene_names(10)[1:])
    assert "more than 50% of the genes or weights of 1 class are missing" in str(
        caught.value
    )
    assert "type 0 (1 of 10 genes, 67% of the weights)" in str(caught.value)
    (loss,) = caught.value.lacking
    assert caught.value.enough == loss.weight_lost


def test_a_query_with_none_of_the_panel_is_refused():
    with pytest.raises(
        MissingGenesError, match="none of the model's 10 genes are present"
    ):
        Predictor(make_panel(), ["OTHER"], max_missing=1, drop_classes=True)
    with pytest.raises(
        MissingGenesError, match=r"none of the reference genes of 1 class"
    ):
        bind(two_class_model(), ["GENE0", "GENE6"], max_missing=1)


def test_a_model_without_names_takes_the_columns_of_its_training():
    model, X = make_panel(named=False), make_samples(0, 4, 30)
    assert len(Predictor(model).predict(X).labels) == 4
    with pytest.raises(ValueError, match=r"without gene names.*30 columns"):
        Predictor(model, gene_names(30))


def test_a_described_training_keeps_the_mean_score_without_some_genes():
    rng = np.random.default_rng(0)
    model = make_model(n_classes=2, n_genes=30)
    X = rng.normal(size=(200, 30)) + np.arange(30) / 5
    y = model.classes_[np.arange(200) % 2]
    assert describe_training(model, X, y, genes=gene_names(30), source="there") is model
    gone = np.flatnonzero((model.coef_[0] != 0) & ~model.reference_[0])[:2]
    left = np.delete(np.arange(30), gone)
    whole = Predictor(model).scores(X).mean()
    kept = Predictor(model, model.feature_names_in_[left]).scores(X[:, left]).mean()
    assert kept == pytest.approx(whole, abs=1e-12)
    assert model.training_summary_ == {
        "n_genes": 30, "n_panel": int(model.genes_.sum()),
        "values": model.training_summary_["values"], "source": "there",
    }  # fmt: skip


def test_classes_that_lack_their_genes_are_left_out_where_asked_for():
    model = make_panel(n_classes=4, n_genes=10, sizes=(10,))
    model.coef_[:] = 1.0
    model.coef_[1] = [9.0, *[0.1] * 9]
    names = gene_names(10)[1:]
    with pytest.raises(MissingGenesError, match=r"type 1.*drop_classes") as refused:
        Predictor(model, names)
    assert refused.value.droppable
    predictor = Predictor(model, iter(names), drop_classes=True)
    assert predictor.classes.tolist() == ["type 0", "type 2", "type 3"]
    assert [loss.label for loss in predictor.left_out] == ["type 1"]
    assert "LEFT OUT" in predictor.notes()[0]
    assert "type 1 (1 of 10 genes, 91% of the weights)" in predictor.notes()[0]
    X = make_samples(0, 30, 9)
    rest = Predictor(model.subset(predictor.classes), names)
    np.testing.assert_array_equal(predictor.predict(X).scores, rest.predict(X).scores)


def test_a_column_that_names_more_of_the_genes_is_said():
    model = make_panel(n_genes=12, sizes=(10,))
    genes = model.feature_names_in_
    others = {"id": [f"ID{j}" for j in range(12)], "symbol": genes}
    with pytest.raises(
        MissingGenesError, match="name the column 'symbol', which has 10 of the 10"
    ):
        Predictor(model, [f"X{j}" for j in range(12)], other_names=others)
    assert not Predictor(model, genes, other_names=others).notes()


@pytest.mark.parametrize("make", [make_model, make_panel])
def test_missing_genes_contribute_nothing_to_an_explanation(make):
    model = make(n_genes=20)
    left = np.arange(20) % 5 != 0
    x = make_samples(3, 1, 20)[0][left]
    table = explain(model, x, gene_names(20)[left])
    scores = Predictor(model, gene_names(20)[left]).scores(x[None])[0]
    np.testing.assert_allclose(table.groupby("class")["contribution"].sum(), scores)
    missing = table[table["missing"]]
    assert len(missing)
    assert set(missing["gene"]).isdisjoint(gene_names(20)[left])
    assert missing["value"].isna().all()
    assert not missing["contribution"].any()
