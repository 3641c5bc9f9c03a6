"""Names for clusters of samples: the label that most of their samples have.

Clusters come from the user: optirank computes none. On real pairs, majority labels of
clusters that were computed for the purpose were worse than the labels of single cells
as often as better, at every fineness (docs/notes.md), so a sample keeps its own label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from optirank.workflow.labels import mixed_word

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MAJORITY = 0.5  # share of a cluster's samples that its label must have


class Clusters(NamedTuple):
    """The majority label of each cluster, and what that gives each sample."""

    table: pd.DataFrame  # cluster, n_samples, label, share; the largest first
    names: NDArray  # (n,): the cluster of each sample, "" where it has none
    labels: NDArray  # (n,): its label, the sample's own where it has no cluster
    shares: NDArray  # (n,): share of the cluster's samples with that label


def majority(
    clusters: pd.Series, codes: NDArray, confidence: NDArray, words: NDArray
) -> Clusters:
    """Give each cluster the label that most of its samples have.

    Samples whose label is withheld have no vote; of labels with as many votes the one
    with the larger sum of confidences wins. A cluster of which the winner has less than
    half of all samples is called "heterogeneous" (or "mixed" where a class is called
    so).

    Parameters
    ----------
    clusters : the cluster of each sample, NaN where it has none.
    codes : its label, a position in ``words``; the last word is that of labels
        withheld.
    confidence : of each label.
    words : the classes, and the word for a label that is withheld.
    """
    known = np.asarray(clusters.notna())
    texts = clusters.to_numpy(dtype=object)[known].astype(str)
    names, group = np.unique(texts, return_inverse=True)
    own_codes = codes[known]
    winner = _winners(group, own_codes, confidence[known], len(names), len(words))
    sizes = np.bincount(group, minlength=len(names))
    n_agreeing = np.bincount(group[own_codes == winner[group]], minlength=len(names))
    share = n_agreeing / sizes
    label = np.where(share < _MAJORITY, mixed_word(words), words[winner])
    table = pd.DataFrame(
        {"cluster": names, "n_samples": sizes, "label": label, "share": share}
    ).sort_values("n_samples", ascending=False, kind="stable", ignore_index=True)
    sample_clusters = np.full(len(codes), "", dtype=object)
    sample_clusters[known] = names.astype(object)[group]
    sample_labels = words[codes]
    sample_labels[known] = label[group]
    shares = np.full(len(codes), np.nan)
    shares[known] = share[group]
    return Clusters(table, sample_clusters, sample_labels, shares)


def _winners(
    group: NDArray, codes: NDArray, confidence: NDArray, n_groups: int, n_words: int
) -> NDArray:
    """The word with most votes in each group; the last one where none has a vote."""
    withheld = n_words - 1
    voters = codes < withheld
    votes = np.zeros((n_groups, n_words))
    confidences = np.zeros((n_groups, n_words))
    ballots = (group[voters], codes[voters])
    np.add.at(votes, ballots, 1.0)
    np.add.at(confidences, ballots, confidence[voters])
    has_votes = votes[:, :withheld].any(axis=1)
    votes[:, withheld] = np.where(has_votes, 0.0, 1e-9)
    return (votes + confidences / (len(codes) + 1)).argmax(axis=1)
