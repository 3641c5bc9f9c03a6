"""The projection onto {0 <= z <= 1, sum z = s} is exact, whatever the size of the input."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import LinearConstraint, minimize

from optirank.solver.capped_simplex import project_capped_simplex

ordinary = st.floats(-3, 3, width=32)
tied = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0, 2.0])
extreme = st.one_of(
    st.floats(-1e300, 1e300), st.floats(-1e-300, 1e-300), st.sampled_from([1e300, -1e300, 1e16])
)


@st.composite
def problems(draw, most=12):
    """A vector of ordinary, tied or extreme entries, and a sum, often an integer or near 0 or d."""
    d = draw(st.integers(1, most))
    x = draw(hnp.arrays(np.float64, d, elements=draw(st.sampled_from([ordinary, tied, extreme]))))
    s = draw(
        st.one_of(
            st.floats(0, d),
            st.integers(0, d),
            st.sampled_from([1e-300, 1e-20, 1e-9, d - 1e-9, np.nextafter(d, 0)]),
        )
    )
    return x, s


def check_optimal(x: np.ndarray, s: float, z: np.ndarray) -> None:
    """Feasible, and with one shift: x_j - z_j equal where 0 < z_j < 1, less at 0, more at 1."""
    assert z.dtype == np.float64
    assert ((z >= 0) & (z <= 1)).all()
    assert math.fsum(z) == pytest.approx(s, rel=1e-13, abs=1e-13 * x.size)
    residual = [Fraction(float(a)) - Fraction(float(b)) for a, b in zip(x, z, strict=True)]
    at_most = [r for r, v in zip(residual, z, strict=True) if v > 0]  # the shift is at most these
    at_least = [r for r, v in zip(residual, z, strict=True) if v < 1]
    if at_most and at_least:
        assert max(at_least) - min(at_most) <= 1e-12


def exact_projection(x: list[Fraction], s: Fraction) -> list[Fraction]:
    """Brute force in rational numbers: the segment of breakpoints in which the sum passes s."""

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
def test_the_projection_satisfies_the_optimality_conditions(problem):
    x, s = problem
    check_optimal(x, s, project_capped_simplex(x, s))


@given(problem=problems(most=7))
def test_the_projection_is_that_of_exact_arithmetic(problem):
    x, s = problem
    expected = exact_projection([Fraction(v) for v in x], Fraction(s))
    z = project_capped_simplex(x, s)
    np.testing.assert_allclose(z, [float(v) for v in expected], rtol=0, atol=1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_a_quadratic_programming_solver_finds_the_same_point(seed):
    rng = np.random.default_rng(seed)
    d = 15
    x, s = rng.normal(size=d), rng.uniform(0.5, d - 0.5)
    solution = minimize(
        lambda z: ((z - x) ** 2).sum() / 2,
        np.full(d, s / d),
        jac=lambda z: z - x,
        bounds=[(0, 1)] * d,
        constraints=LinearConstraint(np.ones(d), s, s),
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(project_capped_simplex(x, s), solution.x, atol=1e-6)


@pytest.mark.parametrize("d", [200, 1000, 20_000])
@pytest.mark.parametrize("scale", [1e-300, 1e-8, 0.1, 1.0, 30.0, 1e6])
def test_the_optimality_conditions_hold_for_many_genes(d, scale):
    rng = np.random.default_rng(d)
    for s in (0.3, 0.05 * d, 0.2 * d + 1 / 3, d - 0.5, d - 1):
        x = scale * rng.normal(size=d)
        z = project_capped_simplex(x, s)
        assert ((z >= 0) & (z <= 1)).all()
        assert abs(math.fsum(z) - s) <= 1e-12 * d
        shift = x - z
        upper = shift[z > 0].min(initial=np.inf)
        lower = shift[z < 1].max(initial=-np.inf)
        assert lower - upper <= 1e-13 * max(1, np.abs(x).max())


@given(problem=problems())
def test_projecting_twice_changes_nothing(problem):
    x, s = problem
    z = project_capped_simplex(x, s)
    np.testing.assert_allclose(project_capped_simplex(z, s), z, rtol=0, atol=1e-13)


@given(problem=problems(), shift=st.integers(-1000, 1000))
def test_a_shift_of_all_entries_changes_nothing(problem, shift):
    x, s = problem
    x = np.clip(x, -3, 3)
    moved = project_capped_simplex(x + shift, s)
    np.testing.assert_allclose(moved, project_capped_simplex(x, s), rtol=0, atol=1e-12)


@given(problem=problems(), data=st.data())
def test_the_order_of_the_entries_does_not_matter(problem, data):
    x, s = problem
    order = np.array(data.draw(st.permutations(range(x.size))))
    permuted = project_capped_simplex(x[order], s)
    np.testing.assert_allclose(permuted, project_capped_simplex(x, s)[order], rtol=0, atol=1e-14)


@pytest.mark.parametrize("value", [0.0, 1.0, -7.0, 1e300, -1e300, 5e-324])
@pytest.mark.parametrize("s", [0.3, 1, 2.5, 4.999])
def test_equal_entries_share_the_sum_equally(value, s):
    np.testing.assert_allclose(project_capped_simplex(np.full(5, value), s), s / 5, rtol=1e-15)


@given(x=hnp.arrays(np.float64, st.integers(0, 9), elements=extreme))
def test_the_two_corners_are_exact(x):
    np.testing.assert_array_equal(project_capped_simplex(x, 0), np.zeros(x.size))
    np.testing.assert_array_equal(project_capped_simplex(x, x.size), np.ones(x.size))


def test_entries_far_apart_give_an_exact_vertex():
    x = np.array([1e308, -1e308, 3.0, 1e-3, -1e16])
    np.testing.assert_array_equal(project_capped_simplex(x, 2), [1, 0, 1, 0, 0])


@pytest.mark.parametrize("s", [1e-300, 1e-20, 1e-5])
def test_a_tiny_sum_keeps_its_relative_accuracy(s):
    for others in ([], [1.0], [1.7, 0.1, -30.0]):
        z = project_capped_simplex(np.array([2.0, 2.0, *others]), s)
        np.testing.assert_allclose(z, [s / 2, s / 2, *np.zeros(len(others))], rtol=1e-14)


def test_one_entry_gets_the_whole_sum():
    assert project_capped_simplex([-12.5], 0.3) == pytest.approx(0.3, rel=1e-15)


@pytest.mark.parametrize("newton_steps", [0, 1, 12])
@given(problem=problems(most=40))
def test_the_fallback_of_newtons_method_finds_the_same_point(newton_steps, problem):
    x, s = problem
    expected = project_capped_simplex(x, s)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("optirank.solver.capped_simplex._NEWTON_STEPS", newton_steps)
        z = project_capped_simplex(x, s)
    np.testing.assert_allclose(z, expected, rtol=0, atol=1e-14 * x.size)


def test_the_input_is_left_alone_and_any_numbers_are_taken():
    x = np.array([3, 1, 2], dtype=np.int32)
    np.testing.assert_array_equal(project_capped_simplex(x, 1), [1, 0, 0])
    np.testing.assert_array_equal(x, [3, 1, 2])
    np.testing.assert_array_equal(project_capped_simplex([3.0, 1.0, 2.0][::-1], 1), [0, 0, 1])


@pytest.mark.parametrize("s", [-1e-9, 3.5, math.nan, math.inf])
def test_a_sum_out_of_range_is_refused_with_its_value(s):
    with pytest.raises(ValueError, match=rf"s={s} cannot be the sum of 3 weights"):
        project_capped_simplex(np.zeros(3), s)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("s", [0, 1, 2])
def test_entries_that_are_not_finite_are_refused(bad, s):
    with pytest.raises(ValueError, match="1 entries that are not finite"):
        project_capped_simplex([0.0, bad], s)


def test_a_matrix_is_refused():
    with pytest.raises(ValueError, match="2 dimensions"):
        project_capped_simplex(np.zeros((2, 2)), 1)
