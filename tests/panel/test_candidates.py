"""Sums by class and part give the correlations that all samples of the parts give
together.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from optirank.panel.samples import (
    ClassSums,
    DrawnSamples,
    class_sums,
    fold_matrix,
    keys_of_names,
)
from optirank.ranks.orders import PLACE_STEPS, places_in_sample
from optirank_lab.baselines.transformers import label_correlations


def added(X, codes, parts, block):
    n_classes, n_parts = int(codes.max()) + 1, int(parts.max()) + 1
    blocks = [slice(start, start + block) for start in range(0, X.shape[0], block)]
    sums = ClassSums(n_parts, n_classes, X.shape[1])
    for rows in blocks:
        of_block = ClassSums(n_parts, n_classes, X.shape[1])
        of_block.add_samples(X[rows], codes[rows], parts[rows])
        sums.add(of_block)
    return sums


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from([2, 3, 5]),
    st.integers(1, 40),
    st.booleans(),
)
def test_blocks_give_the_correlations_of_the_whole(seed, n_classes, block, as_sparse):
    rng = np.random.default_rng(seed)
    n = 60
    X = rng.poisson(1.0, (n, 12)).astype(float) + (
        0 if as_sparse else rng.normal(size=12) * 50
    )
    codes, parts = np.arange(n) % n_classes, rng.integers(0, 3, n)
    parts[:3] = 0, 1, 2
    sums = added(sparse.csr_matrix(X) if as_sparse else X, codes, parts, block)
    for which in (np.arange(3), np.array([0, 2])):
        rows = np.isin(parts, which)
        there, own = np.unique(codes[rows], return_inverse=True)
        if len(there) < 2:
            continue
        constant = np.ptp(X[rows], axis=0) == 0
        expected = label_correlations(X[rows], own, len(there))
        found = sums.correlations(which)
        np.testing.assert_allclose(
            found[:, ~constant], expected[:, ~constant], atol=1e-9
        )
        assert (found[:, constant] == 0).all()


def test_every_class_has_its_share_of_the_best_genes():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], 30)
    X = rng.normal(size=(90, 20))
    X[codes == 0, :8] += (
        9  # one class has many strong genes, the others one weaker gene each
    )
    X[codes == 1, 8] += 3
    X[codes == 2, 9] += 3
    X[:, 10] = 5.0
    sums = added(X, codes, np.zeros(90, int), 40)
    assert {8, 9} <= set(sums.best_genes(6).tolist())
    assert 10 not in sums.best_genes(20)


def test_a_class_without_samples_in_the_parts_has_no_row():
    rng = np.random.default_rng(0)
    codes, parts = np.repeat([0, 1, 2, 3], 10), np.repeat([0, 0, 0, 1], 10)
    sums = added(rng.random((40, 5)), codes, parts, 16)
    assert sums.correlations(np.array([0])).shape == (3, 5)
    assert sums.correlations().shape == (4, 5)


@pytest.mark.parametrize("value", [1e6, 0.1])
def test_a_constant_gene_has_no_correlation(value):
    X = np.random.default_rng(0).random((30, 2))
    X[:, 1] = value
    sums = added(X, np.arange(30) % 3, np.arange(30) % 2, 7)
    assert (sums.correlations()[:, 1] == 0).all()
    assert (sums.correlations()[:, 0] != 0).all()


def test_a_block_without_samples_to_sum_changes_no_sums():
    places = sparse.csr_array(np.array([[0.5, 0.0], [0.0, 0.25]]))
    whole = class_sums(places, np.array([0, 1]), 2)
    nothing = class_sums(places[:0], np.zeros(0, np.intp), 2)
    both = class_sums(places, np.array([0, 1]), 2)
    for more in (nothing, ClassSums(1, 2, 2)):
        both.add(more)
        np.testing.assert_array_equal(both.sums, whole.sums)
        np.testing.assert_array_equal(both.leading, whole.leading)
        np.testing.assert_array_equal(both.trailing, whole.trailing)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_array])
def test_sums_are_those_of_plain_numpy_and_squares_lose_no_digit(form):
    rng = np.random.default_rng(0)
    X = rng.integers(0, PLACE_STEPS, (50, 7), endpoint=True) / PLACE_STEPS
    X[rng.random(X.shape) < 0.5] = 0.0
    codes, parts = rng.integers(0, 3, 50), rng.integers(0, 2, 50)
    parts[0] = 1
    sums = class_sums(form(X.astype(np.float32)), codes, 3, parts)
    for part in range(2):
        for code in range(3):
            own = (parts == part) & (codes == code)
            assert sums.sizes[part, code] == own.sum()
            np.testing.assert_array_equal(sums.sums[part, code], X[own].sum(axis=0))
        whole = (X[parts == part] * PLACE_STEPS).astype(int).astype(object)
        exact = (whole**2).sum(axis=0)
        found = [
            int(first * PLACE_STEPS) * PLACE_STEPS + int(last * PLACE_STEPS**2)
            for first, last in zip(sums.leading[part], sums.trailing[part], strict=True)
        ]
        assert found == exact.tolist()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_the_sums_of_drawn_samples_move_into_their_folds(form):
    X = np.random.default_rng(0).poisson(1.0, (60, 8)).astype(float)
    codes = np.arange(60) % 3
    drawn = DrawnSamples(codes, keys_of_names(range(8)), 3, n_folds=4, per_class=10)
    fold_matrix(form(X), [drawn])
    sums, _, _, fold_of, _ = drawn.result()
    assert np.bincount(fold_of + 1)[0] == 30
    expected = class_sums(places_in_sample(X), codes, 3, fold_of + 1)
    for name, total in vars(sums).items():
        np.testing.assert_array_equal(total, vars(expected)[name])
