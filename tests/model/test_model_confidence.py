"""Error control, samples that look like no class, and what is said of a
query's values.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_cases import gene_names, make_panel, make_samples
from scipy import sparse
from scipy.stats import binomtest

from optirank._util.matrices import GeneMoments
from optirank.model import fit_error_control, fit_likeness
from optirank.model.confidence import raise_threshold
from optirank.model.likeness import (
    ValueCounter,
    ValueShares,
    forgiven_shift,
    value_notes,
)
from optirank.panel.samples import fold_matrix
from optirank.ranks.scoring import panel_ranks

# Error control


def clopper_pearson(correct: np.ndarray) -> float:
    wrong = int((~correct).sum())
    return binomtest(wrong, len(correct)).proportion_ci(0.6, "exact").high


@given(
    st.lists(
        st.tuples(st.sampled_from([0.5, 0.6, 0.7, 0.9]), st.booleans()), min_size=1
    ),
    st.floats(0.01, 0.99),
)
def test_thresholds_are_tested_from_the_top_until_the_first_fails(samples, target):
    confidence = np.array([value for value, _ in samples])
    correct = np.array([right for _, right in samples])
    control = fit_error_control(confidence, correct)
    assert control.thresholds.tolist() == sorted(control.thresholds, reverse=True)
    passed = None
    for threshold in control.thresholds:
        given_labels = correct[confidence >= threshold]
        if clopper_pearson(np.ones(len(given_labels), bool)) > target:
            continue  # too few samples to show it, even without an error
        if clopper_pearson(given_labels) > target:
            break
        passed = threshold
    if passed is None:
        with pytest.raises(ValueError, match="held-out samples cannot show it"):
            control.at(target)
        return
    withholding = control.at(target)
    kept = confidence >= withholding.threshold
    assert withholding.kept == kept.mean() == np.mean(confidence >= passed)
    assert withholding.error == pytest.approx(np.mean(~correct[kept]))


def test_the_error_asked_for_is_exceeded_in_at_most_a_fifth_of_trainings():
    """With 80 % confidence: simulated trainings whose true error is known."""
    rng = np.random.default_rng(0)
    grid = (np.arange(1000) + 0.5) / 1000
    exceeded = 0
    trainings = 400
    for _ in range(trainings):
        confidence = rng.uniform(size=300)
        correct = rng.uniform(size=300) < 0.8 + 0.2 * confidence
        control = fit_error_control(confidence, correct)
        try:
            threshold = control.at(0.05).threshold
        except ValueError:
            continue
        true_error = np.mean(0.2 - 0.2 * grid[grid >= threshold])
        exceeded += true_error > 0.05
    assert exceeded / trainings <= 0.2


def test_classes_count_equally():
    confidence = np.full(220, 0.9)
    correct = np.r_[np.ones(200, bool), np.zeros(10, bool), np.ones(10, bool)]
    truth = np.repeat(["common", "rare"], [200, 20])
    by_samples = fit_error_control(confidence, correct)
    assert by_samples.at(0.1).error == pytest.approx(10 / 220)
    with pytest.raises(ValueError, match=r"25\.0% are wrong"):
        fit_error_control(confidence, correct, truth).at(0.1)


def test_a_good_query_keeps_its_labels_and_the_error_is_kept():
    rng = np.random.default_rng(0)
    confidence = rng.beta(8, 1, 2000)
    correct = rng.random(2000) < confidence**0.3
    control = fit_error_control(confidence[:1000], correct[:1000], target_error=0.05)
    withholding = control.at(0.05)
    kept = confidence[1000:] >= withholding.threshold
    assert kept.mean() > 0.7
    assert np.mean(~correct[1000:][kept]) < 0.06
    assert withholding.reason.startswith("at a confidence of at least ")
    assert "with 80% confidence" in withholding.reason


def test_few_samples_that_show_nothing_are_named():
    control = fit_error_control(np.linspace(0.5, 1, 6), np.ones(6, bool))
    with pytest.raises(ValueError, match=r"6 held-out samples cannot show it.*23\.5%"):
        control.at(0.05)
    for target in (0, 1, -0.1, 5):
        with pytest.raises(ValueError, match="target error"):
            control.at(target)
    with pytest.raises(ValueError, match="at least one"):
        fit_error_control([], [])
    with pytest.raises(ValueError, match="one confidence and one verdict per"):
        fit_error_control([0.5], [True, False])


def test_many_samples_are_stored_in_few_numbers():
    rng = np.random.default_rng(0)
    correct = rng.random(50_000) < 0.97
    control = fit_error_control(rng.random(50_000), correct)
    assert len(control.thresholds) == 20
    assert control.kept[-1] == 1.0
    assert control.at(0.05).threshold == 0.0


def test_the_query_s_own_confidences_raise_the_threshold():
    sure = np.full(90, 0.99)
    unsure = np.full(10, 0.6)
    confidence = np.concatenate([sure, unsure])
    assert raise_threshold(confidence, 0.0, 0.2) == 0.0
    assert raise_threshold(confidence, 0.0, 0.02) == 0.99
    assert raise_threshold(confidence, 0.995, 0.02) == 0.995  # nothing is given
    assert raise_threshold(unsure, 0.0, 0.05) > 1.0  # no label can be given


@given(
    st.lists(st.floats(0.3, 1.0), min_size=1, max_size=40),
    st.floats(0, 1),
    st.floats(0.01, 0.5),
)
def test_labels_that_are_given_are_expected_to_keep_the_error(values, lowest, target):
    confidence = np.array(values)
    threshold = raise_threshold(confidence, lowest, target)
    kept = confidence >= threshold
    assert threshold >= lowest
    if kept.any():
        assert np.mean(1 - confidence[kept]) <= target + 1e-12
    more = (confidence >= lowest) & (confidence < threshold)
    if more.any():  # the next lower ones would not do
        following = kept | (confidence == confidence[more].max())
        assert np.mean(1 - confidence[following]) > target - 1e-12


# Samples that look like no class


def samples_of(seed: int, n: int, profiles: np.ndarray, noise: float = 0.3):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % len(profiles)
    return profiles[codes] + noise * rng.normal(size=(n, profiles.shape[1])), codes


@pytest.fixture(scope="module")
def known():
    """A panel model with an out-of-distribution score, and profiles of four classes."""
    profiles = np.random.default_rng(3).normal(size=(4, 30))
    model = make_panel(n_classes=3, n_genes=30, sizes=(30,))
    X, codes = samples_of(0, 600, profiles[:3])
    y = model.classes[codes]
    likeness = fit_likeness(panel_ranks(X), y, y, model.classes)
    panel = replace(model.panel, likeness=likeness)
    return replace(model, panels={30: panel}), profiles


def unknown_of(model, X, labels, rate: float = 0.05) -> np.ndarray:
    scores = model.bind().likeness(X, labels)
    return model.panel.likeness.unknown(scores, labels, rate)


def test_known_samples_are_withheld_at_most_at_the_rate_asked_for(known):
    model, profiles = known
    X, codes = samples_of(1, 3000, profiles[:3])
    scores = model.bind().likeness(X, codes)
    likeness = model.panel.likeness
    for rate in (0.01, 0.05, 0.2):
        assert likeness.unknown(scores, codes, rate).mean() <= 1.5 * rate
        by_levels = scores < likeness.levels[codes, round(100 * rate)]
        assert by_levels.mean() == pytest.approx(rate, abs=0.5 * rate)


def test_samples_of_another_class_are_unknown_among_known_ones(known):
    model, profiles = known
    X, codes = samples_of(1, 900, profiles)
    labels = np.where(codes == 3, 0, codes)
    for data in (X, sparse.csr_array(X)):
        unknown = unknown_of(model, data, labels)
        assert unknown[codes == 3].mean() > 0.9
        assert unknown[codes != 3].mean() < 0.1


def test_samples_of_another_class_are_unknown_alone_and_one_by_one(known):
    model, profiles = known
    X, _ = samples_of(1, 300, profiles[3:])
    labels = np.zeros(300, np.intp)
    assert unknown_of(model, X, labels).mean() > 0.8
    singly = [unknown_of(model, X[k : k + 1], labels[:1])[0] for k in range(100)]
    assert np.mean(singly) > 0.8


def test_shuffled_genes_are_unknown_and_are_unlike_all(known):
    model, profiles = known
    X, codes = samples_of(1, 300, profiles[:3])
    shuffled = np.random.default_rng(0).permuted(X, axis=1)
    scores = model.bind().likeness(shuffled, codes)
    likeness = model.panel.likeness
    assert likeness.relative(scores, codes) < 0.5
    assert likeness.unknown(scores, codes, 0.01).mean() > 0.9
    assert abs(likeness.shift(model.bind().likeness(X, codes), codes)) < 0.05


def test_a_noisier_platform_is_forgiven_up_to_a_cap(known):
    model, profiles = known
    X, codes = samples_of(1, 900, profiles[:3], noise=0.6)
    scores = model.bind().likeness(X, codes)
    likeness = model.panel.likeness
    assert 0.05 < likeness.shift(scores, codes) < 0.4
    forgiven = likeness.unknown(scores, codes, 0.05).mean()
    assert forgiven < 0.5 * (scores < likeness.levels[codes, 5]).mean()


def test_few_samples_are_forgiven_a_typical_shift_and_none_more_than_the_cap():
    assert forgiven_shift(0.9, 1) < 0.15
    assert forgiven_shift(0.0, 1) == pytest.approx(0.1, abs=0.01)
    assert forgiven_shift(-0.3, 10_000) == pytest.approx(0.0, abs=1e-3)
    assert forgiven_shift(0.15, 10_000) == pytest.approx(0.15, abs=1e-3)
    assert forgiven_shift(0.9, 10_000) == 0.2


def test_genes_that_are_missing_are_left_out_of_the_comparison(known):
    model, profiles = known
    X, codes = samples_of(1, 900, profiles)
    labels = np.where(codes == 3, 0, codes)
    predictor = model.bind(gene_names(30)[:24])
    scores = predictor.likeness(X[:, :24], labels)
    unknown = model.panel.likeness.unknown(scores, labels, 0.05)
    assert unknown[codes == 3].mean() > 0.8
    assert unknown[codes != 3].mean() < 0.2


def test_samples_that_were_not_held_out_count_in_the_profile_of_their_class():
    X = np.random.default_rng(1).normal(size=(60, 30))
    classes = np.array(["type 0", "type 1", "type 2"])
    y = np.repeat(classes, 20)
    predicted = np.array([*y[:40], *[None] * 20], dtype=object)
    partly = fit_likeness(panel_ranks(X), y, predicted, classes)
    whole = fit_likeness(panel_ranks(X), y, y, classes)
    assert np.array_equal(partly.profiles, whole.profiles)
    assert partly.n_samples == 40


def test_a_class_of_few_held_out_samples_has_the_threshold_of_all():
    rng = np.random.default_rng(0)
    classes = np.array(["common", "rare"])
    y = np.repeat(classes, [200, 20])
    likeness = fit_likeness(rng.uniform(size=(220, 12)), y, y, classes)
    of_all = fit_likeness(rng.uniform(size=(220, 12)), y, y, classes).levels
    assert likeness.levels.shape == of_all.shape == (2, 101)
    assert (likeness.levels[1] != likeness.levels[0]).any()


def test_what_makes_no_out_of_distribution_score_is_refused(known):
    model, _ = known
    classes = model.classes
    with pytest.raises(ValueError, match="no out-of-distribution score"):
        make_panel().bind().likeness(np.zeros((1, 30)), np.zeros(1, int))
    with pytest.raises(ValueError, match=r"unknown rate 2.*between 0 and 1"):
        model.panel.likeness.unknown(np.zeros(1), np.zeros(1, int), 2)
    ranks = panel_ranks(np.random.default_rng(0).normal(size=(4, 30)))
    with pytest.raises(ValueError, match="no sample is of class type 2"):
        fit_likeness(ranks, ["type 0", "type 1"] * 2, ["type 0"] * 4, classes)
    with pytest.raises(ValueError, match="of class other, which the model lacks"):
        fit_likeness(ranks, ["other"] * 4, ["type 0"] * 4, classes)


# Values


def shares_of(X) -> ValueShares:
    counter = ValueCounter()
    counter.add(X)
    return counter.result()


@pytest.mark.parametrize("to", [np.asarray, sparse.csr_array])
def test_values_are_counted_block_by_block(to):
    X = make_samples(0, 20, 10)
    counter = ValueCounter()
    for rows in (slice(0, 7), slice(7, 20)):
        counter.add(to(X)[rows])
    assert counter.result() == shares_of(X)
    assert counter.result().zeros == np.mean(X == 0)
    assert counter.result().negative == np.mean(X < 0)


def test_values_of_a_pass_are_those_of_all_its_samples():
    X = make_samples(0, 20, 10)
    together, one_by_one, empty = ValueCounter(), ValueCounter(), ValueCounter()
    fold_matrix(X, [together])
    for row in X[:, None]:
        other = copy.copy(empty)
        other.add(row)
        one_by_one.merge(other)
    assert together.result() == one_by_one.result() == shares_of(X)


@pytest.mark.parametrize("make", [ValueCounter, GeneMoments])
def test_an_accumulator_that_is_empty_stays_so_when_its_copy_takes_samples(make):
    empty = make()
    before = copy.deepcopy(vars(empty))
    copy.copy(empty).add(make_samples(0, 20, 10))
    for name, value in vars(empty).items():
        np.testing.assert_array_equal(value, before[name])


def test_notes_tell_a_good_query_from_a_bad_one():
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.0, (200, 30))
    trained = shares_of(counts)
    assert trained.scale == "counts"
    for alike in (counts, np.log1p(counts), counts[:50], rng.poisson(3.0, (200, 30))):
        assert value_notes(shares_of(alike), trained) == []
    note = value_notes(shares_of(counts - 1.5), trained)[0]
    assert "negative, and none were in the training data" in note
    (note,) = value_notes(shares_of(counts + 0.5), trained)
    assert "no value is zero" in note
    assert "less certain" not in note
    (note,) = value_notes(shares_of(rng.poisson(0.1, (200, 30))), trained)
    assert "labels are less certain" in note
    assert value_notes(shares_of(counts), ValueShares()) == []
