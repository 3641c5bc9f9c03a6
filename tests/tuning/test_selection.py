"""Choosing a setting: the one-standard-error rule, worked out by hand, and its ties."""

from __future__ import annotations

import numpy as np
import pytest

from optirank.tuning.selection import (
    clear_margin,
    select,
    select_for_transfer,
    standard_error,
    transfer_scores,
)

# Means .80, .90, .88, .70, .87. The best, .90, has deviations -.04, 0, .04 over its folds: standard
# deviation .04, standard error .04 / sqrt(3) = .0231, so settings of at least .8769 are as good.
SCORES = np.array(
    [
        [0.80, 0.80, 0.80],
        [0.86, 0.90, 0.94],
        [0.87, 0.88, 0.89],
        [0.70, 0.70, 0.70],
        [0.87, 0.87, 0.87],
    ]
)
N_GENES = np.array([[10, 12, 14], [90, 100, 110], [50, 40, 30], [1, 1, 1], [20, 20, 20]])


def test_the_standard_error_by_hand():
    expected = [0, 0.04 / 3**0.5, 0.01 / 3**0.5]
    np.testing.assert_allclose(standard_error(SCORES)[:3], expected, atol=1e-15)


def test_the_rule_takes_the_fewest_genes_within_one_standard_error():
    assert select(SCORES, N_GENES) == 2


def test_best_takes_the_highest_mean():
    assert select(SCORES, N_GENES, "best") == 1


def test_a_wider_error_lets_a_sparser_setting_in():
    scores = SCORES.copy()
    scores[1] = [0.84, 0.90, 0.96]  # standard error .0346: at least .8654
    assert select(scores, N_GENES) == 4


def test_a_mean_on_the_border_counts():
    scores = np.array([[0.5, 1.0], [0.5, 0.5]])  # .75 +- .25, and .5
    assert select(scores, np.array([[9, 9], [1, 1]])) == 1


def test_without_spread_only_equals_of_the_best_count():
    scores = np.array([[0.9, 0.9], [0.89, 0.89], [0.9, 0.9]])
    assert select(scores, np.array([[9, 9], [1, 1], [5, 5]])) == 2


def test_a_single_fold_has_no_error():
    scores, n_genes = SCORES[:, :1], N_GENES[:, :1]
    np.testing.assert_array_equal(standard_error(scores), 0)
    assert select(scores, n_genes) == select(scores, n_genes, "best") == 4  # .87, 20 genes


def test_of_as_many_genes_the_higher_score_then_the_smaller_error_then_the_first():
    genes = np.full((3, 2), 7)
    assert select(np.array([[0.7, 0.9], [0.79, 0.83], [0.75, 0.87]]), genes) == 1  # .81 in front
    assert select(np.array([[0.7, 0.9], [0.79, 0.81], [0.75, 0.85]]), genes) == 1  # all .80
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


def tables(scores, n_platforms=2):
    """Plain and shifted scores that are equal in all folds and on all platforms."""
    plain = np.repeat(np.array(scores)[:, None], 3, axis=1)
    return plain, np.repeat(plain[:, :, None], n_platforms, axis=2)


def test_the_default_is_left_only_for_what_is_clearly_better():
    genes = np.full((3, 3), 50.0)
    plain, shifted = tables([0.90, 0.91, 0.915])
    assert select_for_transfer(plain, shifted, genes, default=0) == 0
    plain, shifted = tables([0.90, 0.91, 0.93])
    assert select_for_transfer(plain, shifted, genes, default=0) == 2
    assert select_for_transfer(plain, shifted, genes, default=1) == 1


def test_simulated_platforms_count_twice_as_much_as_held_out_samples_as_they_are():
    plain, shifted = np.array([[0.9, 0.9], [1.0, 1.0]]), np.zeros((2, 2, 4))
    shifted[0], shifted[1] = 0.8, 0.7
    assert transfer_scores(plain, shifted) == pytest.approx([2.5 / 3, 2.4 / 3])
    assert transfer_scores(plain, shifted[:, :, :0]) == pytest.approx([0.9, 1.0])


def test_real_shifts_count_before_simulated_ones():
    plain, shifted = np.array([[0.8, 0.8], [0.9, 0.9]]), np.zeros((2, 2, 1))
    shifted[0] = 1.0
    genes = np.ones((2, 2))
    assert select_for_transfer(plain, shifted, genes, default=0) == 0
    assert select_for_transfer(plain, shifted, genes, default=0, real=True) == 1


def test_fewer_genes_may_cost_the_margin_and_no_more():
    plain, shifted = tables([0.90, 0.885, 0.87])
    genes = np.array([[100.0] * 3, [40.0] * 3, [10.0] * 3])
    assert select_for_transfer(plain, shifted, genes, default=0, prefer="genes") == 1


def test_folds_without_a_score_do_not_count_for_transfer():
    plain, shifted = tables([0.8, 0.9])
    plain[:, 1], shifted[:, 1] = np.nan, np.nan
    assert transfer_scores(plain, shifted) == pytest.approx([0.8, 0.9])
    with pytest.raises(ValueError, match="no setting has a finite mean score"):
        select_for_transfer(plain * np.nan, shifted, np.ones((2, 3)), default=0)


def test_a_single_sample_of_a_rare_class_does_not_replace_the_default():
    truth = np.repeat(["a", "b", "rare"], (40, 40, 4))
    right = np.ones((2, len(truth)), bool)
    right[0, -1] = False  # the default misses one sample
    recalls = [[ok[truth == one].mean() for one in ("a", "b", "rare")] for ok in right]
    plain = np.mean(recalls, axis=1)[:, None]
    shifted, genes = plain[:, :, None], np.array([[10], [10]])
    assert plain[1, 0] - plain[0, 0] > 0.08
    margin = clear_margin([truth])
    assert select_for_transfer(plain, shifted, genes, default=0, margin=margin) == 0
    right[0, -2] = False  # two
    plain[0] = np.mean([right[0, truth == one].mean() for one in ("a", "b", "rare")])
    assert select_for_transfer(plain, plain[:, :, None], genes, default=0, margin=margin) == 1


def test_the_margin_is_smaller_with_more_samples_and_folds():
    truth = np.repeat(["a", "b"], (90, 6))
    assert clear_margin([truth]) == pytest.approx(1.5 / 12)
    assert clear_margin([truth] * 5) == pytest.approx(1.5 / 60)
    assert clear_margin([np.repeat(["a", "b"], 500)]) == 0.02
