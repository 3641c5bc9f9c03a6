"""Fewer classes, the panel, explanations, and what a model remembers of its training."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_cases import assert_same_model, make_model, make_samples, models, own_scores
from scipy import sparse

from optirank import OptirankClassifier, SingleCellNetClassifier
from optirank.datasets import make_unstable_ranks
from optirank.model import (
    Predictor,
    explain,
    fit_calibration,
    load,
    panel_table,
    remember_training,
    save,
    subset,
)
from optirank.ranks.definition import ranks_by_definition

SIDES = ("rising", "falling")
multiclass = models.filter(lambda model: len(model.classes_) > 2)


@given(multiclass, st.data())
def test_a_subset_chooses_among_its_classes_by_the_same_scores(tmp_path_factory, model, data):
    labels = model.classes_.tolist()
    kept = data.draw(st.lists(st.sampled_from(labels), min_size=2, unique=True))
    small = subset(model, kept)
    X = make_samples(0, 8, model.n_features_in_)
    where = np.flatnonzero([label in kept for label in labels])
    assert small.classes_.tolist() == [labels[k] for k in where]
    assert small.classes_.dtype == model.classes_.dtype
    scores = own_scores(model, X)[:, where]
    expected = scores if len(kept) > 2 else (scores[:, 1] - scores[:, 0]) / 2
    np.testing.assert_allclose(own_scores(small, X), expected, atol=1e-10)
    found = Predictor(small).predict(X)
    np.testing.assert_array_equal(found.labels, small.classes_[scores.argmax(axis=1)])
    assert small.genes_.sum() <= model.genes_.sum()
    path = tmp_path_factory.mktemp("subset") / "m"
    save(small, path)
    assert_same_model(load(path), small)


def test_a_subset_leaves_the_model_as_it_is_and_says_where_it_is_from():
    model = make_model(n_classes=4, means=True)
    model.training_summary_ = {"n_samples": 3}
    coef = model.coef_.copy()
    small = model.subset(["type 3", "type 1"])
    np.testing.assert_array_equal(model.coef_, coef)
    assert small.training_summary_ == {"n_samples": 3, "subset_of": [f"type {k}" for k in range(4)]}
    assert model.training_summary_ == {"n_samples": 3}
    assert small.mean_ranks_.shape == small.coef_.shape


def test_a_subset_keeps_the_calibration_of_its_classes():
    model = make_model(n_classes=4)
    rng = np.random.default_rng(0)
    y = model.classes_[np.arange(80) % 4]
    model.calibration_ = fit_calibration(rng.normal(size=(80, 4)), y, model.classes_)
    kept = subset(model, ["type 0", "type 2", "type 3"])
    assert kept.calibration_ == model.calibration_
    assert not hasattr(subset(model, ["type 0", "type 2"]), "calibration_")


def test_a_model_of_two_classes_has_no_subset():
    with pytest.raises(ValueError, match=r"'type 0' from .*'type 1'.* by one score"):
        subset(make_model(n_classes=2), ["type 0"])


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["type 0", "type 9"], r"no class 'type 9': its classes are \['type 0'"),
        (["type 0"], "at least two different"),
        ("type 0", "at least two different"),
        (["type 0", "type 0"], "at least two different"),
        ([], "at least two different"),
    ],
)
def test_a_wrong_choice_of_classes_is_refused(classes, message):
    with pytest.raises(ValueError, match=message):
        subset(make_model(), classes)


@given(models)
def test_the_panel_lists_every_gene_needed_with_its_role_and_weights(model):
    table = panel_table(model)
    assert len(table) == model.genes_.sum() == table["gene"].nunique()
    weights = table.filter(like="weight_").to_numpy()
    assert weights.shape[1] == len(model.coef_)
    heaviest = np.abs(weights).max(axis=1)
    assert (np.diff(heaviest) <= 0).all()
    for role, has_weight, is_reference in (
        ("reference", False, True), ("weight", True, False), ("both", True, True)
    ):  # fmt: skip
        rows = table[table["role"] == role]
        assert ((rows.filter(like="weight_") != 0).any(axis=1) == has_weight).all()
        assert ((rows["n_reference"] > 0) == is_reference).all()
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])
    by_gene = table.set_index("gene").filter(like="weight_")
    for j in np.flatnonzero(model.genes_):
        np.testing.assert_array_equal(by_gene.loc[names[j]], model.coef_[:, j])


def test_the_panel_names_class_and_side():
    assert panel_table(make_model(n_classes=2, sides=2)).columns.tolist() == [
        "gene", "role", "n_reference", "weight_type 1_rising", "weight_type 1_falling"
    ]  # fmt: skip
    assert panel_table(make_model(n_classes=3)).columns[3:].tolist() == [
        "weight_type 0", "weight_type 1", "weight_type 2"
    ]  # fmt: skip


def test_other_classifiers_have_no_panel():
    model = SingleCellNetClassifier(n_trees=2, n_top_genes=2, random_state=0)
    X = make_samples(0, 20, 10)
    model.fit(X, np.arange(20) % 2)
    with pytest.raises(TypeError, match="SingleCellNetClassifier has no weights"):
        panel_table(model)


@given(models, st.integers(0, 1000))
def test_contributions_sum_to_the_score(model, seed):
    x = make_samples(seed, 1, model.n_features_in_)[0]
    table = explain(model, x)
    scores = np.atleast_1d(own_scores(model, x[None])[0])
    classes = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    sums = table.groupby("class", sort=False)["contribution"].sum()
    assert sums.index.tolist() == classes.tolist()
    np.testing.assert_allclose(sums, scores, atol=1e-9)
    genes = table[table["gene"] != "(intercept)"]
    np.testing.assert_allclose(genes["weight"] * genes["relative_rank"], genes["contribution"])
    assert len(genes) == np.count_nonzero(model.coef_)
    assert len(table) - len(genes) == len(classes)


def test_an_explanation_names_the_side_and_keeps_a_gene_together():
    model = make_model(n_classes=3, n_genes=10, sides=2, n_weights=7)
    table = explain(model, make_samples(0, 1, 10)[0])
    for row, (label, side) in enumerate((c, s) for c in model.classes_ for s in SIDES):
        mine = table[(table["class"] == label) & (table["side"] == side)].set_index("gene")
        weights = pd.Series(model.coef_[row] / 2, index=model.feature_names_in_)
        pd.testing.assert_series_equal(
            mine["weight"].sort_index(), weights[weights != 0].sort_index(), check_names=False
        )
    for k, (_, mine) in enumerate(table.groupby("class")):
        assert mine["gene"].iloc[0] == "(intercept)"
        assert mine["contribution"].iloc[0] == model.intercept_[2 * k : 2 * k + 2].mean()
        sums = mine[1:].groupby("gene", sort=False)["contribution"].sum()
        assert (np.diff(sums.abs()) <= 1e-12).all()
        assert mine["gene"].nunique() == (mine["gene"] != mine["gene"].shift()).sum() < len(mine)


def test_an_explanation_shows_ranks_weights_and_values_the_largest_first():
    model = make_model(n_classes=2, n_genes=10)
    x = pd.Series(np.arange(10.0)[::-1], index=model.feature_names_in_[::-1])
    table = explain(model, x)
    assert table.columns.tolist() == [
        "class", "gene", "role", "missing", "value", "relative_rank", "weight", "contribution"
    ]  # fmt: skip
    assert table["gene"][0] == "(intercept)"
    assert (np.diff(table["contribution"][1:].abs()) <= 0).all()
    values = x[model.feature_names_in_].to_numpy()
    ranks = ranks_by_definition(values[None], model.reference_weights_[0])[0]
    for line in table[1:].itertuples():
        j = model.feature_names_in_.tolist().index(line.gene)
        assert line.value == values[j]
        assert line.relative_rank == ranks[j] / model.reference_[0].sum()
        assert line.weight == model.coef_[0, j]


def test_a_sample_may_be_a_row_of_anything():
    model = make_model(n_genes=15)
    X = make_samples(0, 3, 15)
    frame = pd.DataFrame(X, columns=model.feature_names_in_)
    expected = explain(model, X[1])
    for row in (X[1:2], frame.iloc[1], frame.iloc[1:2], sparse.csr_array(X)[1:2], list(X[1])):
        pd.testing.assert_frame_equal(explain(model, row), expected)
    with pytest.raises(ValueError, match="one sample of 15 values"):
        explain(model, X)
    with pytest.raises(ValueError, match="NaN"):
        explain(model, np.full(15, np.nan))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("integral", [True, False])
@pytest.mark.parametrize("to", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_mean_ranks_weigh_samples_as_training_did(n_classes, integral, to, monkeypatch):
    from optirank.model import training

    monkeypatch.setattr(training, "_BLOCK", 20)
    model = make_model(n_classes=n_classes, n_genes=15, integral=integral, sides=2)
    X = make_samples(0, 30, 15)
    y = model.classes_[np.minimum(np.arange(30) // 4, n_classes - 1)]
    assert remember_training(model, to(X), y) is model
    for row, (w, gamma) in enumerate(zip(model.coef_, model.reference_weights_, strict=True)):
        positive = y == (model.classes_[1:] if n_classes == 2 else model.classes_)[row // 2]
        ranks = ranks_by_definition(X, gamma) / gamma.sum()
        mean = (ranks[positive].mean(axis=0) + ranks[~positive].mean(axis=0)) / 2
        np.testing.assert_allclose(model.mean_ranks_[row], np.where(w != 0, mean, 0), atol=1e-12)


def test_the_training_summary_counts_and_keeps_what_it_is_given():
    model = make_model(n_genes=15, named=False)
    X, y = make_samples(0, 9, 15), make_model().classes_[np.arange(9) % 3]
    remember_training(model, X, y, genes=[f"n{j}" for j in range(15)], source="there")
    values = model.training_summary_.pop("values")
    panel = X[:, model.genes_]
    assert values["zeros"] == pytest.approx((panel == 0).mean(), abs=1e-5)
    assert values["negative"] == pytest.approx((panel < 0).mean(), abs=1e-5)
    assert model.training_summary_ == {
        "n_samples": 9,
        "n_genes": 15,
        "n_panel": int(model.genes_.sum()),
        "class_counts": {"type 0": 3, "type 1": 3, "type 2": 3},
        "source": "there",
    }
    assert model.feature_names_in_[2] == "n2"
    with pytest.raises(ValueError, match="2 gene names for 15 columns"):
        remember_training(model, X, y, genes=["a", "b"])
    with pytest.raises(ValueError, match=r"shape \(9, 3\)"):
        remember_training(model, X[:, :3], y)


def test_a_fitted_model_goes_the_whole_way(tmp_path):
    data = make_unstable_ranks(300, 30, 20, random_state=0)
    y = np.array(["healthy", "ill"])[data.y.astype(int)]
    X = pd.DataFrame(data.X, columns=[f"g{j}" for j in range(30)])
    model = OptirankClassifier(n_reference=10, l1=1e-3, l2=1e-4).fit(X[:200], y[:200])
    remember_training(model, X[:200], y[:200])
    save(model, tmp_path / "m")
    found = load(tmp_path / "m")
    panel = panel_table(found)["gene"]
    prediction = Predictor(found, panel).predict(X.loc[200:, panel])
    np.testing.assert_array_equal(prediction.labels, model.predict(X[200:]))
    assert (prediction.labels == y[200:]).mean() > 0.7
