"""raw is read where X lacks many of a model's genes that raw has, and says so."""

from __future__ import annotations

import pytest

from optirank.io.objects import raw_notes

KNOWN = [f"G{k}" for k in range(100)]


@pytest.mark.parametrize(
    ("n_x", "n_raw", "is_read"),
    [
        (30, 100, True),
        (30, 65, True),
        (30, 64, False),  # raw lacks most of them too
        (90, 100, True),
        (91, 100, False),
        (100, 100, False),
        (0, 100, True),
    ],
)
def test_raw_is_read_where_it_has_what_x_lacks(n_x, n_raw, is_read):
    in_raw = [name.lower() for name in KNOWN[:n_raw]]  # whatever their case
    notes = raw_notes(KNOWN, KNOWN[:n_x], in_raw)
    assert bool(notes) == is_read
    for note in notes:
        assert f"X has {n_x} of the 100 genes of the model, raw has {n_raw}" in note


def test_x_is_read_without_a_model():
    assert raw_notes([], KNOWN[:3], KNOWN) == []
