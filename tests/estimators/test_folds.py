"""Folds of internal cross-validation: who is left out, and what small classes and
groups do.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold, StratifiedKFold

from optirank.estimators.search import HELD_OUT, units_of_folds
from optirank.estimators.selection import make_folds
from optirank_lab.benchmark.families import Samples


def labels(*counts):
    return np.repeat(np.arange(len(counts)), counts)


def validation_parts(folds):
    return [set(test.tolist()) for _, test in folds]


def test_every_sample_is_validated_once_by_models_that_did_not_see_it():
    y = labels(20, 33)
    folds = make_folds(y, 5, None)
    assert len(folds) == 5
    for train, test in folds:
        np.testing.assert_array_equal(
            np.sort(np.concatenate([train, test])), np.arange(53)
        )
    everyone = np.concatenate([test for _, test in folds])
    np.testing.assert_array_equal(np.sort(everyone), np.arange(53))


def test_a_class_smaller_than_the_number_of_folds_is_in_some_of_them():
    y = labels(20, 20, 3)
    folds = make_folds(y, 5, None)
    assert len(folds) == 5
    with_rare = [k for k, (_, test) in enumerate(folds) if (y[test] == 2).any()]
    assert len(with_rare) == 3
    for train, _ in folds:
        assert (y[train] == 2).sum() >= 2


def test_there_are_no_more_folds_than_samples_of_the_largest_class():
    assert len(make_folds(labels(3, 2), 10, None)) == 3


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("names", [np.arange(4), np.array(["b", "d", "a", "c"])])
def test_folds_are_those_of_scikit_learn(names, seed):
    rng = np.random.default_rng(seed)
    y = names[rng.integers(0, 4, rng.integers(30, 90))]
    expected = StratifiedKFold(5).split(np.zeros((len(y), 1)), y)
    for fold, other in zip(make_folds(y, 5, None), expected, strict=True):
        np.testing.assert_array_equal(fold[0], other[0])
        np.testing.assert_array_equal(fold[1], other[1])


def test_groups_stay_together():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=120)
    groups = rng.integers(0, 12, size=120)
    folds = make_folds(y, 4, groups)
    assert len(folds) == 4
    for train, test in folds:
        assert not set(groups[train]) & set(groups[test])


def test_few_groups_are_left_out_one_by_one():
    y = np.tile([0, 1], 15)
    groups = np.repeat(["a", "b", "c"], 10)
    folds = make_folds(y, 5, groups)
    assert [set(groups[test]) for _, test in folds] == [{"a"}, {"b"}, {"c"}]


@pytest.mark.parametrize(
    "cv", [KFold(3), StratifiedKFold(3, shuffle=True, random_state=0)]
)
def test_a_splitter_is_asked(cv):
    y = np.tile([0, 1], 15)
    expected = [set(test.tolist()) for _, test in cv.split(np.zeros((30, 1)), y)]
    assert validation_parts(make_folds(y, cv, None)) == expected


def test_ready_splits_are_taken_as_they_are():
    y = np.tile([0, 1], 5)
    splits = [([0, 1, 2, 3], [4, 5]), (np.arange(6), np.arange(6, 10))]
    for kind in (splits, iter(splits)):
        folds = make_folds(y, kind, None)
        assert validation_parts(folds) == [{4, 5}, {6, 7, 8, 9}]


def test_folds_that_train_on_one_class_are_left_out_with_a_warning():
    y = np.tile([0, 1], 5)
    splits = [
        (np.arange(0, 10, 2), np.arange(1, 10, 2)),
        (np.arange(6), np.arange(6, 10)),
    ]
    with pytest.warns(UserWarning, match="1 of 2 folds are left out"):
        folds = make_folds(y, splits, None)
    assert validation_parts(folds) == [{6, 7, 8, 9}]


def test_a_group_that_holds_all_of_a_class_is_left_out_with_a_warning():
    y = np.array([0] * 10 + [1] * 5)
    groups = np.array(["a"] * 5 + ["b"] * 5 + ["c"] * 5)
    with pytest.warns(UserWarning, match="1 of 3 folds"):
        folds = make_folds(y, 3, groups)
    assert len(folds) == 2


@pytest.mark.parametrize("cv", [1, 0, -3, True])
def test_fewer_than_two_folds_are_refused(cv):
    with pytest.raises(ValueError, match=f"cv={cv}"):
        make_folds(labels(5, 5), cv, None)


def test_what_cannot_be_cut_is_refused():
    with pytest.raises(ValueError, match="every class has a single sample"):
        make_folds(np.arange(4), 2, None)
    with pytest.raises(ValueError, match="one value only"):
        make_folds(labels(5, 5), 2, ["a"] * 10)
    with pytest.raises(ValueError, match=r"groups has shape \(3,\)"):
        make_folds(labels(5, 5), 2, [1, 2, 3])
    with pytest.raises(ValueError, match="no fold has two classes"):
        make_folds(labels(5, 5), [(np.arange(5), np.arange(5, 10))], None)


def test_a_fold_trains_on_its_samples_and_scores_the_held_out():
    values = np.arange(10.0)[:, None]  # a row's value is its row
    codes, weights, test = np.arange(10) % 2, np.linspace(1, 2, 10), np.array([0, 5, 7])
    train = np.setdiff1d(np.arange(10), test)
    samples = Samples(X=values)
    (unit,) = units_of_folds(
        samples, codes, [(train, test)], n_classes=2, weights=weights
    )
    np.testing.assert_array_equal(unit.train.X[:, 0], train)
    np.testing.assert_array_equal(unit.codes, codes[train])
    np.testing.assert_array_equal(unit.weights, weights[train])
    np.testing.assert_array_equal(unit.views[HELD_OUT].X[:, 0], test)
