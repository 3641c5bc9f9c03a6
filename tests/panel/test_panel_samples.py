"""Samples in blocks, and the places of genes in their samples."""

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import rankdata

from optirank._util.numbers import PerSample, as_dense
from optirank.panel.samples import (
    DrawnSamples,
    deal_folds,
    fold_matrix,
    keys_of_names,
    matrix_blocks,
    uniform_numbers,
)
from optirank.panel.votes import sort_groups
from optirank.ranks.orders import places_in_sample


def by_definition(X):
    places = np.zeros(X.shape)
    for sample, row in zip(X, places, strict=True):
        above = sample > sample.min()
        if above.any():
            row[above] = rankdata(sample[above]) / above.sum()
    return places


CASES = {
    "counts": lambda rng: rng.poisson(0.7, (30, 20)),
    "no zeros": lambda rng: rng.poisson(0.7, (30, 20)) + 1.0,
    "ratios": lambda rng: rng.normal(size=(30, 20)).round(1),
    "all equal": lambda rng: np.full((30, 20), 3.0),
    "empty": lambda rng: np.zeros((30, 20)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_places_are_ranks_among_the_genes_above_the_lowest(case, form):
    X = CASES[case](np.random.default_rng(0))
    places = places_in_sample(form(X))
    places = places.toarray() if sparse.issparse(places) else places
    np.testing.assert_allclose(places, by_definition(X), atol=2**-24)


def test_counts_and_their_logarithms_have_the_same_places():
    X = np.random.default_rng(0).poisson(1.0, (30, 20))
    depth = np.linspace(0.1, 7.0, 30)[:, None]
    for form in (np.asarray, sparse.csr_matrix):
        counts, logs = (places_in_sample(form(V)) for V in (X, np.log1p(X * depth)))
        assert abs(counts - logs).max() == 0
    shifted = places_in_sample(np.log2(X + 0.5))  # zeros are negative here
    assert np.abs(shifted - places_in_sample(X)).max() == 0


def test_sparse_places_stay_sparse():
    X = sparse.random_array((50, 40), density=0.1, rng=np.random.default_rng(0)).tocsr()
    assert places_in_sample(X).nnz == X.nnz


def test_blocks_are_all_samples_in_order(monkeypatch):
    monkeypatch.setattr("optirank.panel.samples._BLOCK_ENTRIES", 35)
    X = np.arange(70.0).reshape(14, 5)
    columns = np.array([4, 1])
    for form in (np.asarray, sparse.csr_matrix, sparse.csc_matrix):
        blocks = [*matrix_blocks(form(X), columns)]
        assert len(blocks) == 1
        blocks = [*matrix_blocks(form(X))]
        assert len(blocks) == 2
        values = [b.toarray() if sparse.issparse(b) else b for b in blocks]
        assert (np.concatenate(values) == X).all()


def test_as_many_samples_of_each_class_are_drawn_as_asked():
    codes = np.repeat([0, 1, 2], [50, 5, 20])
    X = np.random.default_rng(0).poisson(3.0, (75, 30)).astype(float)
    drawn = DrawnSamples(codes, keys_of_names(range(30)), 3, per_class=10)
    fold_matrix(X, [drawn])
    _, rows, *_ = drawn.result()
    assert np.bincount(codes[rows]).tolist() == [10, 5, 10]


def test_random_numbers_are_spread_evenly_and_never_change():
    numbers = uniform_numbers(10_000, 0)
    assert abs(numbers.mean() - 0.5) < 0.01
    assert abs(numbers.var() - 1 / 12) < 0.002
    assert len(np.unique(np.concatenate([numbers, uniform_numbers(10_000, 1)]))) == 2e4
    np.testing.assert_allclose(
        uniform_numbers(2, 0), [0.759434421842222, 0.8741746770530971]
    )


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_a_pass_in_many_blocks_gathers_what_one_block_gives(form, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (40, 12)).astype(float)
    codes = np.arange(40) % 3
    parts = np.arange(40) % 2
    rows = np.arange(0, 40, 3)
    keys = keys_of_names(range(12))

    def gathered():
        accumulators = [
            DrawnSamples(codes, keys, 3, fold_of=parts - 1, per_class=0),
            PerSample(sort_groups),
        ]
        fold_matrix(form(X), accumulators)
        looking, *others = accumulators
        return looking.sums, *(accumulator.result() for accumulator in others)

    sums, groups = gathered()
    monkeypatch.setattr("optirank.panel.samples._BLOCK_ENTRIES", 12 * 7)
    sums_of_blocks, groups_of_blocks = gathered()
    np.testing.assert_array_equal(sums_of_blocks.sums, sums.sums)
    np.testing.assert_array_equal(sums_of_blocks.leading, sums.leading)
    np.testing.assert_array_equal(sums_of_blocks.trailing, sums.trailing)
    np.testing.assert_array_equal(groups_of_blocks, groups)
    some = PerSample(as_dense)
    fold_matrix(form(X), [some], np.array([3, 1]), rows)
    np.testing.assert_array_equal(some.result(), X[np.ix_(rows, [3, 1])])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_what_is_drawn_depends_on_the_samples_and_not_on_their_order(form, monkeypatch):
    monkeypatch.setattr("optirank.panel.samples._BLOCK_ENTRIES", 300 * 70)
    rng = np.random.default_rng(0)
    X = rng.poisson(0.5, (3000, 70)).astype(float)
    codes = (np.arange(3000) % 10 == 0).astype(int)
    order = rng.permutation(3000)
    keys = keys_of_names(range(70))
    first, second = (DrawnSamples(y, keys, 2, n_folds=5) for y in (codes, codes[order]))
    fold_matrix(form(X), [first])
    fold_matrix(form(X[order]), [second])
    sums, rows, _, fold_of, _ = first.result()
    other_sums, other_rows, _, other_fold_of, _ = second.result()
    assert np.bincount(codes[rows]).tolist() == [500, 300]
    assert (order[other_rows] == rows).all()
    assert (other_fold_of == fold_of[order]).all()
    assert np.array_equal(other_sums.sums, sums.sums)
    assert np.array_equal(other_sums.leading, sums.leading)
    assert np.array_equal(other_sums.trailing, sums.trailing)
    assert sums.sizes.sum(axis=0).tolist() == [2700, 300]
    assert (sums.sizes[1:] == [100, 60]).all()


def test_samples_are_copies_only_where_enough_genes_differ():
    codes = np.repeat([0, 1], 6)
    hashes = np.tile(np.arange(6, dtype=np.uint64), 2)
    folds, n_repeated = deal_folds(codes, hashes, np.ones(12, bool), 5)
    assert n_repeated == 12
    assert (folds[:6] == folds[6:]).all()
    folds, n_repeated = deal_folds(codes, hashes, np.zeros(12, bool), 5)
    assert n_repeated == 0
    with pytest.raises(ValueError, match="single sample, or copies of one"):
        deal_folds(codes, codes.astype(np.uint64), np.ones(12, bool), 5)
