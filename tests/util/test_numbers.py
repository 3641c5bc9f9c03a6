"""What kind of values a matrix holds, and products of small ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from optirank._util.numbers import GeneMoments, product, value_scale

RNG = np.random.default_rng(0)
CASES = {
    "counts": (RNG.poisson(3.0, (20, 9)), "counts"),
    "counts without zeros": (1 + RNG.poisson(300.0, (20, 9)), "counts"),
    "counts as floats": (RNG.poisson(3.0, (20, 9)).astype(np.float32), "counts"),
    "nothing but zeros": (np.zeros((3, 4)), "counts"),
    "values of an array": (RNG.lognormal(6, 1, (20, 9)), "linear"),
    "negative linear values": (RNG.normal(0, 500, (20, 9)), "linear"),
    "logarithms": (RNG.normal(8, 2, (20, 9)), "log"),
    "logarithms of ratios": (RNG.normal(0, 1, (20, 9)), "log"),
    "whole ratios": (RNG.integers(-3, 4, (20, 9)), "log"),
    "logarithms with zeros": (np.log1p(RNG.poisson(1.0, (20, 9))), "log"),
}


@pytest.mark.parametrize(("X", "scale"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_array, pd.DataFrame])
def test_the_scale_is_told_by_the_values(X, scale, form):
    assert value_scale(form(X)) == scale


def test_values_that_are_missing_do_not_count():
    assert value_scale(np.array([[1.0, np.nan], [3.0, np.inf]])) == "counts"


def test_a_bounded_number_of_samples_is_looked_at():
    X = RNG.poisson(3.0, (1000, 4)).astype(float)
    X[1] += 0.5
    assert value_scale(X) == "counts"
    X[-1] += 0.5
    assert value_scale(X) == "log"


def test_standardised_values_are_recognised_in_blocks_of_many_samples():
    rng = np.random.default_rng(0)
    X = rng.normal(7.0, 2.0, (1000, 30))
    X[:500, :10] += 3.0  # two classes, one after the other
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    for values, expected in ((scaled, True), (X, False)):
        whole = GeneMoments()
        for start in range(0, 1000, 300):
            moments = GeneMoments()
            moments.add(values[start : start + 300])
            whole.merge(moments)
        assert whole.result() is expected


def test_a_product_of_finite_numbers_never_warns_and_hides_no_overflow():
    class Flagged(np.ndarray):  # raises the flag as BLAS can
        def __matmul__(self, other):
            np.array([np.inf]) - np.array([np.inf])
            return np.asarray(self) @ np.asarray(other)

    a, b = np.arange(6.0).reshape(2, 3), np.arange(3.0)
    np.testing.assert_array_equal(product(a.view(Flagged), b), a @ b)
    with pytest.warns(RuntimeWarning, match="overflow"):
        product(np.full((1, 2), 1e308), np.full(2, 1e308))
