"""Counts per million and down-sampling do to counts what they say."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import scipy.sparse as sp

from optirank.preprocessing import Downsample, LogCPM


@pytest.fixture
def counts():
    rng = np.random.default_rng(0)
    return rng.poisson(rng.gamma(0.5, 20, size=80), size=(30, 80)).astype(float)


def test_cpm_scales_every_sample_to_the_target(counts):
    cpm = LogCPM(log=False).fit_transform(counts)
    np.testing.assert_allclose(cpm.sum(axis=1), 1e6)
    np.testing.assert_allclose(cpm, counts / counts.sum(axis=1, keepdims=True) * 1e6)
    np.testing.assert_allclose(LogCPM().fit_transform(counts), np.log1p(cpm))


def test_a_sample_without_counts_stays_zero(counts):
    counts[3] = 0
    for X in (counts, sp.csr_array(counts)):
        out = LogCPM().fit_transform(X)
        out = out.toarray() if sp.issparse(out) else out
        assert np.all(out[3] == 0)
        assert np.all(np.isfinite(out))


def test_duplicate_entries_of_a_sparse_matrix_are_added_first():
    twice = sp.coo_array(([1.0, 3.0, 4.0], ([0, 0, 0], [0, 0, 1])), shape=(1, 2))
    rows = sp.csr_array((twice.data, twice.col, np.array([0, 3])), shape=(1, 2))
    for X in (twice, rows):
        np.testing.assert_allclose(LogCPM(8).fit_transform(X).toarray(), np.log1p([[4, 4]]))
    assert rows.nnz == 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept(counts, dtype):
    for transformer in (LogCPM(), Downsample(100)):
        assert transformer.fit_transform(counts.astype(dtype)).dtype == dtype
        assert transformer.fit_transform(sp.csr_array(counts.astype(dtype))).dtype == dtype


@pytest.mark.parametrize("transformer", [LogCPM(), Downsample()])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_negative_values_are_refused_with_place_and_remedy(transformer, kind, counts):
    counts[4, 7] = -2.5
    with pytest.raises(ValueError, match=r"-2\.5 \(sample 4, gene 7\).*leave this step out"):
        transformer.fit(kind(counts))


def test_downsampling_keeps_n_counts_of_each_sample_and_adds_none(counts):
    counts[:5] = np.minimum(counts[:5], 1)
    drawn, again = (Downsample(200, random_state=0).fit_transform(counts) for _ in range(2))
    np.testing.assert_array_equal(drawn, again)
    np.testing.assert_array_equal(drawn[:5], counts[:5])  # fewer counts: kept as they are
    np.testing.assert_array_equal(drawn[5:].sum(axis=1), 200)
    assert np.all(drawn <= counts)
    assert np.all(drawn == np.floor(drawn))


def test_downsampled_profiles_are_right_on_average_and_have_hypergeometric_spread():
    profile = np.array([400.0, 100, 50, 0, 450])
    drawn = Downsample(100, random_state=0).fit_transform(np.tile(profile, (20_000, 1)))
    p = profile / profile.sum()
    np.testing.assert_allclose(drawn.mean(axis=0), 100 * p, atol=0.15)
    variance = 100 * p * (1 - p) * (1000 - 100) / 999
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=0.05)


def test_fractional_counts_are_rounded_without_bias_and_the_log_says_so(caplog):
    profile = np.tile([0.25, 10.5, 30.0, 19.25], (20_000, 1))
    with caplog.at_level(logging.INFO, logger="optirank"):
        drawn = Downsample(59, random_state=0).fit_transform(profile)
    assert "fractional" in caplog.text
    assert np.all(drawn == np.floor(drawn))
    np.testing.assert_allclose(drawn.mean(axis=0), profile[0] * 59 / 60, atol=0.15)


def test_totals_no_sampler_can_draw_from_are_refused(counts):
    with pytest.raises(ValueError, match="hardly counts"):
        Downsample().fit_transform(counts * 1e8)
