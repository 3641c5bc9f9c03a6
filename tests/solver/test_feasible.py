"""The capped simplex: exact projections, starts, sets and exchanges, with
candidates or not.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from optirank.solver.blocks import CappedSimplex, project_capped_simplex


@st.composite
def problems(draw, most=7):
    """A vector of ordinary, tied or large entries, and a sum, often an integer or
    near 0 or d.
    """
    d = draw(st.integers(1, most))
    tied = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0, 2.0])
    entries = draw(
        st.sampled_from([st.floats(-3, 3, width=32), tied, st.floats(-1e12, 1e12)])
    )
    x = draw(hnp.arrays(np.float64, d, elements=entries))
    s = draw(
        st.one_of(
            st.floats(1e-6, d), st.integers(0, d), st.sampled_from([1e-6, d - 1e-6])
        )
    )
    return x, s


def exact_projection(x: list[Fraction], s: Fraction) -> list[Fraction]:
    """Brute force in rational numbers: the segment of breakpoints in which the sum
    passes s.
    """

    def total(shift):
        return sum(min(max(v - shift, Fraction(0)), Fraction(1)) for v in x)

    breaks = sorted({v - 1 for v in x} | set(x))
    for low, high in itertools.pairwise(breaks):
        if total(low) >= s >= total(high):
            fall = total(low) - total(high)
            shift = low if fall == 0 else low + (high - low) * (total(low) - s) / fall
            return [min(max(v - shift, Fraction(0)), Fraction(1)) for v in x]
    raise AssertionError("no segment holds s")


@given(problem=problems())
def test_the_projection_is_that_of_exact_arithmetic(problem):
    x, s = problem
    before = x.copy()
    z = project_capped_simplex(x, s)
    np.testing.assert_array_equal(x, before)
    expected = exact_projection([Fraction(v) for v in x], Fraction(s))
    np.testing.assert_allclose(z, [float(v) for v in expected], rtol=0, atol=1e-12)


@pytest.mark.parametrize("d", [200, 20_000])
@pytest.mark.parametrize("scale", [1e-8, 0.1, 1.0, 30.0, 1e6])
def test_projections_of_many_genes_are_optimal(d, scale):
    rng = np.random.default_rng(d)
    for s in (0.3, 0.05 * d, 0.2 * d + 1 / 3, d - 0.5, d - 1):
        x = scale * rng.normal(size=d)
        z = project_capped_simplex(x, s)
        assert ((z >= 0) & (z <= 1)).all()
        assert abs(math.fsum(z) - s) <= 1e-12 * d
        shift = x - z  # equal where 0 < z < 1, less at 0, more at 1
        upper, lower = (
            shift[z > 0].min(initial=np.inf),
            shift[z < 1].max(initial=-np.inf),
        )
        assert lower - upper <= 1e-12 * max(1, np.abs(x).max())


@given(problem=problems(12))
def test_projecting_twice_or_in_another_order_changes_nothing(problem):
    x, s = problem
    z = project_capped_simplex(x, s)
    np.testing.assert_allclose(project_capped_simplex(z, s), z, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        project_capped_simplex(x[::-1], s)[::-1], z, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("x", [np.zeros(3), np.array([1e12, -4.0, 0.5])])
def test_the_two_corners_are_exact(x):
    np.testing.assert_array_equal(project_capped_simplex(x, 0), np.zeros(3))
    np.testing.assert_array_equal(project_capped_simplex(x, 3), np.ones(3))


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
    assert not gamma[~allowed(feasible, len(gamma))].any()


def allowed(feasible, d):
    return np.ones(d, bool) if feasible.candidates is None else feasible.candidates


@given(sets_and_points())
def test_projections_are_nearer_than_any_other_point(case):
    """The variational inequality: no feasible direction has a positive part
    towards x.
    """
    feasible, x = case
    gamma = feasible.prox(x)
    assert_feasible(feasible, gamma)
    # the point of the set that goes furthest along x - gamma is a vertex
    furthest = feasible.vertex(np.where(allowed(feasible, len(x)), x - gamma, -np.inf))
    assert (x - gamma) @ (furthest - gamma) <= 1e-9


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
    change = feasible.prox(direction) - feasible.centre(len(direction))
    assert free @ change == pytest.approx(direction @ change, abs=1e-9)


@given(sets_and_points(), st.integers(1, 5))
def test_exchanges_offer_the_genes_that_lower_the_objective_most(case, number):
    feasible, gradient = case
    gamma = feasible.vertex(-np.arange(len(gradient), dtype=float))
    inside, outside = feasible.exchangeable(gamma, gradient, number)
    free = allowed(feasible, len(gamma)) & (gamma == 0)
    assert (gamma[inside] == 1).all()
    assert free[outside].all()
    np.testing.assert_allclose(
        gradient[inside], np.sort(gradient[gamma == 1])[::-1][:number]
    )
    np.testing.assert_allclose(gradient[outside], np.sort(gradient[free])[:number])


@given(sets_and_points())
def test_there_is_one_point_when_all_candidates_are_needed(case):
    feasible, x = case
    may = allowed(feasible, len(x))
    only = feasible.only_point(len(x))
    assert (only is not None) == (may.sum() == feasible.s)
    if only is not None:
        np.testing.assert_array_equal(only, may)
