"""One unit of the experiment: data, folds, choice of settings, test."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from optirank.benchmark.simulation.classifiers import CLASSIFIERS, Problem, Setting
from optirank.benchmark.simulation.experiment import cosine, draw, finish, fit_fold, select
from optirank.benchmark.simulation.settings import (
    EXTENDED_GRID,
    FOLDS,
    L2_FLOOR,
    PAPER_GRID,
    Grid,
    Point,
    Unit,
)

UNIT = Unit(Point(n_genes=20, n_perturbed=8, n_samples=200), repeat=0)
SMALL_GRID = Grid("small", l2=(0.0, 1e-3), n_reference=(0.4, 1.0))


def test_a_third_of_the_samples_or_so_is_the_test_set_with_both_labels_alike():
    problem, train, test = draw(UNIT, seed=0)
    assert len(test) == 60
    assert not set(train) & set(test)
    assert problem.y[test].mean() == pytest.approx(problem.y[train].mean(), abs=0.01)


def test_repeats_differ_and_points_of_a_repeat_share_their_random_numbers():
    first, _, _ = draw(UNIT, seed=0)
    other, _, _ = draw(Unit(UNIT.point, repeat=1), seed=0)
    assert not np.array_equal(first.X, other.X)
    moved, _, _ = draw(Unit(Point(20, 8, 200, tau=0.5), repeat=0), seed=0)
    np.testing.assert_array_equal(first.y, moved.y)
    np.testing.assert_array_equal(first.X[:, first.stable], moved.X[:, first.stable])


def test_ranks_are_relative_to_all_genes_or_to_the_stable_ones():
    problem, _, _ = draw(UNIT, seed=0)
    sample = problem.X[3]
    stable = sample[problem.stable]
    expected = [(stable < value).sum() + (stable == value).sum() / 2 - 0.5 for value in sample]
    np.testing.assert_allclose(problem.stable_ranks[3] * len(stable), expected, atol=1e-5)
    np.testing.assert_allclose(
        problem.full_ranks[3] * sample.size, sample.argsort().argsort(), atol=1e-5
    )


@pytest.mark.parametrize("name", ["lr", "rank-lr", "oracle"])
def test_warm_started_fits_equal_scikit_learns(name):
    problem, train, test = draw(UNIT, seed=0)
    features = {
        "lr": problem.X,
        "rank-lr": problem.full_ranks,
        "oracle": problem.stable_ranks,
    }[name]
    classifier = CLASSIFIERS[name]
    for fit in classifier.fit(problem, train, test, classifier.settings(PAPER_GRID)):
        penalty = max(fit.setting.l2, L2_FLOOR)
        model = LogisticRegression(
            C=1 / (2 * len(train) * penalty), class_weight="balanced", tol=1e-10, max_iter=100_000
        ).fit(features[train], problem.y[train])
        if penalty > L2_FLOOR:
            expected = model.decision_function(features[test])
            np.testing.assert_allclose(fit.scores, expected, rtol=1e-2, atol=1e-2)
        assert fit.converged


def test_every_classifier_and_setting_is_fitted_in_a_fold():
    records = fit_fold(UNIT, 0, SMALL_GRID, fold=2)
    settings = {
        name: [(r["n_reference"], r["l2"]) for r in records if r["classifier"] == name]
        for name in CLASSIFIERS
    }
    for name in ("lr", "rank-lr", "oracle"):
        assert sorted(settings[name], key=lambda s: s[1]) == [(None, 0.0), (None, 1e-3)]
    assert sorted(settings["optirank"]) == [(0.4, 0.0), (0.4, 1e-3), (1.0, 0.0), (1.0, 1e-3)]
    assert {record["fold"] for record in records} == {2}


def test_optirank_among_all_genes_is_rank_lr():
    problem, train, test = draw(UNIT, seed=0)
    (ours,) = CLASSIFIERS["optirank"].fit(problem, train, test, [Setting(1e-3, 1.0)])
    (theirs,) = CLASSIFIERS["rank-lr"].fit(problem, train, test, [Setting(1e-3)])
    assert ours.reference.all()
    assert ((ours.scores > 0) == (theirs.scores > 0)).mean() > 0.98


def test_the_choice_is_refitted_on_all_training_samples_and_tested():
    fits = [record for fold in range(FOLDS) for record in fit_fold(UNIT, 0, SMALL_GRID, fold)]
    result = finish(UNIT, 0, [SMALL_GRID], fits)
    assert [record["classifier"] for record in result["selected"]] == list(CLASSIFIERS)
    problem, train, test = draw(UNIT, 0)
    for record in result["selected"]:
        setting, validation = select(fits, record["classifier"], SMALL_GRID)
        assert record["validation"] == validation
        assert (record["l2"], record["n_reference"]) == (setting.l2, setting.n_reference)
        (fit,) = CLASSIFIERS[record["classifier"]].fit(problem, train, test, [setting])
        right = (fit.scores > 0) == problem.y[test]
        halves = [right[problem.y[test] == label].mean() for label in (0, 1)]
        assert record["balanced_accuracy"] == pytest.approx(np.mean(halves))


def _fits(scores: dict[tuple, list[float]]) -> list[dict]:
    return [
        {"classifier": "optirank", "l2": l2, "n_reference": size, "balanced_accuracy": score}
        for (l2, size), folds in scores.items()
        for score in folds
    ]


def test_the_best_mean_validation_score_is_chosen_within_the_grid():
    fits = _fits({(1e-6, 0.2): [0.9, 1.0], (1e-3, 0.2): [0.8, 0.9], (0.0, 1.0): [0.7, 0.7]})
    assert select(fits, "optirank", EXTENDED_GRID) == (Setting(1e-6, 0.2), pytest.approx(0.95))
    assert select(fits, "optirank", PAPER_GRID) == (Setting(1e-3, 0.2), pytest.approx(0.85))


def test_equal_scores_go_to_fewer_genes_then_to_the_stronger_penalty():
    fits = _fits({(1e-4, 0.4): [0.9], (1e-4, 0.2): [0.9], (1e-3, 0.2): [0.9], (1e-2, 0.6): [0.9]})
    assert select(fits, "optirank", PAPER_GRID)[0] == Setting(1e-3, 0.2)


def test_cosine_is_one_for_the_same_set_and_zero_for_a_disjoint_one():
    a = np.array([True, True, False, False])
    assert cosine(a, a) == pytest.approx(1.0)
    assert cosine(a, ~a) == 0.0
    assert cosine(np.ones(4, dtype=bool), a) == pytest.approx(np.sqrt(0.5))


def test_a_problem_makes_its_ranks_once():
    problem, _, _ = draw(UNIT, seed=0)
    assert isinstance(problem, Problem)
    assert problem.full_ranks is problem.full_ranks
