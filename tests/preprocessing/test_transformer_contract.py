"""Every transformer keeps scikit-learn's contract, keeps sparse input sparse and carries names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from optirank.preprocessing import Downsample, LogCPM, SingleCellNetGenes

TRANSFORMERS = [
    LogCPM(),
    LogCPM(target=1e4, log=False),
    Downsample(random_state=0),
    Downsample(n_counts=20, random_state=0),
    SingleCellNetGenes(n_top=2, random_state=0),
]


def name_of(transformer):
    return str(transformer)


@pytest.fixture
def counts():
    rng = np.random.default_rng(0)
    return rng.poisson(rng.gamma(0.5, 4, size=60), size=(40, 60)).astype(float)


@pytest.fixture
def labels():
    return np.arange(40) % 2


@parametrize_with_checks(TRANSFORMERS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("transformer", TRANSFORMERS, ids=name_of)
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array])
def test_sparse_input_gives_the_dense_result_and_stays_sparse(transformer, kind, counts, labels):
    before, X = counts.copy(), kind(counts)
    dense = transformer.fit(counts, labels).transform(counts)
    sparse = transformer.fit(X, labels).transform(X)
    np.testing.assert_array_equal(counts, before)  # the input is left as it is
    np.testing.assert_array_equal(X.toarray(), before)
    assert sp.issparse(sparse)
    assert sparse.format == "csr"
    np.testing.assert_allclose(sparse.toarray(), dense, rtol=1e-12)


def test_gene_names_are_carried_through_a_pipeline(counts, labels):
    names = [f"gene{j}" for j in range(60)]
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
