"""Names, counts and shares in messages, and characters that a terminal must not see."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence

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


_SAME_NAME = 0.6  # share of the words of two names that they have in common
_FILLERS = {"cell", "cells", "type", "the", "of"}  # words that tell no class
_SHORTEST = 3  # letters of a word that may stand for a longer one


def look_alike(name: str, others: Iterable[str]) -> str:
    """The one of some names that looks most like a name; "" where none does.

    Names are compared as sets of words: ``Mono_CD14`` looks like ``cd14 monocyte``.
    """
    words = _words(name)
    best = max(
        ((_in_common(words, _words(other)), other) for other in others),
        default=(0.0, ""),
        key=lambda pair: pair[0],
    )
    return best[1] if best[0] >= _SAME_NAME else ""


def _words(name: str) -> list[str]:
    """The words of a name, in small letters; CamelCase has several."""
    parts = re.findall(r"[A-Z]?[a-z]+[0-9]*|[A-Z]+[0-9]*(?![a-z])|[0-9]+", name)
    words = [part.casefold() for part in parts] or [name.casefold()]
    return [word for word in words if word not in _FILLERS] or words


def _in_common(words: Sequence[str], others: Sequence[str]) -> float:
    """The share of words that two names have in common."""
    left = list(others)
    for word in words:
        same = [other for other in left if _same_word(word, other)]
        if same:
            left.remove(same[0])
    return 2.0 * (len(others) - len(left)) / (len(words) + len(others))


def _same_word(word: str, other: str) -> bool:
    """Whether two words are equal, or one begins the other and has no number."""
    short, long = sorted((word, other), key=len)
    begins = len(short) >= _SHORTEST and short.isalpha() and long.startswith(short)
    return word == other or (begins and long.isalpha())
