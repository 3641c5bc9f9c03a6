"""Transformers do what they say, keep scikit-learn's contract, sparse input sparse,
and names.
"""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from optirank_lab.baselines.transformers import (
    Downsample,
    LogCPM,
    SingleCellNetGenes,
    label_correlations,
)
from optirank_lab.data.conversion import read_expression

TRANSFORMERS = [
    LogCPM(),
    LogCPM(target=1e4, log=False),
    Downsample(random_state=0),
    Downsample(n_counts=20, random_state=0),
    SingleCellNetGenes(n_top=2, random_state=0),
]


@pytest.fixture
def counts():
    rng = np.random.default_rng(0)
    return rng.poisson(rng.gamma(0.5, 20, size=80), size=(40, 80)).astype(float)


@pytest.fixture
def labels():
    return np.arange(40) % 2


@parametrize_with_checks(TRANSFORMERS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("transformer", TRANSFORMERS, ids=str)
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array])
def test_sparse_input_gives_the_dense_result_and_stays_sparse(
    transformer, kind, counts, labels
):
    before, X = counts.copy(), kind(counts)
    dense = transformer.fit(counts, labels).transform(counts)
    sparse = transformer.fit(X, labels).transform(X)
    np.testing.assert_array_equal(counts, before)  # the input is left as it is
    np.testing.assert_array_equal(X.toarray(), before)
    assert sp.issparse(sparse)
    assert sparse.format == "csr"
    np.testing.assert_allclose(sparse.toarray(), dense, rtol=1e-12)


def test_gene_names_are_carried_through_a_pipeline(counts, labels):
    names = [f"gene{j}" for j in range(80)]
    frame = pd.DataFrame(counts, columns=names)
    pipeline = make_pipeline(
        Downsample(30, random_state=0),
        LogCPM(1e4),
        SingleCellNetGenes(n_top=3, random_state=0),
    ).set_output(transform="pandas")
    out = pipeline.fit_transform(frame, labels)
    assert isinstance(out, pd.DataFrame)
    assert list(out.columns) == list(pipeline.get_feature_names_out())
    assert set(out.columns) <= set(names)
    assert out.shape[1] == 6


def test_cpm_scales_every_sample_to_the_target(counts):
    cpm = LogCPM(log=False).fit_transform(counts)
    np.testing.assert_allclose(cpm.sum(axis=1), 1e6)
    np.testing.assert_allclose(cpm, counts / counts.sum(axis=1, keepdims=True) * 1e6)
    np.testing.assert_allclose(LogCPM().fit_transform(counts), np.log1p(cpm))


@pytest.mark.parametrize("transformer", [LogCPM(), Downsample()])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_negative_values_are_refused_with_place_and_remedy(transformer, kind, counts):
    counts[4, 7] = -2.5
    with pytest.raises(
        ValueError, match=r"-2\.5 \(sample 4, gene 7\).*leave this step out"
    ):
        transformer.fit(kind(counts))


def test_downsampling_keeps_n_counts_of_each_sample_and_adds_none(counts):
    counts[:5] = np.minimum(counts[:5], 1)
    drawn, again = (
        Downsample(200, random_state=0).fit_transform(counts) for _ in range(2)
    )
    np.testing.assert_array_equal(drawn, again)
    np.testing.assert_array_equal(
        drawn[:5], counts[:5]
    )  # fewer counts: kept as they are
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


@pytest.fixture
def expression():
    rng = np.random.default_rng(0)
    X = np.log1p(rng.poisson(1 + rng.gamma(1, 5, size=50), size=(90, 50)) * 1.5)
    return X, np.arange(90) % 3


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_correlations_agree_with_numpy(expression, kind):
    X, y = expression
    found = label_correlations(kind(X), y, 3)
    expected = [[np.corrcoef(x, y == k)[0, 1] for x in X.T] for k in range(3)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_more_classes_give_the_union_of_their_own_choices(expression):
    X, y = expression
    chosen = SingleCellNetGenes(3).fit(X, y).get_support()
    union = np.zeros(50, dtype=bool)
    for k in range(3):
        union |= SingleCellNetGenes(3).fit(X, y == k).get_support()
    np.testing.assert_array_equal(chosen, union)


def test_marker_genes_are_chosen_from_counts():
    rng = np.random.default_rng(1)
    y = np.arange(200) % 2
    rate = np.full((200, 300), 8.0)
    rate[y == 1, 10] = 40
    rate[y == 0, 20] = 40
    X = sp.csr_array(rng.poisson(rate * rng.uniform(0.7, 5, size=(200, 1))))
    model = SingleCellNetGenes(1, random_state=0).fit(X, y)
    assert model.get_support(indices=True).tolist() == [10, 20]
    assert model.transform(X).shape == (200, 2)


@pytest.mark.parametrize("spoil", [lambda X: X - 1, lambda X: X + 0.5, np.log1p])
def test_data_that_are_not_counts_are_used_as_they_are_and_the_log_says_so(
    spoil, caplog
):
    rng = np.random.default_rng(3)
    X, y = spoil(rng.poisson(3, size=(40, 30)) + 0.0), np.arange(40) % 2
    with caplog.at_level(logging.INFO, logger="optirank"):
        model = SingleCellNetGenes(20).fit(X, y)
    assert "not counts" in caplog.text
    np.testing.assert_allclose(model.correlations_, label_correlations(X, y, 2))


def test_rare_genes_pass_only_when_strongly_expressed():
    n = 100
    X = np.tile(np.linspace(1, 2, n)[:, None], (1, 4)) + 0.1
    X[:, 1:] = 0
    X[:5, 1] = 1.5  # in 5 % of the samples, which is not more than 5 %
    X[:6, 2] = 1.5  # in more than 5 %
    X[:1, 3] = 2.5  # in one sample, above the mean asked for
    model = SingleCellNetGenes().fit(X, np.arange(n) % 2)
    assert model.get_support().tolist() == [True, False, True, True]
    stricter = SingleCellNetGenes(min_expressed=0.02).fit(X, np.arange(n) % 2)
    assert stricter.get_support().tolist() == [True, False, True, False]


def test_fewer_genes_than_asked_for_are_all_taken_and_constant_ones_never(
    expression, caplog
):
    X, y = expression
    X[:, 7] = 1.1
    with caplog.at_level(logging.INFO, logger="optirank"):
        model = SingleCellNetGenes(500).fit(X, y)
    assert "49 genes pass the filter, fewer than 2 x n_top = 1000" in caplog.text
    assert np.flatnonzero(~model.get_support()).tolist() == [7]


def test_genes_of_pancreas_cells_include_the_hormones(data_folder):
    baron = read_expression(data_folder / "baron_h1.h5ad")
    model = SingleCellNetGenes(20, random_state=0).fit(baron.X, baron.obs["cell_type"])
    assert {"INS", "GCG", "SST", "PPY"} <= set(baron.var_names[model.get_support()])
