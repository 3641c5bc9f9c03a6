"""k-TSP: scores of pairs by their definition, disjoint pairs, an odd number
of votes.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from optirank.ranks.orders import order_samples
from optirank_lab import TopScoringPairsClassifier
from optirank_lab.baselines.top_pairs import best_pairs


def swapped_pairs(n=120, d=30, n_pairs=3, n_classes=2, noise=0.4, seed=0):
    """Noise, in which genes 2j of class k are above 2j + 1, and below them in
    the rest.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, d))
    for k in range(1 if n_classes == 2 else n_classes):
        own = 2 * n_pairs * k + 2 * np.arange(n_pairs)
        sign = np.where(y == (1 if n_classes == 2 else k), 1.0, -1.0)[:, None]
        X[:, own] = sign + noise * rng.normal(size=(n, n_pairs))
        X[:, own + 1] = -sign + noise * rng.normal(size=(n, n_pairs))
    return X, y


def pairs_by_definition(X, positive, weights, k_max):
    """Disjoint pairs (score, genes, sign) from the definition, pair by pair."""
    rest = ~positive

    def difference(values):
        outside = np.average(values[rest], axis=0, weights=weights[rest])
        return values[positive].mean(axis=0) - outside

    ranks = np.array(
        [((x[:, None] > x) + 0.5 * (x[:, None] == x)).sum(axis=1) for x in X]
    )
    shift = difference(ranks / X.shape[1])
    found = []
    for a, b in itertools.permutations(range(X.shape[1]), 2):
        score = round(difference((X[:, a] > X[:, b]).astype(float)), 10)
        found.append((-abs(score), -round(abs(shift[a] - shift[b]), 10), (a, b), score))
    chosen, used = [], set()
    for best, _, pair, score in sorted(found):
        if used.isdisjoint(pair) and len(chosen) < k_max and (best < 0 or not chosen):
            chosen.append((-best, pair, 1.0 if score >= 0 else -1.0))
            used |= set(pair)
    return chosen


@st.composite
def small_tables(draw):
    """Values with many ties, zeros and negative numbers, and labels of two or three
    classes.
    """
    shape = draw(st.tuples(st.integers(3, 9), st.integers(2, 7)))
    X = draw(hnp.arrays(np.int64, shape, elements=st.integers(-2, 2)))
    n_classes = draw(st.integers(2, 3))
    return X, np.array(draw(st.permutations((np.arange(len(X)) % n_classes).tolist())))


@settings(deadline=None)
@given(small_tables(), st.booleans(), st.integers(1, 4))
def test_pairs_follow_from_the_definition(table, as_sparse, k_max):
    X, y = table
    given = sp.csr_array(X) if as_sparse else X
    positives = [1] if y.max() == 1 else range(3)
    weights = 1.0 / np.bincount(y)[y]
    for positive, pairs in zip(
        positives, best_pairs(order_samples(given), y, k_max, None), strict=True
    ):
        expected = pairs_by_definition(X, y == positive, weights, k_max)
        assert [tuple(pair) for pair in pairs.genes] == [
            pair for _, pair, _ in expected
        ]
        np.testing.assert_allclose(
            pairs.scores, [score for score, *_ in expected], atol=1e-9
        )
        np.testing.assert_array_equal(pairs.signs, [sign for *_, sign in expected])


def test_a_small_example_by_hand():
    """Four genes of three samples per class, worked out on paper.

    a > b in all samples of "case" and in none of "control": score 1. c > d in two of
    three cases and in one of three controls: score 1/3, and the only pair left. A case
    has the votes +1 (a > b) and +1 or -1 (c, d).
    """
    X = pd.DataFrame(
        [
            [5, 1, 4, 2],
            [9, 3, 8, 7],
            [6, 0, 1, 2],
            [1, 4, 3, 2],
            [2, 9, 1, 5],
            [0, 3, 1, 2],
        ],
        columns=["a", "b", "c", "d"],
    )
    y = ["case"] * 3 + ["control"] * 3
    (pairs,) = best_pairs(
        order_samples(X.to_numpy()), np.array([1, 1, 1, 0, 0, 0]), 9, None
    )
    assert [frozenset(pair) for pair in pairs.genes.tolist()] == [{0, 1}, {2, 3}]
    np.testing.assert_allclose(pairs.scores, [1, 1 / 3])
    model = TopScoringPairsClassifier().fit(X, y)
    assert model.k_.tolist() == [1]  # two pairs: the odd number below
    new = pd.DataFrame([[3, 2, 0, 0], [2, 3, 0, 0]], columns=X.columns)
    assert model.predict(new).tolist() == ["case", "control"]


def test_pairs_that_swap_are_found_and_their_number_is_odd():
    X, y = swapped_pairs(noise=1.2)
    model = TopScoringPairsClassifier(4).fit(X[:80], y[:80])
    assert model.k_[0] == 3
    assert {frozenset(pair) for pair in model.pairs_[:3].tolist()} <= {
        frozenset({a, b}) for a in (0, 2, 4) for b in (1, 3, 5)
    }
    assert model.score(X[80:], y[80:]) > 0.85
    np.testing.assert_array_equal(np.flatnonzero(model.genes_), np.unique(model.pairs_))


def test_decisions_are_votes_and_probabilities_their_shares():
    X, y = swapped_pairs(noise=1.5)
    X = np.round(X)  # with ties
    model = TopScoringPairsClassifier(9).fit(X, y)
    first, second = X[:, model.pairs_[:, 0]], X[:, model.pairs_[:, 1]]
    assert (first == second).any()
    votes = np.where(first > second, model.signs_, -model.signs_) * (first != second)
    means = votes.mean(axis=1)
    small = 1 / (2 * model.k_[0] ** 2)  # decides between equal votes alone
    np.testing.assert_allclose(model.decision_function(X), means, atol=small)
    np.testing.assert_allclose(
        model.predict_proba(X)[:, 1], (1 + means) / 2, atol=small
    )
    decided = means != 0
    expected = (means[decided] > 0).astype(int)
    np.testing.assert_array_equal(model.predict(X)[decided], expected)


def test_equal_votes_of_two_classes_are_decided_by_the_scores_of_the_pairs():
    model = TopScoringPairsClassifier()
    model.classes_, model.n_features_in_ = np.array(["no", "yes"]), 6
    model.k_, model.pairs_ = np.array([3]), np.array([[0, 1], [2, 3], [4, 5]])
    model.signs_, model.scores_ = np.ones(3), np.array([0.9, 0.7, 0.5])
    tie = [0.0, 0.0]
    assert model.predict([[2, 1, 1, 2, *tie]]).tolist() == ["yes"]
    assert model.predict([[1, 2, 2, 1, *tie]]).tolist() == ["no"]


def test_classes_of_the_rest_count_the_same():
    """Gene 0 above gene 1 tells class 0 from the many samples of class 1, not from
    class 2.
    """
    y = np.repeat([0, 1, 2], [10, 80, 10])
    X = np.zeros((100, 6))
    X[:, 0] = y != 1
    X[:, 2] = np.where(y == 0, 3.0, np.where(np.arange(100) % 3 == 0, 3.0, 0.0))
    X[:, 3] = 2.0
    assert set(TopScoringPairsClassifier(1).fit(X, y).pairs_[0]) == {2, 3}


def test_each_class_votes_against_the_rest():
    X, y = swapped_pairs(n=180, n_classes=3, n_pairs=2)
    words = np.array(["a", "b", "c"])[y]
    model = TopScoringPairsClassifier().fit(X[:120], words[:120])
    assert model.decision_function(X).shape == (180, 3)
    assert model.k_.sum() == len(model.pairs_)
    assert model.score(X[120:], words[120:]) > 0.95
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_a_monotone_map_of_each_sample_changes_nothing():
    X, y = swapped_pairs()
    first = TopScoringPairsClassifier().fit(X, y)
    scaled = np.exp(X * np.linspace(0.5, 2, len(X))[:, None])
    again = TopScoringPairsClassifier().fit(scaled, y)
    np.testing.assert_array_equal(first.pairs_, again.pairs_)
    np.testing.assert_array_equal(
        first.decision_function(X), again.decision_function(scaled)
    )


def test_sparse_input_gives_the_dense_result():
    X, y = swapped_pairs()
    X = np.where(X > 0.3, np.round(X * 3), 0.0)
    dense, sparse = (
        TopScoringPairsClassifier().fit(one, y) for one in (X, sp.csr_array(X))
    )
    np.testing.assert_array_equal(dense.pairs_, sparse.pairs_)
    np.testing.assert_array_equal(dense.predict(X), sparse.predict(sp.csc_array(X)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k_max": 0}, "k_max"),
        ({"max_genes": 1}, "max_genes"),
    ],
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
