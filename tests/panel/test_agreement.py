"""Agreement of other genes: that of the definition, in blocks, without the panel."""

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import rankdata

from optirank.panel.further import (
    CLEAR,
    FEWEST_GENES,
    RanksByLabel,
    agreement_of,
    further_genes,
)
from optirank.panel.samples import class_sums
from optirank.ranks.orders import places_in_sample


def ranks(values):
    return (rankdata(values, axis=1) - 0.5) / values.shape[1] - 0.5


def by_definition(means, values, labels):
    """The definition in plain NumPy: agreement over all labels, and by label."""
    found = [c for c in range(len(means)) if (labels == c).sum() >= 3]
    if len(found) < 2:
        return None, {}
    r = ranks(values)
    query = np.array([r[labels == c].mean(axis=0) for c in found])
    query -= query.mean(axis=0)
    reference = means[found] - means[found].mean(axis=0)
    by_label = {
        c: np.corrcoef(a, b)[0, 1]
        for c, a, b in zip(found, reference, query, strict=True)
    }
    return np.corrcoef(reference.ravel(), query.ravel())[0, 1], by_label


def samples(seed, n=90, d=80, n_classes=3, noise=1.0):
    """Counts in which each class has markers, the same ones for every seed."""
    rates = np.exp(np.random.default_rng(0).normal(0.0, 1.0, (n_classes, d)))
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n)
    X = rng.poisson(rates[codes] * np.exp(rng.normal(0.0, noise, (n, d))))
    return X.astype(float), codes


def means_by_label(X, labels, n_classes=3, genes=None):
    ranks = RanksByLabel(n_classes)
    ranks.add(X if genes is None else X[:, genes], labels)
    return ranks.result()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_agreement_is_that_of_the_definition(kind):
    reference, codes = samples(1)
    query, _ = samples(2)
    labels = np.random.default_rng(3).integers(0, 3, len(query))
    _, means = means_by_label(kind(reference), codes)
    expected = [ranks(reference)[codes == c].mean(axis=0) for c in range(3)]
    np.testing.assert_allclose(means, expected, atol=1e-12)
    found = agreement_of(means, *means_by_label(kind(query), labels))
    overall, by_label = by_definition(means, query, labels)
    assert found.overall == pytest.approx(overall)
    assert found.by_label == pytest.approx(by_label)


def test_right_labels_agree_and_permuted_genes_do_not():
    reference, codes = samples(1)
    query, truth = samples(2)
    _, means = means_by_label(reference, codes)
    right = agreement_of(means, *means_by_label(query, truth)).overall
    wrong = np.random.default_rng(0).permutation(truth)
    scrambled = query[:, np.random.default_rng(0).permutation(query.shape[1])]
    assert right > 0.8
    assert abs(agreement_of(means, *means_by_label(query, wrong)).overall) < 0.4
    assert abs(agreement_of(means, *means_by_label(scrambled, truth)).overall) < 0.3


def test_blocks_merge_into_the_whole():
    X, labels = samples(5, n=100)
    whole = means_by_label(X, labels)
    merged = RanksByLabel(3)
    for start, stop in ((0, 3), (3, 6), (6, 64), (64, 100)):
        part = RanksByLabel(3)
        part.add(X[start:stop], labels[start:stop])
        merged.merge(part)
    np.testing.assert_array_equal(merged.result()[0], whole[0])
    np.testing.assert_allclose(merged.result()[1], whole[1], atol=1e-12)


def test_labels_of_fewer_than_three_samples_are_not_looked_at():
    X, _ = samples(7, n=20)
    _, means = means_by_label(*samples(1))
    labels = np.zeros(20, int)
    alone = agreement_of(means, *means_by_label(X, labels))
    assert (alone.overall, alone.by_label) == (None, {})
    labels[:2] = 1
    assert agreement_of(means, *means_by_label(X, labels)).overall is None
    labels[:6] = 2
    assert list(agreement_of(means, *means_by_label(X, labels)).by_label) == [0, 2]


def test_few_genes_tell_a_clear_agreement_and_nothing_else():
    reference, codes = samples(1)
    query, truth = samples(2)
    few = np.arange(30)
    _, means = means_by_label(reference, codes, genes=few)
    clear = agreement_of(means, *means_by_label(query, truth, genes=few))
    assert clear.overall > CLEAR / np.sqrt(30)
    assert set(clear.by_label) == {0, 1, 2}
    wrong = np.random.default_rng(0).permutation(truth)
    none = agreement_of(means, *means_by_label(query, wrong, genes=few))
    assert (none.overall, none.by_label, none.n_genes) == (None, {}, 30)
    four = np.arange(4)
    _, means = means_by_label(reference, codes, genes=four)
    assert (
        agreement_of(means, *means_by_label(query, truth, genes=four)).overall is None
    )
    none = agreement_of(np.zeros((3, 0)), np.full(3, 9), np.zeros((3, 0)))
    assert (none.overall, none.n_genes) == (None, 0)


def test_genes_without_a_difference_agree_with_nothing():
    X = np.ones((12, 60))
    labels = np.arange(12) % 2
    counts, means = means_by_label(X, labels, 2)
    found = agreement_of(means, counts, means)
    assert (found.overall, found.by_label) == (0.0, {0: 0.0, 1: 0.0})


def test_further_genes_are_those_that_tell_classes_outside_the_panel():
    X, codes = samples(8, n=300, d=200)
    sums = class_sums(places_in_sample(X), codes, 3)
    panel = sums.best_genes(30)
    genes = further_genes(sums, panel, 60)
    assert len(genes) == 60
    assert not np.isin(genes, panel).any()
    assert np.isin(genes, sums.best_genes(90)).mean() > 0.9


def test_data_of_an_assay_have_no_further_genes():
    X, codes = samples(9, d=80)
    sums = class_sums(places_in_sample(X), codes, 3)
    panel = np.arange(80 - FEWEST_GENES + 1)
    assert not len(further_genes(sums, panel))


def test_genes_that_tell_no_class_check_nothing():
    X, codes = samples(9, n=200, d=600)
    rng = np.random.default_rng(0)
    for column in range(40, 600):
        X[:, column] = rng.permutation(X[:, column])
    sums = class_sums(places_in_sample(X), codes, 3)
    assert not len(further_genes(sums, np.arange(20)))
