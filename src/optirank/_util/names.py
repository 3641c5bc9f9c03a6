"""Lists of names in messages."""

from __future__ import annotations

from collections.abc import Iterable


def some(names: Iterable[object], limit: int = 8, *, quoted: bool = False) -> str:
    """The first names of a list, and how many more there are; "none" for an empty list."""
    names = list(names)
    if not names:
        return "none"
    shown = [repr(name) if quoted else str(name) for name in names[:limit]]
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(shown) + more
