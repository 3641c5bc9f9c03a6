"""Missing genes take their votes away, and what that costs is said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_cases import (
    gene_names,
    make_model,
    make_panel,
    make_samples,
    models,
    panel_models,
    reference_models,
    with_missing,
    with_weights,
)

from optirank import Model
from optirank._util.words import collected_notes
from optirank.model import MissingGenesError
from optirank.model.panels import References, SizedPanel
from optirank.ranks.scoring import TIES
from optirank.verbs.labelling import note_missing_genes
from rank_definition import ranks_by_definition


def said_of(model: Model, genes) -> tuple[list[str], list[str]]:
    """The notes and the warnings on the genes of some data."""
    with collected_notes() as said:
        note_missing_genes(model, model.find_genes(genes))
    return said.notes, said.warnings


@given(panel_models, st.data())
def test_missing_genes_take_their_votes_away_and_nothing_stands_in(model, data):
    d = model.n_features
    there = np.array(data.draw(st.lists(st.booleans(), min_size=d, max_size=d)))
    present = there[model.panel.columns]
    coef = model.panel.coef[:, present]
    names = gene_names(d)[there]
    if present.sum() < 2 or not coef.any(axis=1).all():
        with pytest.raises(MissingGenesError):
            model.find_genes(names)
        return
    X = make_samples(1, 3, d)
    values = X[:, model.panel.columns[present]]
    signs = np.sign(values[:, :, None] - values[:, None, :])
    expected = signs.sum(axis=2) / (2 * present.sum()) @ coef.T
    scores = model.decision_function(X[:, there], names)
    np.testing.assert_allclose(scores.reshape(expected.shape), expected, atol=1e-12)


@given(reference_models, st.data())
def test_the_paper_s_classifiers_keep_their_rule(model, data):
    """Ranks among the reference genes that are there, mean ranks for missing
    weights.
    """
    d = model.n_features
    there = np.array(data.draw(st.lists(st.booleans(), min_size=d, max_size=d)))
    panel = model.panel
    present = there[panel.columns]
    x = make_samples(1, 1, d)[0]
    try:
        scores = model.decision_function(x[None, there], gene_names(d)[there])
    except MissingGenesError:
        assert not present.all()
        return
    _, offset = TIES[panel.references.ties]
    expected = []
    for row, (w, gamma) in enumerate(
        zip(panel.coef, panel.references.weights, strict=True)
    ):
        left = np.where(present, gamma, 0.0)
        values = x[panel.columns]
        ranks = ranks_by_definition(values[None], left, panel.references.ties)[0]
        stand_in = np.full(len(values), 0.5 - offset / left.sum())
        if panel.references.mean_ranks is not None:
            stand_in = panel.references.mean_ranks[row]
        used = np.where(present, ranks / left.sum(), stand_in)
        expected.append(w @ used + panel.references.intercept[row])
    np.testing.assert_allclose(np.atleast_1d(scores[0]), expected, atol=1e-9)


@given(models)
def test_nothing_is_said_where_nothing_is_missing(model):
    assert said_of(model, gene_names(model.n_features)) == ([], [])


def test_missing_genes_are_named_and_counted_and_two_are_enough():
    model = make_panel(n_genes=10, sizes=(10,))
    (note,), _ = said_of(model, gene_names(10)[:2])
    assert note.startswith("8 of 10 genes are missing: GENE2, GENE3")
    with pytest.raises(MissingGenesError, match="1 of the model's 10 genes are"):
        model.find_genes(gene_names(10)[:1])
    with pytest.raises(MissingGenesError, match="none of the model's 10 genes are"):
        model.find_genes(["OTHER"])


def test_a_fall_of_held_out_accuracy_by_more_than_five_points_is_said():
    model = make_panel(n_genes=10, sizes=(10,))
    model = with_missing(model, {10: ((0.0, 0.95), (0.3, 0.93), (0.5, 0.85))})
    assert len(said_of(model, gene_names(10)[3:])[0]) == 1
    notes, _ = said_of(model, gene_names(10)[5:])
    assert "held-out accuracy was 85.0%, with all of them 95.0%" in notes[1]
    unknown, _ = said_of(make_panel(), gene_names(30)[:28])
    assert not any("held-out accuracy" in note for note in unknown)


def test_an_accuracy_nearer_to_guessing_than_to_the_whole_is_an_alarm():
    model = make_panel(n_genes=10, sizes=(10,))
    guessing = 1 / len(model.classes)
    for without, alarming in ((0.95, False), (0.5 * (0.95 + guessing) - 0.01, True)):
        poorer = with_missing(model, {10: ((0.0, 0.95), (0.5, without))})
        notes, warnings = said_of(poorer, gene_names(10)[5:])
        assert bool(warnings) == alarming
        assert not any("less certain" in note for note in notes)


def test_expected_accuracy_falls_with_the_logarithm_of_the_genes_to_guessing():
    model = make_panel(n_classes=4, n_genes=10, sizes=(10,))
    model = with_missing(model, {10: ((0.0, 0.95), (0.7, 0.85))})
    half_way = 1 - np.sqrt(10 * 3) / 10  # between 10 genes and 3, in logarithms
    assert model.panel.expected_accuracy(half_way) == pytest.approx(0.90)
    below = 1 - np.sqrt(3) / 10  # between 3 genes and one
    assert model.panel.expected_accuracy(below) == pytest.approx(0.55)
    assert model.panel.expected_accuracy(0.9) == 0.25  # one gene has no order
    assert model.panel.expected_accuracy(1.0) == 0.25
    two = with_missing(make_panel(n_classes=2, sizes=(10,)), {10: ((0.0, 0.9),)})
    assert two.panel.expected_accuracy(1.0) == 0.5


def test_the_model_s_own_panel_is_used_whatever_is_missing():
    table = ((0.0, 0.95), (0.5, 0.5), (0.7, 0.34))
    model = with_missing(make_panel(), {10: table, 6: ((0.0, 0.9), (0.5, 0.9))})
    match = model.find_genes(model.panels[6].genes)
    assert match.genes == tuple(model.genes)


def test_a_class_without_a_vote_is_refused():
    model = make_panel(n_classes=4, n_genes=10, sizes=(10,))
    coef = np.ones((4, 10))
    coef[1, 1:] = 0.0
    model = with_weights(model, coef * np.arange(1, 11))
    with pytest.raises(MissingGenesError, match="too few for 1 class: type 1"):
        model.find_genes(gene_names(10)[1:])


def two_class_model() -> Model:
    coef = np.array([[3.0, -1.0, 0, 0, 0, 0, 2.0, 0]])
    gamma = np.array([[0.0, 1, 1, 1, 1, 0, 0, 0]])
    columns = np.flatnonzero((coef != 0).any(axis=0) | (gamma > 0).any(axis=0))
    references = References(gamma[:, columns], np.zeros(1), "average")
    panel = SizedPanel(gene_names(8)[columns], columns, coef[:, columns], references)
    classes = np.array(["type 0", "type 1"])
    return Model(classes, len(columns), {len(columns): panel}, 8)


def test_the_paper_s_classifiers_refuse_above_half_of_their_weights_or_genes():
    model = two_class_model()
    notes, _ = said_of(model, [f"GENE{j}" for j in (1, 2, 3, 6, 7)])
    assert notes == ["2 of 6 genes are missing: GENE0, GENE4"]
    with pytest.raises(MissingGenesError, match="4 of the model's 6 genes"):
        model.find_genes([f"GENE{j}" for j in (1, 2, 3, 4)])
    with pytest.raises(MissingGenesError, match="2 of the model's 6 genes"):
        model.find_genes(["GENE0", "GENE6"])


@pytest.mark.parametrize("make", [make_model, make_panel])
def test_missing_genes_contribute_nothing_to_an_explanation(make):
    model = make(n_genes=20)
    weighted = np.flatnonzero(model.panel.coef.any(axis=0))[0]
    left = np.arange(20) != model.panel.columns[weighted]
    x = make_samples(3, 1, 20)[0][left]
    table = model.explain(x, gene_names(20)[left])
    scores = model.decision_function(x[None], gene_names(20)[left])[0]
    np.testing.assert_allclose(
        table.groupby("class")["contribution"].sum(), scores, atol=1e-12
    )
    missing = table[table["missing"]]
    assert len(missing)
    assert set(missing["gene"]).isdisjoint(gene_names(20)[left])
    assert missing["value"].isna().all()
    assert not missing["contribution"].any()
