"""Names, counts and shares in messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optirank._util.words import counted, look_alike, printable, some


@pytest.mark.parametrize(
    ("name", "others", "alike"),
    [
        ("Monocytes_CD14", ["cd16 monocyte", "cd14 monocyte"], "cd14 monocyte"),
        ("B-cells", ["t cell", "b cell"], "b cell"),
        ("BCell", ["t cell", "b cell"], "b cell"),
        ("alpha", ["beta cell", "alpha cell"], "alpha cell"),
        ("cd4 t", ["cd8 t", "nk"], ""),
        ("memory b", ["naive b"], ""),
        ("platelet", [], ""),
    ],
)
def test_names_that_look_alike_have_the_same_words(name, others, alike):
    assert look_alike(name, others) == alike


@given(st.lists(st.integers()), st.integers(1, 12))
def test_a_list_shows_its_first_names_and_counts_the_others(names, limit):
    text = some(iter(names), limit)
    shown, _, more = text.partition(" and ")
    assert shown == (", ".join(map(str, names[:limit])) or "none")
    assert more == (f"{len(names) - limit} more" if len(names) > limit else "")


def test_printable_escapes_what_moves_the_cursor_and_leaves_other_scripts():
    assert printable("T\x1b[31m cell\x9b2J\u202e") == "T\\x1b[31m cell\\x9b2J\\u202e"
    assert printable("Zelle ä 細胞 α\n") == "Zelle ä 細胞 α\n"
    assert printable("x" * 50, 10) == "xxxxxxxxxx... (50 characters)"
    assert (
        some(["a\x1b", "b" * 200], 8) == "a\\x1b, " + "b" * 100 + "... (200 characters)"
    )


def test_words_agree_with_their_number():
    assert counted(1, "sample is", "samples are") == "1 sample is"
    assert counted(0, "sample is", "samples are") == "0 samples are"
    assert counted(2, "sample is", "samples are") == "2 samples are"
