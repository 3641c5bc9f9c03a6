"""Clusters get the label of most of their samples."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optirank.workflow.labels import as_category, label_words, majority

WORDS = label_words(np.array(["a", "b", "c"], dtype=object))


def vote(clusters, codes, confidence=None, min_share=0.0):
    codes = np.array(codes)
    sure = np.full(len(codes), 0.5) if confidence is None else np.array(confidence)
    return majority(pd.Series(clusters), codes, sure, WORDS, min_share)


def test_the_most_frequent_label_wins():
    found = vote(["x", "x", "x", "y", "y"], [0, 1, 1, 2, 2])
    assert found.labels.tolist() == ["b", "b", "b", "c", "c"]
    assert found.table["cluster"].tolist() == ["x", "y"]
    assert found.table["n_samples"].tolist() == [3, 2]
    np.testing.assert_allclose(found.table["share"], [2 / 3, 1.0])
    np.testing.assert_allclose(found.shares, [2 / 3] * 3 + [1.0] * 2)


def test_a_tie_goes_to_the_more_confident_label():
    assert vote(["x"] * 4, [0, 0, 1, 1], [0.6, 0.6, 0.9, 0.5]).labels[0] == "b"
    assert vote(["x"] * 4, [0, 0, 1, 1], [0.9, 0.6, 0.9, 0.5]).labels[0] == "a"


def test_withheld_labels_have_no_vote_but_count_in_the_share():
    found = vote(["x", "x", "x", "y"], [3, 3, 2, 3])
    assert found.labels.tolist() == ["c", "c", "c", "unassigned"]
    np.testing.assert_allclose(found.table["share"], [1 / 3, 1.0])


def test_a_cluster_without_a_clear_majority_is_heterogeneous():
    clusters, codes = ["x"] * 5 + ["y"] * 2 + ["z"], [0, 0, 1, 1, 2, 0, 1, 3]
    found = vote(clusters, codes, min_share=0.5)
    assert found.table["label"].tolist() == ["heterogeneous", "a", "unassigned"]
    np.testing.assert_allclose(found.table["share"], [0.4, 0.5, 1.0])
    assert found.labels.tolist() == ["heterogeneous"] * 5 + ["a"] * 2 + ["unassigned"]
    assert vote(clusters, codes, min_share=0.4).table["label"][0] == "a"
    categories = as_category(found.labels, WORDS).categories
    assert categories.tolist() == ["a", "unassigned", "heterogeneous"]
    with pytest.raises(ValueError, match=r"min_share=1\.5"):
        vote(clusters, codes, min_share=1.5)


def test_samples_without_a_cluster_keep_their_label():
    found = vote(["x", None, "x", np.nan], [1, 0, 1, 3])
    assert found.labels.tolist() == ["b", "a", "b", "unassigned"]
    assert found.names.tolist() == ["x", "", "x", ""]
    assert np.isnan(found.shares[[1, 3]]).all()


def test_clusters_may_be_numbers_or_categories_and_nobody_may_have_one():
    assert vote([1, 1, 2], [0, 0, 1]).table["cluster"].tolist() == ["1", "2"]
    assert vote(pd.Categorical(["p", "q", "q"]), [0, 1, 1]).labels.tolist() == ["a", "b", "b"]
    assert vote([None, None], [0, 1]).table.empty
    assert vote(np.array([], dtype=object), np.array([], dtype=int)).table.empty


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40))
def test_no_label_has_more_votes_than_the_majority(pairs):
    clusters, codes = map(np.array, zip(*pairs, strict=True))
    found = vote(clusters.astype(str), codes)
    for row in found.table.itertuples():
        inside = codes[clusters.astype(str) == row.cluster]
        votes = np.bincount(inside, minlength=4)[:3]
        if votes.any():
            assert votes[WORDS.tolist().index(row.label)] == votes.max()
        else:
            assert row.label == "unassigned"


def test_categories_are_those_that_occur_in_the_models_order():
    found = as_category(np.array(["c", "unassigned", "a", "c"], dtype=object), WORDS)
    assert found.categories.tolist() == ["a", "c", "unassigned"]
