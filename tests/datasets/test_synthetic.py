"""The synthetic model says what the paper's section 5 says."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import kstest

from optirank.datasets import make_unstable_ranks


def ranks_within(X: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Average ranks relative to a reference set by comparing all pairs, divided by
    its size.
    """
    below = X[:, :, None] > X[:, None, reference]
    equal = X[:, :, None] == X[:, None, reference]
    return ((below + 0.5 * equal).sum(axis=2) - 0.5) / reference.sum()


def probabilities(data) -> np.ndarray:
    return expit(ranks_within(data.X, data.reference) @ data.coef + data.intercept)


@pytest.mark.parametrize("seed", range(30))
def test_half_of_the_labels_are_positive_and_the_most_probable_as_accurate_as_asked(
    seed,
):
    """Also where the first weights drawn allow no such model."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = make_unstable_ranks(random_state=seed)
    p = probabilities(data)
    assert p.mean() == pytest.approx(0.5, abs=1e-9)
    assert np.maximum(p, 1 - p).mean() == pytest.approx(0.98, abs=1e-9)
    assert ((p > 0.5) == data.y).mean() == pytest.approx(0.98, abs=0.04)
    assert data.X.shape == (1000, 50)
    assert data.reference.sum() == 10
    np.testing.assert_array_equal(data.perturbed, ~data.reference)
    assert (data.coef[data.perturbed] == 0).all()
    weights = np.abs(data.coef[data.reference])
    # |w| = factor * (|N(0, 1)| + 1): the smallest is at least 1 / 5 of the largest, or
    # so
    assert weights.min() > weights.max() / 5.5


def test_labels_are_drawn_with_the_probabilities_of_the_model():
    """Labels follow the probabilities over their whole range, not only on average."""
    data = make_unstable_ranks(20_000, label_accuracy=0.8, random_state=3)
    p = probabilities(data)
    for low in np.arange(0.0, 1.0, 0.1):
        inside = (p >= low) & (p < low + 0.1)
        error = np.sqrt(0.25 / inside.sum())
        assert data.y[inside].mean() == pytest.approx(p[inside].mean(), abs=4 * error)


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
        ranks_within(data.X, inside)[:, inside],
        ranks_within(still.X, inside)[:, inside],
    )
    everything = np.ones_like(inside)
    full = ranks_within(data.X, everything) - ranks_within(still.X, everything)
    assert np.abs(full[:, inside]).mean() > 0.05


def test_noise_and_levels_are_as_the_model_says():
    data = make_unstable_ranks(2000, 400, 0, tau=0.0, sigma=0.05, random_state=0)
    levels = data.X.mean(axis=0)
    assert kstest(levels, "uniform").pvalue > 1e-3
    np.testing.assert_allclose(data.X.std(axis=0), 0.05, rtol=0.1)


def test_the_seed_decides_everything():
    first, again, other = (make_unstable_ranks(random_state=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.X, other.X)


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ({"n_samples": 1}, ValueError, "n_samples == 1, must be >= 2"),
        ({"n_perturbed": -1}, ValueError, "n_perturbed == -1"),
        ({"n_perturbed": 49}, ValueError, "leaves 1 stable of n_genes=50"),
        ({"n_perturbed": 46}, ValueError, "4 stable genes take too few values"),
        ({"tau": -0.1}, ValueError, "tau == -0.1, must be >= 0"),
        ({"tau": float("nan")}, ValueError, "tau=nan"),
        ({"sigma": float("inf")}, ValueError, "sigma=inf"),
        ({"sigma": 0.0}, ValueError, "10 stable genes take too few values"),
        ({"label_accuracy": 0.5}, ValueError, "label_accuracy == 0.5, must be > 0.5"),
        ({"n_samples": 10.5}, TypeError, "n_samples must be an instance of"),
        ({"tau": "0.2"}, TypeError, "tau must be an instance of"),
    ],
)
def test_bad_values_are_named_with_the_remedy(bad, error, message):
    with pytest.raises(error, match=message):
        make_unstable_ranks(random_state=0, **bad)


def test_weights_are_of_the_folded_normal_distribution_or_as_printed():
    folded = make_unstable_ranks(400, random_state=1)
    printed = make_unstable_ranks(400, weights="normal", random_state=1)
    stable = folded.reference
    np.testing.assert_array_equal(folded.X, printed.X)
    sizes = np.abs(folded.coef[stable])
    assert sizes.max() / sizes.min() < 5  # |N| + 1: none is near zero
    of_print = np.abs(printed.coef[stable])
    assert of_print.max() / of_print.min() > sizes.max() / sizes.min()
    with pytest.raises(ValueError, match="weights='other': use 'folded' or 'normal'"):
        make_unstable_ranks(weights="other")
