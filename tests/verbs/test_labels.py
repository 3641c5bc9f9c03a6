"""Tables of labels: clusters are described by the labels of their samples."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from optirank.verbs.labels import cluster_table, withheld_word

WITHHELD = "unassigned"


def table(clusters, labels, confidence=None, likeness=None):
    labels = [*labels]
    n = len(labels)
    samples = pd.DataFrame(
        {
            "label": np.array(labels, dtype=object),
            "confidence": np.full(n, 0.5) if confidence is None else confidence,
            "likeness": np.ones(n) if likeness is None else likeness,
            "withheld_because": ["why" if x == WITHHELD else "" for x in labels],
        }
    )
    return cluster_table(np.array([*clusters], dtype=object), samples, WITHHELD)


def test_the_most_frequent_label_wins_and_ties_go_to_the_more_confident():
    found = table("xxxyy", "abbcc")
    assert found["label"].tolist() == ["b", "c"]
    assert found["n_samples"].tolist() == [3, 2]
    np.testing.assert_allclose(found["share"], [2 / 3, 1.0])
    assert table("xxxx", "aabb", [0.6, 0.6, 0.9, 0.5])["label"][0] == "b"
    assert table("xxxx", "aabb", [0.9, 0.6, 0.9, 0.5])["label"][0] == "a"


def test_withheld_labels_have_no_vote_but_count_in_the_share():
    found = table("xxxy", [WITHHELD, "c", "c", WITHHELD])
    assert found["label"].tolist() == ["c", WITHHELD]
    np.testing.assert_allclose(found["share"], [2 / 3, 0.0])


def test_a_cluster_less_like_its_label_than_another_one_is_seen():
    found = table("xxyyz", "aaaab", likeness=[1.0, 0.9, 0.5, 0.4, 0.3])
    found = found.set_index("cluster")
    np.testing.assert_allclose(found["likeness"], [0.95, 0.45, 0.3])
    np.testing.assert_allclose(found["likeness_minus_best"], [0.0, -0.5, 0.0])


def test_samples_without_a_cluster_have_no_part_in_any():
    found = table(["x", "", "x", ""], ["b", "a", "b", WITHHELD])
    assert found["cluster"].tolist() == ["x"]
    assert found["n_samples"].tolist() == [2]


def test_the_word_for_no_label_is_no_class():
    assert withheld_word(["a"]) == "unassigned"
    assert withheld_word(["unassigned", "withheld"]) == "withheld 2"


@given(
    st.lists(
        st.tuples(st.sampled_from("xyz"), st.sampled_from(["a", "b", "c", WITHHELD])),
        min_size=1,
        max_size=30,
    )
)
def test_no_other_label_has_more_votes(pairs):
    for row in table(*zip(*pairs, strict=True)).itertuples():
        labels = [label for name, label in pairs if name == row.cluster]
        votes = {word: labels.count(word) for word in "abc"}
        assert row.n_samples == len(labels)
        if row.label == WITHHELD:
            assert not any(votes.values())
        else:
            assert votes[row.label] == max(votes.values())
