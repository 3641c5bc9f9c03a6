"""t statistics of genes: as scipy has them, for all kinds of values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import ttest_ind

from optirank.preprocessing import LogCPM, marker_statistics, select_markers


def logs(n=30, d=8, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, d))
    X[np.arange(n), y] += 2
    return X, y


@pytest.mark.parametrize("n_classes", [2, 3])
def test_statistics_are_welchs(n_classes):
    X, y = logs(n_classes=n_classes)
    found = marker_statistics(X, y)
    for row, label in zip(found, [1] if n_classes == 2 else range(3), strict=True):
        expected = ttest_ind(X[y == label], X[y != label], equal_var=False).statistic
        assert np.allclose(row, expected)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_counts_are_compared_as_logarithms_of_scaled_counts(as_sparse):
    rng = np.random.default_rng(0)
    X, y = rng.poisson(3.0, (40, 6)).astype(float), np.arange(40) % 2
    given = sparse.csr_array(X) if as_sparse else X
    E = LogCPM(1e4).fit_transform(X)
    expected = ttest_ind(E[y == 1], E[y == 0], equal_var=False).statistic
    assert np.allclose(marker_statistics(given, y)[0], expected)


def test_intensities_are_compared_as_logarithms():
    X, y = logs(n_classes=2)
    assert np.allclose(
        marker_statistics(np.expm1(np.abs(X) + 6), y), marker_statistics(np.abs(X) + 6, y)
    )


def test_the_markers_of_every_class_are_selected_and_constant_genes_are_not():
    X, y = logs(n=90)
    X[:, 5] = 1.0
    assert select_markers(X, y, 3).tolist() == [0, 1, 2]
    assert 5 not in select_markers(X, y, 7)
    assert select_markers(X, y, 100).tolist() == list(range(8))


def test_what_has_no_statistic_is_refused():
    X, y = logs()
    with pytest.raises(ValueError, match="at least 2 classes"):
        marker_statistics(X, np.zeros(30))
    with pytest.raises(ValueError, match="smallest of 1 samples"):
        marker_statistics(X, np.arange(30) == 0)
    with pytest.raises(ValueError, match="n_genes=0"):
        select_markers(X, y, 0)
