"""The definition itself: small known cases, the recursions of the paper, the
bilinear score.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import rankdata

from optirank.ranks.scoring import TIES, check_ties
from rank_definition import (
    comparison_matrix,
    coranks_by_definition,
    ranks_by_definition,
)

EACH_TIES = pytest.mark.parametrize("ties", TIES)
samples = hnp.arrays(np.int64, st.integers(1, 12), elements=st.integers(-3, 3))


def ranks_by_recursion(
    x: np.ndarray, in_reference: np.ndarray, ties: str
) -> np.ndarray:
    """DESIGN.md, section 2: ranks group by group of tied values A_1 < A_2 < ..."""
    ranks = np.empty(x.size)
    rank = size_before = None
    for value in np.unique(x):
        group = x == value
        size = np.count_nonzero(group & in_reference)  # |G & A_k|
        if rank is None:
            rank = {"average": size / 2 - 1 / 2, "min": 0.0, "max": size - 1.0}[ties]
        else:
            rank += {
                "average": (size_before + size) / 2,
                "min": size_before,
                "max": size,
            }[ties]
        ranks[group] = rank
        size_before = size
    return ranks


@EACH_TIES
def test_a_sample_of_known_ranks(ties):
    x, gamma = [2.0, 5.0, 2.0, -1.0], [1, 1, 1, 0]
    expected = {
        "average": [0.5, 2, 0.5, -0.5],
        "min": [0, 2, 0, 0],
        "max": [1, 2, 1, -1],
    }
    np.testing.assert_array_equal(
        ranks_by_definition([x], gamma, ties), [expected[ties]]
    )


def test_only_inside_the_reference_set_is_the_lowest_average_rank_zero():
    ranks = ranks_by_definition([[1.0, 2.0, 3.0]], [0, 1, 1], "average")[0]
    assert ranks[1:].min() == 0
    assert ranks[0] == -0.5


@EACH_TIES
@given(x=samples)
def test_relative_to_all_genes_they_are_the_usual_ranks_from_zero(ties, x):
    expected = rankdata(x, method=ties) - 1
    np.testing.assert_array_equal(
        ranks_by_definition([x], np.ones(x.size), ties)[0], expected
    )


@EACH_TIES
@given(x=samples, data=st.data())
def test_the_corrected_recursion_gives_the_ranks(ties, x, data):
    in_reference = data.draw(hnp.arrays(bool, x.size))
    expected = ranks_by_definition([x], in_reference, ties)[0]
    np.testing.assert_array_equal(ranks_by_recursion(x, in_reference, ties), expected)


@EACH_TIES
@given(x=samples, seed=st.integers(0, 100))
def test_ranks_and_coranks_give_the_same_score(ties, x, seed):
    rng = np.random.default_rng(seed)
    gamma, w = rng.uniform(size=x.size), rng.normal(size=x.size)
    offset = check_ties(ties)[1]
    by_ranks = ranks_by_definition([x], gamma, ties)[0] @ w
    by_coranks = coranks_by_definition([x], w, ties)[0] @ gamma - offset * w.sum()
    assert by_ranks == pytest.approx(by_coranks, abs=1e-12)


@given(x=samples)
def test_average_comparisons_are_antisymmetric_around_a_half(x):
    comparisons = comparison_matrix(x, "average")
    np.testing.assert_array_equal(comparisons + comparisons.T, 1)


@pytest.mark.parametrize("ties", ["dense", "Average", None, 1, ["min"]])
def test_an_unknown_way_to_rank_ties_is_refused_with_the_known_ones(ties):
    with pytest.raises(ValueError, match=r"'average', 'min', 'max'"):
        check_ties(ties)
