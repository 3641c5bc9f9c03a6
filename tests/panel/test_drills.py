"""Drills: held-out samples under failing genes and on other platforms."""

from __future__ import annotations

import numpy as np
import pytest
from panel_searches import search_matrix
from scipy import sparse

from optirank.panel.drills import run_drills
from optirank.ranks.scoring import best_class


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], 40)
    means = np.ones((3, 60))
    for code in range(3):
        means[code, 10 * code : 10 * code + 10] = 4.0
    X = sparse.csr_matrix(rng.poisson(means[codes]).astype(np.float32))
    fold_of = np.arange(len(codes)) % 4
    search = search_matrix(X, codes, 3, n_genes=20, fold_of=fold_of)
    held_out = search.held_out
    panels = {fold: held_out.panels[20, fold] for fold in range(4)}
    return run_drills(X, codes, fold_of, panels, 3), held_out


@pytest.fixture(scope="module")
def drills(samples):
    return {(drill.kind, drill.amount): drill.counts for drill in samples[0]}


def accuracy(counts: np.ndarray) -> float:
    return float(np.mean(counts.diagonal() / counts.sum(axis=1)))


def test_samples_as_they_are_get_their_held_out_labels(samples, drills):
    _, held_out = samples
    labels = best_class(held_out.scores[20])
    expected = np.zeros((3, 3))
    np.add.at(expected, (held_out.codes, labels), 1)
    np.testing.assert_array_equal(drills["as it is", 0.0], expected)


def test_every_drill_counts_every_sample(drills):
    assert len(drills) == 1 + 3 + 2
    for counts in drills.values():
        np.testing.assert_allclose(counts.sum(axis=1), 40)


def test_more_trouble_costs_more(drills):
    plain = accuracy(drills["as it is", 0.0])
    assert accuracy(drills["failing", 0.5]) < plain
    assert accuracy(drills["platform", 2.0]) < plain


def test_sensitivities_are_those_of_each_draw(samples):
    for drill in samples[0]:
        assert drill.sensitivity.shape == (len(drill.draws), 3)
        mean = drill.counts.diagonal() / drill.counts.sum(axis=1)
        np.testing.assert_allclose(drill.sensitivity.mean(axis=0), mean)
