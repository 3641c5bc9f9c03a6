"""k-TSP in the model room: found by gene names, missing genes, rules, the votes of a sample."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from optirank import TopScoringPairsClassifier, load, save
from optirank.model import MissingGenesError, Predictor, explain, panel_table, remember_training
from optirank.model.calibration import fit_calibration
from optirank.model.linear import linear_parts
from optirank.model.votes import pair_table
from optirank.ranks.scoring import by_class


def counts(n=150, d=40, n_classes=3, seed=0):
    """Counts with many zeros, in which class k has five genes of its own."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    rate = np.full((n, d), 0.8)
    for k in range(n_classes):
        rate[y == k, 5 * k : 5 * k + 5] = 4.0
    frame = pd.DataFrame(rng.poisson(rate).astype(float), columns=[f"G{j}" for j in range(d)])
    return frame, np.array(["a", "b", "c", "d"])[y]


@pytest.fixture(params=[(2, "average"), (2, "min"), (3, "average"), (3, "min")])
def fitted(request):
    n_classes, ties = request.param
    X, y = counts(n_classes=n_classes)
    return TopScoringPairsClassifier(5, ties=ties).fit(X, y), X, y


@pytest.mark.parametrize("compiled", [False, True])
def test_prediction_by_names_gives_what_the_estimator_gives(fitted, compiled):
    model, X, _ = fitted
    shuffled = X.iloc[:, ::-1]
    for given in (shuffled.to_numpy(), sp.csr_array(shuffled)):
        found = Predictor(model, shuffled.columns, compiled=compiled).predict(given)
        np.testing.assert_allclose(found.scores, model.decision_function(X), atol=1e-12)
        np.testing.assert_allclose(found.probabilities, model.predict_proba(X), atol=1e-12)
        highest = np.sort(by_class(found.scores), axis=1)[:, -2:]
        clear = np.diff(highest, axis=1)[:, 0] > 1e-9  # the last bits decide between equal scores
        assert clear.mean() > 0.9
        np.testing.assert_array_equal(found.labels[clear], model.predict(X)[clear])


def test_classes_with_different_numbers_of_pairs_have_mean_votes_of_their_own():
    X, y = counts()
    model = TopScoringPairsClassifier(7, choose_k="variance").fit(X, y)
    model.k_ = np.array([1, 3, 5])
    rows = np.arange(9)
    model.pairs_, model.signs_, model.scores_ = (
        getattr(model, name)[rows] for name in ("pairs_", "signs_", "scores_")
    )
    found = Predictor(model, X.columns).scores(X.to_numpy())
    np.testing.assert_allclose(found, model.decision_function(X), atol=1e-12)


def test_a_pair_that_lacks_a_gene_does_not_vote_and_the_others_decide(fitted):
    model, X, _ = fitted
    gone = int(model.pairs_[0, 1])
    there = X.drop(columns=X.columns[gone])
    predictor = Predictor(model, there.columns)
    lost = (model.pairs_ == gone).any(axis=1)
    first, second = (X.to_numpy()[:, column] for column in model.pairs_.T)
    votes = np.where(first > second, model.signs_, -model.signs_)
    if model.ties == "average":
        votes = np.where(first == second, 0.0, votes)
    problem = np.repeat(np.arange(len(model.k_)), model.k_)
    means = [votes[:, (problem == k) & ~lost].mean(axis=1) for k in range(len(model.k_))]
    scores = predictor.scores(there.to_numpy())
    expected = np.array(means).T if len(means) > 1 else means[0]
    np.testing.assert_allclose(scores, expected, atol=1 / 50)
    assert any("of the pairs" in note for note in predictor.notes())
    assert not any("reference set" in note for note in predictor.notes())


def test_too_many_missing_genes_are_refused():
    X, y = counts(n_classes=2)
    model = TopScoringPairsClassifier(5).fit(X, y)
    # three genes of ten are missing, but three pairs of five cannot vote
    there = X.drop(columns=X.columns[model.pairs_[:3, 0]])
    with pytest.raises(MissingGenesError, match="60% of the pairs"):
        Predictor(model, there.columns)
    found = Predictor(model, there.columns, max_missing=0.6).predict(there.to_numpy())
    assert (found.labels == y).mean() > 0.8
    with pytest.raises(MissingGenesError, match="no pair of 1 class has both genes"):
        Predictor(model, X.columns[~model.genes_], max_missing=1.0)


def test_classes_can_be_left_out():
    X, y = counts(n=200, n_classes=4)
    model = TopScoringPairsClassifier(5).fit(X, y)
    three = model.subset(["a", "b", "d"])
    np.testing.assert_allclose(three.decision_function(X), model.decision_function(X)[:, [0, 1, 3]])
    two = model.subset(["b", "c"])
    scores = model.decision_function(X)[:, [1, 2]]
    np.testing.assert_allclose(
        two.decision_function(X), (scores[:, 1] - scores[:, 0]) / 2, atol=1 / 50
    )
    assert two.classes_.tolist() == ["b", "c"]
    with pytest.raises(ValueError, match="no classes to leave out"):
        two.subset(["b", "c"])
    mine = np.setdiff1d(model.pairs_[15:], model.pairs_[:15])  # of class d alone
    predictor = Predictor(model, X.columns.delete(mine), drop_classes=True, max_missing=0.1)
    assert predictor.classes.tolist() == ["a", "b", "c"]


def test_rules_say_which_order_speaks_for_which_class(fitted):
    model, X, _ = fitted
    table = pair_table(model)
    assert len(table) == model.k_.sum()
    values, votes = X.to_numpy(), np.zeros((len(X), len(table)))
    for j, row in table.iterrows():
        assert row["rule"] == f"{row['order']} speaks for {row['class']}"
        higher, sign, lower = row["order"].split()
        assert (higher, lower) == (row["higher"], row["lower"])
        one, other = X[higher], X[lower]
        votes[:, j] = one >= other if sign == ">=" else one > other
    first, second = (values[:, column] for column in model.pairs_.T)
    expected = np.where(first > second, model.signs_, -model.signs_)
    if model.ties == "average":
        expected = np.where(first == second, 0.0, expected)
    np.testing.assert_array_equal(votes > 0, expected > 0)


def test_the_panel_has_both_genes_of_each_pair(fitted):
    model, X, _ = fitted
    panel = panel_table(model)
    assert len(panel) == 2 * model.k_.sum()
    assert set(panel["gene"]) == set(X.columns[model.genes_])
    assert panel["role"].tolist() == ["higher", "lower"] * int(model.k_.sum())


def test_the_votes_of_a_sample_sum_to_its_scores(fitted):
    model, X, _ = fitted
    sample = X.iloc[7]
    table = explain(model, sample)
    sums = table.groupby("class", sort=False)["contribution"].sum().to_numpy()
    expected = model.decision_function(X.iloc[[7]])
    np.testing.assert_allclose(sums, np.ravel(expected), atol=1e-12)
    row = table.iloc[0]
    higher, _, lower = row["gene"].split()
    assert (row["value"], row["value_below"]) == (sample[higher], sample[lower])
    less = explain(model, sample.drop(higher))
    assert less.loc[0, "missing"]
    assert less.loc[0, "contribution"] == 0
    found = Predictor(model, sample.drop(higher).index).scores(sample.drop(higher).to_frame().T)
    sums = less.groupby("class", sort=False)["contribution"].sum().to_numpy()
    np.testing.assert_allclose(sums, np.ravel(found), atol=1e-12)


def test_a_saved_model_keeps_what_it_carries(tmp_path):
    X, y = counts()
    model = TopScoringPairsClassifier(5).fit(X, y)
    remember_training(model, X, y, source="a study")
    model.calibration_ = fit_calibration(model.decision_function(X), y, model.classes_)
    save(model, tmp_path / "m.optirank")
    again = load(tmp_path / "m.optirank")
    assert again.training_summary_["source"] == "a study"
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    found = Predictor(again, X.columns).predict(X.to_numpy())
    np.testing.assert_allclose(found.probabilities, model.predict_proba(X))


def test_pairs_are_rows_of_one_reference_gene_and_one_weight(fitted):
    model, _, _ = fitted
    parts = linear_parts(model)
    assert parts.votes
    assert (parts.reference_weights.sum(axis=1) == 1).all()
    assert ((parts.coef != 0).sum(axis=1) == 1).all()
