"""Notes and threads of a verb are those of the block that runs."""

from optirank._util.words import collected_notes, note, warn
from optirank._util.work import threads_in_use, using_threads


def test_a_verb_collects_what_is_said_inside_of_it_each_sentence_once() -> None:
    note("nobody hears this")
    with collected_notes() as outer:
        note("one")
        with collected_notes() as inner:
            note("one")
            note("two")
            warn("attention")
        note("three")
    assert inner.notes == ["one", "two"]
    assert outer.notes == ["one", "two", "three"]
    assert outer.warnings == inner.warnings == ["attention"]


def test_threads_are_those_of_the_verb_that_runs() -> None:
    assert threads_in_use() == 1
    with using_threads(3):
        assert threads_in_use() == 3
        with using_threads(None):
            assert threads_in_use() == 1
        assert threads_in_use() == 3
    assert threads_in_use() == 1
