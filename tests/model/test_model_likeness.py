"""How typical samples are of their label, and what is said of a query's values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from model_cases import gene_names, make_panel, make_samples
from scipy import sparse

from optirank._util.words import collected_notes
from optirank.model.likeness import (
    FurtherGenes,
    ValueCounter,
    fit_likeness,
    note_values,
)
from optirank.panel.samples import fold_matrix
from optirank.panel.votes import centred_ranks
from optirank.ranks.scoring import panel_ranks

CLASSES = np.array(["type 0", "type 1", "type 2"])


def samples_of(seed: int, n: int, profiles: np.ndarray, noise: float = 0.3):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % len(profiles)
    return profiles[codes] + noise * rng.normal(size=(n, profiles.shape[1])), codes


@pytest.fixture(scope="module")
def known():
    """A panel model that stores how typical samples are, and profiles of four
    classes, of which it has seen three.
    """
    profiles = np.random.default_rng(3).normal(size=(4, 30))
    model = make_panel(n_classes=3, n_genes=30, sizes=(30,))
    X, codes = samples_of(0, 600, profiles[:3])
    y = model.classes[codes]
    likeness = fit_likeness(panel_ranks(X), y, y, model.classes)
    panel = replace(model.panel, likeness=likeness)
    return replace(model, panels={30: panel}), profiles


@pytest.mark.parametrize("n_present", [30, 24])
@pytest.mark.parametrize("to", [np.asarray, sparse.csr_array])
def test_held_out_samples_are_typical_and_others_are_not(known, n_present, to):
    model, profiles = known
    X, codes = samples_of(1, 900, profiles)
    labels = np.where(codes == 3, 0, codes)
    present = model.find_genes(gene_names(30)[:n_present]).present
    ranks = centred_ranks(to(X[:, :n_present]))
    relative = model.panel.likeness.relative(ranks, labels, present)
    assert np.median(relative[codes != 3]) == pytest.approx(1.0, abs=0.05)
    assert np.quantile(relative[codes == 3], 0.95) < np.quantile(
        relative[codes != 3], 0.05
    )
    shuffled = np.random.default_rng(0).permuted(X[:, :n_present], axis=1)
    ranks = centred_ranks(to(shuffled))
    relative = model.panel.likeness.relative(ranks, labels, present)
    assert np.median(relative) < 0.5


def test_a_label_whose_own_samples_are_unlike_it_tells_nothing(known):
    likeness = replace(
        known[0].panel.likeness, medians=np.array([0.5, 0.0, -1.0], np.float32)
    )
    centred = likeness.profiles - likeness.profiles.mean(axis=1, keepdims=True)
    relative = likeness.relative(centred, np.arange(3))
    np.testing.assert_allclose(relative, [2.0, np.nan, np.nan], rtol=1e-5)


def test_samples_that_were_not_held_out_count_in_the_profile_of_their_class():
    ranks = panel_ranks(np.random.default_rng(1).normal(size=(60, 30)))
    y = np.repeat(CLASSES, 20)
    predicted = np.array([*y[:40], *[None] * 20], dtype=object)
    partly = fit_likeness(ranks, y, predicted, CLASSES)
    assert np.array_equal(partly.profiles, fit_likeness(ranks, y, y, CLASSES).profiles)
    assert partly.n_samples == 40


def test_a_class_of_few_held_out_samples_has_the_median_of_all():
    rng = np.random.default_rng(0)
    y = np.repeat(CLASSES, [200, 20, 10])
    likeness = fit_likeness(rng.uniform(size=(230, 12)), y, y, CLASSES)
    common, *rare = likeness.medians
    assert rare[0] == rare[1] != common


def test_genes_of_the_panel_in_use_have_no_part_in_the_check():
    further = FurtherGenes(
        np.array(["A", "B", "C", "D"], dtype=object),
        np.arange(8, dtype=np.float16).reshape(2, 4) / 16,
    )
    columns, means = further.found_among(["x", "d", "B", "A"], used=["A", "x"])
    assert columns.tolist() == [2, 1]  # B, and D in another case
    np.testing.assert_array_equal(means, further.means[:, [1, 3]])


def values_of(X) -> dict:
    counter = ValueCounter()
    counter.add(X)
    return counter.result()


def test_values_are_counted_block_by_block_and_merged():
    X = make_samples(0, 20, 10)
    together, other = ValueCounter(), ValueCounter()
    fold_matrix(X[:12], [together])
    other.add(sparse.csr_array(X[12:]))
    together.merge(other)
    assert together.result() == values_of(X)
    assert values_of(X)["zeros"] == np.mean(X == 0)
    assert values_of(X)["negative"] == np.mean(X < 0)
    assert ValueCounter().result() == {}


def notes_on(query, trained: dict) -> list[str]:
    with collected_notes() as said:
        note_values(values_of(query), trained)
    return said.notes


def test_notes_tell_a_good_query_from_a_bad_one():
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.0, (200, 30))
    trained = values_of(counts)
    assert trained["scale"] == "counts"
    for alike in (counts, np.log1p(counts), counts[:50], rng.poisson(3.0, (200, 30))):
        assert notes_on(alike, trained) == []
    note = notes_on(counts - 1.5, trained)[0]
    assert "negative, and none were in the training data" in note
    (note,) = notes_on(counts + 0.5, trained)
    assert "no value is zero" in note
    (note,) = notes_on(rng.poisson(0.1, (200, 30)), trained)
    assert "labels are less certain" in note
    assert notes_on(counts, {}) == []
