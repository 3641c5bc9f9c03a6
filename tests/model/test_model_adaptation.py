"""Adapting scores to a query: what moves, what must not, and what is remembered for it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import nnls

from optirank import OptirankClassifier, load, save
from optirank.model import Experience, Predictor, gather_experience
from optirank.model.adaptation import (
    FEWEST,
    Components,
    fit_adaptation,
    fit_components,
    margins,
    profile_shares,
)
from optirank.model.experience import panel_ranks

N_GENES = 30


def experience(n_classes: int = 2, separation: float = 10.0) -> Experience:
    """Of scores of unit spread, ``separation`` apart."""
    n_problems = 1 if n_classes == 2 else n_classes
    half = separation / 2
    return Experience(
        outside=np.full(n_problems, -half),
        inside=np.full(n_problems, half),
        outside_spread=np.ones(n_problems),
        inside_spread=np.ones(n_problems),
        score=np.full(n_classes, half),
        score_spread=np.ones(n_classes),
        likeness=np.full(n_classes, 0.9),
        likeness_spread=np.full(n_classes, 0.05),
        familiarity_levels=np.linspace(-4.0, 4.0, 1001),
        margin=half,
        between=0.0,
        genes=np.arange(N_GENES, dtype=np.int32),
        profiles=np.random.default_rng(0).random((n_classes, N_GENES)),
    )


def two_classes(shift: float, n: int = 200, share: float = 0.5, seed: int = 0, spread: float = 1.5):
    """Scores of two classes around -5 and 5, moved by ``shift``, and the labels."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < share
    return np.where(y, 5.0, -5.0) + shift + spread * rng.normal(size=n), y


def test_a_shifted_boundary_moves_towards_the_gap_between_the_classes():
    z, y = two_classes(shift=-3.2)
    found = fit_adaptation(z, experience(), [0.5, 0.5])
    assert found.offsets[0] < 0
    before, after = np.mean((z > 0) == y), np.mean((found.apply(z) > 0) == y)
    assert after > before
    assert found.changed == np.mean((z > 0) != (found.apply(z) > 0))


def test_scores_that_have_not_moved_keep_their_labels():
    z, _ = two_classes(shift=0.0, spread=1.0)
    found = fit_adaptation(z, experience(), [0.5, 0.5])
    assert found.changed == 0
    assert abs(found.shifts[0]) < 0.05


@pytest.mark.parametrize("shift", [-3.0, -1.0, 0.0, 1.0, 3.0])
@pytest.mark.parametrize("claimed", [0.5, 0.8, 0.99])
def test_a_query_of_one_class_changes_two_percent_of_its_labels_at_most(shift, claimed):
    z = two_classes(shift=shift, share=2.0)[0]
    found = fit_adaptation(z, experience(), [1 - claimed, claimed])
    assert np.mean(z > 0) - np.mean(found.apply(z) > 0) <= 0.02


@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3, 5]), st.integers(FEWEST, 80))
def test_no_query_changes_more_labels_than_allowed(seed, n_classes, n):
    rng = np.random.default_rng(seed)
    scores = rng.normal(scale=4.0, size=n if n_classes == 2 else (n, n_classes))
    found = fit_adaptation(scores, experience(n_classes), rng.dirichlet(np.ones(n_classes)))
    assert found.changed <= 0.05
    assert found.apply(scores).shape == scores.shape


@pytest.mark.parametrize("n", [0, 1, 10, FEWEST - 1])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_few_samples_are_left_alone(n, n_classes):
    scores = np.random.default_rng(0).normal(size=n if n_classes == 2 else (n, n_classes))
    found = fit_adaptation(scores, experience(n_classes))
    assert not found.possible
    assert np.array_equal(found.apply(scores), scores)


def test_one_of_several_classes_is_shifted_back():
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(4), 60)
    scores = np.where(y[:, None] == np.arange(4), 5.0, -5.0) + 1.5 * rng.normal(size=(240, 4))
    scores[:, 2] -= 8.0  # samples of class 2 lose to others
    found = fit_adaptation(scores, experience(4), np.full(4, 0.25))
    assert found.offsets[2] < 0
    before, after = (np.mean(one.argmax(axis=1) == y) for one in (scores, found.apply(scores)))
    assert after > before


def test_components_follow_the_scores_when_there_are_many():
    z, y = two_classes(shift=2.0, n=4000, share=0.3)
    found = fit_components(z, Components(-5.0, 5.0, 1.0, 1.0), 0.5)
    means = found.outside, found.inside
    assert means == pytest.approx((z[~y].mean(), z[y].mean()), abs=0.2)
    assert found.outside_spread == pytest.approx(z[~y].std(), rel=0.1)


def test_densities_are_equal_where_they_are_said_to_be():
    one = Components(-4.0, 5.0, 0.5, 2.5)
    at = one.equal_density()

    def log_density(mean, spread):
        return -np.log(spread) - 0.5 * ((at - mean) / spread) ** 2

    assert -4.0 < at < 0.5
    assert log_density(-4.0, 0.5) == pytest.approx(log_density(5.0, 2.5), abs=0.2)


@example(seed=234931652, n_classes=2)  # momentum pushes into a corner near the solution
@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_shares_are_the_nearest_mixture_of_the_profiles(seed, n_classes):
    rng = np.random.default_rng(seed)
    profiles = rng.random((n_classes, N_GENES))
    mean = rng.dirichlet(np.ones(n_classes)) @ profiles + 0.1 * rng.normal(size=N_GENES)
    found = profile_shares(mean, profiles)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1.0)
    centred = profiles - profiles.mean(axis=1, keepdims=True)
    heavy = 1e4  # a heavy last row keeps the sum at 1
    A = np.vstack([centred.T, np.full(n_classes, heavy)])
    expected, _ = nnls(A, np.append(mean - mean.mean(), heavy))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_margins_are_distances_from_the_boundary():
    assert margins(np.array([[-2.0], [0.5]])).tolist() == [2.0, 0.5]
    assert margins(np.array([[1.0, 4.0, 2.0]])).tolist() == [2.0]


@pytest.fixture(scope="module")
def trained():
    """A small model of three classes, its data and stand-ins for held-out scores."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 40)
    X = rng.normal(size=(120, N_GENES))
    for k in range(3):
        X[y == "abc"[k], 4 * k : 4 * k + 4] += 2.0
    model = OptirankClassifier(n_reference=0.3, l1=1e-3, l2=1e-3).fit(X, y)
    scores = model.decision_function(X)
    return model, X, y, scores


def test_what_is_remembered_describes_the_held_out_scores(trained):
    model, X, y, scores = trained
    found = gather_experience(model, X, y, scores, np.arange(120))
    for k, label in enumerate("abc"):
        assert found.inside[k] == pytest.approx(scores[y == label, k].mean())
        assert found.outside_spread[k] == pytest.approx(scores[y != label, k].std(), abs=1e-5)
    panel = X[:, model.genes_]
    ranks = (panel[:, :, None] > panel[:, None, :]).sum(axis=2) / panel.shape[1]
    np.testing.assert_allclose(found.profiles[1], ranks[y == "b"].mean(axis=0), atol=1e-9)


def test_the_model_file_keeps_what_is_remembered(trained, tmp_path):
    model, X, y, scores = trained
    model.experience_ = gather_experience(model, X, y, scores, np.arange(120))
    save(model, tmp_path / "m.optirank")
    again = load(tmp_path / "m.optirank").experience_
    for name in Experience.__dataclass_fields__:
        a, b = getattr(model.experience_, name), getattr(again, name)
        np.testing.assert_allclose(a, b, atol=6e-5 if name == "profiles" else 0)
    assert not hasattr(model.subset(["a", "b"]), "experience_")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("inside", {"dtype": "float64", "values": [1.0]}),
        ("inside_spread", {"dtype": "float64", "values": [1.0, 0.0, 1.0]}),
        ("familiarity_levels", {"dtype": "float64", "values": [0.0] * 1000 + [-1.0]}),
        ("margin", "far"),
        ("between", 2.0),
        ("genes", {"dtype": "int32", "values": [3, 2]}),
        ("profiles", {"dtype": "int32", "values": [1]}),
        ("version", 99),
    ],
)
def test_a_damaged_record_is_refused(name, value):
    stored = experience(3).to_plain()
    assert Experience.from_plain(stored, 3).margin == 5.0
    with pytest.raises(ValueError, match="record of held-out scores"):
        Experience.from_plain(stored | {name: value}, 3)


@pytest.mark.parametrize("rows", [np.arange(80), np.arange(120)[:, None]])
def test_held_out_scores_must_fit(trained, rows):
    model, X, y, scores = trained
    with pytest.raises(ValueError, match="held-out"):
        gather_experience(model, X, y, scores[: len(rows)] if rows.ndim == 1 else scores[:5], rows)


def test_a_model_without_a_record_cannot_adapt(trained):
    _, X, y, _ = trained
    bare = OptirankClassifier(n_reference=0.3).fit(X, y)
    with pytest.raises(ValueError, match="cannot adapt"):
        Predictor(bare, adapt=True)
    assert Predictor(bare).meter(10) is None


def test_samples_of_no_class_are_unfamiliar(trained):
    model, X, y, scores = trained
    found = gather_experience(model, X, y, scores, np.arange(120))
    meter_genes = np.arange(len(found.genes))

    usual = found.familiarity(scores, panel_ranks(X[:, found.genes]), meter_genes)
    noise = np.random.default_rng(5).normal(size=(60, N_GENES))
    odd = found.familiarity(
        model.decision_function(noise), panel_ranks(noise[:, found.genes]), meter_genes
    )
    label = scores.argmax(axis=1)
    assert np.mean(found.unfamiliar(usual, label, 0.05)) < 0.07
    together = np.concatenate([usual, odd])
    labels = np.concatenate([label, model.decision_function(noise).argmax(axis=1)])
    lost = found.unfamiliar(together, labels, 0.05)
    assert lost[:120].mean() < 0.1
    assert lost[120:].mean() > 0.5


def test_samples_of_another_platform_are_not_all_unfamiliar():
    known = experience(3)
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1, 2], 50)
    values = rng.uniform(-4.0, 4.0, 150) - 5.0  # all less familiar than held-out samples
    assert np.mean(known.unfamiliar(values, label, 0.05)) < 0.15
    few = np.repeat([0, 1, 2], 3)
    assert known.unfamiliar(np.full(9, -5.0), few, 0.05).all()
