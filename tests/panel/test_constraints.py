"""Which genes may, must or should be in a panel: constraints on the search."""

from __future__ import annotations

import numpy as np
import pytest
from panel_searches import search_matrix

from optirank.model import Tree
from optirank.panel.elimination import Panel


@pytest.fixture(scope="module")
def cells() -> tuple[np.ndarray, np.ndarray]:
    """Three classes with ten markers, ten, and one beside three weak ones."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], 40)
    means = np.ones((3, 60))
    means[0, :10] = 6.0
    means[1, 10:20] = 6.0
    means[2, 20] = 40.0
    means[2, 21:24] = 1.5
    return rng.poisson(means[codes]).astype(float), codes


def search(cells, **options):
    X, codes = cells
    fold_of = np.arange(len(codes)) % 4
    return search_matrix(X, codes, 3, fold_of=fold_of, **options)


def test_only_genes_that_are_allowed_are_in_panels(cells):
    allowed = np.arange(5, 40)
    result = search(cells, n_genes=12, allowed=allowed)
    assert np.isin(result.path[12].genes, allowed).all()
    assert all(np.isin(p.genes, allowed).all() for p in result.held_out.panels.values())


def test_required_genes_that_fill_the_panel_are_the_panel(cells):
    required = np.array([3, 12, 41, 50])
    result = search(cells, n_genes=4, include=required)
    np.testing.assert_array_equal(result.path[4].genes, required)
    for panel in result.held_out.panels.values():
        np.testing.assert_array_equal(panel.genes, required)


def leading(panel: Panel, code: int) -> int:
    return int((panel.coef.argmax(axis=0) == code).sum())


def test_every_class_keeps_as_many_genes_as_asked(cells):
    plain = search(cells, n_genes=9).path[9]
    spread = search(cells, n_genes=9, per_class=3).path[9]
    assert leading(plain, 2) < 3
    assert leading(spread, 2) >= 3


def test_every_label_of_a_tree_keeps_as_many_genes_as_asked(cells):
    tree = Tree({"both": "", "0": "both", "2": "both", "1": ""})
    labels, contrasts = tree.contrasts(["0", "1", "2"])
    assert labels == ["both", "0", "2", "1"]
    np.testing.assert_allclose(contrasts.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(contrasts[1], np.array([1, 0, -1]) / 2**0.5)

    def told(**options) -> list[str]:
        panel = search(cells, n_genes=12, **options).path[12]
        return [labels[place] for place in (contrasts @ panel.coef).argmax(axis=0)]

    assert told().count("2") < 3
    assert told(per_class=3, contrasts=contrasts).count("2") >= 3
    with pytest.raises(ValueError, match="4 genes for each of 4 labels are 16, and"):
        search(cells, n_genes=12, per_class=4, contrasts=contrasts)


def test_more_genes_per_class_than_there_are_is_refused(cells):
    with pytest.raises(
        ValueError, match="5 genes for each of 3 classes are 15, and the"
    ):
        search(cells, n_genes=12, per_class=5)


def test_panels_of_folds_give_the_held_out_scores(cells):
    from optirank.panel.votes import vote_scores

    X, _ = cells
    held_out = search(cells, n_genes=12).held_out
    for fold in range(4):
        panel = held_out.panels[12, fold]
        of_fold = held_out.fold == fold
        scores = vote_scores(X[held_out.rows[of_fold]], panel.genes, panel.coef)
        np.testing.assert_allclose(scores, held_out.scores[12][of_fold], atol=1e-12)


def test_a_class_that_a_fold_cannot_learn_has_no_weights(cells):
    X, codes = cells
    fold_of = np.where(codes == 2, 0, np.arange(len(codes)) % 3)
    result = search_matrix(X, codes, 3, n_genes=12, fold_of=fold_of)
    panels = result.held_out.panels
    assert np.isnan(panels[12, 0].coef[2]).all()
    assert np.isfinite(panels[12, 1].coef).all()
    scores = result.held_out.scores[12][result.held_out.fold == 0]
    assert (scores[:, 2] == -np.inf).all()
    assert np.isfinite(scores[:, :2]).all()
