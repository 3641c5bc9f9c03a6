"""Adapting to a query, withholding labels, unknown samples, and what is said of a query."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_cases import make_model, make_panel, make_samples
from scipy import sparse
from scipy.stats import binomtest

from optirank.model import (
    Predictor,
    ValueSummary,
    fit_error_control,
    fit_novelty,
    match_prevalences,
    panel_ranks,
)
from optirank.ranks.scoring import best_class, probabilities


def shifted_scores(n_classes: int, shift, counts, seed: int = 0):
    """Scores of samples of some classes, all shifted alike, with the samples' classes."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(n_classes), counts)
    if n_classes == 2:
        return rng.normal(3.0 * codes - 1.5, 1.0) + shift, codes
    return rng.normal(size=(len(codes), n_classes)) + 3.0 * np.eye(n_classes)[
        codes
    ] + shift, codes


@pytest.mark.parametrize(
    ("n_classes", "shift"),
    [(2, 2.0), (2, -1.5), (3, [2.0, 0.0, 0.0]), (4, [0, -2.0, 0, 1.0])],
)
def test_adapting_finds_a_shift_of_the_scores(n_classes, shift):
    scores, codes = shifted_scores(n_classes, shift, [200] * n_classes)
    found = match_prevalences(scores)
    before, after = best_class(scores), best_class(found.apply(scores))
    assert np.mean(after == codes) > np.mean(before == codes) + 0.03
    assert found.n_changed == np.count_nonzero(before != after)
    assert found.n_samples == len(codes)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_mean_probabilities_become_the_prevalences(n_classes):
    scores, _ = shifted_scores(n_classes, 0.0, np.arange(1, n_classes + 1) * 40)
    found = match_prevalences(scores)
    assert len(found.offsets) == (1 if n_classes == 2 else n_classes)
    adapted = found.apply(scores)
    offset = 0.0 if n_classes == 2 else -np.inf
    np.testing.assert_allclose(
        probabilities(adapted, offset=offset).mean(axis=0), found.prevalences, atol=1e-7
    )
    p = probabilities(scores, offset=offset)
    posterior = p * found.prevalences / (p @ found.prevalences)[:, None]
    np.testing.assert_allclose(
        found.prevalences, posterior.mean(axis=0) / 2 + 1 / (2 * n_classes), atol=1e-7
    )


def test_a_query_of_one_class_alone_keeps_its_soft_labels():
    scores, codes = shifted_scores(2, 0.0, [0, 300])
    found = match_prevalences(0.5 * scores)  # soft, as a strong penalty leaves them
    assert np.mean(best_class(found.apply(0.5 * scores)) == codes) > 0.85


@pytest.mark.parametrize("z", [[-50.0, 40.0], [1000.0, 1000.0], [0.0]])
def test_extreme_and_few_scores_are_adapted_without_harm(z):
    found = match_prevalences(np.array(z))
    assert np.isfinite(found.offsets).all()
    with pytest.raises(ValueError, match="NaN"):
        match_prevalences(np.array([*z, np.nan]))


@pytest.mark.parametrize("make", [make_model, make_panel])
def test_a_predictor_adapts_to_the_whole_query_where_asked_for(make):
    model = make()
    X = make_samples(0, 80, model.n_features_in_)
    plain, adapted = Predictor(model), Predictor(model, adapt=True)
    scores = plain.scores(X)
    found = match_prevalences(scores)
    np.testing.assert_array_equal(adapted.predict(X).scores, found.apply(scores))
    np.testing.assert_array_equal(
        adapted.predict(X).labels, plain.from_scores(found.apply(scores)).labels
    )
    (note,) = adapted.query_notes(adaptation=found)
    assert note == f"adapting to the query changed {found.n_changed} of 80 labels"


def test_adapting_is_advised_only_where_it_changes_labels():
    predictor = Predictor(make_panel(n_classes=2))
    alike = match_prevalences(shifted_scores(2, 0.0, [100, 100])[0])
    assert predictor.query_notes(adaptation=alike) == []
    shifted = match_prevalences(shifted_scores(2, 2.0, [100, 100])[0])
    (note,) = predictor.query_notes(adaptation=shifted)
    assert (
        f"would change {shifted.n_changed} of 200 labels (--adapt, adapt=True)" in note
    )


# Error control


@given(
    st.lists(
        st.tuples(st.sampled_from([0.5, 0.6, 0.7, 0.9]), st.booleans()), min_size=1
    ),
    st.floats(0.01, 0.99),
)
def test_the_threshold_is_the_lowest_whose_bound_keeps_the_error(samples, target):
    confidence, correct = (np.array(one) for one in zip(*samples, strict=True))

    def bound(threshold):  # of Clopper and Pearson
        kept = correct[confidence >= threshold]
        return binomtest(int((~kept).sum()), len(kept)).proportion_ci(0.6, "exact").high

    reachable = [t for t in sorted(set(confidence)) if bound(t) <= target]
    control = fit_error_control(confidence, correct)
    if not reachable:
        with pytest.raises(ValueError, match="held-out samples cannot show it"):
            control.at(target)
        return
    found = control.at(target)
    kept = confidence >= found.threshold
    assert found.kept == kept.mean() == np.mean(confidence >= reachable[0])
    assert found.error == pytest.approx(np.mean(~correct[kept]))


def test_classes_count_equally():
    confidence = np.full(220, 0.9)
    correct = np.r_[np.ones(200, bool), np.zeros(10, bool), np.ones(10, bool)]
    truth = np.repeat(["common", "rare"], [200, 20])
    assert fit_error_control(confidence, correct).at(0.1).error == pytest.approx(
        10 / 220
    )
    with pytest.raises(ValueError, match=r"25\.0% are wrong"):
        fit_error_control(confidence, correct, truth).at(0.1)


def test_a_good_query_keeps_its_labels_and_the_error_is_kept():
    rng = np.random.default_rng(0)
    confidence = rng.beta(8, 1, 2000)
    correct = rng.random(2000) < confidence**0.3
    found = fit_error_control(confidence[:1000], correct[:1000], target_error=0.05).at()
    kept = confidence[1000:] >= found.threshold
    assert kept.mean() > 0.7
    assert np.mean(~correct[1000:][kept]) < 0.06
    assert found.reason.startswith(
        f"at a confidence of at least {found.threshold:.3f}, "
    )


def test_few_samples_that_show_nothing_are_told():
    with pytest.raises(
        ValueError, match=r"6 held-out samples cannot show it.*at most 23\.5%"
    ):
        fit_error_control(np.linspace(0.5, 1, 6), np.ones(6, bool), target_error=0.05)
    for target in (0, 1, -0.1, 5):
        with pytest.raises(ValueError, match="target error"):
            fit_error_control([0.5], [True], target_error=target)
    with pytest.raises(ValueError, match="at least one"):
        fit_error_control([], [])
    with pytest.raises(ValueError, match="one confidence and one verdict per"):
        fit_error_control([0.5], [True, False])


def test_many_samples_are_stored_in_few_numbers():
    rng = np.random.default_rng(0)
    confidence, correct = rng.random(50_000), rng.random(50_000) < 0.97
    control = fit_error_control(confidence, correct)
    assert len(control.thresholds) == 250
    assert control.kept[-1] == 1.0
    assert control.at(0.05).threshold == 0.0


# Unknown samples


def samples_of(seed: int, n: int, profiles: np.ndarray, noise: float = 0.3):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % len(profiles)
    return profiles[codes] + noise * rng.normal(size=(n, profiles.shape[1])), codes


@pytest.fixture(scope="module")
def known():
    """A panel model with a novelty score of three classes, and profiles of four."""
    profiles = np.random.default_rng(3).normal(size=(4, 30))
    model = make_panel(n_classes=3, n_genes=30, sizes=(30,))
    X, codes = samples_of(0, 600, profiles[:3])
    y = model.classes_[codes]
    model.novelty_ = fit_novelty(model, panel_ranks(X), y, y)
    return model, profiles


def test_known_samples_are_withheld_at_the_rate_asked_for(known):
    model, profiles = known
    X, codes = samples_of(1, 3000, profiles[:3])
    scores = Predictor(model).likeness(X, codes)
    for rate in (0.01, 0.05, 0.2):
        unknown = model.novelty_.unknown(scores, codes, rate)
        assert unknown.mean() == pytest.approx(rate, abs=0.5 * rate)


def test_samples_of_another_class_are_unknown(known):
    model, profiles = known
    X, codes = samples_of(1, 900, profiles)
    labels = np.where(codes == 3, 0, codes)
    for data in (X, sparse.csr_array(X)):
        unknown = model.novelty_.unknown(
            Predictor(model).likeness(data, labels), labels, 0.05
        )
        assert unknown[codes == 3].mean() > 0.95
        assert unknown[codes != 3].mean() < 0.1


def test_noisier_samples_of_another_platform_are_not_all_unknown(known):
    model, profiles = known
    X, codes = samples_of(1, 900, profiles[:3], noise=0.8)
    scores = Predictor(model).likeness(X, codes)
    assert (scores < model.novelty_.levels[codes, 5]).mean() > 0.9
    assert model.novelty_.unknown(scores, codes, 0.05).mean() < 0.4


def test_genes_that_are_missing_are_left_out_of_the_comparison(known):
    model, profiles = known
    X, codes = samples_of(1, 900, profiles)
    labels = np.where(codes == 3, 0, codes)
    names = model.feature_names_in_[:24]
    scores = Predictor(model, names).likeness(X[:, :24], labels)
    unknown = model.novelty_.unknown(scores, labels, 0.05)
    assert unknown[codes == 3].mean() > 0.8
    assert unknown[codes != 3].mean() < 0.2


def test_samples_that_were_not_held_out_count_in_the_profile_of_their_class(known):
    model, _ = known
    X = np.random.default_rng(1).normal(size=(60, 30))
    y = np.repeat(["type 0", "type 1", "type 2"], 20)
    predicted = np.array(
        [*y[:40], *[None] * 20], dtype=object
    )  # type 2 could not be learned
    found, whole = (
        fit_novelty(model, panel_ranks(X), y, one) for one in (predicted, y)
    )
    assert np.array_equal(found.profiles, whole.profiles)
    assert found.n_samples == 40


def test_what_makes_no_novelty_score_is_refused(known):
    model, _ = known
    with pytest.raises(ValueError, match="no out-of-distribution score"):
        Predictor(make_panel()).likeness(np.zeros((1, 30)), np.zeros(1, int))
    with pytest.raises(ValueError, match=r"unknown rate 2.*between 0 and 1"):
        model.novelty_.unknown(np.zeros(1), np.zeros(1, int), 2)
    ranks = panel_ranks(np.random.default_rng(0).normal(size=(4, 30)))
    with pytest.raises(ValueError, match="no sample is of class type 2"):
        fit_novelty(model, ranks, ["type 0", "type 1"] * 2, ["type 0"] * 4)
    with pytest.raises(ValueError, match="of class other, which the model lacks"):
        fit_novelty(model, ranks, ["other"] * 4, ["type 0"] * 4)
    with pytest.raises(ValueError, match=r"shape \(4, 30\) for 3 samples"):
        fit_novelty(model, ranks, ["type 0"] * 3, ["type 0"] * 3)


# Values


def summary_of(X) -> ValueSummary:
    summary = ValueSummary()
    summary.add(X)
    return summary


@pytest.mark.parametrize("to", [np.asarray, sparse.csr_array])
def test_values_are_counted_block_by_block(to):
    X = make_samples(0, 20, 10)
    blocks = ValueSummary()
    for rows in (slice(0, 7), slice(7, 20)):
        blocks.add(to(X)[rows])
    assert blocks.to_plain() == summary_of(X).to_plain()
    assert blocks.zeros == np.mean(X == 0)
    assert blocks.negative == np.mean(X < 0)


def test_notes_tell_a_good_query_from_a_bad_one():
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.0, (200, 30))
    trained = summary_of(counts).to_plain()
    assert trained["scale"] == "counts"
    for alike in (counts, np.log1p(counts), counts[:50], rng.poisson(3.0, (200, 30))):
        assert summary_of(alike).notes(trained) == []
    (note,) = summary_of(counts - 1.5).notes(trained)[:1]
    assert "negative, and none were in the training data" in note
    (note_of_zeros,) = summary_of(counts + 0.5).notes(trained)
    assert "no value is zero" in note_of_zeros
    assert "less certain" not in note_of_zeros
    (note,) = summary_of(rng.poisson(0.1, (200, 30))).notes(trained)
    assert "labels are less certain" in note
    assert summary_of(counts).notes(None) == []
    model = make_panel()
    model.training_summary_ = {"values": trained}
    assert Predictor(model).query_notes(summary_of(counts + 0.5)) == [note_of_zeros]
