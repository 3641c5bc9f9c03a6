"""k-TSP: scores of pairs by their definition, disjoint pairs, an odd number of votes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.utils.estimator_checks import parametrize_with_checks

from optirank import TopScoringPairsClassifier, load, save
from optirank.estimators.top_pairs import top_scoring_pairs
from optirank.model.archive import ModelFileError
from optirank.model.pairs_form import PAIRS, describe_pairs


@parametrize_with_checks([TopScoringPairsClassifier(), TopScoringPairsClassifier(3, max_genes=2)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def swapped_pairs(n=120, d=30, n_pairs=3, n_classes=2, noise=0.4, seed=0):
    """Noise, in which genes 2j of class k are above 2j + 1, and below them elsewhere."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, d))
    for k in range(1 if n_classes == 2 else n_classes):
        own = 2 * n_pairs * k + 2 * np.arange(n_pairs)
        sign = np.where(y == (1 if n_classes == 2 else k), 1.0, -1.0)[:, None]
        X[:, own] = sign + noise * rng.normal(size=(n, n_pairs))
        X[:, own + 1] = -sign + noise * rng.normal(size=(n, n_pairs))
    return X, y


@given(
    hnp.arrays(np.int64, hnp.array_shapes(min_dims=2, max_dims=2, min_side=4, max_side=9)).filter(
        lambda X: X.shape[1] >= 2
    ),
    st.integers(0, 2**16),
)
def test_the_first_pair_has_the_best_score_by_definition(X, seed):
    rng = np.random.default_rng(seed)
    positive = rng.permutation(np.arange(len(X)) % 2 == 0)
    shift = rng.normal(size=X.shape[1])
    pairs = top_scoring_pairs(X, positive, shift, np.arange(X.shape[1]), 9)
    scores = {}
    for a in range(X.shape[1]):
        for b in set(range(X.shape[1])) - {a}:
            above = X[:, a] > X[:, b]
            difference = above[positive].mean() - above[~positive].mean()
            scores[a, b] = round(abs(difference), 12), round(abs(shift[a] - shift[b]), 12)
    best = max(scores.values())
    assert scores[tuple(pairs.genes[0])] == best
    assert len(np.unique(pairs.genes)) == pairs.genes.size  # disjoint
    assert (np.diff(pairs.scores) <= 0).all()
    assert len(pairs.genes) == 1 or pairs.scores.min() > 0


def test_signs_say_whom_a_pair_speaks_for():
    X, y = swapped_pairs(n_pairs=1, noise=0.0)
    for positive, expected in ((y == 1, 1.0), (y == 0, -1.0)):
        pairs = top_scoring_pairs(X, positive, np.zeros(30), np.arange(30), 1)
        assert set(pairs.genes[0]) == {0, 1}
        assert pairs.signs[0] * (1 if pairs.genes[0, 0] == 0 else -1) == expected
        assert pairs.scores[0] == 1.0


def test_pairs_that_swap_are_found_and_their_number_is_odd():
    X, y = swapped_pairs(noise=1.2)
    model = TopScoringPairsClassifier().fit(X[:80], y[:80])
    assert model.k_[0] % 2 == 1
    assert {frozenset(pair) for pair in model.pairs_[:3].tolist()} <= {
        frozenset({a, b}) for a in (0, 2, 4) for b in (1, 3, 5)
    }
    assert model.score(X[80:], y[80:]) > 0.85
    np.testing.assert_array_equal(np.flatnonzero(model.genes_), np.unique(model.pairs_))


def test_several_noisy_pairs_outvote_a_single_one():
    X, y = swapped_pairs(n=300, n_pairs=8, noise=2.5)
    one, many = (TopScoringPairsClassifier(k).fit(X[:200], y[:200]) for k in (1, 9))
    assert one.k_[0] == 1
    assert many.k_[0] > 3
    assert many.score(X[200:], y[200:]) > one.score(X[200:], y[200:])


def test_decisions_are_votes_and_probabilities_their_shares():
    X, y = swapped_pairs(noise=1.5)
    model = TopScoringPairsClassifier(9).fit(X, y)
    above = X[:, model.pairs_[:, 0]] > X[:, model.pairs_[:, 1]]
    votes = np.where(above, model.signs_, -model.signs_)
    np.testing.assert_allclose(model.decision_function(X), votes.mean(axis=1))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], (votes > 0).mean(axis=1))
    np.testing.assert_array_equal(model.predict(X), (votes.sum(axis=1) > 0).astype(int))


def test_each_class_votes_against_the_rest():
    X, y = swapped_pairs(n=180, n_classes=3, n_pairs=2)
    words = np.array(["a", "b", "c"])[y]
    model = TopScoringPairsClassifier().fit(X[:120], words[:120])
    assert model.decision_function(X).shape == (180, 3)
    assert model.k_.sum() == len(model.pairs_)
    assert model.score(X[120:], words[120:]) > 0.95
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_equal_shares_of_votes_are_decided_by_the_scores_of_the_pairs():
    model = TopScoringPairsClassifier()
    model.classes_, model.n_features_in_ = np.array(["a", "b", "c"]), 6
    model.k_, model.pairs_ = np.ones(3, int), np.array([[0, 1], [2, 3], [4, 5]])
    model.signs_, model.scores_ = np.ones(3), np.array([0.5, 0.9, 0.7])
    model.genes_ = np.ones(6, bool)
    assert model.predict([[1.0, 0.0, 1.0, 0.0, 0.0, 1.0]]).tolist() == ["b"]
    assert model.predict([[0.0, 1.0, 0.0, 1.0, 0.0, 1.0]]).tolist() == ["a"]  # the least against


def test_a_monotone_map_of_each_sample_changes_nothing():
    X, y = swapped_pairs()
    first = TopScoringPairsClassifier().fit(X, y)
    scaled = np.exp(X * np.linspace(0.5, 2, len(X))[:, None])
    again = TopScoringPairsClassifier().fit(scaled, y)
    np.testing.assert_array_equal(first.pairs_, again.pairs_)
    np.testing.assert_array_equal(first.decision_function(X), again.decision_function(scaled))


def test_sparse_input_gives_the_dense_result():
    X, y = swapped_pairs()
    X = np.where(X > 0.3, np.round(X * 3), 0.0)
    dense, sparse = (TopScoringPairsClassifier().fit(one, y) for one in (X, sp.csr_array(X)))
    np.testing.assert_array_equal(dense.pairs_, sparse.pairs_)
    np.testing.assert_array_equal(dense.predict(X), sparse.predict(sp.csc_array(X)))


def test_only_the_most_different_genes_are_compared():
    X, y = swapped_pairs(d=40)
    model = TopScoringPairsClassifier(max_genes=6).fit(X, y)
    assert set(np.unique(model.pairs_)) <= set(range(6))


def test_without_any_order_that_tells_there_is_one_pair():
    model = TopScoringPairsClassifier().fit(np.ones((10, 4)), np.arange(10) % 2)
    assert model.pairs_.shape == (1, 2)
    assert model.scores_.tolist() == [0.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"k_max": 0}, "k_max"), ({"max_genes": 1}, "max_genes"), ({"cv": 1}, "cv")],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        TopScoringPairsClassifier(**options).fit(*swapped_pairs())


def test_bad_data_are_refused():
    X, y = swapped_pairs()
    with pytest.raises(ValueError, match="one class only"):
        TopScoringPairsClassifier().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="a pair needs 2"):
        TopScoringPairsClassifier().fit(X[:, :1], y)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_saved_model_is_the_same(tmp_path, n_classes):
    X, y = swapped_pairs(n_classes=n_classes, n_pairs=2)
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(30)])
    model = TopScoringPairsClassifier(5).fit(frame, y)
    save(model, tmp_path / "m.optirank")
    again = load(tmp_path / "m.optirank")
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.decision_function(frame), model.decision_function(frame))
    np.testing.assert_array_equal(again.genes_, model.genes_)
    assert list(again.feature_names_in_) == list(frame.columns)


class Stored(dict):
    """Arrays as an archive gives them."""

    def take(self, name, dtypes, shape):
        assert self[name].dtype.name in dtypes
        if self[name].shape != shape:
            raise ModelFileError("shape")
        return self[name]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pairs": np.array([[0, 30]])}, "a gene that is not there"),
        ({"pairs": np.array([[-1, 3]])}, "a gene that is not there"),
        ({"signs": np.array([0.5])}, "votes neither"),
        ({"k": np.array([2])}, "do not add up"),
        ({"n_pairs": 0}, "0 pairs of 30 genes are no model"),
    ],
)
def test_a_damaged_model_is_refused(change, message):
    model = TopScoringPairsClassifier(1).fit(*swapped_pairs())
    document, arrays = describe_pairs(model)
    for key, value in change.items():
        (document if key in document else arrays)[key] = value
    with pytest.raises(ModelFileError, match=message):
        PAIRS.rebuild(TopScoringPairsClassifier, document, Stored(arrays))
