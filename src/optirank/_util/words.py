"""What is said to the reader: names, counts and shares in messages, and notes.

A verb opens a collector with `collected_notes`; whatever it calls says what there is to
say with `note` and `warn`, and takes and returns no sentences. What an inner verb says
is said by the outer one too, each sentence once.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Control, direction, lone surrogates, line ends
_UNPRINTABLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
_LONGEST = 100  # characters of a name


def printable(text: str, limit: int | None = None) -> str:
    """A text whose control characters are written as escapes (``\\x1b``), cut to a
    length.

    Names come from files of others: an escape sequence in one could change what the
    terminal shows. Line ends and tabs of messages stay.
    """
    if limit is not None and len(text) > limit:
        text = f"{text[:limit]}... ({len(text)} characters)"
    if text.isprintable():
        return text
    return "".join(
        character
        if character in "\n\t" or unicodedata.category(character) not in _UNPRINTABLE
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def valid_text(path: object) -> str:
    """A path as text that every file can hold: bytes that are no UTF-8 as escapes."""
    return str(path).encode("utf-8", "backslashreplace").decode("utf-8")


def counted(number: int, singular: str, plural: str) -> str:
    """A number with the words that agree with it: 1 sample is, 2 samples are."""
    return f"{number} {singular if number == 1 else plural}"


def some(names: Iterable[object], limit: int = 8, *, quoted: bool = False) -> str:
    """The first names of a list, and how many more there are; "none" for an
    empty list.
    """
    names = list(names)
    if not names:
        return "none"
    shown = [repr(name) if quoted else str(name) for name in names[:limit]]
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(printable(name, _LONGEST) for name in shown) + more


NO_NUMBER = "–"


def in_percent(share: float | None, digits: int = 1) -> str:
    """A share in percent without the sign, such as 91.3; a dash where there is none."""
    if share is None or not math.isfinite(share):
        return NO_NUMBER
    return f"{100 * share:.{digits}f}"


def percent(share: float | None) -> str:
    """A share as text, such as 91.3 %; a dash where there is none."""
    text = in_percent(share)
    return text if text == NO_NUMBER else f"{text} %"


def ends_in_percent(share: float, low: float, high: float) -> tuple[str, str]:
    """The ends of the interval of a share in percent, without the sign.

    They have no digits after the point, unless the share as :func:`in_percent` writes
    it then lies outside.
    """
    ends = in_percent(low, 0), in_percent(high, 0)
    shown = in_percent(share)
    if NO_NUMBER in (*ends, shown):
        return ends
    if float(ends[0]) <= float(shown) <= float(ends[1]):
        return ends
    return in_percent(low), in_percent(high)


def with_interval(share: float, low: float, high: float) -> str:
    """A share in percent with its interval, such as 91.3 (86-95); a dash where there is
    none.
    """
    text = in_percent(share)
    if text == NO_NUMBER:
        return text
    return f"{text} ({'-'.join(ends_in_percent(share, low, high))})"


_FILLERS = {"cell", "type", "the", "of", ""}  # words that tell no class


def look_alike(name: str, others: Iterable[str]) -> str:
    """The first of some names with the same words as a name, in any order, case and
    number: ``B-cells`` looks like ``b cell``; "" where none does.
    """
    words = _words(name)
    return next((other for other in others if _words(other) == words), "")


def _words(name: str) -> set[str]:
    """The words of a name that tell its class; CamelCase has several."""
    parts = re.findall(r"[A-Z]?[a-z]+[0-9]*|[A-Z]+[0-9]*(?![a-z])|[0-9]+", name)
    return {part.casefold().removesuffix("s") for part in parts or [name]} - _FILLERS


class Notes:
    """Sentences for the reader, and those that need attention, in order."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.warnings: list[str] = []


_collector: ContextVar[Notes | None] = ContextVar("collector", default=None)


@contextmanager
def collected_notes() -> Iterator[Notes]:
    """What is said inside of the block; afterwards the block around has it too."""
    outer = _collector.get()
    own = Notes()
    token = _collector.set(own)
    try:
        yield own
    finally:
        _collector.reset(token)
        if outer is not None:
            for text in own.notes:
                _add(outer.notes, text)
            for text in own.warnings:
                _add(outer.warnings, text)


def note(text: str) -> None:
    """Say something to the reader of the result; nothing where no verb runs."""
    collector = _collector.get()
    if collector is not None:
        _add(collector.notes, text)


def warn(text: str) -> None:
    """Say something that needs attention."""
    collector = _collector.get()
    if collector is not None:
        _add(collector.warnings, text)


def _add(sentences: list[str], text: str) -> None:
    if text not in sentences:
        sentences.append(text)
