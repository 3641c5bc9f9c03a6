"""The scales that tools of others ask for: sums per sample, zeros that stay zeros."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from optirank.benchmark.tools.scales import linear, log1p_scaled


def part(X, kind: str) -> SimpleNamespace:
    return SimpleNamespace(X=sp.csr_matrix(np.asarray(X, dtype=float)), kind=kind)


@given(arrays(np.int64, (4, 6), elements=st.integers(0, 50)))
def test_counts_get_the_asked_for_sum_per_sample_and_are_not_changed(X):
    one = part(X, "counts")
    found = log1p_scaled(one).toarray()
    np.testing.assert_array_equal(one.X.toarray(), X)
    total = X.sum(axis=1)
    np.testing.assert_allclose(np.expm1(found).sum(axis=1), np.where(total > 0, 1e4, 0.0))
    expected = np.log1p(1e4 * X / np.maximum(total, 1)[:, None])
    np.testing.assert_allclose(found, expected)


def test_without_a_target_the_mean_sum_is_kept():
    found = log1p_scaled(part([[1, 3], [2, 6]], "counts"), None).toarray()
    np.testing.assert_allclose(np.expm1(found).sum(axis=1), [6.0, 6.0])


def test_negative_intensities_count_as_nothing():
    np.testing.assert_array_equal(
        linear(part([[-5, 2], [3, 4]], "linear")).toarray(), [[0, 2], [3, 4]]
    )


@pytest.mark.parametrize("kind", ["linear", "counts"])
def test_values_that_are_not_logarithms_stay(kind):
    np.testing.assert_array_equal(linear(part([[0, 2], [3, 4]], kind)).toarray(), [[0, 2], [3, 4]])


def test_logarithms_of_arrays_are_undone():
    np.testing.assert_allclose(linear(part([[-1, 2], [3, 1]], "log")).toarray(), [[0.5, 4], [8, 2]])


def test_log_ratios_keep_their_zeros_as_values():
    np.testing.assert_allclose(linear(part([[-1, 0], [0, 0]], "log")).toarray(), [[0.5, 1], [1, 1]])


def test_what_was_not_seen_in_a_cell_stays_zero():
    np.testing.assert_allclose(linear(part([[0, 2], [3, 0]], "log")).toarray(), [[0, 3], [7, 0]])
