"""The tables of labels against the truth: by hand, and beside scikit-learn."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    roc_auc_score,
)

from optirank._util.numbers import wilson
from optirank._util.words import with_interval
from optirank.verbs.performance import performance

CLASSES = np.array(["a", "b", "c"])


@pytest.fixture(scope="module")
def drawn():
    """Truth, and probabilities that are right more often than not, with ties."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    p = rng.dirichlet(np.ones(3), 200)
    p[np.arange(200), y] += 0.4
    p = np.round(p / p.sum(axis=1, keepdims=True), 2)
    return CLASSES[y], p / p.sum(axis=1, keepdims=True)


def test_an_interval_has_the_digits_that_it_needs_to_contain_its_share():
    assert with_interval(0.913, 0.86, 0.952) == "91.3 (86-95)"
    assert with_interval(0.999, 0.9961, 0.9997) == "99.9 (99.6-100.0)"
    for n_samples in (3, 40, 1000, 20000):
        for right in {0, 1, n_samples // 2, n_samples - 1, n_samples}:
            share = right / n_samples
            text = with_interval(share, *map(float, wilson(share, n_samples)))
            shown, low, high = map(float, re.findall(r"[0-9.]+", text))
            assert low <= shown <= high


def test_figures_are_those_of_scikit_learn(drawn):
    truth, p = drawn
    given = CLASSES[p.argmax(axis=1)]
    found = performance(truth, given, p, CLASSES)
    assert found.balanced_accuracy == pytest.approx(
        balanced_accuracy_score(truth, given)
    )
    assert found.n_right == (truth == given).sum()
    for k, name in enumerate(CLASSES):
        row = found.per_class.loc[name]
        assert row["auc"] == pytest.approx(roc_auc_score(truth == name, p[:, k]))
        assert row["average_precision"] == pytest.approx(
            average_precision_score(truth == name, p[:, k])
        )
        assert row["sensitivity"] == pytest.approx(
            (given == name)[truth == name].mean()
        )
        assert row["specificity"] == pytest.approx(
            (given != name)[truth != name].mean()
        )
        assert row["ppv"] == pytest.approx((truth == name)[given == name].mean())
        assert row["npv"] == pytest.approx((truth != name)[given != name].mean())
        for measure in ("sensitivity", "specificity", "ppv", "npv"):
            assert (
                0 <= row[f"{measure}_low"] < row[measure] < row[f"{measure}_high"] <= 1
            )
    assert found.confusion.to_numpy().sum() == len(truth)
    assert found.interval[0] < found.balanced_accuracy < found.interval[1]
    assert found.reliability["n_samples"].sum() == len(truth)


def test_withheld_labels_are_counted_apart(drawn):
    truth, p = drawn
    given, hidden = CLASSES[p.argmax(axis=1)], p.max(axis=1) < 0.6
    found = performance(truth, given, p, CLASSES, hidden)
    kept = performance(truth[~hidden], given[~hidden], p[~hidden], CLASSES)
    assert found.n_withheld == hidden.sum() == found.confusion["withheld"].sum()
    assert found.n_given == len(truth) - hidden.sum()
    assert found.balanced_accuracy == kept.balanced_accuracy
    np.testing.assert_array_equal(found.per_class["ppv"], kept.per_class["ppv"])


def test_withheld_samples_are_not_found_among_all():
    truth = np.repeat(["active", "well"], [25, 30])
    given = np.repeat(["active", "well"], [24, 31])
    p = np.where(given[:, None] == ["active", "well"], 0.9, 0.1)
    hidden = np.arange(len(truth)) < 11
    found = performance(truth, given, p, ["active", "well"], hidden)
    row = found.per_class.loc["active"]
    assert row["sensitivity"] == pytest.approx(13 / 14)
    assert row["sensitivity_of_all"] == pytest.approx(13 / 25)
    assert row["withheld"] == 11
    assert found.of_all == pytest.approx((13 / 25 + 1) / 2)
    assert "of all samples" in found.headline()


def test_the_headline_says_over_which_classes_it_is():
    names = list("abcdefghijkl")
    truth = ["a", "b"] * 10
    p = np.full((20, 12), 0.01)
    found = performance(truth, truth, p, names)
    assert "over 2 of 12 classes" in found.headline()
    assert "classes" not in performance(names, names, np.eye(12), names).headline()


def test_classes_without_samples_have_no_figures():
    found = performance(["a", "a"], ["a", "b"], [[0.9, 0.1], [0.2, 0.8]], ["a", "b"])
    assert found.balanced_accuracy == 0.5
    assert np.isnan(found.per_class.loc["b", "sensitivity"])
    assert not found.curves
    assert np.isnan(found.auc)


def test_wilson_s_interval():
    low, high = wilson([0.0, 0.9, 1.0], [10, 100, 10])
    np.testing.assert_allclose(low, [0.0, 0.8256, 0.7225], atol=1e-4)
    np.testing.assert_allclose(high, [0.2775, 0.9448, 1.0], atol=1e-4)


def test_a_card_says_over_which_classes_its_figures_are():
    from optirank.model.card import Card, ClassCounts, JudgedSet
    from optirank.verbs.cards import set_table

    counts = {"a": ClassCounts(9, 10), "b": ClassCounts(10, 10)}
    of_training = dict.fromkeys("abc", 10)
    card = Card(class_counts=of_training, judged=(JudgedSet("x", counts),))
    assert set_table(card)["how"] == ["left out, over 2 of 3 classes"]
    whole = Card(class_counts=dict.fromkeys("ab", 9), judged=card.judged)
    assert set_table(whole)["how"] == ["left out"]
