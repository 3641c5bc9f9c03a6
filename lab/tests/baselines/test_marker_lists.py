"""Lists of marker genes by other methods: each finds the markers of generated
classes.
"""

from __future__ import annotations

import numpy as np
import pytest

from optirank_lab.baselines.marker_lists import RANKINGS, cosg, in_turns


@pytest.fixture(scope="module")
def cells() -> tuple[np.ndarray, np.ndarray]:
    """Log values of three classes with five markers each, of 40 genes."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], 30)
    means = np.full((3, 40), 0.2)
    for code in range(3):
        means[code, 5 * code : 5 * code + 5] = 5.0
    return np.log1p(rng.poisson(means[codes])), codes


@pytest.mark.parametrize("method", ["COSG", "NS-Forest", "t statistic"])
def test_markers_come_first(method, cells):
    listed = in_turns(RANKINGS[method](*cells), 15)
    assert len(set(listed.tolist())) == 15
    assert np.isin(listed, np.arange(15)).mean() > 0.8


def test_lists_take_one_gene_of_each_class_in_turn(cells):
    listed = in_turns(RANKINGS["t statistic"](*cells), 6)
    assert (listed // 5).tolist() == [0, 1, 2, 0, 1, 2]


def test_random_lists_are_the_same_every_time(cells):
    first, again = (in_turns(RANKINGS["random"](*cells), 10) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_the_score_of_cosg_is_the_cubed_cosine_over_the_sum_of_squares():
    X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [1.0, 3.0]])
    codes = np.array([0, 0, 1, 1])
    cosine = np.array([3.0, 1.0]) / (np.sqrt(6.0) * np.sqrt(2.0))  # of the first gene
    score = cosine**3 / (cosine**2).sum()
    assert score[0] > score[1]
    assert cosg(X, codes).tolist() == [[0, 1], [1, 0]]
