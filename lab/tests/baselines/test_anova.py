"""The F values of dataset are those of a two-way analysis of variance, gene by gene."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import statsmodels.formula.api as smf
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.anova import anova_lm

from optirank_lab.baselines.anova import dataset_f_values, select_stable_genes

KINDS = [np.asarray, sp.csr_array, sp.csc_array]


def design(n_labels, n_datasets, extra, rng):
    """Factors with at least two samples in every cell, the rest of the samples
    anywhere.
    """
    cells = np.repeat(np.arange(n_labels * n_datasets), 2)
    cells = rng.permutation(
        np.append(cells, rng.integers(n_labels * n_datasets, size=extra))
    )
    return cells // n_datasets, cells % n_datasets


def residual(X, *factors):
    """Residual sum of squares on the indicators of the factors, by plain least
    squares.
    """
    columns = [f[:, None] == np.unique(f) for f in factors]
    A = np.hstack(columns).astype(float)
    fit = A @ np.linalg.lstsq(A, X, rcond=None)[0]
    return ((X - fit) ** 2).sum(axis=0), np.linalg.matrix_rank(A)


def by_model_comparison(X, label, dataset):
    small, rank_small = residual(X, label)
    large, rank_large = residual(X, label, dataset)
    full, rank_full = residual(X, label * 1000 + dataset)
    return (small - large) / (rank_large - rank_small) / (full / (len(X) - rank_full))


@settings(max_examples=12)  # statsmodels is slow
@given(
    n_labels=st.integers(1, 3),
    n_datasets=st.integers(2, 4),
    extra=st.integers(0, 60),
    offset=st.sampled_from([0.0, 3.0, 100.0]),
    seed=st.integers(0, 10**6),
)
def test_f_values_agree_with_statsmodels_on_unbalanced_designs(
    n_labels, n_datasets, extra, offset, seed
):
    rng = np.random.default_rng(seed)
    label, dataset = design(n_labels, n_datasets, extra, rng)
    X = (
        offset
        + rng.normal(size=(len(label), 2))
        + rng.normal(size=(n_datasets, 2))[dataset]
    )
    X[:, 1] *= (rng.random(len(X)) < 0.5) | ((label == 0) & (dataset == 0))
    formula = "x ~ C(label) * C(dataset)" if n_labels > 1 else "x ~ C(dataset)"
    frame = pd.DataFrame({"label": label, "dataset": dataset})
    expected = [
        anova_lm(smf.ols(formula, frame.assign(x=x)).fit(), typ=2).loc[
            "C(dataset)", "F"
        ]
        for x in X.T
    ]
    for kind in KINDS:
        np.testing.assert_allclose(
            dataset_f_values(kind(X), label, dataset), expected, rtol=1e-8, atol=1e-20
        )


@given(seed=st.integers(0, 10**6))
def test_a_missing_cell_leaves_the_comparison_of_the_models_that_can_be_fitted(seed):
    rng = np.random.default_rng(seed)
    label, dataset = design(3, 3, 30, rng)
    present = ~((label == 0) & (dataset == 1))
    label, dataset = label[present], dataset[present]
    X = rng.normal(size=(len(label), 4)) + rng.normal(size=(3, 4))[dataset]
    for kind in KINDS:
        np.testing.assert_allclose(
            dataset_f_values(kind(X), label, dataset),
            by_model_comparison(X, label, dataset),
            rtol=1e-8,
        )


def test_datasets_without_a_common_label_are_compared_within_their_groups():
    rng = np.random.default_rng(0)
    cells = np.tile([(0, 0), (0, 1), (1, 2), (1, 3)], (6, 1))
    label, dataset = cells.T
    X = rng.normal(size=(24, 3))
    found = dataset_f_values(X, label, dataset)
    np.testing.assert_allclose(found, by_model_comparison(X, label, dataset), rtol=1e-8)
    # A shift of one group is a shift of its label, and no difference between datasets.
    shifted = X + 5.0 * (label == 1)[:, None]
    np.testing.assert_allclose(
        dataset_f_values(shifted, label, dataset), found, rtol=1e-8
    )


def test_genes_without_residual_variance_have_no_f_or_an_infinite_one():
    label, dataset = np.tile([0, 0, 1, 1], 7), np.tile([0, 1], 14)
    noise = np.random.default_rng(3).normal(size=28)
    constant, zero = np.full(28, 0.1), np.zeros(28)
    X = np.column_stack([constant, zero, 0.1 + 0.3 * label, 0.7 * dataset + 0.1, noise])
    for kind in KINDS:
        found = dataset_f_values(kind(X), label, dataset)
        assert np.isnan(found[:3]).all()
        assert found[3] == np.inf
        assert np.isfinite(found[4])
        assert select_stable_genes(kind(X), label, dataset, 5).tolist() == [
            4,
            3,
            0,
            1,
            2,
        ]


def test_input_without_an_answer_is_refused_with_the_remedy():
    X = np.random.default_rng(6).normal(size=(8, 3))
    two, other = np.arange(8) % 2, np.arange(8) // 4
    with pytest.raises(ValueError, match="come from one dataset"):
        dataset_f_values(X, two, np.zeros(8))
    with pytest.raises(ValueError, match="label and dataset are confounded"):
        dataset_f_values(X, two, two)
    with pytest.raises(ValueError, match="one sample only"):
        dataset_f_values(X[:4], two[:4], [0, 0, 1, 1])
    with pytest.raises(ValueError, match="dataset has 7 values for 8 samples"):
        dataset_f_values(X, two, other[:7])
    for unknown in (np.nan, None):
        some = [unknown, *two[1:]]
        with pytest.raises(ValueError, match="label is missing for 1 samples"):
            dataset_f_values(X, np.array(some, dtype=object), other)
    for n_genes in (0, 4, 1.5):
        with pytest.raises(
            ValueError, match=f"n_genes={n_genes} .* whole number from 1 to 3"
        ):
            select_stable_genes(X, two, other, n_genes)
