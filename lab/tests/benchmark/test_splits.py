"""Splits: the sizes of the appendix, nothing in two parts, the same draws again."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optirank_lab.benchmark.splits import CELLS, MOST_OF_A_CLASS, make_splits

sizes = st.dictionaries(st.sampled_from("abcd"), st.integers(5, 300), min_size=2)


def labels(counts: dict[str, int]) -> np.ndarray:
    return np.repeat(sorted(counts), [counts[name] for name in sorted(counts)]).astype(
        object
    )


def splits(scheme, y, auxiliary=None, scenario="", seed=0):
    return make_splits(scheme, y, auxiliary, scenario, name="task", seed=seed)


def check_apart(split, n: int, n_auxiliary: int = 0) -> None:
    own = np.concatenate([split.train, split.validation, split.test])
    assert len(np.unique(own)) == len(own)
    assert own.max() < n
    theirs = np.concatenate([split.auxiliary_train, split.auxiliary_validation])
    assert len(np.unique(theirs)) == len(theirs)
    assert not len(theirs) or theirs.max() < n_auxiliary


@settings(max_examples=20)
@given(sizes)
def test_cells_draws_100_a_type_and_leaves_a_fifth(counts):
    y = labels(counts)
    found = splits("cells", y)
    assert len(found) == 5
    for split in found:
        check_apart(split, len(y))
        assert len(split.train) + len(split.validation) == len(y)
        for name, count in Counter(y[split.train].tolist()).items():
            assert count == min(CELLS, counts[name] - int(np.ceil(0.2 * counts[name])))
        assert set(y[split.validation]) == set(counts)


@settings(max_examples=20)
@given(sizes, st.integers(5, 200))
def test_two_sources_train_on_as_many_cells_as_one(counts, n_other):
    y, z = labels(counts), labels(dict.fromkeys(counts, n_other))
    for one, two in zip(
        splits("cells", y, z, "single"), splits("cells", y, z, "multi"), strict=True
    ):
        check_apart(two, len(y), len(z))
        assert set(two.train) <= set(one.train)
        np.testing.assert_array_equal(one.validation, two.validation)
        assert len(two.train) + len(two.auxiliary_train) <= len(one.train)
        used = len(two.auxiliary_train) + len(two.auxiliary_validation)
        assert used == len(z)
        assert max(Counter(z[one.auxiliary_reference].tolist()).values()) <= CELLS
        assert not len(one.auxiliary_train)


@settings(max_examples=20)
@given(sizes)
def test_folds_validate_every_sample_once(counts):
    y = labels(counts)
    found = splits("folds", y)
    assert len(found) == 5
    np.testing.assert_array_equal(
        np.sort(np.concatenate([split.validation for split in found])),
        np.arange(len(y)),
    )


def test_folds_of_two_sources_are_joined():
    y, z = labels({"a": 40, "b": 60}), labels({"a": 20, "b": 30})
    found = splits("folds", y, z, "multi")
    joined = np.concatenate([split.auxiliary_validation for split in found])
    np.testing.assert_array_equal(np.sort(joined), np.arange(len(z)))
    for one, two in zip(splits("folds", y, z, "single"), found, strict=True):
        np.testing.assert_array_equal(one.train, two.train)
        np.testing.assert_array_equal(one.auxiliary_reference, np.arange(len(z)))


def test_a_tenth_is_held_out_and_the_same_for_all_folds():
    y = labels({"a": 100, "b": 200})
    found = splits("hold-out", y)
    for split in found:
        check_apart(split, len(y))
        np.testing.assert_array_equal(split.test, found[0].test)
        assert Counter(y[split.test].tolist()) == {"a": 10, "b": 20}
    validated = np.concatenate([split.validation for split in found])
    assert set(validated) == set(range(len(y))) - set(found[0].test)


@settings(max_examples=20)
@given(sizes)
def test_nested_has_all_12_ways(counts):
    y = labels(counts)
    found = splits("nested", y)
    ways = {(tuple(split.test), tuple(split.validation)) for split in found}
    assert len(found) == len(ways) == 12
    for split in found:
        check_apart(split, len(y))
        assert len(split.train) + len(split.validation) + len(split.test) == len(y)
    assert Counter(split.part for split in found) == {0: 3, 1: 3, 2: 3, 3: 3}
    for part in range(4):
        assert len({tuple(split.test) for split in found if split.part == part}) == 1


def test_a_found_pair_trains_on_all_samples_but_not_on_too_many_of_a_class():
    y = labels({"a": 30, "b": MOST_OF_A_CLASS + 100})
    (split,) = splits("all", y)
    assert Counter(y[split.train].tolist()) == {"a": 30, "b": MOST_OF_A_CLASS}
    assert len(split.validation) == 0


@pytest.mark.parametrize("scheme", ["cells", "folds", "hold-out", "nested"])
def test_draws_depend_on_the_seed_and_the_task_alone(scheme):
    y = labels({"a": 150, "b": 130})

    def drawn(seed: int) -> list:
        return [str(vars(split)) for split in splits(scheme, y, seed=seed)]

    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)
