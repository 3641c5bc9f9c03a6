"""The set of reference weights: projections, starts, sets and exchanges, with candidates or not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from optirank.solver.feasible import CappedSimplex


@st.composite
def sets_and_points(draw):
    """A set over some candidates of d genes, and a point anywhere."""
    d = draw(st.integers(1, 12))
    candidates = np.array(draw(st.lists(st.booleans(), min_size=d, max_size=d)))
    candidates[draw(st.integers(0, d - 1))] = True
    s = draw(st.integers(1, int(candidates.sum())))
    numbers = st.floats(-3, 3, allow_nan=False).map(lambda x: round(x, 3))
    x = np.array(draw(st.lists(numbers, min_size=d, max_size=d)))
    return CappedSimplex(s, draw(st.sampled_from([candidates, None]))), x


def assert_feasible(feasible, gamma):
    assert gamma.sum() == pytest.approx(feasible.s, abs=1e-9)
    assert ((gamma >= 0) & (gamma <= 1)).all()
    if feasible.candidates is not None:
        assert not gamma[~feasible.candidates].any()


def allowed(feasible, d):
    return np.ones(d, bool) if feasible.candidates is None else feasible.candidates


@given(sets_and_points())
def test_projections_are_nearer_than_any_other_point(case):
    """The variational inequality: no feasible direction has a positive part towards x."""
    feasible, x = case
    gamma = feasible.project(x)
    assert_feasible(feasible, gamma)
    # the point of the set that goes furthest along x - gamma is a vertex
    furthest = feasible.vertex(np.where(allowed(feasible, len(x)), x - gamma, -np.inf))
    assert (x - gamma) @ (furthest - gamma) <= 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_projections_agree_with_a_quadratic_programme(seed):
    rng = np.random.default_rng(seed)
    candidates = rng.uniform(size=9) < 0.7
    s = max(1, int(candidates.sum()) // 2)
    x = rng.normal(size=9)
    best = minimize(
        lambda g: ((g - x) ** 2).sum(),
        np.where(candidates, s / candidates.sum(), 0.0),
        jac=lambda g: 2 * (g - x),
        method="SLSQP",
        bounds=[(0.0, float(may)) for may in candidates],
        constraints={"type": "eq", "fun": lambda g: g.sum() - s, "jac": lambda g: np.ones(9)},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(CappedSimplex(s, candidates).project(x), best.x, atol=1e-5)


@given(sets_and_points(), st.floats(0.1, 10))
def test_a_step_is_the_projection_of_a_gradient_step(case, L):
    feasible, gradient = case
    x = feasible.centre(len(gradient))
    out = np.full(len(x), np.nan)
    squared = feasible(x, gradient, L, out)
    np.testing.assert_allclose(out, feasible.project(x - gradient / L), atol=1e-9)
    assert squared == pytest.approx(((out - x) ** 2).sum(), abs=1e-12)


@given(sets_and_points())
def test_starts_are_feasible_and_follow_the_criterion(case):
    feasible, criterion = case
    assert_feasible(feasible, feasible.centre(len(criterion)))
    may = allowed(feasible, len(criterion))
    order = np.argsort(criterion[may], kind="stable")
    for start, sign in zip(feasible.tilted(criterion), (1, -1), strict=True):
        assert_feasible(feasible, start)
        assert (sign * np.diff(start[may][order]) >= -1e-9).all()


@given(sets_and_points())
def test_the_vertex_has_the_largest_entries(case):
    feasible, x = case
    vertex = feasible.vertex(x)
    assert_feasible(feasible, vertex)
    assert set(np.unique(vertex)) <= {0.0, 1.0}
    outside = allowed(feasible, len(x)) & (vertex == 0)
    if outside.any():
        assert x[outside].max() <= x[vertex == 1].min()


@given(sets_and_points())
def test_the_free_part_keeps_the_sum_and_is_all_that_a_feasible_change_sees(case):
    feasible, direction = case
    free = feasible.free_part(direction)
    assert abs(free.sum()) < 1e-9
    change = feasible.project(direction) - feasible.centre(len(direction))
    assert free @ change == pytest.approx(direction @ change, abs=1e-9)


@given(sets_and_points(), st.integers(1, 5))
def test_exchanges_offer_the_genes_that_lower_the_objective_most(case, number):
    feasible, gradient = case
    gamma = feasible.vertex(-np.arange(len(gradient), dtype=float))
    inside, outside = feasible.exchangeable(gamma, gradient, number)
    may = allowed(feasible, len(gamma))
    assert (gamma[inside] == 1).all()
    assert (gamma[outside] == 0).all()
    assert may[outside].all()
    assert len(inside) == min(number, feasible.s)
    assert len(outside) == min(number, may.sum() - feasible.s)
    np.testing.assert_allclose(gradient[inside], np.sort(gradient[gamma == 1])[::-1][:number])
    np.testing.assert_allclose(
        gradient[outside], np.sort(gradient[may & (gamma == 0)])[: len(outside)]
    )


@given(sets_and_points())
def test_there_is_one_point_when_all_candidates_are_needed(case):
    feasible, x = case
    may = allowed(feasible, len(x))
    only = feasible.only_point(len(x))
    assert (only is not None) == (may.sum() == feasible.s)
    if only is not None:
        np.testing.assert_array_equal(only, may)
