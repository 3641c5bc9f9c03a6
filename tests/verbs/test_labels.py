"""Labels: odd ones are pointed out, and clusters get the label of most of their
samples.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from optirank.verbs.labels import majority

WORDS = np.array(["a", "b", "c", "unassigned"], dtype=object)


def vote(clusters, codes, confidence=None, words=WORDS):
    codes = np.array(codes)
    sure = np.full(len(codes), 0.5) if confidence is None else np.array(confidence)
    return majority(np.array(clusters, dtype=object), codes, sure, words)


def test_the_most_frequent_label_wins_and_ties_go_to_the_more_confident():
    found = vote(["x", "x", "x", "y", "y"], [0, 1, 1, 2, 2])
    assert found["label"].tolist() == ["b", "c"]
    assert found["n_samples"].tolist() == [3, 2]
    np.testing.assert_allclose(found["share"], [2 / 3, 1.0])
    assert vote(["x"] * 4, [0, 0, 1, 1], [0.6, 0.6, 0.9, 0.5])["label"][0] == "b"
    assert vote(["x"] * 4, [0, 0, 1, 1], [0.9, 0.6, 0.9, 0.5])["label"][0] == "a"


def test_withheld_labels_have_no_vote_but_count_in_the_share():
    found = vote(["x", "x", "x", "y"], [3, 2, 2, 3])
    assert found["label"].tolist() == ["c", "unassigned"]
    np.testing.assert_allclose(found["share"], [2 / 3, 1.0])


def test_a_cluster_without_a_majority_is_heterogeneous_whatever_the_classes_are_called():
    clusters, codes = ["x"] * 5 + ["y"] * 2, [0, 0, 1, 1, 2, 0, 0]
    assert vote(clusters, codes)["label"].tolist() == ["heterogeneous", "a"]
    words = np.array(["heterogeneous", "b", "c", "unassigned"], dtype=object)
    assert vote(clusters, codes, words=words)["label"].tolist() == [
        "mixed",
        "heterogeneous",
    ]


def test_samples_without_a_cluster_have_no_part_in_any():
    found = vote(["x", "", "x", ""], [1, 0, 1, 3])
    assert found["cluster"].tolist() == ["x"]
    assert found["n_samples"].tolist() == [2]


@given(
    st.lists(
        st.tuples(st.sampled_from("xyz"), st.integers(0, 3)), min_size=1, max_size=30
    )
)
def test_no_other_label_has_more_votes(pairs):
    clusters, codes = zip(*pairs, strict=True)
    found = vote(clusters, codes)
    for row in found.itertuples():
        mine = [WORDS[c] for name, c in pairs if name == row.cluster]
        votes = [mine.count(word) for word in WORDS[:3]]
        assert row.n_samples == len(mine)
        if row.label in WORDS[:3]:
            assert mine.count(row.label) == max(votes) >= len(mine) / 2
