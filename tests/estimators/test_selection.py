"""Choosing a setting: the one-standard-error rule, worked out by hand, and its ties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score

from optirank._util.numbers import balanced_accuracy, standard_error
from optirank.estimators.selection import edges_of_grid, select

# Means .80, .90, .88, .70, .87. The best, .90, has deviations -.04, 0, .04 over its
# folds: standard deviation .04, standard error .04 / sqrt(3) = .0231, so settings of at
# least .8769 are as good.
SCORES = np.array(
    [
        [0.80, 0.80, 0.80],
        [0.86, 0.90, 0.94],
        [0.87, 0.88, 0.89],
        [0.70, 0.70, 0.70],
        [0.87, 0.87, 0.87],
    ]
)
N_GENES = np.array(
    [[10, 12, 14], [90, 100, 110], [50, 40, 30], [1, 1, 1], [20, 20, 20]]
)


def test_the_rule_takes_the_fewest_genes_within_one_standard_error():
    expected = [0, 0.04 / 3**0.5, 0.01 / 3**0.5]
    np.testing.assert_allclose(standard_error(SCORES)[:3], expected, atol=1e-15)
    assert select(SCORES, N_GENES) == 2
    assert select(SCORES, N_GENES, "best") == 1
    wider = SCORES.copy()
    wider[1] = [0.84, 0.90, 0.96]  # standard error .0346: at least .8654
    assert select(wider, N_GENES) == 4


def test_a_mean_on_the_border_counts():
    scores = np.array([[0.5, 1.0], [0.5, 0.5]])  # .75 +- .25, and .5
    assert select(scores, np.array([[9, 9], [1, 1]])) == 1


def test_a_single_fold_has_no_error():
    scores, n_genes = SCORES[:, :1], N_GENES[:, :1]
    np.testing.assert_array_equal(standard_error(scores), 0)
    assert (
        select(scores, n_genes) == select(scores, n_genes, "best") == 4
    )  # .87, 20 genes


def test_of_as_many_genes_the_higher_score_then_the_smaller_error_then_the_first():
    genes = np.full((3, 2), 7)
    assert (
        select(np.array([[0.7, 0.9], [0.79, 0.83], [0.75, 0.87]]), genes) == 1
    )  # .81 in front
    assert (
        select(np.array([[0.7, 0.9], [0.79, 0.81], [0.75, 0.85]]), genes) == 1
    )  # all .80
    assert select(np.array([[0.7, 0.9], [0.7, 0.9], [0.7, 0.9]]), genes) == 0


def test_of_equal_scores_best_takes_fewer_genes():
    scores = np.full((3, 2), 0.8)
    assert select(scores, np.array([[9, 9], [3, 3], [5, 5]]), "best") == 1


def test_equal_best_means_are_judged_by_the_sparser_one():
    # Both .8; the sparser has no spread, so the setting at .79 stays out
    scores = np.array([[0.7, 0.9], [0.8, 0.8], [0.79, 0.79]])
    assert select(scores, np.array([[9, 9], [5, 5], [1, 1]])) == 1


def test_the_order_of_the_folds_does_not_decide():
    scores = np.array([[0.1, 0.2, 0.3, 0.4, 0.7], [0.7, 0.4, 0.3, 0.2, 0.1]])
    for turn in (scores, scores[::-1]):
        assert select(turn, np.array([[9] * 5, [2] * 5]), "best") == 1
        assert select(turn, np.array([[2] * 5, [9] * 5]), "best") == 0


def test_settings_without_a_score_are_never_chosen():
    scores = SCORES.copy()
    scores[2, 0] = np.nan
    scores[3] = np.nan
    assert select(scores, N_GENES) == 1
    with pytest.raises(ValueError, match="no setting has a finite mean score"):
        select(np.full((2, 2), np.nan), np.ones((2, 2)))


BINARY = np.array([0, 1])


@pytest.mark.parametrize(
    ("truth", "labels", "expected"),
    [
        ([1, 1, 0, 0], [1, 0, 0, 0], 0.75),
        ([1, 1, 0, 0], [1, 1, 1, 1], 0.5),
        ([1, 1], [1, 0], np.nan),
        ([0, 0], [1, 0], np.nan),
        ([], [], np.nan),
    ],
)
def test_balanced_accuracy_needs_every_class_asked_for(truth, labels, expected):
    truth, labels = np.array(truth, int), np.array(labels, int)
    assert balanced_accuracy(truth, labels, BINARY) == pytest.approx(
        expected, nan_ok=True
    )


def test_balanced_accuracy_is_of_the_classes_there_are():
    assert balanced_accuracy(np.array([1, 1]), np.array([1, 0])) == 0.5
    assert np.isnan(balanced_accuracy(np.array([]), np.array([])))


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=30)
)
def test_balanced_accuracy_is_scikit_learns(pairs):
    truth, labels = np.array(pairs).T
    assume(set(labels) <= set(truth) and len(set(truth)) > 1)  # else scikit-learn warns
    expected = balanced_accuracy_score(truth, labels)
    assert balanced_accuracy(truth, labels) == pytest.approx(expected)


def test_the_best_setting_at_an_edge_of_the_grid_is_named():
    params = [{"l1": l1, "l2": l2} for l1 in (0, 1e-3) for l2 in (1e-4, 1e-3, 1e-2)]
    rising = np.array([0.1, 0.2, 0.3, 0.1, 0.2, 0.25])
    (note,) = edges_of_grid(params, rising)
    assert "l2=0.01, the largest of the grid" in note
    (note,) = edges_of_grid(params, rising[::-1])
    assert "l2=0.0001, the smallest of the grid" in note
    assert not edges_of_grid(params, np.array([0.1, 0.3, 0.3, 0.1, 0.2, 0.2]))
    assert not edges_of_grid(params[:2], rising[:2])
