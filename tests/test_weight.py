"""The project stays small enough to be read."""

from __future__ import annotations

import pytest

import weight

SMALL = weight.measure()


@pytest.mark.parametrize("what", SMALL)
def test_the_project_is_no_larger_than_its_limits(what):
    assert SMALL[what] <= weight.LIMITS[what]


def test_training_enters_few_functions_in_few_files():
    functions, files = weight.entered_by("train")["train"]
    assert functions <= weight.LIMITS["functions that train enters"]
    assert files <= weight.LIMITS["files that train enters"]
