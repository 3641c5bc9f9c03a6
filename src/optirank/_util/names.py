"""Names and counts in messages, and characters that a terminal must not see."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

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
    return "".join(_escaped(character) for character in text)


def _escaped(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in _UNPRINTABLE:
        return character
    return character.encode("unicode_escape").decode("ascii")


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
