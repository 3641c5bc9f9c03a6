"""Names that look alike."""

from __future__ import annotations

import pytest

from optirank._util.names import look_alike


@pytest.mark.parametrize(
    ("name", "others", "alike"),
    [
        ("Mono_CD14", ["cd16 monocyte", "cd14 monocyte", "b cell"], "cd14 monocyte"),
        ("B-cells", ["t cell", "b cell"], "b cell"),
        ("BCell", ["t cell", "b cell"], "b cell"),
        ("alpha", ["beta cell", "alpha cell"], "alpha cell"),
        ("cd4 t", ["cd8 t", "nk"], ""),
        ("memory b", ["naive b"], ""),
        ("platelet", [], ""),
    ],
)
def test_names_that_look_alike_have_most_words_in_common(name, others, alike):
    assert look_alike(name, others) == alike
