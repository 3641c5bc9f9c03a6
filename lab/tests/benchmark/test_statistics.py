"""Means with intervals over tissues, wins, the paper's test, and choices made without
a tissue.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, ttest_rel

from optirank_lab.benchmark.statistics import (
    FEWEST_TISSUES,
    bootstrap_interval,
    calibration_error,
    compare,
    left_out,
    over_tissues,
    paired_tests,
    sign_test,
    standings,
    t_test,
    task_means,
    wins,
)

scores = st.lists(st.floats(0, 1), min_size=5, max_size=12)


@given(scores, st.integers(0, 5))
def test_an_interval_holds_the_mean_and_does_not_depend_on_the_order(values, seed):
    tissues = [f"t{k % 5}" for k in range(len(values))]
    low, high = bootstrap_interval(values, tissues)
    assert low - 1e-12 <= np.mean(values) <= high + 1e-12 or len(set(values)) > 1
    assert min(values) - 1e-12 <= low <= high <= max(values) + 1e-12
    order = np.random.default_rng(seed).permutation(len(values))
    shuffled = bootstrap_interval(np.array(values)[order], [tissues[k] for k in order])
    assert shuffled == pytest.approx((low, high), abs=1e-9)


def test_tasks_of_one_tissue_count_as_one_observation():
    values = np.tile([0.9, 0.9, 0.9, 0.7, 0.7, 0.7], 4)
    names = ["pancreas", "blood", "breast", "colon", "ovary", "brain"]
    apart = bootstrap_interval(values, [f"t{k}" for k in range(24)])
    together = bootstrap_interval(values, np.tile(names, 4))
    assert together[0] < apart[0] < np.mean(values) < apart[1] < together[1]


def test_there_is_no_interval_of_fewer_than_five_tissues():
    tissues = [f"t{k}" for k in range(FEWEST_TISSUES)]
    values = np.linspace(0.5, 0.9, FEWEST_TISSUES)
    assert np.isfinite(bootstrap_interval(values, tissues)).all()
    assert np.isnan(bootstrap_interval(values[1:], tissues[1:])).all()
    values[0] = np.nan
    assert np.isnan(bootstrap_interval(values, tissues)).all()


def compared() -> tuple[pd.Series, pd.Series, pd.Series]:
    """Two classifiers on eight tasks of six tissues; the first has three tasks
    more of one.
    """
    tissues = pd.Series(list("aaabcdef"), index=list("stuvwxyz"))
    first = pd.Series([0.9, 0.9, 0.9, 0.8, 0.8, 0.8, 0.7, 0.7], index=tissues.index)
    second = pd.Series([0.5, 0.5, 0.5, 0.7, 0.7, 0.7, 0.7, 0.9], index=tissues.index)
    return first, second, tissues


def test_a_difference_is_averaged_within_a_tissue_first():
    found = compare(*compared())
    assert found.mean == pytest.approx((0.4 + 3 * 0.1 + 0.0 - 0.2) / 6)
    assert found.median == pytest.approx(0.1)
    assert found.tissues == (4, 1, 1)
    assert found.tasks == (6, 1, 1)
    assert found.low < found.mean < found.high
    assert found.sign_p == pytest.approx(binomtest(4, 5).pvalue)
    first, second, tissues = compared()
    swapped = compare(second, first, tissues)
    assert swapped.mean == pytest.approx(-found.mean)
    assert swapped.tissues == found.tissues[::-1]


def test_tasks_that_one_classifier_lacks_do_not_count():
    first, second, tissues = compared()
    second["s"] = second["z"] = np.nan
    found = compare(first, second, tissues)
    assert found.tissues == (4, 1, 0)
    assert found.tasks == (5, 1, 0)
    assert over_tissues(second, tissues).to_dict() == pytest.approx(
        {"a": 0.5, "b": 0.7, "c": 0.7, "d": 0.7, "e": 0.7}
    )


@given(st.integers(0, 20), st.integers(0, 20))
def test_the_sign_test_is_the_exact_one_and_symmetric(won, lost):
    assert sign_test(won, lost) == sign_test(lost, won)
    expected = binomtest(won, won + lost).pvalue if won + lost else 1.0
    assert sign_test(won, lost) == pytest.approx(expected)


def test_calibration_error_is_the_gap_between_confidence_and_accuracy():
    confidence = np.array([0.95, 0.95, 0.55, 0.55])
    assert calibration_error(confidence, np.array([1, 1, 1, 0])) == pytest.approx(0.05)
    assert calibration_error(confidence, np.zeros(4)) == pytest.approx(0.75)
    assert calibration_error(np.ones(3), np.ones(3)) == 0.0
    assert np.isnan(calibration_error(np.zeros(0), np.zeros(0)))


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "optirank": [0.9, 0.8, 0.7, 0.6],
            "lr": [0.5, 0.8, 0.8, 0.5],
            "ANrank-lr": [0.99, *[np.nan] * 3],
        },
        index=list("wxyz"),
    )


def test_wins_ties_and_losses_are_counted_task_by_task():
    found = wins(table()).set_index(["row", "column"])
    one = found.loc[("optirank", "lr")]
    assert (one.won, one.tied, one.lost) == (2, 1, 1)
    assert one.mean_difference == pytest.approx(0.1)
    other = found.loc[("lr", "optirank")]
    assert (other.won, other.tied, other.lost) == (1, 1, 2)
    assert found.loc[("ANrank-lr", "lr")].won == 1


def test_the_standings_put_the_best_of_all_tasks_first():
    tissues = pd.Series(["a", "a", "b", "b"], index=list("wxyz"))
    found = standings(table(), tissues).set_index("classifier")
    assert list(found.index) == [
        "optirank",
        "lr",
        "ANrank-lr",
    ]  # the last has one task only
    assert found.loc["optirank", "mean"] == pytest.approx(0.75)
    assert found.loc["optirank", ["low", "high"]].isna().all()  # of two tissues
    assert found.loc["lr", ["median", "worst"]].tolist() == pytest.approx([0.65, 0.5])
    assert found.loc["optirank", ["won", "tied", "lost"]].tolist() == [2, 1, 2]
    assert found.loc["ANrank-lr", ["tasks", "rank"]].tolist() == [1, 1.0]


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=3, max_size=10))
def test_the_t_test_is_scipys(pairs):
    first, second = np.array(pairs).T
    if np.std(first - second) > 1e-3:
        assert t_test(first, second) == pytest.approx(
            ttest_rel(first, second).pvalue, abs=1e-6
        )


def test_without_a_difference_or_a_second_pair_nothing_is_significant():
    assert t_test([0.5, 0.6], [0.5, 0.6]) == 1.0
    assert t_test([0.5], [0.9]) == 1.0
    assert t_test([0.6, 0.7], [0.5, 0.6]) == 0.0
    assert t_test([0.6, np.nan], [0.5, 0.6]) == 1.0


def made_scores(values: dict[str, list[float]]) -> pd.DataFrame:
    """Scores of one task of two problems, by classifier."""
    return pd.DataFrame(
        [
            {"group": "g", "task": "t", "problem": "ab"[k % 2], "part": 0, "split": k // 2,
             "classifier": name, "test": score}
            for name, found in values.items()
            for k, score in enumerate(found)
        ]
    )  # fmt: skip


def test_pairs_of_a_test_are_problems_and_splits():
    rows = made_scores({"lr": [0.5, 0.6, 0.5, 0.61], "optirank": [0.9, 0.9, 0.92, 0.9]})
    found = paired_tests(rows).set_index(["row", "column"])
    assert found.loc[("optirank", "lr"), ["pairs", "sign"]].tolist() == [4, 1]
    assert found.loc[("lr", "optirank"), "sign"] == -1
    assert found.loc[("optirank", "lr"), "better"] == 1.0
    assert found.loc[("lr", "optirank"), "better"] == 0.0
    assert task_means(rows).loc["t", "lr"] == pytest.approx(0.5525)
    assert list(task_means(rows).columns) == ["optirank", "lr"]


def choices() -> pd.DataFrame:
    """The setting "b" is best everywhere but in the tissue z, which has a large gain
    for "a".
    """
    by = {"x1": ("x", 0.6, 0.7), "x2": ("x", 0.6, 0.8)}
    by |= {"y1": ("y", 0.5, 0.6), "z1": ("z", 0.9, 0.1)}
    return pd.DataFrame(
        [
            {"pair": pair, "tissue": tissue, "setting": setting, "score": score}
            for pair, (tissue, *two) in by.items()
            for setting, score in zip("ab", two, strict=True)
        ]
    )


def test_a_choice_is_scored_on_the_tissue_that_had_no_part_in_it():
    found = left_out(choices()).set_index("tissue")
    assert found.loc["z"].tolist() == [1, "b", 0.1, 0.9]  # chosen by x and y
    assert found.loc["x", "setting"] == "a"  # z decides
    assert found.loc["x", ["pairs", "score", "best"]].tolist() == pytest.approx(
        [2, 0.6, 0.75]
    )
    assert found.loc["all", "score"] == pytest.approx((2 * 0.6 + 0.5 + 0.1) / 4)
