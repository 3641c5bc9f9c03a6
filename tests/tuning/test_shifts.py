"""Simulated platforms: what each difference does to the values, and what it leaves alone."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from optirank.tuning.shifts import (
    PlatformShift,
    log_spread,
    scale_of,
    simulate_platform,
    simulate_platforms,
    with_platforms,
)


def counts(n=40, d=30, seed=0):
    rng = np.random.default_rng(seed)
    return rng.poisson(np.exp(rng.normal(1.0, 1.5, d)), (n, d)).astype(float)


def logs(n=40, d=30, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(rng.uniform(3.0, 12.0, d), 0.5, (n, d))


@pytest.mark.parametrize("make", [counts, logs, lambda: np.exp(logs()) - 50.0])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_the_default_shift_changes_nothing(make, as_sparse):
    X = sparse.csr_array(make()) if as_sparse else make()
    out = simulate_platform(X, PlatformShift(), 0)
    assert type(out) is type(X)
    assert abs(out - X).max() == 0


@pytest.mark.parametrize("make", [counts, logs, lambda: np.exp(logs())])
def test_the_input_is_left_as_it_was(make):
    X = make()
    before = X.copy()
    shift = PlatformShift(factors=1, depth=0.5, background=0.2, missing=0.2)
    simulate_platform(X, shift, 0)
    matrix = sparse.csr_array(X)
    simulate_platform(matrix, shift, 0)
    assert (before == X).all()
    assert (matrix.toarray() == before).all()


def test_all_samples_share_the_factor_of_a_gene():
    X = np.exp(logs())
    factors = simulate_platform(X, PlatformShift(factors=1), 0) / X
    assert np.allclose(factors, factors[0])
    assert np.log(factors[0]).std() == pytest.approx(log_spread(X), rel=0.5)


def test_logarithms_are_shifted_by_as_much_as_linear_values_are_multiplied():
    X = logs(d=400)
    steps = simulate_platform(X, PlatformShift(factors=0.5), 0) - X
    assert np.allclose(steps, steps[0])
    assert steps[0].std() == pytest.approx(0.5 * X.std(), rel=0.15)


def test_a_platform_for_every_sample_has_factors_of_the_same_size():
    X = logs(n=200, d=100)
    steps = simulate_platform(X, PlatformShift(factors=1), 0, per_sample=True) - X
    assert abs(steps.mean(axis=0)).max() < 5 * log_spread(X) / np.sqrt(200)
    assert steps.std() == pytest.approx(log_spread(X), rel=0.05)


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize("logarithms", [False, True])
def test_zeros_stay_zeros_and_the_expressed_stay_expressed(as_sparse, per_sample, logarithms):
    X = np.log1p(counts()) if logarithms else counts()
    X = sparse.csr_array(X) if as_sparse else X
    shifted = simulate_platform(X, PlatformShift(factors=3), 1, per_sample=per_sample)
    there, before = (Z.toarray() if as_sparse else Z for Z in (shifted, X))
    assert ((there > 0) == (before > 0)).all()
    assert (there >= 0).all()


@given(st.integers(0, 10_000), st.floats(0.1, 2.0))
def test_dense_and_sparse_get_the_same_factors(seed, strength):
    X = counts(n=5, d=7)
    shift = PlatformShift(factors=strength, missing=0.3)
    dense = simulate_platform(X, shift, seed)
    from_sparse = simulate_platform(sparse.csr_array(X), shift, seed).toarray()
    gone = dense.min(axis=1, keepdims=True)  # a sample without zeros has a lowest value above 0
    assert np.allclose(np.where(dense == gone, 0, dense), np.where(dense == gone, 0, from_sparse))


def test_depth_thins_counts_and_nothing_else():
    X = counts(n=200)
    thin = simulate_platform(X, PlatformShift(depth=0.25), 0)
    assert scale_of(thin) == "counts"
    assert (thin <= X).all()
    assert thin.sum() == pytest.approx(0.25 * X.sum(), rel=0.05)
    assert ((thin == 0) & (X > 0)).any()
    assert (simulate_platform(logs(), PlatformShift(depth=0.25), 0) == logs()).all()


@pytest.mark.parametrize("make", [logs, lambda: np.exp(logs())])
def test_a_background_squeezes_low_values_and_keeps_high_ones(make):
    X = make()
    raised = simulate_platform(X, PlatformShift(background=0.5), 0)
    assert np.isfinite(raised).all()
    if X is not None and scale_of(X) == "linear":
        X, raised = np.log(X), np.log(raised)
    low = np.quantile(X, 0.25, axis=1, keepdims=True) > X
    high = np.quantile(X, 0.95, axis=1, keepdims=True) < X
    assert raised[low].std() < 0.5 * X[low].std()
    assert np.abs(raised[high] - X[high]).max() < 0.2
    assert (simulate_platform(counts(), PlatformShift(background=0.5), 0) == counts()).all()


@pytest.mark.parametrize("as_sparse", [False, True])
def test_missing_genes_are_the_lowest_of_their_sample(as_sparse):
    X = counts(d=400)
    out = simulate_platform(sparse.csr_array(X) if as_sparse else X, PlatformShift(missing=0.3), 0)
    out = out.toarray() if as_sparse else out
    changed = (out != X).any(axis=0)
    assert 0.2 < changed.mean() < 0.4
    assert (out[:, changed] == 0).all()


def test_seeds_decide():
    shifts = [PlatformShift(factors=0.5), PlatformShift(factors=0.5)]
    first, second = simulate_platforms(logs(), shifts, 3)
    again, _ = simulate_platforms(logs(), shifts, 3)
    assert (first == again).all()
    assert (first != second).any()


def test_the_platform_does_not_depend_on_which_samples_are_looked_at():
    X = np.exp(logs())
    shift, spread = PlatformShift(factors=1), log_spread(X)
    whole = simulate_platform(X, shift, 5, spread=spread)
    part = simulate_platform(X[:7], shift, 5, spread=spread)
    assert np.allclose(whole[:7], part)


def test_scales_are_told_apart():
    assert scale_of(counts()) == "counts"
    assert scale_of(sparse.csr_array(counts())) == "counts"
    assert scale_of(np.log1p(counts())) == "log"
    assert scale_of(logs()) == "log"
    assert scale_of(-logs()) == "log"
    assert scale_of(np.exp(logs())) == "linear"
    assert scale_of(np.round(np.exp(logs()) + 100)) == "linear"  # arrays in whole numbers
    assert scale_of(np.exp(logs()) - 500) == "linear"
    assert scale_of(sparse.csr_array((3, 4))) == "counts"


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"factors": -1}, "factors=-1"),
        ({"factors": float("nan")}, "factors=nan"),
        ({"depth": 0}, "depth=0"),
        ({"depth": 1.5}, "depth=1.5"),
        ({"background": 1}, "background=1"),
        ({"missing": -0.1}, "missing=-0.1"),
    ],
)
def test_impossible_shifts_are_refused(wrong, named):
    with pytest.raises(ValueError, match=named):
        PlatformShift(**wrong)


def test_ratios_to_a_reference_have_factors_too():
    ratios = np.random.default_rng(0).normal(0, 0.4, (50, 40))  # all means are nearly equal
    assert log_spread(ratios) == pytest.approx(0.4, rel=0.1)


def test_the_spread_of_counts_is_that_of_the_means():
    X = counts(n=100)
    assert log_spread(X) == pytest.approx(np.log1p(X).mean(axis=0).std())
    assert log_spread(sparse.csr_array(X)) == pytest.approx(log_spread(X))


@pytest.mark.parametrize("as_sparse", [False, True])
def test_copies_on_other_platforms_follow_the_samples(as_sparse):
    X = sparse.csr_array(counts(n=9)) if as_sparse else counts(n=9)
    stacked = with_platforms(X, 3, 0)
    assert stacked.shape == (36, X.shape[1])
    assert abs(stacked[:9] - X).max() == 0
    parts = [stacked[9 * k : 9 * (k + 1)] for k in range(4)]
    for one, other in pairwise(parts):
        assert abs(one - other).max() > 0
    assert abs(with_platforms(X, 3, 0) - stacked).max() == 0
    assert abs(with_platforms(X, 3, 1) - stacked).max() > 0
    assert with_platforms(X, 0, 0).shape == X.shape
