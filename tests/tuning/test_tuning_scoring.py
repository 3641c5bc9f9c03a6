"""Scores of settings from decision scores: the one balanced accuracy, and what it leaves out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score

from optirank.tuning.scoring import balanced_accuracy, predicted

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
    assert balanced_accuracy(truth, labels, BINARY) == pytest.approx(expected, nan_ok=True)


def test_balanced_accuracy_is_of_the_classes_there_are():
    assert balanced_accuracy(np.array([1, 1]), np.array([1, 0])) == 0.5
    assert np.isnan(balanced_accuracy(np.array([]), np.array([])))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=30))
def test_balanced_accuracy_is_scikit_learns(pairs):
    truth, labels = np.array(pairs).T
    assume(set(labels) <= set(truth) and len(set(truth)) > 1)  # else scikit-learn warns
    expected = balanced_accuracy_score(truth, labels)
    assert balanced_accuracy(truth, labels) == pytest.approx(expected)


def test_labels_follow_the_highest_score():
    words = np.array(["a", "b", "c"])
    assert predicted(np.array([[0.1], [-2.0]]), words[:2]).tolist() == ["b", "a"]
    scores = np.array([[-1.0, -0.5, -3.0], [0.0, -1.0, 4.0]])
    assert predicted(scores, words).tolist() == ["b", "c"]
