"""The solver's compiled loops against NumPy and against what they are defined to do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optirank._compiled import rank_loops, solver_loops
from optirank.ranks.orders import order_samples
from optirank.ranks.scoring import TIES
from optirank.solver.problem import sigmoid
from rank_definition import comparison_matrix, ranks_by_definition

SEEDS = st.integers(0, 2**32 - 1)
SPREADS = st.sampled_from([1e-6, 0.1, 1.0, 10.0, 300.0, 1e4])
DTYPES = st.sampled_from([np.float32, np.float64])


def scored_samples(seed, spread, dtype, n=15):
    """Scores, an intercept, labels and weights; some scores equal, some
    classes rare.
    """
    rng = np.random.default_rng(seed)
    z = (spread * rng.normal(size=n)).astype(dtype)
    z[:3] = z[0]
    y = (rng.random(n) < rng.choice([0.1, 0.5, 0.9])).astype(float)
    y[:2] = 0.0, 1.0
    v = rng.exponential(size=n) ** 2
    return z, float(spread * rng.normal()), y, v / v.sum()


def losses(z, y):
    z = np.asarray(z, dtype=np.float64)
    return np.logaddexp(0.0, z) - y * z


@given(SEEDS, SPREADS, DTYPES)
def test_loss_slopes_and_curvatures_are_those_of_numpy(seed, spread, dtype):
    z, b, y, v = scored_samples(seed, spread, dtype)
    slopes, curvatures = np.empty(len(z), dtype), np.empty(len(z))
    solver_loops.logistic_slopes(z, b, y, v, slopes, curvatures)
    loss = solver_loops.logistic_loss(z, b, y, v)
    scores = z.astype(np.float64) + b
    p, q = sigmoid(scores), sigmoid(-scores)
    assert loss == pytest.approx(v @ losses(scores, y), rel=1e-12)
    np.testing.assert_allclose(slopes, v * (p - y), rtol=1e-6, atol=1e-15)
    np.testing.assert_allclose(curvatures, v * p * q, rtol=1e-10, atol=1e-15)


@given(SEEDS, SPREADS, SPREADS, DTYPES)
def test_the_bound_is_above_the_rise_of_the_loss_over_its_tangent(
    seed, spread, move, dtype
):
    z, b, y, v = scored_samples(seed, spread, dtype)
    rng = np.random.default_rng(seed)
    z_new = (z + move * rng.normal(size=len(z))).astype(dtype)
    b_new = b + move * float(rng.normal())
    slopes, curvatures = np.empty(len(z)), np.empty(len(z))
    solver_loops.logistic_slopes(z, b, y, v, slopes, curvatures)
    loss = solver_loops.logistic_loss(z, b, y, v)
    bound = solver_loops.curvature_bound(z_new, b_new, z, b, curvatures, v)
    moved = (z_new.astype(np.float64) + b_new) - (z.astype(np.float64) + b)
    rise = v @ losses(z_new.astype(np.float64) + b_new, y) - loss - slopes @ moved
    assert np.isfinite(bound)
    assert bound >= rise - 1e-9 * (loss + v @ np.abs(moved))


def slope_at(z, b, y, v):
    return float(v @ (sigmoid(z.astype(np.float64) + b) - y))


@given(SEEDS, SPREADS, SPREADS, DTYPES)
def test_the_best_intercept_zeroes_the_slope(seed, spread, start, dtype):
    z, b, y, v = scored_samples(seed, spread, dtype)
    best = solver_loops.optimal_intercept(z, start * b / spread, y, v)
    # the slope passes through zero within the spacing of b, or is zero to roundoff
    near = 1e-8 * max(1.0, abs(best))
    assert slope_at(z, best - near, y, v) <= 1e-10
    assert slope_at(z, best + near, y, v) >= -1e-10


@pytest.mark.parametrize("gap", [1.0, 30.0, 500.0])
@pytest.mark.parametrize("shift", [-1000.0, -90.0, 0.0, 90.0, 1000.0])
def test_the_best_intercept_of_separated_labels_lies_in_the_gap(gap, shift):
    z = shift + np.array([-gap - 1, -gap, gap, gap + 2])
    y, v = np.array([0.0, 0, 1, 1]), np.full(4, 0.25)
    best = solver_loops.optimal_intercept(z, 0.0, y, v)
    assert -gap < shift + best < gap
    assert abs(slope_at(z, best, y, v)) < 1e-10


def tied_samples(seed, n=6, d=8):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, size=(n, d)).astype(float)
    X[0] = rng.permutation(d)
    X[1] = 3.0
    return X, rng


@pytest.mark.parametrize("ties", TIES)
@given(seed=SEEDS)
def test_an_exchange_updates_the_ranks_as_if_they_were_made_anew(seed, ties):
    X, rng = tied_samples(seed)
    d, s = X.shape[1], 3
    comes, goes = rng.choice(d, size=2, replace=False)
    gamma = np.zeros(d)
    gamma[goes] = 1.0
    gamma[
        rng.choice(np.setdiff1d(np.arange(d), [comes, goes]), s - 1, replace=False)
    ] = 1.0
    after = gamma.copy()
    after[[comes, goes]] = 1.0, 0.0
    groups = order_samples(X).groups
    ranks = (ranks_by_definition(X, gamma, ties) / s).astype(np.float32)
    out = np.empty_like(ranks)
    rank_loops.exchange_in_ranks(
        groups, groups[:, comes], groups[:, goes], TIES[ties][0], 1 / s, ranks, out
    )
    np.testing.assert_allclose(out, ranks_by_definition(X, after, ties) / s, atol=1e-6)


@pytest.mark.parametrize("ties", TIES)
@given(seed=SEEDS)
def test_slopes_of_comparisons_are_sums_over_comparison_matrices(seed, ties):
    X, rng = tied_samples(seed)
    slopes = rng.normal(size=len(X)).astype(np.float32)
    chosen = rng.choice(X.shape[1], size=3, replace=False)
    groups = order_samples(X).groups
    out = np.zeros((3, X.shape[1]), np.float32)
    rank_loops.slopes_of_comparisons(
        groups, slopes, np.ascontiguousarray(groups[:, chosen]), TIES[ties][0], out
    )
    comparisons = np.array([comparison_matrix(x, ties) for x in X])
    expected = np.einsum("i,ijq->qj", slopes.astype(float), comparisons[:, :, chosen])
    np.testing.assert_allclose(out, expected, atol=1e-5)
