"""What single genes do for a panel: sums over pairs agree with ranking anew."""

from __future__ import annotations

import numpy as np
import pytest

from optirank.panel import gene_roles
from optirank.panel.votes import vote_scores


@pytest.fixture(params=[1, 3], ids=["two classes", "three classes"])
def panel(request) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts with ties, weights and classes."""
    rng = np.random.default_rng(request.param)
    values = rng.poisson(2.0, (30, 8)).astype(float)
    coef = rng.normal(size=(request.param, 8))
    codes = np.arange(30) % max(2, request.param)
    return values, coef, codes


def test_scores_without_a_gene_are_those_of_the_other_genes(panel):
    values, coef, _ = panel
    scores, without = gene_roles.scores_without(values, coef)
    everything = np.arange(8)
    np.testing.assert_allclose(scores, vote_scores(values, everything, coef))
    for gene in everything:
        there = everything[everything != gene]
        expected = vote_scores(values, there, coef[:, there])
        np.testing.assert_allclose(without[:, gene], expected, atol=1e-12)


def test_a_replacement_has_the_lowest_loss_of_the_candidates(panel, monkeypatch):
    values, coef, codes = panel
    candidates = np.random.default_rng(9).poisson(2.0, (30, 4)).astype(float)
    monkeypatch.setattr(gene_roles, "_SHORT_LIST", 4)
    best, likeness = gene_roles.replacements(values, candidates, coef, codes)
    for gene in range(8):
        losses = []
        for column in candidates.T:
            swapped = values.copy()
            swapped[:, gene] = column
            scores = vote_scores(swapped, np.arange(8), coef)
            losses.append(gene_roles._mean_loss(scores, codes))
        assert best[gene] == np.argmin(losses)
    assert (np.abs(likeness) <= 1).all()


def test_candidates_that_behave_like_the_gene_come_first(panel, monkeypatch):
    values, coef, codes = panel
    monkeypatch.setattr(gene_roles, "_SHORT_LIST", 1)
    others = np.random.default_rng(5).poisson(2.0, (30, 20)).astype(float)
    candidates = np.column_stack([others, values[:, 3]])
    best, likeness = gene_roles.replacements(values, candidates, coef, codes)
    assert best[3] == 20
    assert likeness[3] == pytest.approx(1.0)


def test_the_gene_that_tells_a_class_costs_it_most_when_it_is_lost(panel):
    values, _, codes = panel
    marked = values.copy()
    marked[:, 2] = np.where(codes == 1, 50.0, 0.0)
    n_rows = 1 if codes.max() == 1 else 3
    coef = np.zeros((n_rows, 8))
    coef[-1 if n_rows == 1 else 1, 2] = 3.0
    of_class = codes == 1
    costs = gene_roles.margin_losses(marked[of_class], coef, codes[of_class])
    assert costs.mean(axis=0).argmax() == 2
    changes = gene_roles.loss_changes(marked, coef, codes)
    assert changes.argmax() == 2
    assert changes[2] > 0


def test_classes_without_weights_take_no_part():
    rng = np.random.default_rng(0)
    values = rng.poisson(2.0, (10, 6)).astype(float)
    coef = rng.normal(size=(3, 6))
    coef[1] = np.nan
    codes = np.repeat([0, 2], 5)
    costs = gene_roles.margin_losses(values, coef, codes)
    expected = gene_roles.margin_losses(values, coef[[0, 2]], codes // 2)
    np.testing.assert_allclose(costs, expected)


def test_the_best_addition_is_the_gene_that_tells_what_the_panel_cannot(panel):
    _, coef, codes = panel
    wins = np.random.default_rng(1).uniform(-0.5, 0.5, (30, 6))
    wins[:, 4] = np.where(codes == 1, 0.5, -0.5)
    scores = np.zeros((30, len(coef)))
    chosen = gene_roles.best_additions(wins, scores, codes, n_more=3, l2=0.03)
    assert chosen[0] == 4
    assert len(set(chosen.tolist())) == 3
