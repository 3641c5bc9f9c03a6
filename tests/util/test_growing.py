"""Arrays whose last size is not known."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from optirank._util.growing import GrowingArray

KINDS = (np.int32, np.float32, np.float64, np.uint16)


@given(st.lists(st.tuples(st.integers(0, 50), st.sampled_from(KINDS)), min_size=1, max_size=20))
def test_blocks_are_joined_as_concatenate_joins_them(sizes):
    rng = np.random.default_rng(0)
    blocks = [rng.integers(0, 60_000, size).astype(kind) for size, kind in sizes]
    growing = GrowingArray()
    for block in blocks:
        growing.add(block)
    found = growing.whole()
    expected = np.concatenate(blocks)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype
