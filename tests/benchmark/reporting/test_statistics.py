"""The statistics, against SciPy and against values computed by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_results import CLASSIFIERS, made_results
from scipy import stats

from optirank.benchmark.reporting import costs, statistics
from optirank.benchmark.reporting.analysis import analyse
from optirank.benchmark.reporting.statistics import compare, sign_test, signed_rank_test

SCORES = st.integers(0, 20).map(lambda k: k / 20)
PAIRS = st.lists(st.tuples(SCORES, SCORES), min_size=0, max_size=12)


def frame(scores: dict[str, list[float]], task: str = "t", scenario: str = "") -> pd.DataFrame:
    """Rows of one task: one list of test scores a classifier, one fold a score."""
    return pd.DataFrame(
        [
            {
                **dict.fromkeys(("n_reference", "l1", "l2"), np.nan),
                "task": task,
                "scenario": scenario,
                "positive": "a",
                "classifier": name,
                "part": 0,
                "split": split,
                "validation": score,
                "test": score,
                "n_genes": 100.0 * score,
                "n_features": 100,
                "fit_seconds": 2.0 * score,
                "unit_seconds": 3.0,
                "n_settings": 4,
            }
            for name, values in scores.items()
            for split, score in enumerate(values)
        ]
    )


def test_the_paired_test_is_scipys():
    rng = np.random.default_rng(0)
    first, second = rng.random(15), rng.random(15)
    found = compare(first, second)
    assert found.p_value == pytest.approx(stats.ttest_rel(first, second).pvalue)
    assert found.mean == pytest.approx((first - second).mean())
    assert found.se == pytest.approx(stats.sem(first - second))


@pytest.mark.parametrize(
    ("first", "second", "sign"),
    [
        ([], [], 0),
        ([0.9], [0.1], 0),
        ([0.5, 0.5, 0.5], [0.5, 0.5, 0.5], 0),
        ([0.3 - 0.1, 0.5], [0.2, 0.5], 0),  # equal but for rounding
        ([0.9, 0.9, 0.9], [0.8, 0.8, 0.8], 1),
        ([np.nan, 0.9], [0.5, 0.1], 0),
    ],
)
def test_a_test_that_cannot_be_made_finds_nothing(first, second, sign):
    assert compare(first, second).sign == sign
    assert compare(second, first).sign == -sign


@given(PAIRS)
def test_a_comparison_turns_round_with_its_two_sides(pairs):
    first, second = (list(values) for values in zip(*pairs, strict=True)) if pairs else ([], [])
    one, other = compare(first, second), compare(second, first)
    assert one.sign == -other.sign
    assert (one.better, one.worse, one.ties) == (other.worse, other.better, other.ties)
    assert one.better + one.worse + one.ties == one.n == len(pairs)
    assert one.p_value == pytest.approx(other.p_value)
    assert 0 <= one.p_value <= 1


@given(st.lists(st.tuples(SCORES, SCORES, SCORES), min_size=1, max_size=8))
def test_the_matrix_is_antisymmetric_and_its_percentages_add_up(rows):
    names = ("lr", "optirank", "rf")
    scores = frame({name: [row[k] for row in rows] for k, name in enumerate(names)})
    found = statistics.pairwise(scores).set_index(["row", "column"])
    assert len(found) == 6
    for row, column in found.index:
        here, there = found.loc[(row, column)], found.loc[(column, row)]
        assert here["sign"] == -there["sign"]
        assert here["percent_better"] == there["percent_worse"]
        total = here["percent_better"] + here["percent_worse"] + here["percent_ties"]
        assert total == pytest.approx(100)


def test_means_standard_errors_ranks_and_bold():
    scores = frame({"lr": [0.7, 0.8, 0.9], "optirank": [0.8, 0.9, 1.0], "rf": [0.78, 0.93, 0.96]})
    found = statistics.summary(scores).set_index("classifier")
    assert found["mean"].to_dict() == pytest.approx({"lr": 0.8, "optirank": 0.9, "rf": 0.89})
    assert found.loc["lr", "se"] == pytest.approx(0.1 / np.sqrt(3))
    assert found["rank"].to_dict() == {"lr": 3, "optirank": 1, "rf": 2}
    assert found["bold"].to_dict() == {"lr": False, "optirank": True, "rf": True}
    assert found.loc["rf", "p_best"] == pytest.approx(
        stats.ttest_rel([0.8, 0.9, 1.0], [0.78, 0.93, 0.96]).pvalue
    )


def test_equal_means_share_their_rank_and_the_bold():
    found = statistics.summary(frame({"lr": [0.7, 0.9], "optirank": [0.9, 0.7], "rf": [0.5, 0.5]}))
    assert list(found["rank"]) == [1, 1, 3]
    assert list(found["bold"][:2]) == [True, True]


def test_one_classifier_alone_is_not_bold():
    assert not statistics.summary(frame({"lr": [0.7, 0.9]}))["bold"].any()


def test_a_classifier_with_fewer_pairs_is_marked_and_compared_on_those_it_has():
    scores = frame({"lr": [0.7, 0.8, 0.9], "optirank": [0.8, 0.8]})
    found = statistics.summary(scores).set_index("classifier")
    assert found["complete"].to_dict() == {"lr": True, "optirank": False}
    assert statistics.pairwise(scores)["pairs"].tolist() == [2, 2]


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=14, unique=True), st.data())
def test_the_signed_rank_test_is_scipys_where_there_are_no_ties(sizes, data):
    signs = data.draw(st.lists(st.sampled_from([-1, 1]), min_size=len(sizes), max_size=len(sizes)))
    differences = np.array(sizes) * np.array(signs) / 1000
    expected = stats.wilcoxon(differences, method="exact").pvalue
    assert signed_rank_test(differences) == pytest.approx(expected)


def test_the_signed_rank_test_is_exact_with_ties():
    # ranks 1.5, 1.5, 3: the positive sums 0, 1.5, 1.5, 3, 3, 4.5, 4.5, 6 are equally likely
    assert signed_rank_test([0.1, 0.1, 0.2]) == pytest.approx(2 / 8)
    assert signed_rank_test([0.1, -0.1, 0.2]) == pytest.approx(2 * 3 / 8)
    assert signed_rank_test([0.0, 0.0]) == 1
    assert signed_rank_test([]) == 1


def test_the_sign_test_leaves_zeros_out():
    assert sign_test([1, 1, 1, 1, 1, 1, 0, 0]) == pytest.approx(2 / 64)
    assert sign_test([0, 0]) == 1
    assert sign_test([]) == 1


def test_over_tasks_a_task_counts_once():
    tasks = [("a", 0.9, 0.8), ("b", 0.9, 0.7), ("c", 0.6, 0.65), ("d", 0.5, 0.5)]
    scores = pd.concat([frame({"optirank": [x, x], "lr": [y, y]}, task) for task, x, y in tasks])
    found = statistics.over_tasks(statistics.summary(scores), statistics.pairwise(scores))
    row = found[(found["row"] == "optirank")].iloc[0]
    assert (row["tasks"], row["wins"], row["losses"], row["ties"]) == (4, 2, 1, 1)
    assert row["mean_difference"] == pytest.approx(0.25 / 4)
    assert row["p_sign"] == 1
    assert row["p_wilcoxon"] == pytest.approx(stats.wilcoxon([0.1, 0.2, -0.05]).pvalue)


def test_standings_take_the_tasks_that_all_have():
    scores = pd.concat(
        [
            frame({"optirank": [0.9, 0.9], "lr": [0.8, 0.8]}, "a"),
            frame({"optirank": [0.6, 0.6], "lr": [0.7, 0.7]}, "b"),
            frame({"lr": [0.1, 0.1]}, "c"),
        ]
    )
    found = statistics.standings(statistics.summary(scores)).set_index("classifier")
    assert found["tasks"].tolist() == [2, 2]
    assert found["mean_rank"].tolist() == [1.5, 1.5]
    assert found.loc["lr", "mean"] == pytest.approx(0.75)


def test_ties_in_the_number_of_genes_count_for_both():
    scores = frame({"optirank": [0.1, 0.2, 0.3, 0.4], "lr": [0.1, 0.3, 0.2, 0.3]})
    found = costs.genes(scores).set_index("classifier")
    assert found["percent_sparsest"].to_dict() == {"optirank": 50, "lr": 75}
    assert found.loc["lr", "n_genes"] == pytest.approx(22.5)


def test_the_sparsest_is_told_among_those_that_are_there():
    scores = frame({"optirank": [0.1, 0.2], "lr": [0.3, 0.4]}, scenario="multi")
    assert costs.genes(scores)["percent_sparsest"].notna().all()
    assert costs.genes(frame({"lr": [0.3], "rf": [0.4]}))["percent_sparsest"].isna().all()


def test_times_are_those_of_a_fit_and_of_all_grids():
    found = costs.run_times(frame({"lr": [0.5, 1.0]})).iloc[0]
    assert found["fit_seconds"] == pytest.approx(1.5)
    assert found["fit_seconds_se"] == pytest.approx(0.5)
    assert found["grid_seconds"] == pytest.approx(6)


def test_the_second_source_is_compared_where_folds_pair_up():
    single = frame({"lr": [0.5, 0.6, 0.7], "rf": [0.5, 0.5, 0.5]}, scenario="single")
    multi = frame({"lr": [0.7, 0.9], "optirank": [0.9, 0.9]}, scenario="multi")
    found = costs.multi_minus_single(pd.concat([single, multi]))
    assert found["classifier"].tolist() == ["lr"]
    assert found.loc[0, "pairs"] == 2
    assert found.loc[0, "difference"] == pytest.approx(0.25)
    assert found.loc[0, "p_value"] == pytest.approx(stats.ttest_rel([0.7, 0.9], [0.5, 0.6]).pvalue)


def test_a_whole_run_has_every_comparison_in_the_order_of_the_paper():
    found = analyse(made_results())
    assert len(found.summary) == 15 * 5 + 2 * 2 * 6
    assert len(found.pairwise) == 15 * 5 * 4 + 2 * 2 * 6 * 5
    assert len(found.gains) == 2 * 6
    shifts = found.summary["task"].map(found.shift).drop_duplicates().tolist()
    assert shifts == ["none", "biological", "platform", "technology"]
    triple = found.summary[found.summary["scenario"] == "multi"]
    assert triple["classifier"].tolist()[:6] == list(CLASSIFIERS)
