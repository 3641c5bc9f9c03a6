"""What happens when genes of a model are missing: a stated rule, a report, a limit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_cases import make_model, make_samples, models

from optirank import OptirankClassifier
from optirank.model import (
    MissingGenesError,
    Predictor,
    bind,
    explain,
    predict_samples,
    remember_training,
    subset,
)
from optirank.model.missing import lacking_classes
from optirank.ranks.definition import TIES, ranks_by_definition


def scores_by_definition(model, x, here) -> np.ndarray:
    """The rule, written out: ranks among the reference that is there, a stand-in elsewhere."""
    _, offset = TIES[model.ties]
    scores = []
    for row, (w, gamma) in enumerate(zip(model.coef_, model.reference_weights_, strict=True)):
        left = np.where(here, gamma, 0.0)
        ranks = ranks_by_definition(x[None], left, model.ties)[0] / left.sum()
        if hasattr(model, "mean_ranks_"):
            stand_in = model.mean_ranks_[row]
        else:
            stand_in = (0.5 * left.sum() - offset) / left.sum()
        scores.append(w @ np.where(here, ranks, stand_in) + model.intercept_[row])
    n_problems = 1 if len(model.classes_) == 2 else len(model.classes_)
    return np.array(scores).reshape(n_problems, -1).mean(axis=1)


@given(models.filter(lambda m: hasattr(m, "feature_names_in_")), st.data())
def test_scores_with_missing_genes_follow_the_rule(model, data):
    d = model.n_features_in_
    here = np.array(data.draw(st.lists(st.booleans(), min_size=d, max_size=d)))
    x = make_samples(1, 1, d)[0]
    names = model.feature_names_in_[here]
    if (model.reference_weights_[:, here].sum(axis=1) == 0).any():
        with pytest.raises(MissingGenesError):
            Predictor(model, names, max_missing=1)
        return
    found = Predictor(model, names, max_missing=1, compiled=False).scores(x[None, here])
    expected = scores_by_definition(model, x, here)
    np.testing.assert_allclose(np.atleast_1d(found[0]), expected, atol=1e-9)


@given(models.filter(lambda m: hasattr(m, "feature_names_in_")))
def test_nothing_is_lost_where_nothing_is_missing(model):
    bound = bind(model, model.feature_names_in_)
    assert all(
        (loss.n_missing, loss.weight_lost, loss.reference_lost) == (0, 0.0, 0.0)
        for loss in bound.losses
    )
    assert bound.notes() == []


def two_class_model():
    model = make_model(n_classes=2, n_genes=8)
    model.coef_[:] = [[3.0, -1.0, 0, 0, 0, 0, 2.0, 0]]
    model.reference_weights_[:] = [[0, 1, 1, 1, 1, 0, 0, 0]]
    return model


def test_the_loss_is_reported_for_each_class():
    bound = bind(two_class_model(), [f"GENE{j}" for j in (1, 2, 3, 6, 7)])
    (loss,) = bound.losses
    assert (loss.label, loss.n_genes, loss.n_missing) == ("type 1", 6, 2)
    assert loss.weight_lost == pytest.approx(3 / 6)
    assert loss.reference_lost == pytest.approx(1 / 4)
    assert bound.match.missing == ("GENE0", "GENE4")
    assert bound.notes() == [
        "2 of 6 genes are missing: GENE0, GENE4",
        "most is lost for type 1: 2 of 6 genes, 50% of the weights and 25% of the reference set",
    ]
    table = bound.loss_table()
    assert table.columns.tolist() == [
        "label", "n_genes", "n_missing", "weight_lost", "reference_lost"
    ]  # fmt: skip


def test_above_half_of_a_class_s_genes_the_model_refuses():
    model = two_class_model()
    bind(model, [f"GENE{j}" for j in (0, 1, 2)])  # 3 of 6: just within
    with pytest.raises(MissingGenesError, match=r"more than 50%.*type 1 \(4 of 6\).*GENE2, GENE3"):
        bind(model, ["GENE0", "GENE1"])
    bind(model, ["GENE0", "GENE1"], max_missing=0.7)
    with pytest.raises(ValueError, match="max_missing=50"):
        bind(model, ["GENE0"], max_missing=50)


def test_without_any_reference_gene_there_are_no_ranks():
    with pytest.raises(MissingGenesError, match=r"none of the reference genes.*type 1"):
        bind(two_class_model(), ["GENE0", "GENE6"], max_missing=1)


def test_a_class_that_lacks_its_genes_can_be_left_out():
    model = make_model(n_classes=5, n_genes=40)
    own = (model.reference_[2] | (model.coef_[2] != 0)) & ~(
        np.delete(model.reference_, 2, axis=0) | (np.delete(model.coef_, 2, axis=0) != 0)
    ).any(axis=0)
    model.coef_[2, own] = model.coef_[2, own] + 1
    names = model.feature_names_in_[~own]
    needed = (model.reference_[2] | (model.coef_[2] != 0)).sum()
    with pytest.raises(MissingGenesError, match=r"1 class are missing: type 2.*drop_classes"):
        bind(model, names, max_missing=(own.sum() - 0.5) / needed)


def test_a_model_without_names_takes_the_columns_of_its_training():
    model = make_model(named=False)
    X = make_samples(0, 4, 12)
    assert len(predict_samples(model, X).labels) == 4
    with pytest.raises(ValueError, match=r"without gene names.*12 columns"):
        predict_samples(model, X, genes=[f"GENE{j}" for j in range(12)])


def test_the_training_mean_keeps_the_mean_score():
    rng = np.random.default_rng(0)
    model = make_model(n_classes=2, n_genes=30)
    X = rng.normal(size=(200, 30)) + np.arange(30) / 5
    y = model.classes_[np.arange(200) % 2]
    gone = np.flatnonzero((model.coef_[0] != 0) & ~model.reference_[0])[:2]
    left = np.delete(np.arange(30), gone)
    whole = Predictor(model).scores(X).mean()
    half = Predictor(model, model.feature_names_in_[left]).scores(X[:, left]).mean()
    remember_training(model, X, y)
    kept = Predictor(model, model.feature_names_in_[left]).scores(X[:, left]).mean()
    assert kept == pytest.approx(whole, abs=1e-12)
    assert abs(half - whole) > 1e-3


def test_an_explanation_with_missing_genes_sums_to_the_score():
    model = make_model(n_classes=3, n_genes=20, sides=2, means=True)
    left = np.arange(20) % 5 != 0
    names = model.feature_names_in_[left]
    x = make_samples(3, 1, 20)[0][left]
    table = explain(model, x, names)
    scores = Predictor(model, names).scores(x[None])[0]
    np.testing.assert_allclose(table.groupby("class")["contribution"].sum(), scores)
    missing = set(table.loc[table["missing"], "gene"])
    assert missing
    assert missing.isdisjoint(names)
    assert table.loc[table["missing"], "value"].isna().all()


def test_a_leukaemia_model_works_on_another_array_that_lacks_a_sixth_of_the_genes(data_folder):
    import anndata

    train, test = (
        anndata.read_h5ad(data_folder / f"{name}.h5ad")
        for name in ("golub_leukemia", "armstrong_leukemia")
    )
    y = train.obs["cell_type"].to_numpy(dtype=object)
    genes = np.sort(np.random.default_rng(0).choice(train.n_vars, 1500, replace=False))
    X, names = train.X[:, genes].toarray(), train.var_names[genes]
    model = OptirankClassifier(n_reference=50, l1=1e-3, l2=1e-2, side="both").fit(X, y)
    remember_training(model, X, y, genes=names)
    predictor = Predictor(model, test.var_names)
    share = len(predictor.bound.match.missing) / len(predictor.bound.match.genes)
    assert 0.08 < share < 0.3
    assert any("genes are missing" in note for note in predictor.notes())
    found = predictor.predict(test.X).labels
    truth = test.obs["cell_type"].to_numpy(dtype=object)
    recalls = [np.mean(found[truth == label] == label) for label in np.unique(truth)]
    assert np.mean(recalls) > 0.75


def test_classes_that_lack_their_genes_are_left_out_where_asked_for():
    model = make_model(n_classes=4, n_genes=40)
    model.coef_[1], model.reference_weights_[1] = 0.0, 0.0
    model.coef_[1, :2], model.reference_weights_[1, 1:4] = 1.0, 1.0
    names = model.feature_names_in_[4:]
    X = make_samples(0, 30, 36)
    with pytest.raises(MissingGenesError, match="type 1") as refused:
        Predictor(model, names, max_missing=0.6)
    assert refused.value.droppable
    assert refused.value.enough is None  # without a reference gene no limit will do
    predictor = Predictor(model, iter(names), max_missing=0.6, drop_classes=True)
    assert predictor.classes.tolist() == ["type 0", "type 2", "type 3"]
    assert [loss.label for loss in predictor.left_out] == ["type 1"]
    assert "LEFT OUT" in predictor.notes()[0]
    assert "type 1 (4 of 4)" in predictor.notes()[0]
    rest = Predictor(subset(model, predictor.classes), names, max_missing=0.6)
    np.testing.assert_array_equal(predictor.predict(X).scores, rest.predict(X).scores)


def test_with_fewer_than_two_classes_left_none_is_left_out():
    model = make_model(n_classes=3, n_genes=40)
    with pytest.raises(MissingGenesError) as refused:
        Predictor(model, ["OTHER1", "OTHER2"], drop_classes=True)
    assert not refused.value.droppable


def test_a_column_that_names_more_of_the_genes_is_said():
    model = make_model(n_genes=12)
    genes = model.feature_names_in_
    others = {"id": [f"ID{j}" for j in range(12)], "symbol": genes}
    with pytest.raises(MissingGenesError, match="name the column 'symbol', which has"):
        Predictor(model, [f"X{j}" for j in range(12)], other_names=others)
    some_found = [*genes[:-1], "X11"]
    notes = Predictor(model, some_found, max_missing=1, other_names=others).notes()
    assert any("the column 'symbol'" in note for note in notes)
    assert not Predictor(model, genes, other_names=others).notes()


def test_a_class_that_loses_most_of_its_weight_with_few_genes_is_refused():
    model = make_model(n_genes=40, n_weights=10)
    model.coef_[0] = 0.0
    free = np.flatnonzero(~model.reference_.any(axis=0))[:4]
    model.coef_[0, free] = [8.0, 0.5, 0.5, 0.5]
    model.genes_ = (model.reference_ | (model.coef_ != 0)).any(axis=0)
    names = model.feature_names_in_
    there = [name for j, name in enumerate(names) if j != free[0]]
    with pytest.raises(
        MissingGenesError, match="more than 50% of the weights of 1 class"
    ) as caught:
        bind(model, there)
    assert "84% of the weights" in str(caught.value)
    (loss,) = caught.value.lacking
    assert loss.label == "type 0"
    assert loss.share_missing < 0.5
    assert caught.value.enough == loss.weight_lost
    assert bind(model, there, max_missing=0.9).losses[0].weight_lost == loss.weight_lost
    assert [one.label for one in lacking_classes(model, there)] == ["type 0"]
