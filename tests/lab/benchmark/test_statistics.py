"""Means with intervals over tissues, wins, the paper's test, and choices made without a tissue."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from optirank_lab.benchmark.statistics import (
    bootstrap_interval,
    left_out,
    paired_tests,
    standings,
    t_test,
    task_means,
    wins,
)

scores = st.lists(st.floats(0, 1), min_size=3, max_size=12)


@given(scores, st.integers(0, 5))
def test_an_interval_holds_the_mean_and_does_not_depend_on_the_order(values, seed):
    tissues = [f"t{k % 3}" for k in range(len(values))]
    low, high = bootstrap_interval(values, tissues)
    assert low - 1e-12 <= np.mean(values) <= high + 1e-12 or len(set(values)) > 1
    assert min(values) - 1e-12 <= low <= high <= max(values) + 1e-12
    order = np.random.default_rng(seed).permutation(len(values))
    shuffled = bootstrap_interval(np.array(values)[order], [tissues[k] for k in order])
    assert shuffled == pytest.approx((low, high), abs=1e-9)


def test_tasks_of_one_tissue_count_as_one_observation():
    values = np.tile([0.9, 0.7], 10)
    apart = bootstrap_interval(values, [f"t{k}" for k in range(20)])
    together = bootstrap_interval(values, np.tile(["pancreas", "blood"], 10))
    assert together == pytest.approx((0.7, 0.9))
    assert apart[0] > 0.74
    assert apart[1] < 0.86
    assert np.isnan(bootstrap_interval(values, ["pancreas"] * 20)).all()


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
    assert found.loc["optirank", ["low", "high"]].tolist() == pytest.approx(
        [0.65, 0.85]
    )
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
    assert task_means(rows).loc["t", "lr"] == pytest.approx(0.5525)
    assert list(task_means(rows).columns) == ["optirank", "lr"]


def choices() -> pd.DataFrame:
    """The setting "b" is best everywhere but in the tissue z, which has a large gain for "a"."""
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
