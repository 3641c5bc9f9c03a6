"""Rankings over tasks, against their definitions and against Demšar's example (JMLR 7, 2006)."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from optirank.benchmark.reporting import ranking_tables, rankings
from optirank.benchmark.reporting.cd_diagram import draw_ranking
from optirank.benchmark.reporting.style import style

# Ranks of four variants of C4.5 on 14 data sets, Demšar's table 6.
DEMSAR = np.array(
    [
        [4, 3, 2, 1],
        [1, 2, 3, 4],
        [4, 1, 2, 3],
        [4, 1, 3, 2],
        [4, 2, 3, 1],
        [1, 2.5, 4, 2.5],
        [3, 2, 4, 1],
        [2.5, 2.5, 4, 1],
        [4, 3, 2, 1],
        [2.5, 2.5, 2.5, 2.5],
        [4, 2.5, 1, 2.5],
        [3, 2, 4, 1],
        [4, 1, 2, 3],
        [3, 1, 4, 2],
    ]
)
NAMES = ["C4.5", "+m", "+cf", "+m+cf"]

tables = st.integers(0, 2**31).map(
    lambda seed: np.random.default_rng(seed).integers(
        0, 6, np.random.default_rng(seed + 1).integers(2, 8, 2)
    )
)


def frame(scores, names=None) -> pd.DataFrame:
    scores = np.asarray(scores, dtype=float)
    names = names or [f"c{k}" for k in range(scores.shape[1])]
    return pd.DataFrame(scores, [f"t{k}" for k in range(len(scores))], names)


def test_demsars_example_is_reproduced():
    found = rankings.rank(frame(-DEMSAR, NAMES))
    means = [found.mean_ranks[name] for name in NAMES]
    assert means == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)
    assert list(found.mean_ranks) == ["+m+cf", "+m", "+cf", "C4.5"]
    assert found.critical_difference == pytest.approx(1.25, abs=0.005)
    ties = [2**3 - 2, 2**3 - 2, 4**3 - 4, 2**3 - 2]  # three pairs and one group of four
    uncorrected = found.statistic * (1 - sum(ties) / (14 * 4 * 15))
    assert uncorrected == pytest.approx(9.28, abs=0.005)


def test_quantiles_of_nemenyis_test_are_those_published():
    published = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
    for k, q in enumerate(published, start=2):
        found = rankings.critical_difference(k, 1) / np.sqrt(k * (k + 1) / 6)
        assert found == pytest.approx(q, abs=1e-3)
    assert rankings.critical_difference(4, 14, 0.10) == pytest.approx(1.12, abs=0.005)


@given(tables)
def test_friedmans_statistic_is_its_definition(scores):
    n, k = scores.shape
    statistic, p_value = rankings.friedman(scores)
    if k < 3:
        assert np.isnan(statistic)
        return
    ranks = rankdata(-scores, axis=1)
    spread = ((ranks.mean(axis=0) - (k + 1) / 2) ** 2).sum() * 12 * n / (k * (k + 1))
    ties = sum(t**3 - t for row in scores for t in np.unique(row, return_counts=True)[1])
    correction = 1 - ties / (n * k * (k**2 - 1))
    assert statistic == pytest.approx(spread / correction if correction else 0.0, abs=1e-9)
    assert 0 <= p_value <= 1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_rejects_what_the_step_down_rule_rejects(p_values):
    adjusted = rankings.holm(p_values)
    for level in (0.01, 0.05, 0.3):
        rejected, m = set(), len(p_values)
        for step, place in enumerate(np.argsort(p_values, kind="stable")):
            if not p_values[place] * (m - step) <= level:
                break
            rejected.add(place)
        assert set(np.flatnonzero(adjusted <= level)) == rejected


@given(tables, st.integers(0, 2**31))
def test_the_common_block_is_the_largest_one(scores, seed):
    known = np.random.default_rng(seed).random(scores.shape) < 0.7
    table = frame(np.where(known, scores, np.nan))
    block = rankings.common_block(table)
    assert block.notna().all(axis=None)
    best = 0
    for size in range(1, table.shape[1] + 1):
        for columns in combinations(range(table.shape[1]), size):
            best = max(best, int(known[:, columns].all(axis=1).sum()) ** 2 * (size - 1))
    assert len(block) ** 2 * max(block.shape[1] - 1, 0) == best


def test_many_classifiers_with_gaps_of_their_own_are_ranked_at_once():
    scores = frame(np.random.default_rng(0).random((15, 15)))
    scores = scores.mask(np.eye(15, dtype=bool))  # 2^15 sets of common tasks
    block = rankings.common_block(scores)
    assert block.shape == (9, 6)  # k columns leave 15 - k rows, and 9^2 x (6 - 1) is the most
    assert list(block.index) == [f"t{k}" for k in range(9)]  # of equal blocks, the first rows


@given(st.lists(st.floats(1, 9), min_size=1, max_size=9), st.floats(0.1, 4))
def test_groups_are_the_largest_sets_within_the_critical_difference(values, critical):
    means = pd.Series(np.sort(values), [f"c{k}" for k in range(len(values))])
    spans = [
        set(means.index[i : j + 1])
        for i, j in combinations(range(len(means)), 2)
        if means.iloc[j] < means.iloc[i] + critical
    ]
    largest = [one for one in spans if not any(one < other for other in spans)]
    assert [set(group) for group in rankings.neighbours(means, critical)] == largest


def test_a_classifier_with_gaps_is_left_out_and_a_task_that_many_lack():
    scores = frame(np.random.default_rng(0).random((18, 13)))
    scores.loc["t3", ["c1", "c2", "c3", "c4"]] = np.nan
    scores.loc["t9", "c6"] = np.nan
    scores.loc["t5":, "c5"] = np.nan
    found = rankings.rank(scores)
    assert list(found.left_out.items()) == [("c5", 5), ("c6", 17)]
    assert len(found.tasks) == 17
    assert "t3" not in found.tasks
    words = ranking_tables.caption(found, [str(k % 4) for k in range(17)])
    assert "over 17 tasks (with 4 training sets)" in words
    assert "1 of 18 tasks are left out" in words
    assert "Not ranked, because they have no score on some of these tasks: c5, c6." in words
    assert "not independent" in words


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (0, 3)])
def test_there_is_no_ranking_of_one_task_or_one_classifier(shape):
    assert rankings.rank(frame(np.ones(shape))) is None


def test_equal_scores_share_their_ranks():
    found = rankings.rank(frame(np.full((4, 3), 0.5)))
    assert set(found.mean_ranks.values()) == {2.0}
    assert (found.statistic, found.p_value) == (0.0, 1.0)
    assert found.groups == [("c0", "c1", "c2")]


def test_pairs_are_compared_over_the_tasks_that_both_have():
    scores = frame(np.tile([0.9, 0.7, 0.7], (12, 1)))
    scores["c0"] += np.linspace(0, 0.05, 12)
    scores.loc["t8":, "c2"] = np.nan
    found = rankings.signed_ranks(scores, scores.columns).set_index(["row", "column"])
    assert found.loc[("c0", "c1"), "tasks"] == 12
    assert found.loc[("c0", "c2"), "tasks"] == 8
    assert found.loc[("c0", "c1"), "p_wilcoxon"] == pytest.approx(2**-11)
    assert found.loc[("c0", "c1"), "p_holm"] == pytest.approx(3 * 2**-11)
    assert found.loc[("c0", "c2"), "p_holm"] == pytest.approx(2 * 2**-7)
    assert found["sign"].tolist() == [1, 1, 0]
    assert found.loc[("c1", "c2"), "ties"] == 8


def test_the_matrix_has_differences_above_and_p_values_below():
    scores = frame(np.tile([0.9, 0.7], (12, 1)))
    found = rankings.signed_ranks(scores, scores.columns)
    (first, second) = ranking_tables.matrix(found, ["c0", "c1"], name="m", title="M").rows
    assert (first[2].text, first[2].tone) == ("+20.0", "better")
    assert (second[1].text, second[1].tone) == ("<0.001", "worse")


@pytest.mark.parametrize("shape", [(2, 2), (3, 13), (18, 13)])
def test_names_of_the_diagram_do_not_overlap(shape):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    names = [f"a classifier of number {k}" for k in range(shape[1])]
    found = rankings.rank(frame(np.random.default_rng(1).random(shape), names))
    with style():
        figure = draw_ranking(found)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    (ax,) = figure.axes
    boxes = {text.get_text(): text.get_window_extent(canvas.get_renderer()) for text in ax.texts}
    for name, value in found.mean_ranks.items():
        assert any(name in text and f"{value:.2f}" in text for text in boxes)
    for (first, one), (second, other) in combinations(boxes.items(), 2):
        assert not one.overlaps(other), (first, second)
    for text, box in boxes.items():
        assert box.x0 >= 0, text
        assert box.x1 <= figure.bbox.x1, text
