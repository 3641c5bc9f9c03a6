"""The synthetic model says what the paper's section 5 says."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import kstest

from optirank.datasets import make_unstable_ranks

SEEDS = range(6)


def ranks_within(X: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Average ranks relative to a reference set by comparing all pairs, divided by its size."""
    below = X[:, :, None] > X[:, None, reference]
    equal = X[:, :, None] == X[:, None, reference]
    return ((below + 0.5 * equal).sum(axis=2) - 0.5) / reference.sum()


def probabilities(data) -> np.ndarray:
    return expit(ranks_within(data.X, data.reference) @ data.coef + data.intercept)


def test_the_sizes_are_those_asked_for():
    data = make_unstable_ranks(30, 20, 8, random_state=0)
    assert data.X.shape == (30, 20)
    assert data.y.shape == (30,)
    assert set(np.unique(data.y)) <= {0, 1}
    assert data.reference.dtype == bool
    assert data.reference.sum() == 12
    np.testing.assert_array_equal(data.perturbed, ~data.reference)


@pytest.mark.parametrize("seed", SEEDS)
def test_half_of_the_labels_are_positive(seed):
    data = make_unstable_ranks(random_state=seed)
    assert probabilities(data).mean() == pytest.approx(0.5, abs=1e-9)
    assert data.y.mean() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("accuracy", [0.8, 0.98])
def test_the_most_probable_label_is_as_accurate_as_asked(seed, accuracy):
    data = make_unstable_ranks(label_accuracy=accuracy, random_state=seed)
    p = probabilities(data)
    assert np.maximum(p, 1 - p).mean() == pytest.approx(accuracy, abs=1e-9)
    drawn = ((p > 0.5) == data.y).mean()
    assert drawn == pytest.approx(accuracy, abs=0.04)


@pytest.mark.parametrize("seed", range(30))
def test_every_seed_of_the_default_point_is_exact(seed):
    """Also where the first weights drawn allow no such model."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = make_unstable_ranks(random_state=seed)
    assert probabilities(data).mean() == pytest.approx(0.5, abs=1e-9)


def test_labels_are_drawn_with_the_probabilities_of_the_model():
    """Labels follow the probabilities over their whole range, not only on average."""
    data = make_unstable_ranks(20_000, label_accuracy=0.8, random_state=3)
    p = probabilities(data)
    for low in np.arange(0.0, 1.0, 0.1):
        inside = (p >= low) & (p < low + 0.1)
        error = np.sqrt(0.25 / inside.sum())
        assert data.y[inside].mean() == pytest.approx(p[inside].mean(), abs=4 * error)


def test_only_stable_genes_have_weights_and_these_are_never_small():
    for seed in SEEDS:
        data = make_unstable_ranks(random_state=seed)
        assert (data.coef[data.perturbed] == 0).all()
        weights = np.abs(data.coef[data.reference])
        # |w| = factor * (|N(0, 1)| + 1): the smallest is at least 1 / 5 of the largest, or so
        assert weights.min() > weights.max() / 5.5


def test_perturbed_genes_move_together_and_stable_genes_do_not_move():
    data = make_unstable_ranks(4000, random_state=0)
    still = make_unstable_ranks(4000, tau=0.0, random_state=0)
    moved = data.X - still.X
    assert (moved[:, data.reference] == 0).all()
    shift = moved[:, data.perturbed]
    np.testing.assert_allclose(shift - shift[:, :1], 0.0, atol=1e-12)
    assert kstest(shift[:, 0] / 0.2, "norm").pvalue > 1e-3


def test_the_shift_spoils_full_ranks_but_neither_stable_ranks_nor_labels():
    data = make_unstable_ranks(random_state=1)
    still = make_unstable_ranks(tau=0.0, random_state=1)
    np.testing.assert_array_equal(data.y, still.y)
    np.testing.assert_array_equal(data.coef, still.coef)
    inside = data.reference
    np.testing.assert_array_equal(
        ranks_within(data.X, inside)[:, inside], ranks_within(still.X, inside)[:, inside]
    )
    everything = np.ones_like(inside)
    full = ranks_within(data.X, everything) - ranks_within(still.X, everything)
    assert np.abs(full[:, inside]).mean() > 0.05


def test_noise_and_levels_are_as_the_model_says():
    data = make_unstable_ranks(2000, 400, 0, tau=0.0, sigma=0.05, random_state=0)
    levels = data.X.mean(axis=0)
    assert kstest(levels, "uniform").pvalue > 1e-3
    np.testing.assert_allclose(data.X.std(axis=0), 0.05, rtol=0.1)


def test_no_gene_need_be_perturbed():
    data = make_unstable_ranks(n_perturbed=0, random_state=0)
    assert data.reference.all()
    assert probabilities(data).mean() == pytest.approx(0.5, abs=1e-9)


def test_very_few_stable_genes_keep_the_accuracy_and_warn_about_the_balance():
    with pytest.warns(UserWarning, match="4 stable genes take too few values"):
        data = make_unstable_ranks(n_perturbed=46, random_state=0)
    p = probabilities(data)
    assert np.maximum(p, 1 - p).mean() == pytest.approx(0.98, abs=1e-9)


def test_the_seed_decides_everything():
    first, again = (make_unstable_ranks(random_state=5) for _ in range(2))
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)
    other = make_unstable_ranks(random_state=6)
    assert not np.array_equal(first.X, other.X)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"n_samples": 1}, "n_samples=1: use at least 2"),
        ({"n_genes": 1, "n_perturbed": 0}, "n_genes=1: use at least 2"),
        ({"n_perturbed": -1}, "n_perturbed=-1: use at least 0"),
        ({"n_perturbed": 49}, "leaves 1 stable of n_genes=50"),
        ({"n_perturbed": 60}, "leaves 0 stable of n_genes=50"),
        ({"tau": -0.1}, "tau=-0.1: use a finite number of at least 0"),
        ({"tau": float("nan")}, "tau=nan"),
        ({"sigma": float("inf")}, "sigma=inf"),
        ({"sigma": 0.0}, "same order of the 10 stable genes"),
        ({"label_accuracy": 0.5}, "strictly between 0.5 and 1"),
        ({"label_accuracy": 1.0}, "strictly between 0.5 and 1"),
    ],
)
def test_bad_values_are_named_with_the_remedy(bad, message):
    with pytest.raises(ValueError, match=message):
        make_unstable_ranks(random_state=0, **bad)


@pytest.mark.parametrize("bad", [{"n_samples": 10.5}, {"n_genes": "50"}, {"tau": "0.2"}])
def test_values_of_the_wrong_kind_are_type_errors(bad):
    with pytest.raises(TypeError, match="is not a"):
        make_unstable_ranks(random_state=0, **bad)
